//! What a trial counts of the stamps at one port.

use nicbench_protocol::{StampReading, TransmitDelayReading};

use super::{MapCounts, StampFacts};
use crate::port::Clock;

/// What became of the time stamps in a trial; of several workers, the sum.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StampTally {
    pub stamped: u64,
    pub unstamped: u64,
    pub implausible: u64,
    /// Stamps later than the moment at which their frames had been received.
    pub early: u64,
    pub early_maximum_ticks: u64,
    pub delays: Delays,
    pub map: MapCounts,
    pub stamp_hz: Option<f64>,
}

/// From the software's stamp until a frame left its port, in ticks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delays {
    asked: u64,
    count: u64,
    sum: i128,
    extremes: Option<(i64, i64)>,
}

impl Delays {
    /// One that was asked for; `None` where no time was told, or one that cannot be.
    pub fn record(&mut self, delay: Option<i64>) {
        self.asked += 1;
        let Some(delay) = delay else { return };
        self.count += 1;
        self.sum += i128::from(delay);
        let (least, most) = self.extremes.unwrap_or((delay, delay));
        self.extremes = Some((least.min(delay), most.max(delay)));
    }

    fn merge(&mut self, other: &Self) {
        self.asked += other.asked;
        self.count += other.count;
        self.sum += other.sum;
        let all = self.extremes.into_iter().chain(other.extremes);
        self.extremes = all.reduce(|left, right| (left.0.min(right.0), left.1.max(right.1)));
    }

    fn reading(&self, ns_per_tick: f64) -> TransmitDelayReading {
        let ns = |ticks: i64| (ticks as f64 * ns_per_tick).round() as i64;
        TransmitDelayReading {
            asked: self.asked,
            count: self.count,
            minimum_ns: self.extremes.map(|(least, _)| ns(least)),
            mean_ns: (self.count > 0).then(|| self.sum as f64 / self.count as f64 * ns_per_tick),
            maximum_ns: self.extremes.map(|(_, most)| ns(most)),
        }
    }
}

impl StampTally {
    /// Adds the counts of another worker.
    pub fn merge(&mut self, other: &Self) {
        self.stamped += other.stamped;
        self.unstamped += other.unstamped;
        self.implausible += other.implausible;
        self.early += other.early;
        self.early_maximum_ticks = self.early_maximum_ticks.max(other.early_maximum_ticks);
        self.delays.merge(&other.delays);
        self.map.readings += other.map.readings;
        self.map.outliers += other.map.outliers;
        // Each worker sees the same step.
        self.map.steps = self.map.steps.max(other.map.steps);
        self.map.worst_ticks = self.map.worst_ticks.into_iter().chain(other.map.worst_ticks).reduce(f64::max);
        self.stamp_hz = self.stamp_hz.or(other.stamp_hz);
    }

    /// Of a stamp, in nanoseconds; `None` where the clock's time is not known.
    pub fn resolution_ns(&self, facts: &StampFacts) -> Option<f64> {
        facts.resolution_ns.or(self.stamp_hz.map(|hz| 1e9 / hz))
    }

    /// How well stamps were placed, in nanoseconds.
    pub fn uncertainty_ns(&self, clock: &impl Clock) -> Option<f64> {
        self.map.worst_ticks.map(|ticks| ticks * 1e9 / clock.hz())
    }

    /// The counts as the reading has them, for `drain`.
    pub fn reading(&self, facts: &StampFacts, clock: &impl Clock) -> StampReading {
        StampReading {
            source: facts.source.name().into(),
            clock_hz: self.stamp_hz,
            resolution_ns: self.resolution_ns(facts),
            uncertainty_ns: self.uncertainty_ns(clock),
            readings: self.map.readings,
            outliers: self.map.outliers,
            steps: self.map.steps,
            stamped: self.stamped,
            unstamped: self.unstamped,
            implausible: self.implausible,
            early: self.early,
            early_maximum_ns: clock.nanoseconds(self.early_maximum_ticks),
            transmit_delay: facts.transmit_samples.then(|| self.delays.reading(1e9 / clock.hz())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_of_two_workers_are_one_s() {
        let (mut left, mut right) = (Delays::default(), Delays::default());
        [Some(100), None].into_iter().for_each(|delay| left.record(delay));
        [Some(-20), Some(400)].into_iter().for_each(|delay| right.record(delay));
        left.merge(&right);
        let reading = left.reading(0.5);
        assert_eq!((reading.asked, reading.count), (4, 3));
        assert_eq!((reading.minimum_ns, reading.mean_ns, reading.maximum_ns), (Some(-10), Some(80.0), Some(200)));
    }

    #[test]
    fn without_a_delay_nothing_is_said_of_it() {
        let mut delays = Delays::default();
        delays.record(None);
        let reading = delays.reading(1.0);
        assert_eq!((reading.asked, reading.count, reading.minimum_ns, reading.mean_ns), (1, 0, None, None));
    }
}
