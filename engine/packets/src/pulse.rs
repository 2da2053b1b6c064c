//! A pulse on one CPU: an interrupt of its own timer every 2.5 ms, with the time at which it came. Where one is late the
//! CPU stood still, however it looks from within: neither programs nor the kernel's packet work can hold up an interrupt.

use std::{fmt, io};

use perf_event::SampleFlag;
use perf_event::data::Record;
use perf_event::data::parse::ParseError;
use perf_event::events::Software;
use perf_event::{Builder, Sampler};

pub const PERIOD_NS: u64 = 2_500_000;
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

    /// Ends it: the longest that the CPU stood still, in nanoseconds.
    pub fn stop(&mut self) -> u64 {
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

#[derive(Debug, Default)]
struct Beats {
    last_ns: Option<u64>,
    longest_pause_ns: u64,
}

impl Beats {
    fn note(&mut self, time_ns: Option<u64>) {
        if let (Some(last), Some(time)) = (self.last_ns, time_ns) {
            let late = time.saturating_sub(last).saturating_sub(PERIOD_NS);
            self.longest_pause_ns = self.longest_pause_ns.max(late);
        }
        self.last_ns = time_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn longest(times: impl IntoIterator<Item = Option<u64>>) -> u64 {
        let mut beats = Beats::default();
        times.into_iter().for_each(|time| beats.note(time));
        beats.longest_pause_ns
    }

    #[test]
    fn a_beat_that_comes_late_is_a_pause() {
        let late = [0, 1, 2, 6, 7].map(|beat| Some(beat * PERIOD_NS));
        assert_eq!(longest(late), 3 * PERIOD_NS);
        assert_eq!(longest((0..9).map(|beat| Some(beat * PERIOD_NS))), 0);
    }

    #[test]
    fn beats_that_the_kernel_left_out_are_no_pause() {
        assert_eq!(longest([Some(0), None, Some(100 * PERIOD_NS), Some(101 * PERIOD_NS)]), 0);
    }

    #[test]
    fn a_clock_that_goes_back_is_no_panic() {
        assert_eq!(longest([Some(PERIOD_NS), Some(0)]), 0);
    }

    #[test]
    fn the_pulse_of_a_cpu_is_felt() {
        let Ok(mut pulse) = Pulse::of(0) else {
            eprintln!("not permitted to watch a CPU here: nothing to see");
            return;
        };
        pulse.start();
        std::thread::sleep(std::time::Duration::from_millis(50));
        pulse.stop();
        assert!(pulse.beats.last_ns.is_some());
    }
}
