//! Latency of a stream or of a group of flows: counts by size, beside the exact minimum, mean and maximum.

mod counts;
mod sparse;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use nicbench_protocol::{LatencyReading, SharedCoreReading};

pub use counts::{HIGHEST_NS, LatencyCounts};
pub use sparse::{CopiedCounts, SparseCounts};

use crate::error::{EngineError, ErrorKind};

/// The exact count, sum and extremes of many latencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatencySummary {
    pub count: u64,
    pub minimum_ns: u64,
    pub maximum_ns: u64,
    pub sum_ns: u128,
}

impl Default for LatencySummary {
    fn default() -> Self {
        Self { count: 0, minimum_ns: u64::MAX, maximum_ns: 0, sum_ns: 0 }
    }
}

impl LatencySummary {
    /// Adds one latency.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        self.count += 1;
        self.minimum_ns = self.minimum_ns.min(latency_ns);
        self.maximum_ns = self.maximum_ns.max(latency_ns);
        self.sum_ns += u128::from(latency_ns);
    }

    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.minimum_ns = self.minimum_ns.min(other.minimum_ns);
        self.maximum_ns = self.maximum_ns.max(other.maximum_ns);
        self.sum_ns += other.sum_ns;
    }

    pub fn mean_ns(&self) -> f64 {
        self.sum_ns as f64 / self.count as f64
    }
}

/// How latencies were measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stamping {
    /// By what a sent frame is stamped: `software`, `program` or `scheduled`.
    pub source: &'static str,
    /// By what a received one is: `tsc`, `program`, `card` or `kernel`.
    pub received_by: &'static str,
    pub resolution_ns: f64,
    pub uncertainty_ns: f64,
}

/// `None` where nothing was recorded. Mean and histogram are kept apart and must agree.
pub fn reading(
    summary: &LatencySummary,
    counts: &LatencyCounts,
    stamping: Stamping,
) -> Result<Option<LatencyReading>, EngineError> {
    if summary.count == 0 {
        return Ok(None);
    }
    check(summary, counts)?;
    Ok(Some(LatencyReading {
        source: stamping.source.into(),
        received_by: stamping.received_by.into(),
        resolution_ns: stamping.resolution_ns,
        uncertainty_ns: stamping.uncertainty_ns,
        negative: 0,
        negative_maximum_ns: 0,
        count: summary.count,
        minimum_ns: summary.minimum_ns,
        mean_ns: summary.mean_ns(),
        maximum_ns: summary.maximum_ns,
        histogram: encode_histogram(counts)?,
        shared_core: None,
    }))
}

/// The reading of the frames that were under way while one of the DUT's cores was shared.
pub fn shared_core_reading(counts: &LatencyCounts) -> Result<SharedCoreReading, EngineError> {
    Ok(SharedCoreReading { count: counts.total(), histogram: encode_histogram(counts)? })
}

/// Encodes latencies as HdrHistogram V2, compressed, in base64.
pub fn encode_histogram(counts: &LatencyCounts) -> Result<String, EngineError> {
    encode(&counts.histogram()?)
}

/// Encodes a copy as [`encode_histogram`] does all.
pub fn encode_copy(counts: &CopiedCounts) -> Result<String, EngineError> {
    encode(&counts.histogram()?)
}

fn encode(histogram: &Histogram<u64>) -> Result<String, EngineError> {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(histogram, &mut bytes).map_err(|error| internal(&error))?;
    Ok(STANDARD.encode(bytes))
}

/// The self-check: the sum of all latencies lies where the histogram's buckets allow it, and both saw as many frames.
fn check(summary: &LatencySummary, counts: &LatencyCounts) -> Result<(), EngineError> {
    let (total, bounds) = (counts.total(), counts.sum_bounds());
    // Latencies over the range are in the sum as they are and in the histogram at its end.
    let within = (bounds.least_ns..=bounds.most_ns).contains(&summary.sum_ns)
        || (summary.maximum_ns > HIGHEST_NS && summary.sum_ns >= bounds.least_ns);
    if total == summary.count && within {
        return Ok(());
    }
    let mean_of = |sum: u128| sum as f64 / total.max(1) as f64;
    let message = format!(
        "self-check: {} latencies of a mean of {} ns were summed, and the histogram holds {total} of a mean from {} to {} ns",
        summary.count,
        summary.mean_ns(),
        mean_of(bounds.least_ns),
        mean_of(bounds.most_ns),
    );
    let next = "do not use this run's latencies, and report this as a fault of nicbench-packets";
    Err(EngineError::new(ErrorKind::SelfCheck, message, next))
}

fn internal(error: &dyn std::fmt::Debug) -> EngineError {
    let message = format!("the latency histogram failed: {error:?}");
    EngineError::new(ErrorKind::SelfCheck, message, "report this as a fault of nicbench-packets")
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::Deserializer;

    use super::*;

    const STAMPING: Stamping =
        Stamping { source: "scheduled", received_by: "tsc", resolution_ns: 0.4, uncertainty_ns: 32.0 };

    fn recorded(latencies_ns: &[u64]) -> (LatencySummary, LatencyCounts) {
        let (mut summary, mut counts) = (LatencySummary::default(), LatencyCounts::new());
        for value in latencies_ns {
            counts.record(*value);
            let one = LatencySummary { count: 1, minimum_ns: *value, maximum_ns: *value, sum_ns: (*value).into() };
            summary.merge(&one);
        }
        (summary, counts)
    }

    #[test]
    fn nothing_recorded_is_null() {
        let (summary, counts) = recorded(&[]);
        assert_eq!(reading(&summary, &counts, STAMPING).unwrap(), None);
    }

    #[test]
    fn minimum_mean_and_maximum_are_exact_and_the_histogram_holds_every_frame() {
        let (summary, counts) = recorded(&[1_234_567, 7_654_321, 1_000_003]);
        let reading = reading(&summary, &counts, STAMPING).unwrap().unwrap();
        assert_eq!((reading.minimum_ns, reading.maximum_ns, reading.count), (1_000_003, 7_654_321, 3));
        assert!((reading.mean_ns - 9_888_891.0 / 3.0).abs() < 1e-6);
        assert_eq!(reading.source, "scheduled");
        let bytes = STANDARD.decode(reading.histogram).unwrap();
        let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        assert_eq!(histogram.len(), 3);
    }

    #[test]
    fn a_latency_over_the_range_is_kept_at_its_end_with_the_exact_maximum() {
        let (summary, counts) = recorded(&[5, 2 * HIGHEST_NS]);
        assert_eq!(reading(&summary, &counts, STAMPING).unwrap().unwrap().maximum_ns, 2 * HIGHEST_NS);
    }

    #[test]
    fn a_mean_that_the_histogram_cannot_have_is_a_fault_of_the_engine() {
        let (mut summary, counts) = recorded(&[1_000_000; 3]);
        summary.sum_ns += 3 * 2_000;
        let error = reading(&summary, &counts, STAMPING).unwrap_err();
        assert_eq!(error.kind, ErrorKind::SelfCheck);
        assert!(error.message.contains("1002000"), "{error}");
        summary.sum_ns -= 3 * 2_000;
        summary.count += 1;
        assert!(reading(&summary, &counts, STAMPING).is_err());
    }
}
