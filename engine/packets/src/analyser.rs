//! The receiver's judgement on every frame: whose it is, whether it is whole, and whether it came before.
//!
//! A burst is looked at twice. First all signatures are checked, so that their multiplications overlap, and the cache lines
//! of their flows are asked for; then each frame is judged, when its flow's line has come. Totals that can be had from
//! the flows or the histograms are computed at the reading, not per frame.

mod intervals;
mod losses;
mod outcome;
mod reading;
mod tally;

use nicbench_protocol::MAXIMUM_FLOW_GROUPS;

pub use losses::Losses;
pub use outcome::{FlowOutcome, Group, Outcome};
pub use reading::ReceivedReading;
pub use tally::{PortTally, StreamTally};

use crate::capture::Capture;
use crate::error::{EngineError, ErrorKind};
use crate::flows::{Arrival, FlowTable, LONGEST_KEPT_NS, Variation};
use crate::latency::LatencyCounts;
use crate::port::Frame;
use crate::signature::{Owner, SIGNATURE_BYTES, Signature, Signer, TIME_MASK};
use crate::sys::prefetch::prefetch;
use crate::template::{Template, signature_offset};
use crate::traffic::Elsewhere;
use intervals::Intervals;

/// What the receiver must know of a stream.
#[derive(Debug, Clone)]
pub struct Expected {
    pub template: Template,
    pub receive_port: usize,
    /// Flows are numbered over all streams.
    pub first_flow: u32,
    pub flows: u32,
}

/// What is kept beyond the totals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Detail {
    /// Groups of flows with a histogram of their own, over all streams; a stream has one at least.
    pub flow_groups: u32,
    /// A histogram for each flow.
    pub flow_histograms: bool,
}

impl Default for Detail {
    fn default() -> Self {
        Self { flow_groups: 1, flow_histograms: false }
    }
}

/// Histograms of single flows may take so much memory.
pub const FLOW_HISTOGRAM_LIMIT_BYTES: usize = 1 << 30;

/// Where the latencies of a stream's flows are counted: groups are runs of flows, as long as a power of two.
#[derive(Debug, Clone, Copy)]
struct Grouping {
    first_group: usize,
    shift: u32,
    groups: usize,
}

/// Frames whose signatures are checked together, before any is judged.
const TOGETHER: usize = 32;
/// In the place of a frame's signature where it has none of this trial: no flow has this number.
const NOT_OURS: Signature = Signature { flow: u32::MAX, sequence: 0, time_ns: 0 };

/// All frames received in one trial.
#[derive(Debug, Clone)]
pub struct Analyser {
    signer: Signer,
    /// Where else than in the payload of UDP and TCP a signature may be.
    elsewhere: Elsewhere,
    expected: Vec<Expected>,
    flows: FlowTable,
    streams: Vec<StreamTally>,
    groupings: Vec<Grouping>,
    counts: Vec<LatencyCounts>,
    ports: Vec<PortTally>,
    intervals: Intervals,
    /// Where signatures may begin in this trial's frames.
    offsets: Vec<usize>,
    /// Where the last one began.
    offset: usize,
    /// Whose the last one was.
    last_stream: usize,
    after_drain: bool,
    capture: Option<Capture>,
}

impl Analyser {
    pub fn new(signer: Signer, expected: Vec<Expected>, ports: usize) -> Result<Self, EngineError> {
        Self::with_detail(signer, expected, ports, Detail::default())
    }

    pub fn with_detail(
        signer: Signer,
        expected: Vec<Expected>,
        ports: usize,
        detail: Detail,
    ) -> Result<Self, EngineError> {
        let flows = expected.iter().map(|stream| stream.flows as usize).sum();
        check_memory(flows, detail)?;
        let groupings = groupings(&expected, detail);
        let groups = groupings.iter().map(|grouping| grouping.groups).sum();
        let mut offsets: Vec<usize> = expected.iter().map(|stream| stream.template.signature_offset()).collect();
        offsets.sort_unstable();
        offsets.dedup();
        let elsewhere = Elsewhere::new(expected.iter().map(|stream| stream.template.search()));
        Ok(Self {
            signer,
            elsewhere,
            flows: FlowTable::new(flows),
            streams: vec![StreamTally::default(); expected.len()],
            groupings,
            counts: (0..groups).map(|_| LatencyCounts::new()).collect(),
            ports: vec![PortTally::default(); ports],
            intervals: Intervals::new(expected.len()),
            offset: offsets.first().copied().unwrap_or(0),
            offsets,
            last_stream: 0,
            after_drain: false,
            capture: None,
            expected,
        })
    }

