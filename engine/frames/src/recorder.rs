//! What completed frames come to: counts, histograms, seconds. Workers tell it of each frame; once a second it is
//! looked at.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use nicbench_protocol::{FramesInterval, FramesStats, Times};

use crate::sample::Sample;
use crate::schedule::Schedule;

/// The length of an interval.
pub const INTERVAL_NS: u64 = 1_000_000_000;
/// An hour; longer times count as one in the histogram, and are exact in the maximum.
const HIGHEST_NS: u64 = 3_600_000_000_000;
const DIGITS: u8 = 3;

/// The times of one step, over all frames.
#[derive(Debug, Clone)]
struct Spread {
    histogram: Histogram<u64>,
    minimum_ns: u64,
    maximum_ns: u64,
    sum_ns: u128,
}

impl Spread {
    fn new() -> Self {
        let Ok(histogram) = Histogram::new_with_bounds(1, HIGHEST_NS, DIGITS) else {
            unreachable!("fixed, valid bounds")
        };
        Self { histogram, minimum_ns: u64::MAX, maximum_ns: 0, sum_ns: 0 }
    }

    fn record(&mut self, time_ns: u64) {
        self.histogram.saturating_record(time_ns);
        self.minimum_ns = self.minimum_ns.min(time_ns);
        self.maximum_ns = self.maximum_ns.max(time_ns);
        self.sum_ns += u128::from(time_ns);
    }

    fn times(&self) -> Option<Times> {
        let count = self.histogram.len();
        let mut bytes = Vec::new();
        // Into memory nothing fails.
        V2DeflateSerializer::new().serialize(&self.histogram, &mut bytes).ok()?;
        (count > 0).then(|| Times {
            count,
            minimum_ns: self.minimum_ns,
            mean_ns: self.sum_ns as f64 / count as f64,
            maximum_ns: self.maximum_ns,
            histogram: STANDARD.encode(bytes),
        })
    }
}

/// Records the times of frames.
#[derive(Debug)]
pub struct Recorder {
    schedule: Schedule,
    open: Spread,
    io: Spread,
    sync: Spread,
    close: Spread,
    completion: Spread,
    lateness: Spread,
    pub intervals: Vec<FramesInterval>,
    /// Samples that were not taken yet.
    fresh: Vec<Sample>,
    keeps_samples: bool,
    pub measured_frames: u64,
    pub measured_bytes: u64,
    measured_dropped: u64,
    /// Frames in time, of those that were due within the measurement.
    in_time: u64,
    all: FramesStats,
    /// The end of the last frame.
    pub last_ns: u64,
    /// One more than the highest position.
    pub positions: u64,
}

/// The times of all steps.
pub struct AllTimes {
    pub open: Option<Times>,
    pub io: Option<Times>,
    pub sync: Option<Times>,
    pub close: Option<Times>,
    pub completion: Option<Times>,
    pub lateness: Option<Times>,
}

impl Recorder {
    /// A recorder that keeps samples where `keeps_samples`: somebody takes them.
    pub fn new(schedule: Schedule, keeps_samples: bool) -> Self {
        let [open, io, sync, close, completion, lateness] = std::array::from_fn(|_| Spread::new());
        let all = FramesStats { dropped: schedule.is_limited().then_some(0), ..FramesStats::default() };
        Self {
            schedule,
            open,
            io,
            sync,
            close,
            completion,
            lateness,
            intervals: Vec::new(),
            fresh: Vec::new(),
            keeps_samples,
            measured_frames: 0,
            measured_bytes: 0,
            measured_dropped: 0,
            in_time: 0,
            all,
            last_ns: 0,
            positions: 0,
        }
    }

    /// Records a frame that is complete.
    pub fn record(&mut self, sample: &Sample) {
        if self.keeps_samples {
            self.fresh.push(*sample);
        }
        let dropped = u64::from(sample.is_dropped());
        self.last_ns = self.last_ns.max(sample.completed_ns);
        self.positions = self.positions.max(sample.position + 1);
        self.all.frames += 1;
        self.all.bytes += sample.bytes;
        self.all.dropped = self.all.dropped.map(|count| count + dropped);
        let interval = self.interval(sample.completed_ns / INTERVAL_NS);
        interval.frames += 1;
        interval.bytes += sample.bytes;
        interval.dropped = interval.dropped.map(|count| count + dropped);
        interval.maximum_completion_ns = interval.maximum_completion_ns.max(Some(sample.completion_ns()));
        self.in_time += u64::from(self.is_in_time(sample));
        if sample.is_measured {
            self.record_measured(sample);
        }
    }

    /// Whether it was due within the measurement, and complete by then.
    fn is_in_time(&self, sample: &Sample) -> bool {
        sample.late_by_ns.is_some_and(|late| {
            late <= 0 && self.schedule.is_due_within(sample.completed_ns.saturating_add(late.unsigned_abs()))
        })
    }

