//! The one thing the engine knows of packet I/O: a port that hands out, takes and returns bursts of frames.

pub mod remote;

use std::collections::BTreeMap;

use crate::clock::TscClock;
use crate::error::{EngineError, ErrorKind};
use crate::stamps::StampFacts;
pub use crate::sys::frame::Frame;

/// The largest burst any call takes.
pub const MAXIMUM_BURST: usize = 64;

/// In place of a time stamp: the frame bears none.
pub const NO_STAMP: u64 = u64::MAX;

/// What a configured port is, for the reply to `configure`.
#[derive(Debug, Clone, PartialEq)]
pub struct PortFacts {
    pub name: String,
    pub driver: String,
    pub mac: Option<[u8; 6]>,
    /// The nominal rate of the link, from the driver; `None` where it does not know.
    pub link_bits_per_s: Option<u64>,
    pub link_up: Option<bool>,
    /// The shortest and the longest frame, with the 4-byte FCS.
    pub minimum_frame_bytes: u32,
    pub maximum_frame_bytes: u32,
    /// So much longer a frame may be that begins with a tag of 802.1Q: an interface's MTU does not count one.
    pub tag_bytes: u32,
    /// The most frames that it takes at a call.
    pub maximum_burst: usize,
    pub transmit_descriptors: u32,
    pub receive_descriptors: u32,
    /// The socket's send buffer, read back; `None` where there is no socket.
    pub send_buffer_bytes: Option<u64>,
    /// The most frames that the kernel takes from the socket at a call; `None` where it is not told.
    pub transmit_budget_frames: Option<u32>,
    pub numa_node: Option<i32>,
    /// Refused frames on such a port are the DUT's back-pressure.
    pub lossless: bool,
    /// The clock that stamps received frames, where one was asked for; `None`: the worker's own.
    pub stamps: Option<StampFacts>,
}

/// The type of a tag that interfaces do not count: that of IEEE 802.1Q, and not of 802.1ad.
pub const TAG_TYPE: u16 = 0x8100;

impl PortFacts {
    /// The longest frame, with or without a tag behind its addresses.
    pub fn longest(&self, is_tagged: bool) -> u32 {
        self.maximum_frame_bytes + if is_tagged { self.tag_bytes } else { 0 }
    }
}

impl PortFacts {
    /// Whether it is a port of another engine.
    pub fn is_remote(&self) -> bool {
        self.driver == remote::DRIVER
    }
}

/// Cumulative counters since the port was configured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PortCounters {
    /// Frames that really left, where the port can tell (AF_XDP completions); otherwise frames accepted by `send`.
    pub completed: u64,
    /// Frames that arrived and that the tester itself lost (full ring, empty fill ring, no buffer).
    pub receive_overrun: u64,
    /// How often the state of the link changed.
    pub link_changes: u64,
    /// `None` where it is unknown.
    pub link_up: Option<bool>,
    /// All other counters, by the names that reports use.
    pub named: BTreeMap<String, u64>,
    /// Why the kernel could not be asked about the port's interface: it was removed, or moved to another namespace.
    pub gone: Option<String>,
}

impl PortCounters {
    /// # Errors
    /// Where the interface of the port, whose name this is, is gone: then nothing that was counted tells of the DUT.
    pub fn check_present(&self, port: &str) -> Result<(), EngineError> {
        self.gone.as_ref().map_or(Ok(()), |why| {
            let message = format!("the interface of port {port} is gone: {why}");
            Err(EngineError::new(ErrorKind::Port, message, "find what removed it, and begin anew"))
        })
    }
}

/// A port. One worker owns it; nothing here is shared between threads.
///
/// Frames from `allocate` belong to the caller until `send` accepts them or `free` takes them back; frames from
/// `receive` belong to the caller until `free`. Lengths here are without FCS: the device adds it.
pub trait Port {
    fn facts(&self) -> &PortFacts;

    /// Fills the front of `frames` with writable buffers of `length` bytes; returns how many there were.
    fn allocate(&mut self, frames: &mut [Frame], length: usize) -> usize;