    /// Frames are also kept as `capture` asks; to be called before the first one.
    pub fn set_capture(&mut self, capture: Option<Capture>) {
        self.capture = capture;
    }

    /// What was captured.
    pub fn capture(&self) -> Option<&Capture> {
        self.capture.as_ref()
    }

    /// The drain is over: what comes now is late.
    pub fn end_drain(&mut self) {
        self.after_drain = true;
    }

    /// In the order of the streams.
    pub fn streams(&self) -> &[StreamTally] {
        &self.streams
    }

    /// In the order of the ports.
    pub fn ports(&self) -> &[PortTally] {
        &self.ports
    }

    /// Bytes that the flows' table takes from the start, and at most.
    pub fn flow_table_bytes(&self) -> (usize, usize) {
        let ((least, most), flows) = (self.flows.bytes_per_flow(), self.flows.lines().len());
        (least * flows, most * flows)
    }

    /// Judges frames that arrived at `port` together, at `now_ns` since the trial began.
    #[inline]
    pub fn analyse_burst(&mut self, port: usize, frames: &[Frame], now_ns: u64) {
        if !self.after_drain {
            self.intervals.advance(now_ns, &self.streams);
        }
        if self.capture.is_some() {
            return self.analyse_and_capture(port, frames, now_ns);
        }
        for together in frames.chunks(TOGETHER) {
            let mut seen = [NOT_OURS; TOGETHER];
            for (signature, frame) in seen.iter_mut().zip(together) {
                *signature = self.open(frame.bytes());
                if let Some(line) = self.flows.line(signature.flow) {
                    prefetch(line);
                }
            }
            for (signature, frame) in seen.iter().zip(together) {
                if signature.flow == NOT_OURS.flow {
                    self.analyse_elsewhere(port, frame.bytes(), now_ns);
                } else {
                    self.analyse_ours(port, frame.bytes(), *signature, now_ns);
                }
            }
        }
    }

    /// Judges one frame; a burst of it.
    pub fn analyse(&mut self, port: usize, frame: &[u8], now_ns: u64) {
        if !self.after_drain {
            self.intervals.advance(now_ns, &self.streams);
        }
        let signature = self.open(frame);
        if signature.flow == NOT_OURS.flow {
            self.analyse_elsewhere(port, frame, now_ns);
        } else {
            self.analyse_ours(port, frame, signature, now_ns);
        }
    }

    /// The signature where the last one was.
    #[inline(always)]
    fn open(&self, frame: &[u8]) -> Signature {
        let payload = frame.get(self.offset..).and_then(|rest| rest.first_chunk::<SIGNATURE_BYTES>());
        payload.and_then(|payload| self.signer.open(payload)).unwrap_or(NOT_OURS)
    }

    #[inline(always)]
    fn analyse_ours(&mut self, port: usize, frame: &[u8], signature: Signature, now_ns: u64) {
        let Some(index) = self.stream_of(signature.flow) else { return self.count_foreign(port) };
        let expected = &self.expected[index];
        if expected.receive_port != port {
            // A stray frame is no proof that the stream's own port got it.
            return self.count_foreign(port);
        }
        if !expected.template.is_intact(frame, signature.flow - expected.first_flow, signature.sequence) {
            return self.count_corrupted(index, port, signature);
        }
        if self.after_drain {
            return self.count_late(index, port, signature);
        }
        let arrival = self.flows.observe(signature.flow, signature.sequence);
        let in_order = if arrival == Arrival::Next {
            true
        } else {
            match self.place(index, port, signature, arrival) {
                Some(in_order) => in_order,
                None => return,
            }
        };
        let latency_ns = elapsed(signature.time_ns, now_ns);
        let (Some(line), Some(tally)) = (self.flows.line_mut(signature.flow), self.streams.get_mut(index)) else {
            return;
        };
        let short_ns = line.record(latency_ns);
        if in_order {
            match line.vary(short_ns) {
                Variation::Known(difference) => {
                    tally.variation_maximum_ns = tally.variation_maximum_ns.max(difference);
                }
                Variation::Unknown => tally.unpaired += 1,
            }
        }
        tally.received += 1;
        if latency_ns > LONGEST_KEPT_NS {
            tally.record_beyond(latency_ns);
        }
        let grouping = self.groupings[index];
        let group =
            grouping.first_group + ((signature.flow - self.expected[index].first_flow) >> grouping.shift) as usize;
        if let Some(counts) = self.counts.get_mut(group) {
            counts.record(latency_ns);
        }
    }

