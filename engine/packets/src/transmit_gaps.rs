//! How evenly a stream was sent: the time between frames as they were handed to the port.
//!
//! The frames of one burst are handed over together: between them the gap is 0, and one entry per burst is enough. So a
//! reader sees how bursty the load was: at an even pace every gap is near 1 / rate, in bursts of n all but one in n are
//! 0.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use nicbench_protocol::TransmitGapsReading;

use crate::error::{EngineError, ErrorKind};

const HIGHEST_NS: u64 = 100_000_000_000;
const DIGITS: u8 = 2;

/// The times between the frames that one sender handed to its port. They are ticks until they are read.
#[derive(Debug, Clone)]
pub struct TransmitGaps {
    histogram: Histogram<u64>,
    last: Option<u64>,
    within_bursts: u64,
    sum_ns: u128,
    minimum_ns: u64,
    maximum_ns: u64,
}

impl TransmitGaps {
    /// Counts nothing yet.
    pub fn new() -> Result<Self, EngineError> {
        let histogram = Histogram::new_with_bounds(1, HIGHEST_NS, DIGITS).map_err(|error| internal(&error))?;
        Ok(Self { histogram, last: None, within_bursts: 0, sum_ns: 0, minimum_ns: u64::MAX, maximum_ns: 0 })
    }

    /// Gaps that were counted elsewhere: `buckets` are the shortest gap of each and their number, `extremes` the least,
    /// the greatest and the sum. All `frames` that have none of these gaps before them had the same time as the frame
    /// before.
    pub fn counted(
        frames: u64,
        buckets: impl Iterator<Item = (u64, u64)>,
        [minimum_ns, maximum_ns, sum_ns]: [u64; 3],
    ) -> Result<Self, EngineError> {
        let mut gaps = Self { minimum_ns, maximum_ns, sum_ns: sum_ns.into(), ..Self::new()? };
        for (gap_ns, count) in buckets {
            gaps.histogram.record_n(gap_ns, count).map_err(|error| internal(&error))?;
        }
        gaps.within_bursts = frames.saturating_sub(1 + gaps.histogram.len());
        Ok(gaps)
    }

    /// Records that `frames` frames (at least one) were handed over at `now_ns`.
    #[inline]
    pub fn record(&mut self, now_ns: u64, frames: usize) {
        self.within_bursts += frames as u64 - 1;
        let Some(last) = self.last.replace(now_ns) else { return };
        self.add(now_ns.saturating_sub(last));
    }

    /// Records one time.
    #[inline]
    pub fn add(&mut self, gap_ns: u64) {
        self.histogram.saturating_record(gap_ns);
        self.sum_ns += u128::from(gap_ns);
        self.minimum_ns = self.minimum_ns.min(gap_ns);
        self.maximum_ns = self.maximum_ns.max(gap_ns);
    }

    /// Adds the gaps of another sender of the stream.
    pub fn absorb(&mut self, other: &Self) -> Result<(), EngineError> {
        self.histogram.add(&other.histogram).map_err(|error| internal(&error))?;
        self.within_bursts += other.within_bursts;
        self.sum_ns += other.sum_ns;
        self.minimum_ns = self.minimum_ns.min(other.minimum_ns);
        self.maximum_ns = self.maximum_ns.max(other.maximum_ns);
        Ok(())
    }

    /// The gaps as the protocol has them; `None` where fewer than two frames were sent.
    pub fn reading(&self) -> Result<Option<TransmitGapsReading>, EngineError> {
        let count = self.histogram.len() + self.within_bursts;
        if count == 0 {
            return Ok(None);
        }
        let mut histogram = self.histogram.clone();
        histogram.record_n(0, self.within_bursts).map_err(|error| internal(&error))?;
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&histogram, &mut bytes).map_err(|error| internal(&error))?;
        Ok(Some(TransmitGapsReading {
            count,
            minimum_ns: if self.within_bursts > 0 { 0 } else { self.minimum_ns },
            mean_ns: self.sum_ns as f64 / count as f64,
            maximum_ns: self.maximum_ns,
            histogram: STANDARD.encode(bytes),
        }))
    }
}

fn internal(error: &dyn std::fmt::Debug) -> EngineError {
    let message = format!("the histogram of transmit gaps failed: {error:?}");
    EngineError::new(ErrorKind::BadState, message, "report this as a fault of nicbench-packets")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(bursts: &[(u64, usize)]) -> TransmitGaps {
        let mut gaps = TransmitGaps::new().unwrap();
        bursts.iter().for_each(|(now_ns, frames)| gaps.record(*now_ns, *frames));
        gaps
    }

    #[test]
    fn one_frame_has_no_gap() {
        assert_eq!(recorded(&[(5, 1)]).reading().unwrap(), None);
    }

    #[test]
    fn frames_of_one_burst_have_no_time_between_them() {
        let reading = recorded(&[(1000, 4), (2000, 4)]).reading().unwrap().unwrap();
        assert_eq!((reading.count, reading.minimum_ns, reading.maximum_ns), (7, 0, 1000));
        assert!((reading.mean_ns - 1000.0 / 7.0).abs() < 1e-9);
    }

    #[test]
    fn at_an_even_pace_every_gap_is_the_same() {
        let reading = recorded(&[(0, 1), (100, 1), (200, 1)]).reading().unwrap().unwrap();
        assert_eq!((reading.minimum_ns, reading.mean_ns, reading.maximum_ns), (100, 100.0, 100));
    }

    #[test]
    fn the_gaps_of_two_senders_add_up() {
        let mut gaps = recorded(&[(0, 1), (100, 1)]);
        gaps.absorb(&recorded(&[(50, 2), (450, 2)])).unwrap();
        let reading = gaps.reading().unwrap().unwrap();
        assert_eq!((reading.count, reading.minimum_ns, reading.maximum_ns), (4, 0, 400));
    }
}
