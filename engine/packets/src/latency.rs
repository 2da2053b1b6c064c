//! Latency of one stream: an HdrHistogram in nanoseconds, beside the exact minimum, mean and maximum.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use nicbench_protocol::{LatencyFrom, LatencyReading};

use crate::error::{EngineError, ErrorKind};

const HIGHEST_NS: u64 = 100_000_000_000;
const DIGITS: u8 = 3;

/// Every latency of a stream in one trial.
#[derive(Debug, Clone)]
pub struct Latency {
    histogram: Histogram<u64>,
    minimum_ns: u64,
    maximum_ns: u64,
    sum_ns: u128,
    count: u64,
}

impl Latency {
    /// An empty record.
    pub fn new() -> Result<Self, EngineError> {
        let histogram = Histogram::new_with_bounds(1, HIGHEST_NS, DIGITS).map_err(|error| internal(&error))?;
        Ok(Self { histogram, minimum_ns: u64::MAX, maximum_ns: 0, sum_ns: 0, count: 0 })
    }

    /// One frame's latency.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        self.histogram.saturating_record(latency_ns);
        self.minimum_ns = self.minimum_ns.min(latency_ns);
        self.maximum_ns = self.maximum_ns.max(latency_ns);
        self.sum_ns += u128::from(latency_ns);
        self.count += 1;
    }

    /// Adds those of another worker.
    pub fn absorb(&mut self, other: &Self) -> Result<(), EngineError> {
        self.histogram.add(&other.histogram).map_err(|error| internal(&error))?;
        self.minimum_ns = self.minimum_ns.min(other.minimum_ns);
        self.maximum_ns = self.maximum_ns.max(other.maximum_ns);
        self.sum_ns += other.sum_ns;
        self.count += other.count;
        Ok(())
    }

    /// `None` where nothing was recorded.
    pub fn reading(
        &self,
        from: LatencyFrom,
        resolution_ns: f64,
        uncertainty_ns: f64,
    ) -> Result<Option<LatencyReading>, EngineError> {
        if self.count == 0 {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&self.histogram, &mut bytes).map_err(|error| internal(&error))?;
        let source = match from {
            LatencyFrom::Software => "software",
            LatencyFrom::Scheduled => "scheduled",
        };
        Ok(Some(LatencyReading {
            source: source.into(),
            resolution_ns,
            uncertainty_ns,
            count: self.count,
            minimum_ns: self.minimum_ns,
            mean_ns: self.sum_ns as f64 / self.count as f64,
            maximum_ns: self.maximum_ns,
            histogram: STANDARD.encode(bytes),
        }))
    }
}

fn internal(error: &dyn std::fmt::Debug) -> EngineError {
    let message = format!("the latency histogram failed: {error:?}");
    EngineError::new(ErrorKind::BadState, message, "report this as a fault of nicbench-packets")
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::Deserializer;

    use super::*;

    #[test]
    fn nothing_recorded_is_null() {
        let latency = Latency::new().unwrap();
        assert_eq!(latency.reading(LatencyFrom::Software, 1.0, 1.0).unwrap(), None);
    }

    #[test]
    fn minimum_mean_and_maximum_are_exact_and_the_histogram_holds_every_frame() {
        let mut latency = Latency::new().unwrap();
        for value in [1_234_567, 7_654_321, 1_000_003] {
            latency.record(value);
        }
        let reading = latency.reading(LatencyFrom::Scheduled, 0.4, 32.0).unwrap().unwrap();
        assert_eq!((reading.minimum_ns, reading.maximum_ns, reading.count), (1_000_003, 7_654_321, 3));
        assert!((reading.mean_ns - 9_888_891.0 / 3.0).abs() < 1e-6);
        assert_eq!(reading.source, "scheduled");
        let bytes = STANDARD.decode(reading.histogram).unwrap();
        let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        assert_eq!(histogram.len(), 3);
    }

    #[test]
    fn a_latency_over_the_range_is_kept_at_its_end_with_the_exact_maximum() {
        let mut latency = Latency::new().unwrap();
        latency.record(2 * HIGHEST_NS);
        let reading = latency.reading(LatencyFrom::Software, 1.0, 1.0).unwrap().unwrap();
        assert_eq!(reading.maximum_ns, 2 * HIGHEST_NS);
    }
}
