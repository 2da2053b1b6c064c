//! Received frames that bear time stamps of their port's own clock, placed in the worker's time.

mod clock_map;
mod sources;
mod tally;

pub use clock_map::{ClockMap, MapCounts, Reading, StampedLine};
pub use sources::{STAMPING_CARDS, check_sources, refuse};
pub use tally::StampTally;

use nicbench_protocol::{StampClockReply, Timestamps};

use crate::port::{Clock, NO_STAMP, Port};

/// What is known of the clock that stamps the frames that arrive at a port.
#[derive(Debug, Clone, PartialEq)]
pub struct StampFacts {
    /// Whether the card or the kernel stamps.
    pub source: Timestamps,
    /// How its clock is read, for the report.
    pub clock: &'static str,
    /// The bits of its count, at most 64.
    pub bits: u32,
    /// Of a stamp, where that is not one tick of the clock.
    pub resolution_ns: Option<f64>,
    /// Whether the port can say when it sent a frame, one at a time.
    pub transmit_samples: bool,
}

/// Before a trial the clock is read so many times.
pub const CALIBRATION_READINGS: usize = 50;
/// A clock is read this often at most: a card's is a register beyond a bus.
pub const READING_INTERVAL_S: f64 = 0.001;
/// A stamp farther than this from the moment at which its frame was received is no time of this trial.
const PLAUSIBLE_S: f64 = 10.0;

/// One worker's view of the clock of one port.
#[derive(Debug)]
pub struct Stamper {
    facts: StampFacts,
    map: ClockMap,
    hz: f64,
    next_reading: u64,
    tally: StampTally,
}

impl Stamper {
    /// For a worker whose clock makes `hz` ticks in a second.
    pub fn new(facts: StampFacts, hz: f64) -> Self {
        let map = ClockMap::new(hz, facts.bits);
        Self { facts, map, hz, next_reading: 0, tally: StampTally::default() }
    }

    /// Reads both clocks once.
    pub fn look(port: &mut dyn Port, clock: &impl Clock) -> Option<Reading> {
        let before = clock.now();
        let stamp = port.read_clock()?;
        Some(Reading { before, stamp, after: clock.now() })
    }

    /// A trial begins: counts start at 0, and the clock is known by these readings.
    pub fn calibrate(&mut self, readings: &[Reading]) {
        self.tally = StampTally::default();
        self.map.begin_trial();
        self.map.calibrate(readings);
    }

    /// Whether the clock's time is known.
    pub fn is_calibrated(&self) -> bool {
        self.map.stamp_hz().is_some()
    }

    /// Reads the clock if it is time, and the time at which a sampled frame left; `epoch` is the trial's first tick.
    pub fn follow(&mut self, port: &mut dyn Port, clock: &impl Clock, now: u64, epoch: u64) {
        if now < self.next_reading {
            return;
        }
        self.next_reading = now + (READING_INTERVAL_S * self.hz) as u64;
        if let Some(reading) = Self::look(port, clock) {
            self.map.observe(reading);
        }
        if let Some((sent, stamp)) = port.transmit_sample() {
            let left = self
                .map
                .tick_at(stamp)
                .filter(|_| stamp != NO_STAMP)
                .map(|tick| tick.wrapping_sub(epoch + sent) as i64);
            let is_plausible = |delay: &i64| delay.unsigned_abs() as f64 <= PLAUSIBLE_S * self.hz;
            self.tally.delays.record(left.filter(is_plausible));
        }
    }