    fn record_measured(&mut self, sample: &Sample) {
        self.measured_frames += 1;
        self.measured_bytes += sample.bytes;
        self.measured_dropped += u64::from(sample.is_dropped());
        for (spread, time) in [
            (&mut self.open, sample.open_ns),
            (&mut self.io, Some(sample.io_ns)),
            (&mut self.sync, sample.sync_ns),
            (&mut self.close, sample.close_ns),
            (&mut self.completion, Some(sample.completion_ns())),
            (&mut self.lateness, sample.late_by_ns.map(|late| late.max(0) as u64)),
        ] {
            if let Some(time) = time {
                spread.record(time);
            }
        }
    }

    /// The interval with this number, and all before it.
    pub fn interval(&mut self, number: u64) -> &mut FramesInterval {
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        while self.intervals.len() <= number {
            self.intervals.push(FramesInterval {
                from_ns: self.intervals.len() as u64 * INTERVAL_NS,
                interval_ns: INTERVAL_NS,
                dropped: self.schedule.is_limited().then_some(0),
                ..FramesInterval::default()
            });
        }
        &mut self.intervals[number]
    }

    /// Samples since the last call.
    pub fn take_samples(&mut self) -> Vec<Sample> {
        std::mem::take(&mut self.fresh)
    }

    /// The progress since the beginning.
    pub fn stats(&self) -> FramesStats {
        self.all
    }

    pub fn count_measured_dropped(&self) -> Option<u64> {
        self.schedule.is_limited().then_some(self.measured_dropped)
    }

    /// Of `due` frames those that were not complete in time, whether late or never.
    pub fn count_missed(&self, due: u64) -> u64 {
        due.saturating_sub(self.in_time)
    }

    pub fn times(&self) -> AllTimes {
        AllTimes {
            open: self.open.times(),
            io: self.io.times(),
            sync: self.sync.times(),
            close: self.close.times(),
            completion: self.completion.times(),
            lateness: self.lateness.times(),
        }
    }
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::Deserializer;

    use super::*;

    fn limited() -> Schedule {
        Schedule::new(Some(1.0), 1, 1.0, Some(3.0))
    }

    #[test]
    fn a_frame_that_never_comes_is_missed_as_one_is_that_comes_late() {
        let mut recorder = Recorder::new(limited(), false);
        // Due at 1 s (of the warm-up), 2, 3 and 4 s; the last two are late, and not there at all.
        recorder.record(&sample(0, 900_000_000, Some(-100_000_000), false));
        recorder.record(&sample(1, 1_900_000_000, Some(-100_000_000), true));
        recorder.record(&sample(2, 3_100_000_000, Some(100_000_000), true));
        assert_eq!(limited().due_within(4), Some(3));
        assert_eq!((recorder.count_missed(3), recorder.count_measured_dropped()), (2, Some(1)));
    }

    fn sample(position: u64, completed_ns: u64, late_by_ns: Option<i64>, is_measured: bool) -> Sample {
        Sample {
            position,
            frame: position,
            thread: 0,
            is_measured,
            bytes: 10,
            turn_ns: 0,
            begun_ns: completed_ns - 100,
            open_ns: None,
            io_ns: 90,
            sync_ns: None,
            close_ns: Some(10),
            completed_ns,
            late_by_ns,
        }
    }

    #[test]
    fn warm_up_is_in_intervals_and_stats_and_in_nothing_else() {
        let mut recorder = Recorder::new(limited(), true);
        recorder.record(&sample(0, 500_000_000, Some(5), false));
        recorder.record(&sample(1, 2_500_000_000, Some(-5), true));
        recorder.record(&sample(2, 2_600_000_000, Some(7), true));
        assert_eq!(
            (recorder.measured_frames, recorder.measured_bytes, recorder.count_measured_dropped()),
            (2, 20, Some(1))
        );
        let frames: Vec<(u64, Option<u64>)> =
            recorder.intervals.iter().map(|each| (each.frames, each.dropped)).collect();
        assert_eq!(frames, [(1, Some(1)), (0, Some(0)), (2, Some(1))]);
        assert_eq!((recorder.stats().frames, recorder.stats().dropped), (3, Some(2)));
        let times = recorder.times();
        let lateness = times.lateness.unwrap();
        assert_eq!((lateness.count, lateness.minimum_ns, lateness.maximum_ns), (2, 0, 7));
        assert_eq!((times.open, times.sync), (None, None));
        assert_eq!((recorder.take_samples().len(), recorder.take_samples().len()), (3, 0));
    }

    #[test]
    fn without_a_limit_nothing_is_dropped_and_that_is_not_zero() {
        let mut recorder = Recorder::new(Schedule::new(None, 1, 0.0, None), false);
        recorder.record(&sample(0, 500, None, true));
        assert_eq!((recorder.count_measured_dropped(), recorder.stats().dropped), (None, None));
        assert_eq!((recorder.intervals[0].dropped, recorder.times().lateness), (None, None));
    }

    #[test]
    fn histograms_can_be_read_again() {
        let mut recorder = Recorder::new(Schedule::new(None, 1, 0.0, None), false);
        (0..100).for_each(|position| recorder.record(&sample(position, 1000 + position, None, true)));
        let times = recorder.times().completion.unwrap();
        let bytes = STANDARD.decode(times.histogram).unwrap();
        let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        assert_eq!((histogram.len(), histogram.max(), times.mean_ns), (100, 100, 100.0));
    }
}
