//! The two clocks: the processor's time-stamp counter, and one that is computed.

use std::cell::Cell;
use std::time::Duration;

use nicbench_protocol::ClockError;

use crate::port::Clock;
use crate::sys::{thread, tsc};

/// Ticks of the TSC, calibrated against the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct TscClock {
    hz: f64,
    ns_per_tick: f64,
    /// A tick, and the engine's time then.
    anchor: (u64, u64),
    /// By what share it gains on the machine's own; 0 but in tests.
    gains: f64,
}

/// Long enough for less than one part in a million of error: reading both clocks takes under 0.1 us.
const CALIBRATION: Duration = Duration::from_millis(200);

impl TscClock {
    /// Measures the TSC's frequency against the monotonic clock, for 0.2 s.
    pub fn calibrated() -> Self {
        let (first_ticks, first_ns) = simultaneous();
        std::thread::sleep(CALIBRATION);
        let (last_ticks, last_ns) = simultaneous();
        let ns_per_tick = (last_ns - first_ns) as f64 / (last_ticks - first_ticks) as f64;
        Self { hz: 1e9 / ns_per_tick, ns_per_tick, anchor: (last_ticks, last_ns), gains: 0.0 }
    }

    /// The same clock as another machine's would be: ahead, and gaining on this machine's.
    pub fn with_error(self, error: ClockError) -> Self {
        let gains = error.ppm / 1e6;
        let ns_per_tick = self.ns_per_tick * (1.0 + gains);
        let (ticks, ns) = self.anchor;
        let anchor = (ticks, ns.saturating_add_signed(error.offset_ns));
        Self { hz: 1e9 / ns_per_tick, ns_per_tick, anchor, gains }
    }

    /// The engine's time at a tick: nanoseconds of this clock, from the monotonic clock's time of its calibration on.
    pub fn time_ns(&self, ticks: u64) -> u64 {
        let (anchor, ns) = self.anchor;
        ns.saturating_add_signed((ticks.wrapping_sub(anchor) as i64 as f64 * self.ns_per_tick) as i64)
    }

    /// The tick at which the engine's time will be, or was, so much.
    pub fn tick_at(&self, time_ns: u64) -> u64 {
        let (anchor, ns) = self.anchor;
        anchor.saturating_add_signed((time_ns.wrapping_sub(ns) as i64 as f64 / self.ns_per_tick) as i64)
    }
}

/// TSC and monotonic clock at one moment: of several tries the one that was interrupted least.
pub fn simultaneous() -> (u64, u64) {
    let tries = (0..8).map(|_| {
        let before = tsc::ticks();
        let ns = tsc::monotonic_ns();
        let after = tsc::ticks();
        (after.saturating_sub(before), before + after.saturating_sub(before) / 2, ns)
    });
    tries.min_by_key(|(width, ..)| *width).map_or((0, 0), |(_, ticks, ns)| (ticks, ns))
}

impl Clock for TscClock {
    #[inline(always)]
    fn now(&self) -> u64 {
        tsc::ticks()
    }

    fn hz(&self) -> f64 {
        self.hz
    }

    #[inline(always)]
    fn tick(&self) {}

    fn wait_until(&self, ticks: u64) {
        loop {
            let left = ticks.saturating_sub(self.now());
            if left == 0 {
                return;
            }
            std::thread::sleep(Duration::from_nanos(self.nanoseconds(left).clamp(1, 1_000_000)));
        }
    }

    #[inline(always)]
    fn nanoseconds(&self, ticks: u64) -> u64 {
        (ticks as f64 * self.ns_per_tick) as u64
    }

    fn machine_nanoseconds(&self, ticks: u64) -> u64 {
        (ticks as f64 * self.ns_per_tick / (1.0 + self.gains)) as u64
    }

    fn counter(&self) -> Option<TscClock> {
        Some(*self)
    }
}

/// CLOCK_MONOTONIC, whose ticks are nanoseconds: the clock of programs in the kernel.
#[derive(Debug, Clone, Copy, Default)]
pub struct MonotonicClock;

impl Clock for MonotonicClock {
    fn now(&self) -> u64 {
        tsc::monotonic_ns()
    }

    fn hz(&self) -> f64 {
        1e9
    }

    fn tick(&self) {}

    fn wait_until(&self, ticks: u64) {
        while self.now() < ticks {
            thread::sleep_until(ticks);
        }
    }

    fn nanoseconds(&self, ticks: u64) -> u64 {
        ticks
    }
}

/// Nanoseconds that pass only when the worker's loop turns or waits.
#[derive(Debug, Default)]
pub struct VirtualClock {
    now_ns: Cell<u64>,
}

/// What one iteration of the worker's loop takes in virtual time.
pub const VIRTUAL_ITERATION_NS: u64 = 500;

impl Clock for VirtualClock {
    fn now(&self) -> u64 {
        self.now_ns.get()
    }

    fn hz(&self) -> f64 {
        1e9
    }

    fn tick(&self) {
        self.now_ns.set(self.now_ns.get() + VIRTUAL_ITERATION_NS);
    }

    fn wait_until(&self, ticks: u64) {
        self.now_ns.set(self.now_ns.get().max(ticks));
    }

    fn is_virtual(&self) -> bool {
        true
    }

    fn nanoseconds(&self, ticks: u64) -> u64 {
        ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_time_moves_only_when_told() {
        let clock = VirtualClock::default();
        assert_eq!((clock.now(), clock.now()), (0, 0));
        clock.tick();
        assert_eq!(clock.now(), VIRTUAL_ITERATION_NS);
        clock.wait_until(10_000);
        clock.wait_until(5_000);
        assert_eq!(clock.now(), 10_000);
    }

    #[test]
    fn a_clock_with_an_error_is_ahead_and_gains() {
        let clock = TscClock::calibrated();
        let wrong = clock.with_error(ClockError { offset_ns: 1_000_000, ppm: 100.0 });
        let (begin, second) = (clock.now(), clock.hz() as u64);
        let ahead = |tick| wrong.time_ns(tick) as f64 - clock.time_ns(tick) as f64;
        assert!((ahead(begin) - 1e6).abs() < 1e3, "{}", ahead(begin));
        assert!((ahead(begin + second) - ahead(begin) - 1e5).abs() < 10.0);
        assert!(wrong.tick_at(wrong.time_ns(begin)).abs_diff(begin) < 10);
    }

    #[test]
    fn the_calibrated_clock_has_a_plausible_rate_and_waits_no_less_than_asked() {
        let clock = TscClock::calibrated();
        assert!((1e8..1e10).contains(&clock.hz()), "{}", clock.hz());
        let end = clock.now() + (clock.hz() / 1000.0) as u64;
        clock.wait_until(end);
        assert!(clock.now() >= end);
    }
}
