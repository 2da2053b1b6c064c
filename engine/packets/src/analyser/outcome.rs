//! What the reading says of a stream: totals from its flows, groups of flows, and single flows.

use super::intervals::Series;
use super::{Analyser, Arrivals, StreamTally};
use crate::flows::FlowLine;
use crate::latency::{LatencyCounts, LatencySummary};

/// What is computed of one stream when its reading is made.
#[derive(Debug)]
pub struct Outcome {
    pub tally: StreamTally,
    pub latency: LatencySummary,
    pub counts: LatencyCounts,
    /// Of frames that were under way while one of the DUT's cores was shared; `None` where nobody looked.
    pub shared_counts: Option<LatencyCounts>,
    pub variation_sum_ns: u64,
    pub interval_ns: u64,
    pub series: Series,
    pub arrivals: Arrivals,
    /// Signature and payload of each frame, which are compared byte by byte.
    pub checked_bytes: u32,
}

/// A group of flows that share a histogram.
#[derive(Debug)]
pub struct Group<'a> {
    /// Within the stream.
    pub first_flow: u32,
    pub flows: u32,
    pub latency: LatencySummary,
    pub counts: &'a LatencyCounts,
}

/// What was counted of one flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowOutcome {
    /// Within the stream.
    pub flow: u32,
    pub line: FlowLine,
    /// Sent in this flow and neither received nor corrupted. A broken signature names no flow, so such frames are here
    /// too.
    pub lost: u64,
}

impl Analyser {
    /// Computes the outcome of the stream with this number.
    pub fn outcome(&self, index: usize) -> Outcome {
        let tally = self.streams[index].clone();
        let lines = self.lines_of(index);
        let mut latency = summary(lines);
        tally.correct(&mut latency);
        let mut counts = LatencyCounts::new();
        self.counts_of(index).iter().for_each(|group| counts.merge(group));
        let template = &self.expected[index].template;
        Outcome {
            latency,
            counts,
            shared_counts: self.is_watched.then(|| self.shared_counts[index].clone()),
            variation_sum_ns: lines.iter().map(|line| line.variation_sum_ns).sum(),
            interval_ns: self.intervals.width_ns(),
            series: self.intervals.of(index, &tally),
            arrivals: self.arrivals[index],
            checked_bytes: template.length().saturating_sub(template.signature_offset()) as u32,
            tally,
        }
    }

    /// The groups of a stream, in the order of their flows.
    pub fn groups(&self, index: usize) -> impl Iterator<Item = Group<'_>> {
        let shift = self.groupings[index].shift;
        let chunks = self.lines_of(index).chunks(1 << shift);
        chunks.zip(self.counts_of(index)).enumerate().map(move |(number, (lines, counts))| Group {
            first_flow: (number as u32) << shift,
            flows: lines.len() as u32,
            latency: summary(lines),
            counts,
        })
    }

    /// Every flow of a stream that sent so many frames, its flows in turn.
    pub fn flows_of(&self, index: usize, sent: u64) -> impl Iterator<Item = FlowOutcome> + '_ {
        let lines = self.lines_of(index);
        let flows = lines.len().max(1) as u64;
        let sent_in = move |flow: u64| sent / flows + u64::from(flow < sent % flows);
        // Where frames were not sent in turn, what came proves it, and only holes in the sequences are known.
        let in_turn = lines.iter().zip(0..).all(|(line, flow)| line.next <= sent_in(flow));
        lines.iter().zip(0..).map(move |(line, flow)| FlowOutcome {
            flow: flow as u32,
            line: *line,
            lost: if in_turn { sent_in(flow).saturating_sub(line.arrivals()) } else { line.missing() },
        })
    }

    fn lines_of(&self, index: usize) -> &[FlowLine] {
        let stream = &self.expected[index];
        let first = stream.first_flow as usize;
        self.flows.lines().get(first..first + stream.flows as usize).unwrap_or_default()
    }

    fn counts_of(&self, index: usize) -> &[LatencyCounts] {
        let grouping = self.groupings[index];
        &self.counts[grouping.first_group..grouping.first_group + grouping.groups]
    }
}

fn summary(lines: &[FlowLine]) -> LatencySummary {
    let mut whole = LatencySummary::default();
    for line in lines {
        whole.merge(&LatencySummary {
            count: line.received,
            minimum_ns: if line.received == 0 { u64::MAX } else { line.latency_minimum_ns.into() },
            maximum_ns: line.latency_maximum_ns.into(),
            sum_ns: line.latency_sum_ns.into(),
        });
    }
    whole
}
