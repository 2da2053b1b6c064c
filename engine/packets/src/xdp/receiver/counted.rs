//! What one receive queue counted, as an analyser takes it: read from the tables, with what its events told.

use super::{Receiver, Trial};
use crate::analyser::{Counted, CountedStream, Silence};
use crate::flows::LateFrames;
use crate::latency::LatencyCounts;
use crate::sys::bpf::receiving::{HISTOGRAM_BLOCKS, Tally};

impl Receiver {
    pub(super) fn counted(&self, trial: &Trial, number: usize) -> Counted {
        let (shard, events) = (self.tables.shards.get(number), &trial.shards[number]);
        let config = self.tables.config();
        let closed = (shard.last_ns / config.interval_ns.max(1)).min(trial.sizes.intervals as u64 - 1) as usize;
        let mut port = events.port;
        port.arrived = shard.arrived;
        port.foreign += shard.foreign;
        port.misdirected = shard.misdirected;
        port.stale = shard.stale;
        port.corrupted_unattributed += shard.unattributed;
        let mut streams = vec![CountedStream::default(); trial.order.len()];
        for (place, index) in trial.order.iter().enumerate() {
            streams[*index] = self.counted_stream(trial, number, place, *index, closed);
        }
        Counted { streams, port, interval_ns: config.interval_ns, intervals: closed, capture: events.capture.clone() }
    }

    fn counted_stream(&self, trial: &Trial, shard: usize, place: usize, index: usize, closed: usize) -> CountedStream {
        let (sizes, events) = (&trial.sizes, &trial.shards[shard]);
        let tally = self.tables.tallies.get(shard * sizes.streams + place);
        let entry = self.tables.streams.get(place);
        let mut stream = events.streams[index].clone();
        add_tally(&mut stream, &tally);
        let first = (shard * sizes.streams + place) * sizes.intervals;
        let series =
            self.tables.series.copy(first..first + closed.max(tally.interval as usize + 1).min(sizes.intervals));
        stream.received = series.iter().map(|interval| interval.received).collect();
        stream.missing = series.iter().map(|interval| interval.missing).collect();
        stream.received[tally.interval as usize] += tally.received - tally.received_before;
        stream.missing[tally.interval as usize] += tally.missing - tally.missing_before;
        if entry.is_here == 0 {
            return stream;
        }
        let first = shard * sizes.flows + entry.first_line as usize;
        stream.lines = self.tables.lines.copy(first..first + entry.flows as usize);
        for flow in events.reordered.keys().filter(|flow| flow.wrapping_sub(entry.first_flow) < entry.flows) {
            let line = &mut stream.lines[(flow - entry.first_flow) as usize];
            LateFrames::add_reordered(line, events.reordered[flow]);
        }
        let groups = entry.first_group..entry.first_group + trial.layout.groups[index].0 as u32;
        stream.counts = groups.map(|group| self.counts(trial, shard, group)).collect();
        stream.shared_counts = self.counts(trial, shard, entry.shared_group);
        stream
    }

    fn counts(&self, trial: &Trial, shard: usize, histogram: u32) -> LatencyCounts {
        let first = (shard * trial.sizes.histograms + histogram as usize) * HISTOGRAM_BLOCKS;
        let blocks = self.tables.histograms.copy(first..first + HISTOGRAM_BLOCKS);
        let buckets: Vec<u32> = blocks.iter().flat_map(|block| block.count).collect();
        let overflows = trial.shards[shard].overflows.get(&histogram).cloned().unwrap_or_default();
        LatencyCounts::of_buckets(&buckets, overflows)
    }
}

/// Adds what the kernel counted to what its events told.
fn add_tally(stream: &mut CountedStream, tally: &Tally) {
    let ours = &mut stream.tally;
    ours.received = tally.received;
    ours.duplicated = tally.duplicated;
    ours.reordered += tally.reordered;
    ours.corrupted = tally.corrupted;
    ours.corrupted_copies = tally.corrupted_copies;
    ours.is_rewritten = tally.is_rewritten != 0;
    ours.late = tally.late;
    ours.unattributed += tally.unattributed;
    ours.variation_maximum_ns = tally.variation_maximum_ns as u32;
    ours.unpaired += tally.unpaired;
    ours.missing = tally.missing;
    ours.negative = tally.negative;
    ours.negative_maximum_ns = tally.negative_maximum_ns;
    stream.last_jump_ns = tally.last_jump_ns.checked_sub(1);
    stream.beyond = (tally.beyond_most_ns > 0).then_some((tally.beyond_least_ns, tally.beyond_most_ns));
    stream.times = (tally.received > 0).then_some((tally.first_ns, tally.last_ns));
    let (from_ns, to_ns) = (tally.silence_from_ns, tally.silence_to_ns);
    stream.silence = (to_ns > from_ns).then_some(Silence { from_ns, to_ns });
}
