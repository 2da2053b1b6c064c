//! The clock of a run: nanoseconds since it began, the same in every thread.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// A moment from which nanoseconds are counted.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// A clock that begins now.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Nanoseconds since it began.
    pub fn now(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }
}

/// The CPU time of the calling thread so far, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Seconds as nanoseconds.
pub fn ns(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}