    /// An arrival out of its place: whether it is ahead of all before it; `None` where it counts no further.
    #[cold]
    fn place(&mut self, index: usize, port: usize, signature: Signature, arrival: Arrival) -> Option<bool> {
        let tally = &mut self.streams[index];
        match arrival {
            Arrival::Next => Some(true),
            Arrival::Ahead(jumped) => {
                tally.missing += jumped as i64;
                if let Some(capture) = &mut self.capture {
                    capture.trigger(signature, jumped);
                }
                Some(true)
            }
            Arrival::BehindBroken => {
                tally.missing -= 1;
                tally.unpaired += 1;
                Some(false)
            }
            Arrival::Reordered(extent) => {
                tally.missing -= 1;
                tally.reordered += 1;
                tally.reordering.merge(&extent);
                self.flows.count(signature.flow, |line| &mut line.reordered);
                Some(false)
            }
            Arrival::Duplicate => {
                tally.duplicated += 1;
                self.flows.count(signature.flow, |line| &mut line.duplicated);
                None
            }
            Arrival::Impossible => {
                self.count_foreign(port);
                None
            }
        }
    }

    #[inline(always)]
    fn stream_of(&mut self, flow: u32) -> Option<usize> {
        let is_in = |stream: &Expected| flow.wrapping_sub(stream.first_flow) < stream.flows;
        if self.expected.get(self.last_stream).is_some_and(is_in) {
            return Some(self.last_stream);
        }
        let found = self.expected.iter().position(is_in)?;
        self.last_stream = found;
        Some(found)
    }

    /// Its signature is ours and the rest is not whole. Its sequence counts as seen.
    #[cold]
    fn count_corrupted(&mut self, index: usize, port: usize, signature: Signature) {
        if self.after_drain {
            return; // It stays lost.
        }
        let arrival = self.flows.observe_broken(signature.flow, signature.sequence);
        let tally = &mut self.streams[index];
        match arrival {
            Arrival::Duplicate | Arrival::Impossible => {
                self.place(index, port, signature, arrival);
                return;
            }
            Arrival::Ahead(jumped) => tally.missing += jumped as i64,
            Arrival::BehindBroken | Arrival::Reordered(_) => tally.missing -= 1,
            Arrival::Next => {}
        }
        tally.corrupted += 1;
        self.flows.count(signature.flow, |line| &mut line.corrupted);
    }

    #[cold]
    fn count_late(&mut self, index: usize, port: usize, signature: Signature) {
        match self.flows.observe(signature.flow, signature.sequence) {
            Arrival::Duplicate => {}
            Arrival::Impossible => self.count_foreign(port),
            _ => self.streams[index].late += 1,
        }
    }

    #[cold]
    fn count_foreign(&mut self, port: usize) {
        if let Some(tally) = self.ports.get_mut(port).filter(|_| !self.after_drain) {
            tally.foreign += 1;
        }
    }

    /// There is no signature where the last one was: it is elsewhere, of another trial, broken, or of somebody else.
    #[cold]
    #[inline(never)]
    fn analyse_elsewhere(&mut self, port: usize, frame: &[u8], now_ns: u64) {
        let owner = |offset: usize| {
            let payload = frame.get(offset..).and_then(|rest| rest.first_chunk::<SIGNATURE_BYTES>());
            payload.map_or(Owner::Unknown, |payload| self.signer.read(payload))
        };
        // Where the headers lead, where this trial's streams put theirs, and, if the headers are broken, where they were.
        let led = signature_offset(frame).into_iter().chain(self.elsewhere.offsets(frame));
        let places = led.chain(self.offsets.iter().copied());
        let read = places.map(|offset| (offset, owner(offset))).find(|(_, owner)| *owner != Owner::Unknown);
        match read {
            Some((offset, Owner::Ours(signature))) => {
                self.offset = offset;
                self.analyse_ours(port, frame, signature, now_ns);
            }
            Some(_) => {}
            None => self.analyse_unknown(port, frame),
        }
    }

