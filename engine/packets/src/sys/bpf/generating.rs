//! The structures that `bpf/generate.bpf.c` and this process share; what fields mean stands in `bpf/generate.h`.

use super::Plain;

/// Streams that one program sends.
pub const MAXIMUM_SENDERS: usize = 64;
pub const MAXIMUM_PORTS: usize = 64;
/// Pieces of 16 bytes in which the flows of a stream may differ.
pub const MAXIMUM_PIECES: usize = 8;
/// Checksums of a varied frame.
pub const MAXIMUM_CHECKSUMS: usize = 4;
/// Of the histogram of one sender's transmit gaps.
pub const GAP_BUCKETS: usize = 4096;
/// A time that is none.
pub const NEVER: u64 = u64::MAX;

/// Values of `Settings::phase`.
pub const SEND: u32 = 1;
pub const END: u32 = 2;

/// Values of `Checksum::kind`, which add up.
pub const NEVER_ZERO: u16 = 1;
pub const SIGNED: u16 = 2;
pub const ODD: u16 = 4;

/// What the process tells the program.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings {
    pub first_key: u64,
    pub second_key: u64,
    pub epoch_ns: u64,
    pub end_ns: u64,
    pub last_ns: u64,
    pub gap_floor_ns: u64,
    pub phase: u32,
    pub mark: u32,
    pub senders: u32,
    pub ports: u32,
    pub batch: u32,
    pub ends_with_frames: u32,
    pub is_scheduled: u32,
    pub namespace: u32,
}

/// One stream, or one worker's part of it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct KernelSender {
    pub due_ns: u64,
    pub remainder: u64,
    pub whole_ns: u64,
    pub numerator: u64,
    pub denominator: u64,
    pub left_in_burst: u64,
    pub burst_frames: u64,
    pub sent: u64,
    pub most: u64,
    pub catch_up_ns: u64,
    pub sequence: u64,
    pub flow: u32,
    pub flows: u32,
    pub first_flow: u32,
    pub is_paced: u32,
    pub port: u32,
    pub length: u32,
    pub signature_at: u32,
    pub checksum_at: u32,
    pub image_at: u32,
    pub pieces: u32,
    pub first_image: u32,
    pub first_sum: u32,
    pub first_variant: u32,
    pub is_varied: u32,
    pub checksums: u32,
    pub is_turned: u32,
    pub first_order: u32,
    pub order_length: u32,
    pub seed: u64,
    pub jump: u64,
    pub place: u64,
    pub period: u64,
    pub turned: u64,
    pub given_up: u64,
    pub bursts: u64,
    pub largest_burst: u64,
    pub burst: u64,
    pub burst_from: u64,
    pub last_sent_ns: u64,
    pub gap_sum_ns: u64,
    pub gap_minimum_ns: u64,
    pub gap_maximum_ns: u64,
}

/// One checksum of a variant.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Checksum {
    pub at: u16,
    pub kind: u16,
    pub sum: u32,
}

/// A frame that a stream of varied frames has among others.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Variant {
    pub length: u32,
    pub signature_at: u32,
    pub laps: u64,
    pub flow: u32,
    pub turn: u32,
    pub of_flow: u32,
    pub checksums: u32,
    pub checksum: [Checksum; MAXIMUM_CHECKSUMS],
}

/// What the program finds of itself.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    pub now_ns: u64,
    pub idle_runs: u64,
    pub last_run_ns: u64,
    pub longest_gap_ns: u64,
    pub total_gap_ns: u64,
    pub gaps: u64,
    pub batch_begins_ns: u64,
    pub batches: u64,
    pub batch_sum_ns: u64,
    pub finished_ns: u64,
    pub batch: u64,
    pub is_begun: u32,
    pub is_finished: u32,
    pub next_sender: u32,
    pub place: u32,
    pub cpu: u32,
    pub padding: u32,
}

/// What became of one port's frames.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Flushed {
    /// Frames that the driver took.
    pub taken: u64,
    /// Frames that it refused: a ring was full.
    pub refused: u64,
    /// Frames that it gave an error for: the link is down, or its peer does not receive.
    pub failed: u64,
    pub interface: u32,
    pub padding: u32,
}

// SAFETY: repr(C), of integers only, as the structure of this name in generate.h.
unsafe impl Plain for Settings {}
// SAFETY: as above; `struct sender`.
unsafe impl Plain for KernelSender {}
// SAFETY: as above.
unsafe impl Plain for Progress {}
// SAFETY: as above; `struct output`.
unsafe impl Plain for Flushed {}
// SAFETY: as above.
unsafe impl Plain for Variant {}
