//! Makes the receiver's part of a stream's reading.

use nicbench_protocol::{
    ArrivalsReading, FlowsReading, GroupReading, IntervalsReading, LatencyReading, ReorderingReading, SilenceReading,
    TrafficClassesReading, VariationReading,
};

use super::{Analyser, Group, Outcome};
use crate::error::EngineError;
use crate::flows::FEWEST_COUNTED;
use crate::latency::{self, Stamping};

/// The receiver's part of a stream's reading.
#[derive(Debug)]
pub struct ReceivedReading {
    pub latency: Option<LatencyReading>,
    pub reordering: Option<ReorderingReading>,
    pub variation: Option<VariationReading>,
    pub intervals: Option<IntervalsReading>,
    pub arrivals: Option<ArrivalsReading>,
    pub last_jump_ns: Option<u64>,
    pub groups: Vec<GroupReading>,
    pub flows: FlowsReading,
    pub checked_bytes: u32,
    pub traffic_classes: Option<TrafficClassesReading>,
}

impl Analyser {
    /// Of a stream that sent so many frames; an error where the engine's own figures contradict each other.
    pub fn reading(&self, index: usize, sent: u64, stamping: Stamping) -> Result<ReceivedReading, EngineError> {
        let outcome = self.outcome(index);
        let shared_core = outcome.shared_counts.as_ref().map(latency::shared_core_reading).transpose()?;
        let groups: Vec<Group> = self.groups(index).collect();
        // Histograms of single flows go to their file.
        let in_reading = groups.len() > 1 && groups.len() <= nicbench_protocol::MAXIMUM_FLOW_GROUPS as usize;
        Ok(ReceivedReading {
            latency: latency::reading(&outcome.latency, &outcome.counts, stamping)?.map(|latency| LatencyReading {
                negative: outcome.tally.negative,
                negative_maximum_ns: outcome.tally.negative_maximum_ns,
                shared_core,
                ..latency
            }),
            reordering: reordering(&outcome, self.flows.reordering_limit()),
            variation: variation(&outcome),
            intervals: (outcome.tally.received > 0).then(|| IntervalsReading {
                interval_ns: outcome.interval_ns,
                received: outcome.series.received.clone(),
                missing: outcome.series.missing.clone(),
            }),
            arrivals: arrivals(&outcome),
            last_jump_ns: outcome.tally.last_jump_ns(),
            groups: if in_reading {
                groups.iter().map(|group| group_reading(group, stamping)).collect::<Result<_, _>>()?
            } else {
                Vec::new()
            },
            flows: self.flows_reading(index, sent),
            checked_bytes: outcome.checked_bytes,
            traffic_classes: self.classes_reading(index),
        })
    }

    fn classes_reading(&self, index: usize) -> Option<TrafficClassesReading> {
        let stream = &self.expected[index];
        self.classes.as_ref().map(|classes| classes.reading(index, stream.first_flow, stream.flows))
    }

    fn flows_reading(&self, index: usize, sent: u64) -> FlowsReading {
        let mut reading = FlowsReading::default();
        for flow in self.flows_of(index, sent) {
            let line = flow.line;
            reading.flows += 1;
            reading.silent += u64::from(line.arrivals() == 0 && flow.lost > 0);
            reading.with_loss += u64::from(flow.lost > 0);
            reading.with_reordering += u64::from(line.reordered > 0);
            reading.with_duplicates += u64::from(line.duplicated > 0);
            reading.with_corruption += u64::from(line.corrupted > 0);
            if flow.lost > reading.most_lost.map_or(0, |(_, lost)| lost) {
                reading.most_lost = Some((flow.flow, flow.lost));
            }
            let mean_ns = line.latency_sum_ns as f64 / line.received.max(1) as f64;
            if line.received > 0 && reading.slowest.is_none_or(|(_, slowest_ns)| mean_ns > slowest_ns) {
                reading.slowest = Some((flow.flow, mean_ns));
            }
        }
        reading
    }
}

fn arrivals(outcome: &Outcome) -> Option<ArrivalsReading> {
    let silence = outcome.arrivals.silence();
    let silence = silence.map(|silence| SilenceReading { from_ns: silence.from_ns, to_ns: silence.to_ns });
    outcome.arrivals.times().map(|(first_ns, last_ns)| ArrivalsReading { first_ns, last_ns, silence })
}

fn reordering(outcome: &Outcome, counted: usize) -> Option<ReorderingReading> {
    let found = &outcome.tally.reordering;
    (outcome.tally.reordered > 0).then(|| ReorderingReading {
        maximum_extent: found.maximum_extent,
        mean_extent: (found.measured > 0).then(|| found.extent_sum as f64 / found.measured as f64),
        measured: found.measured,
        by_three_or_more: found.by_or_more(FEWEST_COUNTED),
        n_reordered: (1..=counted).map(|n| found.by_or_more(n)).collect(),
    })
}

fn variation(outcome: &Outcome) -> Option<VariationReading> {
    let pairs = outcome.tally.pairs();
    (pairs > 0).then(|| VariationReading {
        pairs,
        mean_ns: outcome.variation_sum_ns as f64 / pairs as f64,
        maximum_ns: outcome.tally.variation_maximum_ns.into(),
    })
}

fn group_reading(group: &Group, stamping: Stamping) -> Result<GroupReading, EngineError> {
    let latency = latency::reading(&group.latency, group.counts, stamping)?;
    Ok(GroupReading {
        first_flow: group.first_flow,
        flows: group.flows,
        received: group.latency.count,
        minimum_ns: latency.as_ref().map(|latency| latency.minimum_ns),
        mean_ns: latency.as_ref().map(|latency| latency.mean_ns),
        maximum_ns: latency.as_ref().map(|latency| latency.maximum_ns),
        histogram: latency.map(|latency| latency.histogram),
    })
}