    fn analyse_unknown(&mut self, port: usize, frame: &[u8]) {
        let ours = |stream: &Expected| stream.receive_port == port && stream.template.is_addressed_as_ours(frame);
        match self.expected.iter().position(ours) {
            None => self.count_foreign(port),
            Some(_) if self.after_drain => {}
            Some(index) => {
                self.streams[index].unattributed += 1;
                if let Some(tally) = self.ports.get_mut(port) {
                    tally.corrupted_unattributed += 1;
                }
            }
        }
    }

    #[cold]
    fn analyse_and_capture(&mut self, port: usize, frames: &[Frame], now_ns: u64) {
        for frame in frames {
            if let Some(capture) = self.capture.as_mut().filter(|_| !self.after_drain) {
                capture.push(port, frame.bytes(), now_ns);
            }
            self.analyse(port, frame.bytes(), now_ns);
        }
    }

    /// Adds what another receiver saw of the same trial: each flow came to the one or to the other.
    pub fn merge(&mut self, other: Self) {
        self.intervals.merge(other.intervals, &self.streams, &other.streams);
        self.flows.merge(&other.flows);
        self.streams.iter_mut().zip(&other.streams).for_each(|(tally, more)| tally.merge(more));
        self.counts.iter_mut().zip(&other.counts).for_each(|(counts, more)| counts.merge(more));
        self.ports.iter_mut().zip(&other.ports).for_each(|(tally, more)| tally.merge(more));
        match (&mut self.capture, other.capture) {
            (Some(capture), Some(more)) => capture.merge(more),
            (None, more) => self.capture = more,
            (Some(_), None) => {}
        }
    }
}

/// Times in a signature have 40 bits; a clock read a moment too early must not give an age of 18 minutes.
#[inline(always)]
fn elapsed(then_ns: u64, now_ns: u64) -> u64 {
    let difference = now_ns.wrapping_sub(then_ns) & TIME_MASK;
    if difference > TIME_MASK / 2 { 0 } else { difference }
}

/// Histograms of single flows are refused beyond their limit.
fn check_memory(flows: usize, detail: Detail) -> Result<(), EngineError> {
    let bytes = flows * LatencyCounts::BYTES;
    if !detail.flow_histograms || bytes <= FLOW_HISTOGRAM_LIMIT_BYTES {
        return Ok(());
    }
    let mib = |bytes: usize| bytes >> 20;
    let message = format!(
        "histograms of {flows} flows may take {} MiB, and the limit is {} MiB",
        mib(bytes),
        mib(FLOW_HISTOGRAM_LIMIT_BYTES)
    );
    let next = format!(
        "use at most {} flows, or do without `histograms` in `flow_report`",
        FLOW_HISTOGRAM_LIMIT_BYTES / LatencyCounts::BYTES
    );
    Err(EngineError::new(ErrorKind::BadRequest, message, next))
}

/// The groups are shared out evenly over the streams.
fn groupings(expected: &[Expected], detail: Detail) -> Vec<Grouping> {
    let wanted = detail.flow_groups.clamp(1, MAXIMUM_FLOW_GROUPS);
    let share = (wanted / (expected.len().max(1) as u32)).max(1);
    let mut first_group = 0;
    let grouping = |stream: &Expected| {
        let last_flow = stream.flows.saturating_sub(1);
        let fits = |shift: &u32| (last_flow >> shift) < share;
        let shift = if detail.flow_histograms { 0 } else { (0..32).find(fits).unwrap_or(31) };
        let groups = (last_flow >> shift) as usize + 1;
        let grouping = Grouping { first_group, shift, groups };
        first_group += groups;
        grouping
    };
    expected.iter().map(grouping).collect()
}

#[cfg(test)]
mod tests;
