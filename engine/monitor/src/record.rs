//! What one sample holds, and what its numbers stand for. In steady state nothing here takes memory.

use nicbench_protocol::{SeriesDeclaration, SeriesKind};

/// Series of one process; more are not declared. They are few but for hosts with thousands of interrupts and CPUs.
const MOST_SERIES: usize = 100_000;

/// The number of a series; `None`: there were too many.
pub type Series = Option<u32>;

/// The values of one sample, and the series that they belong to.
#[derive(Debug, Default)]
pub struct Record {
    declared: usize,
    fresh: Vec<SeriesDeclaration>,
    values: Vec<(u32, Option<i64>)>,
}

impl Record {
    /// A new series, told before the next sample.
    pub fn declare(&mut self, metric: &str, of: impl Into<String>, kind: SeriesKind) -> Series {
        if self.declared >= MOST_SERIES {
            return None;
        }
        let series = self.declared as u32;
        self.declared += 1;
        self.fresh.push(SeriesDeclaration { series, metric: metric.into(), of: of.into(), kind });
        Some(series)
    }

    /// A value of this sample; `None` is unknown.
    pub fn put(&mut self, series: Series, value: Option<i64>) {
        if let Some(series) = series {
            self.values.push((series, value));
        }
    }

    /// A new sample begins.
    pub fn clear(&mut self) {
        self.values.clear();
    }

    /// Only the first `length` values stay.
    pub fn truncate(&mut self, length: usize) {
        self.values.truncate(length);
    }

    /// Of this sample.
    pub fn values(&self) -> &[(u32, Option<i64>)] {
        &self.values
    }

    /// The series that were not told yet.
    pub fn take_new_series(&mut self) -> Vec<SeriesDeclaration> {
        std::mem::take(&mut self.fresh)
    }
}

/// A counter of the kernel, of which samples hold what it grew by.
#[derive(Debug, Clone, Copy)]
pub struct Count {
    series: Series,
    before: Option<u64>,
}

impl Count {
    /// Its first value gives no difference yet.
    pub fn new(record: &mut Record, metric: &str, of: impl Into<String>) -> Self {
        Self { series: record.declare(metric, of, SeriesKind::Count), before: None }
    }

    /// A series for a counter whose value is known already.
    pub fn since(record: &mut Record, metric: &str, of: impl Into<String>, before: u64) -> Self {
        Self { before: Some(before), ..Self::new(record, metric, of) }
    }

    /// Puts the difference. A counter that fell (idle times do, by a tick) did not grow; one that cannot be read is
    /// unknown, and so is the difference after it.
    pub fn put(&mut self, record: &mut Record, now: Option<u64>) {
        match (self.before, now) {
            (Some(before), Some(now)) => {
                record.put(self.series, Some(i64::try_from(now.saturating_sub(before)).unwrap_or(i64::MAX)));
            }
            (_, None) => record.put(self.series, None),
            (None, Some(_)) => {}
        }
        self.before = now;
    }
}

/// A value that is told as it is.
#[derive(Debug, Clone, Copy)]
pub struct Gauge {
    series: Series,
}

impl Gauge {
    /// A new one.
    pub fn new(record: &mut Record, metric: &str, of: impl Into<String>) -> Self {
        Self { series: record.declare(metric, of, SeriesKind::Gauge) }
    }

    /// Puts the value.
    pub fn put(&self, record: &mut Record, now: Option<i64>) {
        record.put(self.series, now);
    }

    /// The same for a value that cannot be below 0.
    pub fn put_unsigned(&self, record: &mut Record, now: Option<u64>) {
        self.put(record, now.and_then(|now| i64::try_from(now).ok()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_tells_what_it_grew_by_and_null_where_it_cannot_be_read() {
        let mut record = Record::default();
        let mut count = Count::new(&mut record, "packets", "eth0");
        let mut told = |now| {
            record.clear();
            count.put(&mut record, now);
            record.values().first().map(|(_, value)| *value)
        };
        assert_eq!([told(Some(10)), told(Some(17)), told(Some(16))], [None, Some(Some(7)), Some(Some(0))]);
        assert_eq!([told(None), told(Some(20)), told(Some(21))], [Some(None), None, Some(Some(1))]);
    }

    #[test]
    fn each_series_is_told_once() {
        let mut record = Record::default();
        Gauge::new(&mut record, "memory_free_bytes", "");
        Count::new(&mut record, "packets", "eth0");
        assert_eq!(record.take_new_series().iter().map(|series| series.series).collect::<Vec<_>>(), [0, 1]);
        assert!(record.take_new_series().is_empty());
    }
}
