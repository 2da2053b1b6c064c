//! The worker's ticks as times: nanoseconds since the flows were loaded, and UNIX time.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::port::Clock;

/// What the ticks of one load mean.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    begin: u64,
    begin_unix_ns: u64,
    ns_per_tick: f64,
}

impl Times {
    /// From now on. Computed time counts from 0, so that what is read is the same in every run.
    pub fn from_now(clock: &dyn Clock) -> Self {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            begin: clock.now(),
            begin_unix_ns: if clock.is_virtual() { 0 } else { unix.as_nanos() as u64 },
            ns_per_tick: 1e9 / clock.hz(),
        }
    }

    /// Nanoseconds from the load until `tick`.
    #[inline]
    pub fn since_begin_ns(&self, tick: u64) -> u64 {
        self.nanoseconds(tick.saturating_sub(self.begin))
    }

    /// So many ticks in nanoseconds.
    #[inline]
    pub fn nanoseconds(&self, ticks: u64) -> u64 {
        (ticks as f64 * self.ns_per_tick) as u64
    }

    /// UNIX time in nanoseconds, as the clock of the day ran when the flows were loaded.
    #[inline]
    pub fn unix_ns(&self, tick: u64) -> u64 {
        self.begin_unix_ns + self.since_begin_ns(tick)
    }
}
