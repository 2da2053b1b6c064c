//! A pulse on one CPU: an interrupt of its own timer every 2 ms, with the time at which it came. Where one is late the CPU
//! stood still, however it looks from within: neither programs nor the kernel's packet work can hold up an interrupt.

use std::{fmt, io};

use perf_event::SampleFlag;
use perf_event::data::Record;
use perf_event::data::parse::ParseError;
use perf_event::events::Software;
use perf_event::{Builder, Sampler};

const PERIOD_NS: u64 = 2_000_000;
/// So much later than its time is punctual: the way through the kernel.
const PUNCTUAL_NS: u64 = 100_000;
/// Of the kernel's buffer: 128 KiB, a sample takes 16 bytes. It is emptied fifty times a second.
const BUFFER_BYTES: usize = 1 << 17;

/// The interrupts of one CPU, taken down by the kernel (perf_event_open(2), the software event `cpu-clock`).
pub struct Pulse {
    sampler: Sampler,
    beats: Beats,
}

impl fmt::Debug for Pulse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Pulse").field("beats", &self.beats).finish_non_exhaustive()
    }
}

impl Pulse {
    /// # Errors
    /// Where the kernel does not let this process watch a whole CPU.
    pub fn of(cpu: u32) -> io::Result<Self> {
        let mut event = Builder::new(Software::CPU_CLOCK);
        event.any_pid().one_cpu(cpu as usize).sample_period(PERIOD_NS).sample(SampleFlag::TIME).sample_id_all(false);
        event.include_kernel().include_hv().enabled(false);
        let sampler = event.build()?.sampled(BUFFER_BYTES)?;
        Ok(Self { sampler, beats: Beats::default() })
    }

    /// Begins anew; what was noted before is forgotten.
    pub fn start(&mut self) {
        while self.sampler.next_record().is_some() {}
        self.beats = Beats::default();
        // If it cannot be started there will be no beats, and none were late.
        let _ = self.sampler.enable();
    }

    /// Takes in what came since; to be called before the kernel's buffer is full.
    pub fn feel(&mut self) {
        while let Some(record) = self.sampler.next_record() {
            self.beats.note(time_of(record.parse_record()));
        }
    }

    /// Ends it: the longest that the CPU stood still, in nanoseconds; `None` where no beat was felt.
    pub fn stop(&mut self) -> Option<u64> {
        let _ = self.sampler.disable();
        self.feel();
        self.beats.longest_pause_ns
    }
}

/// `None` for everything but a sample: the kernel leaves some out when a CPU slept long (throttling), or lost some.
fn time_of(record: Result<Record<'_>, ParseError>) -> Option<u64> {
    match record {
        Ok(Record::Sample(sample)) => sample.time(),
        _ => None,
    }
}

/// Beats are due at multiples of the period. The kernel does not take down all of them (those of a CPU that sleeps, above
/// all): where some are missing and the next is punctual, nothing stood still.
#[derive(Debug, Default)]
struct Beats {
    /// One that came when it was due.
    punctual_ns: u64,
    last_ns: Option<u64>,
    longest_pause_ns: Option<u64>,
}

impl Beats {
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
        let mut beats = Beats::default();
        times.into_iter().for_each(|time| beats.note(time));
        beats.longest_pause_ns
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
        let (Ok(()), Ok(mut pulse)) = (crate::sys::thread::pin_to(0), Pulse::of(0)) else {
            eprintln!("not permitted to watch a CPU here: nothing to see");
            return;
        };
        pulse.start();
        let begun = std::time::Instant::now();
        while begun.elapsed() < std::time::Duration::from_millis(100) {}
        assert!(pulse.stop().is_some());
    }
}
