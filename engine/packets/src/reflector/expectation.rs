//! What a tester must count, derived from the log alone: plain sets, no code of the receiver.

use std::collections::{HashMap, HashSet};

use super::log::{Fate, Record};
use crate::signature::{Owner, Signature};

/// The counts that a tester without faults of its own reports of a trial, over all its streams and ports.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Expectation {
    /// Frames of the trial that reached the forwarder.
    pub arrived: u64,
    /// Distinct frames that arrived intact.
    pub received: u64,
    /// Frames that never left the forwarder.
    pub lost: u64,
    pub duplicated: u64,
    pub reordered: u64,
    pub corrupted: u64,
    pub corrupted_unattributed: u64,
    pub foreign: u64,
    /// How long the frames received were in the forwarder; `None` where none was.
    pub residence_ns: Option<Spread>,
}

/// The spread of a time over many frames.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    pub minimum: u64,
    pub mean: f64,
    pub maximum: u64,
}

impl Spread {
    /// The spread of `values`; `None` where there is none.
    pub fn of(values: impl IntoIterator<Item = u64>) -> Option<Self> {
        let (mut count, mut sum, mut minimum, mut maximum) = (0u64, 0u128, u64::MAX, 0);
        for value in values {
            count += 1;
            sum += u128::from(value);
            minimum = minimum.min(value);
            maximum = maximum.max(value);
        }
        (count > 0).then(|| Self { minimum, mean: sum as f64 / count as f64, maximum })
    }
}

/// The frames that count as received, in the order in which they left.
pub fn received_records(records: &[Record]) -> Vec<(&Record, Signature)> {
    let mut seen = HashSet::new();
    let whole = |record: &&Record| matches!(record.fate, Fate::Sent | Fate::Copy);
    records
        .iter()
        .filter(whole)
        .filter_map(|record| match record.owner {
            Owner::Ours(signature) if seen.insert((signature.flow, signature.sequence)) => Some((record, signature)),
            _ => None,
        })
        .collect()
}

/// What the records of one trial mean for its tester. A frame has one fate: a copy is counted beside its original.
pub fn expectation(records: &[Record]) -> Expectation {
    let mut expected = Expectation::default();
    let mut whole = 0;
    for record in records {
        match record.owner {
            Owner::Ours(_) => count(&mut expected, &mut whole, record.fate),
            // Nobody's frame any more, and still addressed as ours.
            Owner::EarlierTrial if record.fate == Fate::CorruptedSignature => expected.corrupted_unattributed += 1,
            Owner::EarlierTrial => {}
            Owner::Unknown => expected.foreign += u64::from(record.sent_ns.is_some()),
        }
    }
    let received = received_records(records);
    expected.received = received.len() as u64;
    expected.duplicated = whole - expected.received;
    expected.reordered = count_reordered(received.iter().map(|(_, signature)| *signature));
    let residence = |(record, _): &(&Record, Signature)| record.sent_ns.map(|sent| sent - record.received_ns);
    expected.residence_ns = Spread::of(received.iter().filter_map(residence));
    expected
}

fn count(expected: &mut Expectation, whole: &mut u64, fate: Fate) {
    expected.arrived += u64::from(fate != Fate::Copy);
    match fate {
        Fate::Sent | Fate::Copy => *whole += 1,
        Fate::CorruptedPayload | Fate::CorruptedLength => expected.corrupted += 1,
        Fate::CorruptedSignature => expected.corrupted_unattributed += 1,
        Fate::Lost | Fate::DroppedRate | Fate::DroppedHeldFull | Fate::DroppedAtEnd => expected.lost += 1,
    }
}

/// RFC 4737 3.3: a frame that comes after a greater one of its flow.
fn count_reordered(arrivals: impl Iterator<Item = Signature>) -> u64 {
    let mut greatest: HashMap<u32, u32> = HashMap::new();
    let mut count = 0;
    for Signature { flow, sequence, .. } in arrivals {
        let highest = greatest.entry(flow).or_insert(sequence);
        count += u64::from(sequence < *highest);
        *highest = sequence.max(*highest);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(fate: Fate, flow: u32, sequence: u32) -> Record {
        let owner = Owner::Ours(Signature { flow, sequence, time_ns: 0 });
        let left = !matches!(fate, Fate::Lost | Fate::DroppedRate);
        Record { trial: 1, direction: 0, fate, owner, received_ns: 10, sent_ns: left.then_some(30) }
    }

    #[test]
    fn each_fate_is_counted_once_and_where_it_belongs() {
        let records = [
            record(Fate::Sent, 1, 0),
            record(Fate::Copy, 1, 0),
            record(Fate::Sent, 1, 3),
            record(Fate::Sent, 1, 1),
            record(Fate::Sent, 2, 0),
            record(Fate::Lost, 2, 1),
            record(Fate::DroppedRate, 2, 2),
            record(Fate::CorruptedPayload, 2, 3),
            record(Fate::CorruptedLength, 2, 4),
            record(Fate::CorruptedSignature, 2, 5),
            Record { owner: Owner::Unknown, ..record(Fate::Copy, 0, 0) },
            Record { owner: Owner::Unknown, ..record(Fate::Lost, 0, 0) },
            Record { owner: Owner::EarlierTrial, ..record(Fate::Sent, 0, 0) },
        ];
        let residence_ns = Some(Spread { minimum: 20, mean: 20.0, maximum: 20 });
        let expected = Expectation {
            arrived: 9,
            received: 4,
            lost: 2,
            duplicated: 1,
            reordered: 1,
            corrupted: 2,
            corrupted_unattributed: 1,
            foreign: 1,
            residence_ns,
        };
        assert_eq!(expectation(&records), expected);
    }

    #[test]
    fn an_empty_log_expects_nothing_and_knows_no_latency() {
        assert_eq!(expectation(&[]), Expectation::default());
    }
}
