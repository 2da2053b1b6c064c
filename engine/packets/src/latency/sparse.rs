//! The same buckets for thousands of flows: only octaves into which a latency fell take memory, and copies are short.

use hdrhistogram::Histogram;

use super::counts::{BUCKETS, HALF_BITS, HIGHEST_NS, histogram_of, index_of};
use crate::error::EngineError;

/// Buckets that take memory together.
const OCTAVE: usize = 1 << HALF_BITS;
const OCTAVES: usize = BUCKETS.div_ceil(OCTAVE);

/// Latencies counted by bucket.
#[derive(Debug, Clone, Default)]
pub struct SparseCounts {
    octaves: [Option<Box<[u64; OCTAVE]>>; OCTAVES],
}

impl SparseCounts {
    /// Records one latency; one beyond the range is counted at its end.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        let index = index_of(latency_ns.min(HIGHEST_NS));
        let octave = self.octaves[index / OCTAVE].get_or_insert_with(|| Box::new([0; OCTAVE]));
        octave[index % OCTAVE] += 1;
    }

    /// Forgets everything; the memory is kept.
    pub fn clear(&mut self) {
        self.octaves.iter_mut().flatten().for_each(|octave| octave.fill(0));
    }

    /// A copy of the buckets that hold something.
    pub fn copy(&self) -> CopiedCounts {
        let octaves = self.octaves.iter().zip((0..).step_by(OCTAVE));
        let buckets =
            octaves.flat_map(|(octave, first)| octave.iter().flat_map(move |octave| octave.iter().zip(first..)));
        CopiedCounts(buckets.filter(|(count, _)| **count > 0).map(|(count, index)| (index, *count)).collect())
    }
}

/// Counts of the buckets that hold something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopiedCounts(Vec<(usize, u64)>);

impl CopiedCounts {
    /// Converts the counts to those of HdrHistogram.
    pub fn histogram(&self) -> Result<Histogram<u64>, EngineError> {
        histogram_of(self.0.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::LatencyCounts;

    #[test]
    fn every_latency_is_in_the_bucket_that_it_has_elsewhere() {
        let (mut sparse, mut counts) = (SparseCounts::default(), LatencyCounts::new());
        for latency_ns in (0..40).flat_map(|bit| [0, 1 << bit, (1 << bit) + 12_345]).chain([u64::MAX]) {
            sparse.record(latency_ns);
            counts.record(latency_ns);
        }
        assert_eq!(sparse.copy().histogram().unwrap(), counts.histogram().unwrap());
        sparse.clear();
        assert_eq!(sparse.copy(), CopiedCounts(Vec::new()));
    }
}
