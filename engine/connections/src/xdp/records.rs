//! The structures that `bpf/connections.bpf.c` and this process share; what fields mean stands in `bpf/records.h`.
#![allow(unsafe_code)]

use nicbench_bpf::Plain;

/// Threads that send, at most.
pub const SENDERS: usize = 64;
/// CPUs that have counts of their own, at most.
pub const CPUS: usize = 1024;
/// Entries of a sender's ring of what has its time.
pub const PLANNED: usize = 65_536;
/// Entries of its ring of what is sent at once.
pub const URGENT: usize = 4096;
/// Kinds of objects that a client asks for.
pub const OBJECTS: usize = 16;
/// Bytes of a request.
pub const MOST_REQUEST: usize = 512;
/// Buckets of times of one kind.
pub const TIMES_BUCKETS: usize = 28_672;
/// Bytes of the longest body.
pub const MOST_BODY: u64 = 65_536;
/// Records that share a bucket of the server's table.
pub const RECORDS_A_BUCKET: usize = 8;
/// The size of the block that bodies are filled from.
pub const BODY_BYTES: usize = 16_384;
/// Bits of nanoseconds that times in records lack.
pub const TICK_BITS: u32 = 4;
/// Bits of ticks that a server's times lack.
pub const SENT_SHIFT: u32 = 20;

/// States of a connection (`enum state`).
pub mod state {
    /// Nobody's.
    pub const FREE: u32 = 0;
    /// Its SYN is sent.
    pub const OPENING: u32 = 1;
    /// A request is under way.
    pub const ASKED: u32 = 2;
    /// It has nothing to do.
    pub const IDLE: u32 = 3;
    /// It was answered, and the peer is to end it.
    pub const CLOSING: u32 = 4;
}

/// Flags of a connection (`enum flag`).
pub mod flag {
    /// Due in the sustain phase.
    pub const MEASURED: u8 = 1;
    /// The peer has all that was sent.
    pub const ACKNOWLEDGED: u8 = 2;
    /// The first byte of the answer counts.
    pub const TIMED: u8 = 8;
    /// Asked while all are held.
    pub const HELD: u8 = 16;
    /// It ends after its last exchange.
    pub const CLOSES: u8 = 32;
    /// It is held after its first exchange.
    pub const KEPT: u8 = 64;
    /// The request waited for its connection: its lateness is not the process's.
    pub const WAITED: u8 = 128;
}

/// What is to be sent (`enum kind`).
pub mod kind {
    /// The SYN of a new connection.
    pub const OPEN: u8 = 1;
    /// A request on an idle one.
    pub const ASK: u8 = 2;
    /// What was not acknowledged.
    pub const RESEND: u8 = 3;
    /// A RST, for its time is over.
    pub const GIVE_UP: u8 = 4;
    /// A RST of an idle one.
    pub const RESET: u8 = 5;
}

/// Places of counts (`enum counter`); a failure has one for the ramp and one for the sustain phase, from `FAILED` on.
pub mod counter {
    /// Connections that stood.
    pub const OPENED: usize = 0;
    /// Of these, those that have ended.
    pub const ENDED: usize = 1;
    /// Due in the ramp and complete; the next one: in the sustain phase.
    pub const COMPLETED: usize = 2;
    /// Complete before the sustain phase ended.
    pub const IN_TIME: usize = 4;
    /// Bytes of bodies in the sustain phase.
    pub const BODY_BYTES: usize = 5;
    /// Bytes of all bodies.
    pub const ALL_BYTES: usize = 6;
    /// Held connections that answered again.
    pub const HELD_ANSWERED: usize = 7;
    /// First exchanges of connections that are held.
    pub const KEPT_ANSWERED: usize = 8;
    /// Segments.
    pub const SENT: usize = 9;
    /// Segments that were sent again.
    pub const RESENT: usize = 10;
    /// Segments of no connection.
    pub const NOT_EXPECTED: usize = 11;
    /// Segments that were there before, or too early.
    pub const REPEATED: usize = 12;
    /// Segments with a wrong checksum.
    pub const DAMAGED: usize = 13;
    /// Connections that a server accepted.
    pub const ACCEPTED: usize = 14;
    /// Requests that it got.
    pub const REQUESTS: usize = 15;
    /// SYNs for which it had no record.
    pub const FULL: usize = 16;
    /// Records that it took for connections.
    pub const TAKEN: usize = 17;
    /// The first of the failures.
    pub const FAILED: usize = 18;
    /// All of them.
    pub const COUNTERS: usize = FAILED + 2 * 12;
    /// Places of a CPU's counts.
    pub const PLACES: usize = COUNTERS.next_multiple_of(8);
}