    /// As `allocate`, for frames whose constant bytes `tag` names: buffers that still hold them say so
    /// ([`Frame::is_prefilled`]), and the caller promises to write them into all others. The tag is not 0.
    fn allocate_prefilled(&mut self, frames: &mut [Frame], length: usize, _tag: u64) -> usize {
        self.allocate(frames, length)
    }

    /// Offers `frames` in order; returns how many were accepted. The rest stay the caller's.
    fn send(&mut self, frames: &[Frame]) -> usize;

    /// As `send`; a port that can is also to note when the first of them leaves, `sent` being the worker's tick since
    /// the trial began. See [`Port::transmit_sample`].
    fn send_sampled(&mut self, frames: &[Frame], _sent: u64) -> usize {
        self.send(frames)
    }

    /// Of a frame that was noted: its tick, and the stamp of the port's clock when it left, [`NO_STAMP`] where the port
    /// did not say in time. `None` while none is known.
    fn transmit_sample(&mut self) -> Option<(u64, u64)> {
        None
    }

    /// The count of the clock that stamps received frames, now.
    fn read_clock(&mut self) -> Option<u64> {
        None
    }

    /// The time stamps of frames from the last `receive`, not freed yet.
    fn stamps(&mut self, _frames: &[Frame], stamps: &mut [u64]) {
        stamps.fill(NO_STAMP);
    }

    /// Fills the front of `frames` with what has arrived; returns how many.
    fn receive(&mut self, frames: &mut [Frame]) -> usize;

    fn free(&mut self, frames: &[Frame]);

    /// Pushes out what the device still holds back (AF_XDP: wake-up and completions). Called while idle and before
    /// counters are read.
    fn flush(&mut self);

    fn counters(&mut self) -> PortCounters;

    /// Called now and then while a trial runs: a counter of few bits is read before it can wrap twice.
    fn keep_up(&mut self) {}

    /// A trial begins. Simulated ports start afresh here, seeded by the trial's number and load; others have nothing to
    /// do.
    fn begin_trial(&mut self, _trial: u32, _load: u64) {}

    /// The tick at which something will happen at this port next, where that can be known (simulated ports): a virtual
    /// clock may jump there.
    fn next_event(&self) -> Option<u64> {
        None
    }
}

/// Sends one frame of these bytes; whether the port took it.
pub fn send_one(port: &mut dyn Port, bytes: &[u8]) -> bool {
    let mut frames = [Frame::empty()];
    if port.allocate(&mut frames, bytes.len()) == 0 {
        return false;
    }
    frames[0].bytes_mut().copy_from_slice(bytes);
    let is_sent = port.send(&frames) == 1;
    if !is_sent {
        port.free(&frames);
    }
    is_sent
}

/// The worker's clock: ticks of the TSC, or computed.
pub trait Clock {
    /// The monotonic time, in ticks.
    fn now(&self) -> u64;

    /// Ticks per second.
    fn hz(&self) -> f64;

    /// Called once in each iteration of the worker's loop: a virtual clock moves on here, the TSC does nothing.
    fn tick(&self);

    /// Waits without work until `ticks` (between trials); the TSC sleeps in steps of 1 ms or less.
    fn wait_until(&self, ticks: u64);

    /// Whether time is computed: then it stands still unless somebody moves it.
    fn is_virtual(&self) -> bool {
        false
    }

    /// The clock as the processor's counter, where it is that: only such an engine tells its time to another.
    fn counter(&self) -> Option<TscClock> {
        None
    }

    /// Converts ticks to nanoseconds of the machine's own clock, which a test may have made another.
    fn machine_nanoseconds(&self, ticks: u64) -> u64 {
        self.nanoseconds(ticks)
    }

    /// Converts ticks to nanoseconds.
    fn nanoseconds(&self, ticks: u64) -> u64 {
        (ticks as f64 * (1e9 / self.hz())) as u64
    }
}
