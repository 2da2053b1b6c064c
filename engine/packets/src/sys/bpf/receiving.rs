//! What the receiving program shares with the engine, as `bpf/receive.h` lays it out.

use super::Plain;
use crate::flows::FlowLine;

pub const MOST_OFFSETS: usize = 16;
pub const MOST_WORDS: usize = 32;
pub const MOST_LENGTHS: usize = 6;
pub const MOST_FIELDS: usize = 10;
pub const MOST_SUMS: usize = 4;
pub const MOST_SUMMED: usize = 12;
pub const HISTOGRAM_BLOCKS: usize = 31;
pub const BLOCK_COUNTS: usize = 1024;
pub const LENGTH_WORDS: usize = 256;

pub const IDLE: u32 = 0;
pub const RUNNING: u32 = 1;
pub const AFTER_DRAIN: u32 = 2;

pub const ANYWHERE: u32 = 0;
pub const PAYLOAD: u32 = 1;
pub const CARRIED: u32 = 2;

pub const REORDERED: u32 = 1;
pub const ADVANCED: u32 = 2;
pub const OVERFLOW: u32 = 3;
pub const UNKNOWN: u32 = 4;
pub const CAPTURED: u32 = 5;
pub const JUMPED: u32 = 6;

/// A frame of which the program keeps a copy: an event, and the bytes behind it.
pub const KEPT_BYTES: usize = size_of::<Event>() + 4096;

/// What the program does, and for which trial.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Config {
    pub first_key: u64,
    pub second_key: u64,
    pub epoch_ns: u64,
    pub last_slow_ns: u64,
    pub test_now_ns: u64,
    pub test_stamp: u64,
    pub interval_ns: u64,
    pub mark: u32,
    pub trial: u32,
    pub phase: u32,
    pub streams: u32,
    pub offsets: u32,
    pub is_carried: u32,
    pub flows: u32,
    pub ring_words: u32,
    pub holes: u32,
    pub histograms: u32,
    pub intervals: u32,
    pub shards: u32,
    pub capture_frames: u32,
    pub capture_around: u32,
    pub is_ready: u32,
    pub offset: [u32; MOST_OFFSETS],
    pub padding: u32,
}

/// Constants of the program.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings {
    pub is_told_time: u32,
    pub is_repeated: u32,
    pub is_stamped: u32,
}

impl Settings {
    pub fn bytes(&self) -> Vec<u8> {
        [self.is_told_time, self.is_repeated, self.is_stamped].iter().flat_map(|value| value.to_ne_bytes()).collect()
    }
}

pub const CLOCK_LINES: usize = 64;

/// How a card's clock runs beside the kernel's.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockLine {
    pub stamp: u64,
    pub time_ns: u64,
    pub correction: i64,
}

/// The present line and earlier ones.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ClockLines {
    pub present: u32,
    pub padding: u32,
    pub line: [ClockLine; CLOCK_LINES],
}

/// Where a measurement's repeated frame is.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Repetition {
    pub flow: u32,
    pub flows: u32,
    pub step: u32,
    pub sequence: u32,
}

/// Bits that a frame must have in the 8 bytes from `at` on.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Word {
    pub value: u64,
    pub mask: u64,
    pub at: u32,
    pub padding: u32,
}

/// A field of 16 bits that holds the frame's length, less `minus`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct LengthField {
    pub at: u32,
    pub minus: u32,
}

/// A field that differs between flows; wide numbers are their upper and their lower half.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Field {
    pub first: [u64; 2],
    pub span: [u64; 2],
    pub mask: [u64; 2],
    pub step: u64,
    pub count: u64,
    pub order: u64,
    pub at: u32,
    pub bytes: u32,
    pub shift: u32,
    pub is_drawn: u16,
    pub is_behind_options: u16,
}

/// A range that a checksum covers and that differs between frames.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Summed {
    pub from: u16,
    pub length: u16,
    pub is_odd: u16,
    pub padding: u16,
}

/// A checksum in what is carried.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Sum {
    pub constant: u64,
    pub at: u32,
    pub is_never_zero: u32,
    pub ranges: u32,
    pub padding: u32,
    pub range: [Summed; MOST_SUMMED],
}