    /// When frames with these stamps arrived, in nanoseconds since tick `epoch` (negative ones wrap around). All had
    /// been received by tick `now`, which stands in where a stamp is missing or cannot be.
    pub fn place(&mut self, stamps: &[u64], now: u64, epoch: u64, clock: &impl Clock, times_ns: &mut [u64]) {
        let bound = (PLAUSIBLE_S * self.hz) as u64;
        for (stamp, time_ns) in stamps.iter().zip(times_ns) {
            let mut tick = now;
            if *stamp == NO_STAMP {
                self.tally.unstamped += 1;
            } else {
                match self.map.tick_at(*stamp).filter(|given| (given.wrapping_sub(now) as i64).unsigned_abs() <= bound)
                {
                    Some(given) => {
                        self.tally.stamped += 1;
                        let early = (given.wrapping_sub(now) as i64).max(0) as u64;
                        self.tally.early += u64::from(early > 0);
                        self.tally.early_maximum_ticks = self.tally.early_maximum_ticks.max(early);
                        tick = given;
                    }
                    None => self.tally.implausible += 1,
                }
            }
            let since = tick.wrapping_sub(epoch) as i64;
            let since_ns = clock.nanoseconds(since.unsigned_abs());
            *time_ns = if since < 0 { since_ns.wrapping_neg() } else { since_ns };
        }
    }

    /// Everything counted since the trial began.
    pub fn tally(&self) -> StampTally {
        StampTally { map: self.map.counts(), stamp_hz: self.map.stamp_hz(), ..self.tally.clone() }
    }

    /// For the reply to `configure`; `None` where the clock's time is not known.
    pub fn reply(&self, clock: &impl Clock) -> Option<StampClockReply> {
        reply_of(&self.facts, &self.map, clock)
    }
}

/// What is known of a clock, beside one that follows it; `None` where its time is not.
pub fn reply_of(facts: &StampFacts, map: &ClockMap, clock: &impl Clock) -> Option<StampClockReply> {
    let hz = map.stamp_hz()?;
    Some(StampClockReply {
        source: facts.source.name().into(),
        clock: facts.clock.into(),
        hz,
        resolution_ns: facts.resolution_ns.unwrap_or(1e9 / hz),
        uncertainty_ns: map.counts().worst_ticks.unwrap_or_default() * 1e9 / clock.hz(),
        transmit_samples: facts.transmit_samples,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::VirtualClock;

    const FACTS: StampFacts =
        StampFacts { source: Timestamps::Card, clock: "test", bits: 64, resolution_ns: None, transmit_samples: false };

    /// Stamps are nanoseconds, 1000 ahead of the worker's.
    fn stamper() -> Stamper {
        let readings: Vec<Reading> =
            (0..50).map(|n| n * 1_000_000).map(|at| Reading { before: at, stamp: at + 1000, after: at }).collect();
        let mut stamper = Stamper::new(FACTS, 1e9);
        stamper.calibrate(&readings);
        stamper
    }

    fn placed(stamper: &mut Stamper, stamp: u64, now: u64) -> u64 {
        let mut times = [0];
        stamper.place(&[stamp], now, 50_000_000, &VirtualClock::default(), &mut times);
        times[0]
    }

    #[test]
    fn a_stamp_gives_the_moment_of_arrival_since_the_trial_began() {
        let mut stamper = stamper();
        assert_eq!(placed(&mut stamper, 60_001_000, 60_500_000), 10_000_000);
        let tally = stamper.tally();
        assert_eq!((tally.stamped, tally.unstamped, tally.implausible, tally.early), (1, 0, 0, 0));
    }

    #[test]
    fn without_a_stamp_or_with_an_impossible_one_the_software_s_time_stands_in_and_is_counted() {
        let mut stamper = stamper();
        assert_eq!(placed(&mut stamper, NO_STAMP, 60_000_000), 10_000_000);
        assert_eq!(placed(&mut stamper, 1 << 60, 60_000_000), 10_000_000);
        let tally = stamper.tally();
        assert_eq!((tally.stamped, tally.unstamped, tally.implausible), (0, 1, 1));
    }

    #[test]
    fn a_stamp_later_than_the_receipt_is_counted_with_its_excess() {
        let mut stamper = stamper();
        assert_eq!(placed(&mut stamper, 60_001_250, 60_000_000), 10_000_250);
        assert_eq!((stamper.tally().early, stamper.tally().early_maximum_ticks), (1, 250));
    }

    #[test]
    fn a_stamp_from_before_the_trial_is_a_negative_time() {
        assert_eq!(placed(&mut stamper(), 49_999_000, 60_000_000), 2000u64.wrapping_neg());
    }
}
