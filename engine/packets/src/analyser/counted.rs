//! What was counted elsewhere, by the program in the kernel, as an analyser: so that readings are made by one code.

use super::intervals::Intervals;
use super::{Analyser, Arrivals, PortTally, Silence, StreamTally};
use crate::capture::Capture;
use crate::flows::{Arrival, FlowLine, FlowTable};
use crate::latency::LatencyCounts;

/// What was counted of one stream.
#[derive(Debug, Clone, Default)]
pub struct CountedStream {
    pub tally: StreamTally,
    /// When the last frame was sent that came after a jump.
    pub last_jump_ns: Option<u64>,
    /// Extremes of latencies that are too long for a flow's line.
    pub beyond: Option<(u64, u64)>,
    /// The times of the first and the last arrival.
    pub times: Option<(u64, u64)>,
    pub silence: Option<Silence>,
    /// By interval.
    pub received: Vec<u64>,
    pub missing: Vec<i64>,
    /// Of the stream's flows, in their order.
    pub lines: Vec<FlowLine>,
    /// Of the stream's groups, in their order.
    pub counts: Vec<LatencyCounts>,
    pub shared_counts: LatencyCounts,
}

/// What one receiver counted.
#[derive(Debug, Clone, Default)]
pub struct Counted {
    /// In the order in which the analyser expects them.
    pub streams: Vec<CountedStream>,
    pub port: PortTally,
    pub interval_ns: u64,
    /// Intervals that have ended.
    pub intervals: usize,
    pub capture: Option<Capture>,
}

/// Where each stream's latencies are counted, and what the flows' table remembers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// By stream: groups, and the number of flows in each as a power of two.
    pub groups: Vec<(usize, u32)>,
    pub ring_words: usize,
    pub holes: usize,
    /// Where signatures may begin.
    pub offsets: Vec<usize>,
}

impl Analyser {
    /// What this analyser would keep, for a receiver that keeps the same.
    pub fn layout(&self) -> Layout {
        let (ring_words, holes) = self.flows.memory_of_flow();
        let groups = self.groupings.iter().map(|grouping| (grouping.groups, grouping.shift)).collect();
        Layout { groups, ring_words, holes, offsets: self.offsets.clone() }
    }

    /// Takes what was counted at `port` for its own, which must be empty.
    pub fn take_counted(&mut self, port: usize, counted: Counted) {
        let mut series = Vec::with_capacity(counted.streams.len());
        for (index, stream) in counted.streams.into_iter().enumerate() {
            let received = stream.tally.received;
            let tally = StreamTally { last_jump_ns: stream.last_jump_ns, beyond: stream.beyond, ..stream.tally };
            self.streams[index] = tally;
            let (first_ns, last_ns) = stream.times.unwrap_or_default();
            self.arrivals[index] = Arrivals { received, first_ns, last_ns, silence: stream.silence };
            self.flows.set_lines(self.expected[index].first_flow as usize, &stream.lines);
            let first_group = self.groupings[index].first_group;
            self.counts[first_group..first_group + stream.counts.len()].clone_from_slice(&stream.counts);
            self.shared_counts[index] = stream.shared_counts;
            series.push((stream.received, stream.missing));
        }
        self.intervals = Intervals::of_counts(counted.interval_ns, counted.intervals, series);
        if let Some(tally) = self.ports.get_mut(port) {
            *tally = counted.port;
        }
        self.capture = counted.capture;
    }

    /// The stream whose addresses a frame at `port` has that bears no valid signature; `None`: it is foreign.
    pub fn stream_addressed(&self, port: usize, frame: &[u8]) -> Option<usize> {
        let is_ours =
            |stream: &super::Expected| stream.receive_port == port && stream.template.is_addressed_as_ours(frame);
        self.expected.iter().position(is_ours)
    }

    /// The width of intervals of which a trial of this length has not too many.
    pub fn interval_for(duration_ns: u64) -> u64 {
        Intervals::width_for(duration_ns)
    }

    /// The flows' table, to compare it.
    pub fn flow_table(&self) -> &FlowTable {
        &self.flows
    }
}

impl CountedStream {
    /// Counts a frame that was overtaken, once it is known by whom.
    pub fn count_late(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::BehindBroken => self.tally.unpaired += 1,
            Arrival::Reordered(overtaken) => {
                self.tally.reordered += 1;
                self.tally.reordering.add(overtaken);
            }
            _ => {}
        }
    }
}