/// How the frames of a stream are recognised.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Stream {
    pub first_flow: u32,
    pub flows: u32,
    pub first_line: u32,
    pub is_here: u32,
    pub length: u32,
    pub signature: u32,
    pub first_group: u32,
    pub group_shift: u32,
    pub shared_group: u32,
    pub search: u32,
    pub words: u32,
    pub found_words: u32,
    pub lengths: u32,
    pub fields: u32,
    pub sums: u32,
    pub address_words: u32,
    pub address_fields: u32,
    pub address_length: u32,
    pub length_field: [LengthField; MOST_LENGTHS],
    pub word: [Word; MOST_WORDS],
    pub found_word: [Word; MOST_WORDS],
    pub address_word: [Word; MOST_WORDS],
    pub field: [Field; MOST_FIELDS],
    pub address_field: [Field; MOST_FIELDS],
    pub sum: [Sum; MOST_SUMS],
}

/// Sequences that were passed over together.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Hole {
    pub range: u64,
    pub arrival: u64,
}

/// What one receive queue counted of one stream. Where a time may be unknown, it is counted from 1.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Tally {
    pub received: u64,
    pub duplicated: u64,
    pub reordered: u64,
    pub corrupted: u64,
    pub corrupted_copies: u64,
    pub late: u64,
    pub unattributed: u64,
    pub variation_maximum_ns: u64,
    pub unpaired: u64,
    pub missing: i64,
    pub last_jump_ns: u64,
    pub negative: u64,
    pub negative_maximum_ns: u64,
    pub beyond_least_ns: u64,
    pub beyond_most_ns: u64,
    pub first_ns: u64,
    pub last_ns: u64,
    pub silence_from_ns: u64,
    pub silence_to_ns: u64,
    pub interval: u64,
    pub interval_end_ns: u64,
    pub received_before: u64,
    pub missing_before: i64,
    pub is_rewritten: u64,
}

/// What a stream received in one interval.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Interval {
    pub received: u64,
    pub missing: i64,
}

/// A part of a histogram.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct HistogramBlock {
    pub count: [u32; BLOCK_COUNTS],
}

/// What one receive queue counted beside its streams.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Shard {
    pub arrived: u64,
    pub foreign: u64,
    pub misdirected: u64,
    pub unattributed: u64,
    pub stale: u64,
    pub last_ns: u64,
    pub passed: u64,
    pub events_lost: u64,
    pub captured: u64,
    pub last_stream: u64,
    pub seen: u64,
    pub handed_over: u64,
    pub wanted: u64,
    pub stamped: u64,
    pub unstamped: u64,
    pub implausible: u64,
    pub before_stamp: u64,
    pub before_stamp_maximum_ns: u64,
    pub scratch: [u8; 256],
}

/// Frames that another processor was to judge.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct HandedOver {
    pub refused: u64,
    pub map: u32,
    pub padding: u32,
}

/// The front of a record of the ring; the bytes of a frame may follow.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Event {
    pub kind: u32,
    pub shard: u32,
    pub stream: u32,
    pub flow: u32,
    pub numbers: [u64; 4],
}

// SAFETY: for each of these, `repr(C)` and integers only, without padding between them.
unsafe impl Plain for Config {}
// SAFETY: as above.
unsafe impl Plain for Repetition {}
// SAFETY: as above.
unsafe impl Plain for ClockLines {}
// SAFETY: as above.
unsafe impl Plain for Stream {}
// SAFETY: as above.
unsafe impl Plain for Hole {}
// SAFETY: as above.
unsafe impl Plain for Tally {}
// SAFETY: as above.
unsafe impl Plain for Interval {}
// SAFETY: as above.
unsafe impl Plain for HistogramBlock {}
// SAFETY: as above.
unsafe impl Plain for Shard {}
// SAFETY: as above.
unsafe impl Plain for HandedOver {}
// SAFETY: as above.
unsafe impl Plain for FlowLine {}

/// A value of zeros.
pub fn zeroed<T: Plain>() -> T {
    // SAFETY: every pattern of bits is a value.
    unsafe { std::mem::zeroed() }
}

/// The record's front and what follows it; `None` where it is too short.
pub fn split_event(record: &[u8]) -> Option<(Event, &[u8])> {
    let bytes = record.get(..size_of::<Event>())?;
    // SAFETY: as many bytes as an event has, of which every pattern is a value; they need not be aligned.
    let event = unsafe { bytes.as_ptr().cast::<Event>().read_unaligned() };
    Some((event, &record[size_of::<Event>()..]))
}

/// Waits until no program is at work any more that began before this call.
pub fn wait_for_programs() {
    const MEMBARRIER_CMD_GLOBAL: libc::c_int = 1;
    // SAFETY: no pointers.
    if unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) } != 0 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}
