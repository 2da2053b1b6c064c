//! Detects that one CPU stood still: an interrupt of its own timer comes every 2 ms, with the time at which it came.
//! Where one is late the CPU stood still, however it looks from within: neither programs nor the kernel's packet work
//! can hold up an interrupt.

use std::{fmt, io};

use perf_event::SampleFlag;
use perf_event::data::Record;
use perf_event::data::parse::ParseError;
use perf_event::events::Software;
use perf_event::{Builder, Sampler};

use crate::sys::tsc;

/// Between two interrupts.
pub const PERIOD_NS: u64 = 2_000_000;
/// An interrupt that is later by no more than this is punctual: the way through the kernel takes time.
const PUNCTUAL_NS: u64 = 100_000;
/// Starting takes some of this, and an interrupt takes longer than the rest.
const BEFORE_NS: u64 = 10_000;
/// Of the kernel's buffer: 128 KiB, a sample takes 16 bytes. It is emptied at every look at the core.
const BUFFER_BYTES: usize = 1 << 17;

/// The timer interrupts of one CPU, recorded by the kernel (perf_event_open(2), the software event `cpu-clock`).
pub struct StallDetector {
    sampler: Sampler,
    ticks: TimerTicks,
}

impl fmt::Debug for StallDetector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("StallDetector").field("ticks", &self.ticks).finish_non_exhaustive()
    }
}

impl StallDetector {
    /// # Errors
    /// Where the kernel does not let this process watch a whole CPU.
    pub fn open(cpu: u32) -> io::Result<Self> {
        let mut event = Builder::new(Software::CPU_CLOCK);
        event.any_pid().one_cpu(cpu as usize).sample_period(PERIOD_NS).sample(SampleFlag::TIME).sample_id_all(false);
        event.include_kernel().include_hv().enabled(false);
        let sampler = event.build()?.sampled(BUFFER_BYTES)?;
        Ok(Self { sampler, ticks: TimerTicks::default() })
    }

    /// Begins to record right before this time of the monotonic clock, for which it waits at work; what was recorded
    /// before is forgotten. Another timer that is due at that time, or a multiple of the period later, finds the
    /// processor in the interrupt of this one, and takes none of its own.
    pub fn start_before(&mut self, monotonic_ns: u64) {
        while self.sampler.next_record().is_some() {}
        self.ticks = TimerTicks::default();
        while tsc::monotonic_ns() + BEFORE_NS < monotonic_ns {
            std::hint::spin_loop();
        }
        // If it cannot be started there will be no ticks, and none were late.
        let _ = self.sampler.enable();
    }

    /// Reads the interrupts that came since; to be called before the kernel's buffer is full.
    pub fn read(&mut self) {
        while let Some(record) = self.sampler.next_record() {
            self.ticks.note(time_of(record.parse_record()));
        }
    }

    /// Ends recording. Returns the longest time that the CPU stood still, in nanoseconds; `None` where no interrupt
    /// came.
    pub fn stop(&mut self) -> Option<u64> {
        let _ = self.sampler.disable();
        self.read();
        self.ticks.longest_pause_ns
    }
}

/// `None` for everything but a sample: the kernel leaves some out when a CPU slept long (throttling), or lost some.
fn time_of(record: Result<Record<'_>, ParseError>) -> Option<u64> {
    match record {
        Ok(Record::Sample(sample)) => sample.time(),
        _ => None,
    }
}

/// The interrupts of one CPU, which are due at multiples of the period. The kernel does not record all of them (those
/// of a CPU that sleeps, above all): where some are missing and the next is punctual, nothing stood still.
#[derive(Debug, Default)]
struct TimerTicks {
    /// The time of an interrupt that came when it was due.
    punctual_ns: u64,
    last_ns: Option<u64>,
    longest_pause_ns: Option<u64>,
}

impl TimerTicks {
    fn note(&mut self, time_ns: Option<u64>) {
        let Some(time) = time_ns else {
            self.last_ns = None;
            return;
        };
        if let Some(last) = self.last_ns {
            let gap = time.saturating_sub(last);
            let pause = if self.is_punctual(time) { 0 } else { gap.saturating_sub(PERIOD_NS) };
            self.longest_pause_ns = self.longest_pause_ns.max(Some(pause));
            if gap.abs_diff(PERIOD_NS) < PUNCTUAL_NS {
                self.punctual_ns = time;
            }
        } else {
            self.punctual_ns = time;
        }
        self.last_ns = Some(time);
    }

    fn is_punctual(&self, time_ns: u64) -> bool {
        let phase = time_ns.wrapping_sub(self.punctual_ns) % PERIOD_NS;
        !(PUNCTUAL_NS..=PERIOD_NS - PUNCTUAL_NS).contains(&phase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn longest(times: impl IntoIterator<Item = Option<u64>>) -> Option<u64> {
        let mut ticks = TimerTicks::default();
        times.into_iter().for_each(|time| ticks.note(time));
        ticks.longest_pause_ns
    }

    const MS: u64 = 1_000_000;

    #[test]
    fn a_beat_that_comes_late_is_a_pause() {
        assert_eq!(longest([0, 2, 4, 11, 12, 14].map(|ms| Some(ms * MS))), Some(5 * MS));
        assert_eq!(longest((0..9).map(|beat| Some(beat * PERIOD_NS))), Some(0));
    }

    #[test]
    fn beats_that_the_kernel_left_out_are_no_pause() {
        assert_eq!(longest([0, 2, 48, 50].map(|ms| Some(ms * MS + 7_000))), Some(0));
        assert_eq!(longest([Some(0), None, Some(101 * MS), Some(103 * MS)]), Some(0));
        assert_eq!(longest([None, Some(0), None]), None);
    }

    #[test]
    fn a_first_beat_that_is_late_does_not_make_the_others_so() {
        assert_eq!(longest([1, 2, 4, 6, 20, 22].map(|ms| Some(ms * MS))), Some(0));
    }

    #[test]
    fn a_clock_that_goes_back_is_no_panic() {
        assert_eq!(longest([Some(PERIOD_NS), Some(0)]), Some(0));
    }

    #[test]
    fn the_pulse_of_a_cpu_is_felt() {
        let (Ok(()), Ok(mut detector)) = (crate::sys::thread::pin_to(0), StallDetector::open(0)) else {
            eprintln!("not permitted to watch a CPU here: nothing to see");
            return;
        };
        detector.start_before(0);
        let begun = std::time::Instant::now();
        while begun.elapsed() < std::time::Duration::from_millis(100) {}
        assert!(detector.stop().is_some());
    }
}
