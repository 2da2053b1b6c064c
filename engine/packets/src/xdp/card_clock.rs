//! The clock of a card that stamps what it receives: followed by readings, and written as a line into the program's
//! memory, which places each stamp by it.

use std::time::Duration;

use nicbench_protocol::{StampClockReply, Timestamps};

use crate::clock::MonotonicClock;
use crate::error::{EngineError, ErrorKind};
use crate::port::Clock;
use crate::stamps::{
    CALIBRATION_READINGS, ClockMap, READING_INTERVAL_S, Reading, StampFacts, StampTally, StampedLine, reply_of,
};
use crate::sys::bpf::receiving::{ClockLine, Shard};
use crate::sys::hardware_clock::HardwareClock;
use crate::sys::kernel_link::KernelLink;

/// Readings at one moment, of which the best is kept.
const READINGS: usize = 4;
/// In units of which the program knows how much faster or slower the card's clock is.
const CORRECTION_UNIT: f64 = (1u64 << 32) as f64;

/// One port's clock.
#[derive(Debug)]
pub struct CardClock {
    clock: HardwareClock,
    map: ClockMap,
    facts: StampFacts,
}

impl CardClock {
    /// Opens the clock of an interface of a card, and checks that the card stamps whatever it receives.
    ///
    /// # Errors
    /// Where the interface is no card's, or its driver has no such clock.
    pub fn open(port: &str, link: &KernelLink) -> Result<Self, EngineError> {
        let refuse = |why: String| {
            let message = format!("port {port}: no time stamps of the card: {why}");
            let next = "use a card whose driver stamps all frames (nicbench doctor), or the time stamps `tsc`";
            EngineError::new(ErrorKind::BadRequest, message, next)
        };
        // A program for one interface must never outlive it: the kernel was seen to fail where an interface of a
        // namespace that is removed, as a veth is with it, still bore one. A card's interface is not removed then, but
        // goes back to the first namespace, and the link is closed before.
        if link.state().is_ok_and(|state| !state.has_device) {
            return Err(refuse("the interface is virtual, and no card stands behind it".into()));
        }
        let stamping = link.time_stamping().ok_or_else(|| refuse("its driver has no clock".into()))?;
        if !stamping.stamps_all_frames {
            return Err(refuse("it stamps frames of PTP only".into()));
        }
        let clock = HardwareClock::open(stamping.clock)
            .map_err(|error| refuse(format!("its clock /dev/ptp{} cannot be read: {error}", stamping.clock)))?;
        let facts = StampFacts {
            source: Timestamps::Card,
            clock: "PTP hardware clock",
            bits: 64,
            resolution_ns: None,
            transmit_samples: false,
        };
        let mut card = Self { clock, map: ClockMap::new(MonotonicClock.hz(), facts.bits), facts };
        card.calibrate();
        if card.map.line().is_none() {
            return Err(refuse("its clock does not run evenly".into()));
        }
        Ok(card)
    }

    pub fn facts(&self) -> &StampFacts {
        &self.facts
    }

    /// Finds the clock anew, before a trial; takes 50 ms.
    pub fn calibrate(&mut self) {
        self.map.begin_trial();
        let mut readings = Vec::with_capacity(CALIBRATION_READINGS);
        for _ in 0..CALIBRATION_READINGS {
            readings.extend(self.look());
            std::thread::sleep(Duration::from_secs_f64(READING_INTERVAL_S));
        }
        self.map.calibrate(&readings);
    }

    /// Reads both clocks, in the midst of a trial.
    pub fn follow(&mut self) {
        for _ in 0..READINGS {
            if let Some(reading) = self.look() {
                self.map.observe(reading);
            }
        }
    }

    fn look(&self) -> Option<Reading> {
        let before = MonotonicClock.now();
        let stamp = self.clock.read()?;
        Some(Reading { before, stamp, after: MonotonicClock.now() })
    }

    /// The present line, for the program.
    pub fn line(&self) -> Option<ClockLine> {
        self.map.line().map(clock_line)
    }

    /// What became of the stamps, of which the shards counted those of frames.
    pub fn tally(&self, shards: impl Iterator<Item = Shard>) -> StampTally {
        let mut tally = StampTally { map: self.map.counts(), stamp_hz: self.map.stamp_hz(), ..StampTally::default() };
        for shard in shards {
            tally.stamped += shard.stamped;
            tally.unstamped += shard.unstamped;
            tally.implausible += shard.implausible;
            tally.early += shard.before_stamp;
            tally.early_maximum_ticks = tally.early_maximum_ticks.max(shard.before_stamp_maximum_ns);
        }
        tally
    }

    pub fn reply(&self) -> Option<StampClockReply> {
        reply_of(&self.facts, &self.map, &MonotonicClock)
    }
}

/// A line in the program's integers; ticks are nanoseconds of the kernel's clock.
pub fn clock_line(line: StampedLine) -> ClockLine {
    let correction = ((line.ticks_per_stamp - 1.0) * CORRECTION_UNIT).round() as i64;
    ClockLine { stamp: line.stamp, time_ns: line.tick, correction }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_virtual_interface_has_no_card() {
        let link = KernelLink::open("lo").unwrap();
        let error = CardClock::open("t0", &link).unwrap_err();
        assert!(error.message.contains("no card stands behind it"), "{error}");
        assert!(error.next.contains("`tsc`"), "{error}");
    }

    #[test]
    fn a_clock_that_is_faster_is_corrected_by_its_share() {
        let line = clock_line(StampedLine { stamp: 7, tick: 9, ticks_per_stamp: 1.0 - 1e-6 });
        assert_eq!((line.stamp, line.time_ns, line.correction), (7, 9, -4295));
    }
}
