//! A log-linear histogram that is quick to record in: three digits from 1 ns to 1030 s, as HdrHistogram's.
//!
//! Its buckets are HdrHistogram's own (2048 of one width, then 1024 for each doubling), so that the conversion for the
//! reading loses nothing. Recording takes no branch but the one on a count's overflow, which 32 bits make rare.

use hdrhistogram::Histogram;

use super::internal;
use crate::error::EngineError;
use crate::signature::{EARLIEST_NS, TIME_MASK};

/// The longest latency that a signature shows.
pub const HIGHEST_NS: u64 = TIME_MASK + 1 - EARLIEST_NS;
pub const DIGITS: u8 = 3;
/// Buckets of one width at the front: two for each step of three digits, as a power of two.
const LINEAR: u64 = 2048;
pub const HALF_BITS: u32 = 10;
pub const BUCKETS: usize = index_of(HIGHEST_NS) + 1;

/// Latencies counted by bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LatencyCounts {
    /// Zero at first, so octaves that no latency falls into cost no memory.
    counts: Vec<u32>,
    /// Buckets whose count went over 32 bits, once for each time.
    overflows: Vec<usize>,
}

/// The exact bounds between which the sum of all recorded latencies must lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SumBounds {
    pub least_ns: u128,
    pub most_ns: u128,
}

impl LatencyCounts {
    /// The bytes that one takes where latencies of every size occur.
    pub const BYTES: usize = BUCKETS * size_of::<u32>();

    pub fn new() -> Self {
        Self { counts: vec![0; BUCKETS], overflows: Vec::new() }
    }

    /// Those that another counted in the same buckets; `overflows` names each whose count went over 32 bits.
    pub fn of_buckets(buckets: &[u32], overflows: Vec<usize>) -> Self {
        let mut counts = buckets.to_vec();
        counts.resize(BUCKETS, 0);
        Self { counts, overflows }
    }

    /// Records one latency; one beyond the range is counted at its end.
    #[inline(always)]
    pub fn record(&mut self, latency_ns: u64) {
        let index = index_of(latency_ns.min(HIGHEST_NS));
        if let Some(count) = self.counts.get_mut(index) {
            *count = count.wrapping_add(1);
            if *count == 0 {
                self.overflow(index);
            }
        }
    }

    #[cold]
    fn overflow(&mut self, index: usize) {
        self.overflows.push(index);
    }

    /// Adds the counts of another one.
    pub fn merge(&mut self, other: &Self) {
        for (index, (count, theirs)) in self.counts.iter_mut().zip(&other.counts).enumerate() {
            let (sum, over) = count.overflowing_add(*theirs);
            *count = sum;
            if over {
                self.overflows.push(index);
            }
        }
        self.overflows.extend(&other.overflows);
    }

    /// Buckets that hold something: index and count.
    fn nonzero_buckets(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let over = |index: usize| self.overflows.iter().filter(|overflow| **overflow == index).count() as u64;
        let has_overflow = !self.overflows.is_empty();
        self.counts.iter().enumerate().filter_map(move |(index, count)| {
            let more = if has_overflow { over(index) << 32 } else { 0 };
            let count = u64::from(*count) + more;
            (count > 0).then_some((index, count))
        })
    }

    /// The number of latencies recorded.
    pub fn total(&self) -> u64 {
        self.nonzero_buckets().map(|(_, count)| count).sum()
    }

    pub fn sum_bounds(&self) -> SumBounds {
        let zero = SumBounds { least_ns: 0, most_ns: 0 };
        self.nonzero_buckets().fold(zero, |bounds, (index, count)| {
            let (lowest, width) = bucket(index);
            SumBounds {
                least_ns: bounds.least_ns + u128::from(count) * u128::from(lowest),
                most_ns: bounds.most_ns + u128::from(count) * u128::from(lowest + width - 1),
            }
        })
    }

    /// Converts the counts to those of HdrHistogram.
    pub fn histogram(&self) -> Result<Histogram<u64>, EngineError> {
        histogram_of(self.nonzero_buckets())
    }
}

/// Converts counts by bucket to those of HdrHistogram.
pub fn histogram_of(buckets: impl Iterator<Item = (usize, u64)>) -> Result<Histogram<u64>, EngineError> {
    let mut histogram = Histogram::new_with_bounds(1, HIGHEST_NS, DIGITS).map_err(|error| internal(&error))?;
    for (index, count) in buckets {
        histogram.record_n(bucket(index).0, count).map_err(|error| internal(&error))?;
    }
    Ok(histogram)
}

impl Default for LatencyCounts {
    fn default() -> Self {
        Self::new()
    }
}

/// The bucket of a latency.
#[inline(always)]
pub const fn index_of(latency_ns: u64) -> usize {
    let octave = ((LINEAR - 1) | latency_ns).ilog2() - HALF_BITS;
    ((octave as u64) << HALF_BITS) as usize + (latency_ns >> octave) as usize
}

/// The lowest value of a bucket, and its width.
const fn bucket(index: usize) -> (u64, u64) {
    let octave = (index as u64 >> HALF_BITS).saturating_sub(1);
    ((index as u64 - (octave << HALF_BITS)) << octave, 1 << octave)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bucket_begins_where_the_one_before_it_ends() {
        let mut next = 0;
        for index in 0..BUCKETS {
            let (lowest, width) = bucket(index);
            assert_eq!(lowest, next);
            assert_eq!((index_of(lowest), index_of(lowest + width - 1)), (index, index));
            next = lowest + width;
        }
    }

    #[test]
    fn the_buckets_are_those_of_hdrhistogram() {
        let mut counts = LatencyCounts::new();
        let mut histogram = Histogram::<u64>::new_with_bounds(1, HIGHEST_NS, DIGITS).unwrap();
        for step in 0..4_600u64 {
            let latency_ns = step * step * step;
            counts.record(latency_ns);
            histogram.record(latency_ns).unwrap();
        }
        let converted = counts.histogram().unwrap();
        for latency_ns in [0, 1, 2047, 2048, 4095, 1_000_000, 99_999_999_999] {
            assert_eq!(converted.count_between(0, latency_ns), histogram.count_between(0, latency_ns), "{latency_ns}");
        }
        assert_eq!(converted, histogram);
    }

    #[test]
    fn a_count_goes_on_over_32_bits() {
        let mut counts = LatencyCounts::new();
        counts.counts[index_of(700)] = u32::MAX;
        counts.record(700);
        counts.record(700);
        assert_eq!(counts.total(), (1 << 32) + 1);
        let copy = counts.clone();
        counts.merge(&copy);
        assert_eq!(counts.total(), (1 << 33) + 2);
        assert_eq!(counts.histogram().unwrap().len(), (1 << 33) + 2);
    }

    #[test]
    fn the_sum_lies_between_the_bounds() {
        let mut counts = LatencyCounts::new();
        let latencies = [0, 1, 5_000, 123_456_789];
        latencies.iter().for_each(|latency_ns| counts.record(*latency_ns));
        let (bounds, sum) = (counts.sum_bounds(), latencies.iter().map(|value| u128::from(*value)).sum());
        assert!((bounds.least_ns..=bounds.most_ns).contains(&sum), "{bounds:?}");
        assert!(bounds.most_ns - bounds.least_ns < sum / 1000 + 1);
    }
}