/// Kinds of times (`enum times`).
pub mod times {
    /// From the SYN to the connection.
    pub const CONNECT: usize = 0;
    /// From the due moment to the first byte.
    pub const FIRST_BYTE: usize = 1;
    /// From it to the last.
    pub const LAST_BYTE: usize = 2;
    /// How late something began.
    pub const LATENESS: usize = 3;
    /// How many kinds there are.
    pub const KINDS: usize = 4;
}

/// A connection of the client.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Client {
    pub due_ns: u64,
    pub control: u32,
    pub sent: u32,
    pub next: u32,
    pub expected: u32,
    pub left: u32,
    pub object: u16,
    pub exchanges: u16,
}

impl Client {
    /// One of `state`.
    pub fn state(&self) -> u32 {
        state_of(self.control)
    }

    /// Of `flag`.
    pub fn flags(&self) -> u8 {
        (self.control >> 8) as u8
    }

    /// How often the record was used.
    pub fn usage(&self) -> u16 {
        (self.control >> 16) as u16
    }
}

/// The state in the `control` of a record.
pub fn state_of(control: u32) -> u32 {
    control & 0x3F
}

/// A connection of the server.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Server {
    pub key: u64,
    pub control: u32,
    pub first: u32,
    pub expected: u32,
    /// Two words of several fields.
    pub answer: [u32; 2],
    pub sent: u16,
    pub neighbour: u8,
    pub tries: u8,
}

/// A segment that is to be sent.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Work {
    pub due_ns: u64,
    pub slot: u32,
    pub object: u16,
    pub exchanges: u16,
    pub kind: u8,
    pub flags: u8,
    pub usage: u16,
    /// Of the record, when it was found to take too long.
    pub sent: u32,
}

/// What the process tells the programs.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings {
    pub own: [u8; 16],
    pub peer: [u8; 16],
    pub own_mac: [u8; 6],
    pub peer_mac: [u8; 6],
    pub first_port: u16,
    pub ports: u16,
    pub first_local: u16,
    pub locals: u16,
    pub seed: u32,
    pub buckets: u32,
    pub segment_bytes: u32,
    pub resets: u32,
    pub padding: u32,
    pub sustain_from_ns: u64,
    pub sustain_to_ns: u64,
}

/// How much of both rings of a sender is written.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, Default)]
pub struct Written {
    pub planned: u32,
    pub urgent: u32,
}

/// How much of them is done, and until when it counts that the sender was away.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    pub planned: u32,
    pub urgent: u32,
    pub upset_until_ns: u64,
}

/// The requests for one object.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Request {
    pub bytes: [u16; 2],
    pub sums: [u32; 2],
    pub body: u32,
    pub text: [[u8; MOST_REQUEST]; 2],
}

impl Request {
    /// A request, and the one that ends the connection; None where either is too long.
    pub fn new(request: &[u8], last: &[u8], body: u32) -> Option<Self> {
        let mut made = Self { bytes: [0; 2], sums: [0; 2], body, text: [[0; MOST_REQUEST]; 2] };
        for (which, text) in [request, last].into_iter().enumerate() {
            made.text[which].get_mut(..text.len())?.copy_from_slice(text);
            made.bytes[which] = text.len() as u16;
            made.sums[which] =
                made.text[which].chunks(2).map(|pair| u32::from(u16::from_ne_bytes([pair[0], pair[1]]))).sum();
        }
        Some(made)
    }
}

// SAFETY: repr(C), of integers only, as the structures of these names in records.h.
unsafe impl Plain for Client {}
// SAFETY: as above.
unsafe impl Plain for Server {}
// SAFETY: as above.
unsafe impl Plain for Work {}
// SAFETY: as above.
unsafe impl Plain for Settings {}
// SAFETY: as above.
unsafe impl Plain for Written {}
// SAFETY: as above.
unsafe impl Plain for Progress {}
// SAFETY: as above; it is a multiple of 8 bytes long.
unsafe impl Plain for Request {}
