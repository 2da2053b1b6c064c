//! The tester's reading beside the forwarder's log.

use std::fmt;

use nicbench_packets::reflector::expectation::{self, Expectation, Spread, expectation};
use nicbench_packets::reflector::log::{Fate, Record};
use nicbench_protocol::StreamReading;

use crate::case::Case;
use crate::rings::Outcome;

/// Two clocks' readings, each rounded down, in nanoseconds.
const ROUNDING_NS: u64 = 3;

/// What all cases together have tried.
#[derive(Debug, Default)]
pub struct Totals {
    sent: u64,
    expected: Expectation,
    dropped_rate: u64,
    dropped_held_full: u64,
}

impl Totals {
    fn add(&mut self, sent: u64, expected: &Expectation, records: &[Record]) {
        self.sent += sent;
        let sum = &mut self.expected;
        sum.received += expected.received;
        sum.lost += expected.lost;
        sum.duplicated += expected.duplicated;
        sum.reordered += expected.reordered;
        sum.corrupted += expected.corrupted;
        sum.corrupted_unattributed += expected.corrupted_unattributed;
        sum.foreign += expected.foreign;
        let count = |fate| records.iter().filter(|record| record.fate == fate).count() as u64;
        self.dropped_rate += count(Fate::DroppedRate);
        self.dropped_held_full += count(Fate::DroppedHeldFull);
    }

    /// Whether each kind of fault was met at least once.
    pub fn everything_happened(&self) -> bool {
        let Expectation { lost, duplicated, reordered, corrupted, corrupted_unattributed, foreign, .. } = self.expected;
        let all = [lost, duplicated, reordered, corrupted, corrupted_unattributed, foreign, self.dropped_rate];
        all.iter().all(|count| *count > 0)
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Expectation { received, lost, duplicated, reordered, corrupted, corrupted_unattributed, foreign, .. } =
            self.expected;
        write!(
            formatter,
            "{} sent, {received} received, {lost} lost (rate {}, held {}), {duplicated} duplicated, {reordered} reordered, \
             {corrupted} corrupted, {corrupted_unattributed} unattributed, {foreign} foreign",
            self.sent, self.dropped_rate, self.dropped_held_full
        )
    }
}

/// Compares, stream by stream; an error says what differs.
pub fn check(case: &Case, outcome: &Outcome, totals: &mut Totals) -> Result<(), String> {
    for (index, stream) in outcome.reading.streams.iter().enumerate() {
        let of_direction = |record: &&Record| usize::from(record.direction) == index;
        let records: Vec<Record> = outcome.records.iter().filter(of_direction).copied().collect();
        let expected = expectation(&records);
        check_counts(outcome, index, stream, &expected).map_err(|problem| format!("stream {index}: {problem}"))?;
        check_latency(case, outcome, stream, &records).map_err(|problem| format!("stream {index}: {problem}"))?;
        totals.add(stream.sent, &expected, &records);
    }
    Ok(())
}

fn check_counts(outcome: &Outcome, index: usize, stream: &StreamReading, expected: &Expectation) -> Result<(), String> {
    let far = &outcome.reading.ports[1 - index];
    let pairs = [
        ("sent", stream.sent, expected.arrived),
        ("received", stream.received, expected.received),
        ("lost", stream.lost, expected.lost),
        ("late", stream.late, 0),
        ("duplicated", stream.duplicated, expected.duplicated),
        ("reordered", stream.reordered, expected.reordered),
        ("corrupted", stream.corrupted, expected.corrupted),
        ("unattributed", stream.unattributed, expected.corrupted_unattributed),
        ("corrupted_unattributed", far.corrupted_unattributed, expected.corrupted_unattributed),
        ("foreign", far.foreign, expected.foreign),
        ("receive_overrun", far.receive_overrun, 0),
    ];
    let different: Vec<_> = pairs.iter().filter(|(_, told, logged)| told != logged).collect();
    if !different.is_empty() {
        return Err(format!("the tester's count and the log's differ: {different:?}"));
    }
    // Every frame that came is one that was sent or a copy, whole or broken.
    let arrived = stream.received + stream.duplicated + stream.late + stream.corrupted;
    let (left, right) = (stream.sent + stream.duplicated, arrived + stream.lost + stream.unattributed);
    if left != right {
        return Err(format!("sent + duplicates is {left}, and received + lost + unattributed {right}"));
    }
    Ok(())
}

/// Each frame's latency is known but for the last hop, from the forwarder's send to the tester's look at the clock.
fn check_latency(case: &Case, outcome: &Outcome, stream: &StreamReading, records: &[Record]) -> Result<(), String> {
    let received = expectation::received_records(records);
    let windows: Vec<_> = received
        .iter()
        .filter_map(|(record, signature)| Some(outcome.window(record.sent_ns?, signature.time_ns)))
        .collect();
    let least = Spread::of(windows.iter().map(|window| window.least_ns));
    let most = Spread::of(windows.iter().map(|window| window.most_ns));
    let (Some(least), Some(most), Some(latency)) = (least, most, &stream.latency) else {
        let consistent = windows.is_empty() && stream.latency.is_none();
        return if consistent { Ok(()) } else { Err("a latency where nothing was received, or none".into()) };
    };
    let inside = |name, value: f64, from: f64, to: f64| match value + ROUNDING_NS as f64 >= from
        && value <= to + ROUNDING_NS as f64
    {
        true => Ok(()),
        false => Err(format!("the {name} latency is {value} ns, and by the log it is {from} to {to} ns")),
    };
    inside("minimum", latency.minimum_ns as f64, least.minimum as f64, most.minimum as f64)?;
    inside("mean", latency.mean_ns, least.mean, most.mean)?;
    inside("maximum", latency.maximum_ns as f64, least.maximum as f64, most.maximum as f64)?;
    let least_possible = case.faults.delay_ns as f64 - latency.uncertainty_ns;
    inside("minimum", latency.minimum_ns as f64, least_possible, f64::INFINITY)
}
