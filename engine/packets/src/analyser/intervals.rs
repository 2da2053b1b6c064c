//! What each stream received in each tenth of a second, and what it came to miss.
//!
//! Nothing is done per frame: when an interval has passed, the tallies are compared with those at its beginning. A
//! trial that is longer than the series may be has wider intervals, so that memory is bounded.

use super::tally::StreamTally;

const WIDTH_NS: u64 = 100_000_000;
const MOST_INTERVALS: usize = 4096;

/// One stream's counts by interval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Series {
    /// Frames received in each interval.
    pub received: Vec<u64>,
    /// Per interval; negative where frames came that an earlier interval missed.
    pub missing: Vec<i64>,
    received_before: u64,
    missing_before: i64,
}

/// All streams' counts by interval.
#[derive(Debug, Clone)]
pub struct Intervals {
    width_ns: u64,
    /// When the present interval ends.
    end_ns: u64,
    series: Vec<Series>,
}

impl Intervals {
    pub fn new(streams: usize) -> Self {
        Self { width_ns: WIDTH_NS, end_ns: WIDTH_NS, series: vec![Series::default(); streams] }
    }

    /// What another receiver counted by interval, of which `closed` have ended.
    pub(super) fn of_counts(width_ns: u64, closed: usize, counted: Vec<(Vec<u64>, Vec<i64>)>) -> Self {
        let series = counted.into_iter().map(|(mut received, mut missing)| {
            received.resize(closed, 0);
            missing.resize(closed, 0);
            let (received_before, missing_before) = (received.iter().sum(), missing.iter().sum());
            Series { received, missing, received_before, missing_before }
        });
        Self { width_ns, end_ns: width_ns.saturating_mul(closed as u64 + 1), series: series.collect() }
    }

    /// The width of intervals of which so long a trial has not too many, as they are widened from the smallest.
    pub fn width_for(duration_ns: u64) -> u64 {
        let mut width_ns = WIDTH_NS;
        while duration_ns / width_ns >= MOST_INTERVALS as u64 {
            width_ns *= 2;
        }
        width_ns
    }

    /// Closes the intervals that have ended by `now_ns` since the trial began.
    #[inline(always)]
    pub fn advance(&mut self, now_ns: u64, streams: &[StreamTally]) {
        if now_ns >= self.end_ns {
            self.pass(now_ns, streams);
        }
    }

    #[cold]
    fn pass(&mut self, now_ns: u64, streams: &[StreamTally]) {
        while now_ns >= self.end_ns {
            self.close(streams);
            let Some(end_ns) = self.end_ns.checked_add(self.width_ns) else {
                // The end of time: what is left falls into one interval that never ends.
                self.end_ns = u64::MAX;
                return;
            };
            self.end_ns = end_ns;
        }
    }

    fn close(&mut self, streams: &[StreamTally]) {
        for (series, tally) in self.series.iter_mut().zip(streams) {
            series.received.push(tally.received - series.received_before);
            series.missing.push(tally.missing - series.missing_before);
            (series.received_before, series.missing_before) = (tally.received, tally.missing);
        }
        if self.series.first().is_some_and(|series| series.received.len() == MOST_INTERVALS) {
            self.widen();
        }
    }

    /// Merges each two intervals to one of twice the width.
    fn widen(&mut self) {
        self.width_ns = self.width_ns.saturating_mul(2);
        self.series.iter_mut().for_each(Series::widen);
    }

    pub fn width_ns(&self) -> u64 {
        self.width_ns
    }

    /// A stream's series with the interval that has not ended yet.
    pub fn of(&self, index: usize, tally: &StreamTally) -> Series {
        let mut series = self.series.get(index).cloned().unwrap_or_default();
        let rest = (tally.received - series.received_before, tally.missing - series.missing_before);
        if rest != (0, 0) {
            series.received.push(rest.0);
            series.missing.push(rest.1);
        }
        (series.received_before, series.missing_before) = (tally.received, tally.missing);
        series
    }

    /// Adds another receiver's series of the same trial; both tallies are those before they are merged.
    pub fn merge(&mut self, mut other: Self, ours: &[StreamTally], theirs: &[StreamTally]) {
        // Nothing more is received by a merged analyser, so the intervals that have not ended count as they are.
        self.end(ours);
        other.end(theirs);
        while self.width_ns < other.width_ns {
            self.widen();
        }
        while other.width_ns < self.width_ns {
            other.widen();
        }
        self.series.iter_mut().zip(other.series).for_each(|(series, more)| series.add(more));
    }

    fn end(&mut self, streams: &[StreamTally]) {
        self.series = streams.iter().enumerate().map(|(index, tally)| self.of(index, tally)).collect();
        self.end_ns = u64::MAX;
    }
}

impl Series {
    fn widen(&mut self) {
        self.received = self.received.chunks(2).map(|pair| pair.iter().sum()).collect();
        self.missing = self.missing.chunks(2).map(|pair| pair.iter().sum()).collect();
    }

    fn add(&mut self, other: Self) {
        let length = self.received.len().max(other.received.len());
        self.received.resize(length, 0);
        self.missing.resize(length, 0);
        self.received.iter_mut().zip(other.received).for_each(|(sum, more)| *sum += more);
        self.missing.iter_mut().zip(other.missing).for_each(|(sum, more)| *sum += more);
        self.received_before += other.received_before;
        self.missing_before += other.missing_before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(received: u64, missing: i64) -> [StreamTally; 1] {
        let mut tally = StreamTally::default();
        (tally.received, tally.missing) = (received, missing);
        [tally]
    }

    #[test]
    fn each_interval_holds_what_came_in_it() {
        let mut intervals = Intervals::new(1);
        intervals.advance(WIDTH_NS, &tally(10, 2));
        intervals.advance(3 * WIDTH_NS + 1, &tally(15, 1));
        let series = intervals.of(0, &tally(22, 1)[0]);
        assert_eq!(series.received, [10, 5, 0, 7]);
        assert_eq!(series.missing, [2, -1, 0, 0]);
    }

    #[test]
    fn a_long_trial_has_wider_intervals_and_no_more_of_them() {
        let mut intervals = Intervals::new(1);
        for number in 1..=50_000 {
            intervals.advance(number * WIDTH_NS, &tally(number * 3, 0));
        }
        let series = intervals.of(0, &tally(150_000, 0)[0]);
        assert!(series.received.len() <= MOST_INTERVALS);
        assert_eq!(series.received.iter().sum::<u64>(), 150_000);
        assert_eq!(intervals.width_ns(), 16 * WIDTH_NS);
    }

    #[test]
    fn the_end_of_time_takes_little_memory_and_time() {
        let mut intervals = Intervals::new(1);
        intervals.advance(u64::MAX, &tally(1, 0));
        intervals.advance(u64::MAX, &tally(2, 0));
        assert!(intervals.of(0, &tally(2, 0)[0]).received.len() <= MOST_INTERVALS);
    }

    #[test]
    fn two_receivers_series_add_up_whatever_their_widths() {
        let (mut one, mut two) = (Intervals::new(1), Intervals::new(1));
        one.advance(WIDTH_NS, &tally(10, 0));
        for number in 1..=5_000 {
            two.advance(number * WIDTH_NS, &tally(number, 0));
        }
        one.merge(two, &tally(12, 0), &tally(5_000, 0));
        let series = one.of(0, &tally(5_012, 0)[0]);
        assert_eq!((series.received[0], series.received.iter().sum()), (14, 5_012));
    }
}
