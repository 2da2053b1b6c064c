//! The receiver's judgement on every frame: whose it is, whether it is whole, and whether it came before.
//!
//! A burst is looked at twice. First all signatures are checked, so that their multiplications overlap, and the cache
//! lines of their flows are asked for; then each frame is judged, when its flow's line has come. Totals that can be had
//! from the flows or the histograms are computed at the reading, not per frame.

mod arrivals;
mod classes;
mod copies;
mod counted;
mod detail;
mod expected;
mod intervals;
mod irregular;
mod losses;
mod outcome;
mod reading;
mod tally;

pub use arrivals::{Arrivals, Silence};
pub use counted::{Counted, CountedStream, Layout};
pub use detail::{Detail, FLOW_HISTOGRAM_LIMIT_BYTES};
pub use expected::Expected;
pub use losses::Losses;
pub use outcome::{FlowOutcome, Group, Outcome};
pub use reading::ReceivedReading;
pub use tally::{PortTally, StreamTally};

use crate::capture::Capture;
use crate::error::EngineError;
use crate::flows::{Arrival, FlowTable, LONGEST_KEPT_NS, Variation};
use crate::latency::LatencyCounts;
use crate::port::Frame;
use crate::signature::{EARLIEST_NS, SIGNATURE_BYTES, Signature, Signer, TIME_MASK};
use crate::sys::prefetch::prefetch;
use crate::template::AddressCheck;
use crate::traffic::OtherSearches;
use classes::Classes;
use copies::Copies;
use detail::{Grouping, check_memory, groupings};
use intervals::Intervals;

/// Frames whose signatures are checked together, before any is judged.
const TOGETHER: usize = 32;
/// In the place of a frame's signature where it has none of this trial: no flow has this number.
const NOT_OURS: Signature = Signature { flow: u32::MAX, sequence: 0, time_ns: 0 };

/// Counts and judges all frames received in one trial.
#[derive(Debug, Clone)]
pub struct Analyser {
    signer: Signer,
    /// Where signatures may be other than in the payload of UDP or TCP.
    other_searches: OtherSearches,
    expected: Vec<Expected>,
    copies: Copies,
    /// By stream: how its frames are addressed.
    addresses: Vec<AddressCheck>,
    flows: FlowTable,
    streams: Vec<StreamTally>,
    groupings: Vec<Grouping>,
    counts: Vec<LatencyCounts>,
    /// By stream, of frames that were under way while a core was shared; among `counts` too.
    shared_counts: Vec<LatencyCounts>,
    /// For how long the DUT's cores have not been shared, as of the burst that is judged.
    quiet_ns: u64,
    /// Whether anybody looked at the DUT's cores.
    is_watched: bool,
    ports: Vec<PortTally>,
    intervals: Intervals,
    /// By stream, in their order.
    arrivals: Vec<Arrivals>,
    /// Where signatures may begin in this trial's frames.
    offsets: Vec<usize>,
    /// Where the signature of the last frame began, tried first for the next one.
    offset: usize,
    /// The stream of the last frame, tried first for the next one.
    last_stream: usize,
    after_drain: bool,
    capture: Option<Capture>,
    /// Where traffic classes are counted.
    classes: Option<Classes>,
    /// By stream: the share by which the clock of the engine that sends it gains on this one's; empty where none does.
    sender_drifts: Vec<f64>,
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
        let other_searches = OtherSearches::new(expected.iter().map(|stream| stream.template.search()));
        Ok(Self {
            signer,
            other_searches,
            copies: Copies::new(&expected, ports),
            addresses: expected.iter().map(|stream| AddressCheck::new(&stream.template)).collect(),
            flows: FlowTable::new(flows, detail.reordering_n as usize),
            streams: vec![StreamTally::default(); expected.len()],
            groupings,
            counts: (0..groups).map(|_| LatencyCounts::new()).collect(),
            shared_counts: vec![LatencyCounts::new(); expected.len()],
            quiet_ns: u64::MAX,
            is_watched: false,
            ports: vec![PortTally::default(); ports],
            intervals: Intervals::new(expected.len()),
            arrivals: vec![Arrivals::default(); expected.len()],
            offset: offsets.first().copied().unwrap_or(0),
            offsets,
            last_stream: 0,
            after_drain: false,
            capture: None,
            classes: detail.traffic_classes.then(|| Classes::new(expected.len(), flows)),
            sender_drifts: Vec::new(),
            expected,
        })
    }

    /// Frames are also kept as `capture` asks; to be called before the first one.
    pub fn set_capture(&mut self, capture: Option<Capture>) {
        self.capture = capture;
    }

    /// Streams come from engines whose clocks gain such shares on this one's, in the order of the streams.
    pub fn set_sender_drifts(&mut self, drifts: Vec<f64>) {
        self.sender_drifts = drifts;
    }

    /// The time that the sender's clock shows when this one shows `now_ns`; both are 0 when the trial begins.
    #[inline(always)]
    fn senders_time_ns(&self, stream: usize, now_ns: u64) -> u64 {
        match self.sender_drifts.get(stream) {
            None => now_ns,
            Some(drift) => now_ns.saturating_add_signed((now_ns as f64 * drift) as i64),
        }
    }

    /// For how long the DUT's cores have not been shared: a frame that was sent before that was under way meanwhile.
    #[inline]
    pub fn set_quiet_ns(&mut self, quiet_ns: u64) {
        self.quiet_ns = quiet_ns;
    }

    /// Whether anybody looked at the DUT's cores: else no frame is known to have been delayed by a neighbour.
    pub fn set_watched(&mut self, is_watched: bool) {
        self.is_watched = is_watched;
    }

    /// The streams, as they are expected.
    pub fn expected(&self) -> &[Expected] {
        &self.expected
    }

    /// See [`Self::set_watched`].
    pub fn is_watched(&self) -> bool {
        self.is_watched
    }

    /// The frames captured, where a capture was asked for.
    pub fn capture(&self) -> Option<&Capture> {
        self.capture.as_ref()
    }

    /// Ends the drain: frames that come from now on count as late.
    pub fn end_drain(&mut self) {
        self.after_drain = true;
    }

    /// By stream, in their order.
    pub fn streams(&self) -> &[StreamTally] {
        &self.streams
    }

    /// By port, in their order.
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
        self.analyse_each(port, frames, now_ns, |_| now_ns);
    }

    /// As `analyse_burst`, for frames that bear time stamps: `times_ns` says when each of them arrived.
    pub fn analyse_stamped(&mut self, port: usize, frames: &[Frame], now_ns: u64, times_ns: &[u64]) {
        self.analyse_each(port, frames, now_ns, |place| times_ns.get(place).copied().unwrap_or(now_ns));
    }

    #[inline(always)]
    fn analyse_each(&mut self, port: usize, frames: &[Frame], now_ns: u64, time_ns: impl Fn(usize) -> u64) {
        self.count_arrived(port, frames.len(), now_ns);
        if self.capture.is_some() {
            return self.analyse_and_capture(port, frames, time_ns);
        }
        for (number, together) in frames.chunks(TOGETHER).enumerate() {
            let mut seen = [NOT_OURS; TOGETHER];
            for (signature, frame) in seen.iter_mut().zip(together) {
                *signature = self.open(frame.bytes());
                if let Some(line) = self.flows.line(signature.flow) {
                    prefetch(line);
                }
            }
            for (place, (signature, frame)) in seen.iter().zip(together).enumerate() {
                let time_ns = time_ns(number * TOGETHER + place);
                if signature.flow == NOT_OURS.flow {
                    self.analyse_irregular(port, frame.bytes(), time_ns);
                } else {
                    self.analyse_ours(port, frame.bytes(), *signature, time_ns);
                }
            }
        }
        self.look_at_arrivals(now_ns);
    }

    #[inline]
    fn count_arrived(&mut self, port: usize, frames: usize, now_ns: u64) {
        if self.after_drain {
            return;
        }
        self.intervals.advance(now_ns, &self.streams);
        if let Some(tally) = self.ports.get_mut(port) {
            tally.arrived += frames as u64;
        }
    }

    #[inline]
    fn look_at_arrivals(&mut self, now_ns: u64) {
        if !self.after_drain {
            self.arrivals.iter_mut().zip(&self.streams).for_each(|(one, tally)| one.look(tally.received, now_ns));
        }
    }

    /// Judges one frame, as a burst of one.
    pub fn analyse(&mut self, port: usize, frame: &[u8], now_ns: u64) {
        self.count_arrived(port, 1, now_ns);
        self.analyse_one(port, frame, now_ns);
    }

    fn analyse_one(&mut self, port: usize, frame: &[u8], now_ns: u64) {
        let signature = self.open(frame);
        if signature.flow == NOT_OURS.flow {
            self.analyse_irregular(port, frame, now_ns);
        } else {
            self.analyse_ours(port, frame, signature, now_ns);
        }
        self.look_at_arrivals(now_ns);
    }

    /// Reads the signature at the place where the last frame had it.
    #[inline(always)]
    fn open(&self, frame: &[u8]) -> Signature {
        let payload = frame.get(self.offset..).and_then(|rest| rest.first_chunk::<SIGNATURE_BYTES>());
        payload.and_then(|payload| self.signer.open(payload)).unwrap_or(NOT_OURS)
    }

    #[inline(always)]
    fn analyse_ours(&mut self, port: usize, frame: &[u8], mut signature: Signature, now_ns: u64) {
        let Some(mut index) = self.stream_of(signature.flow) else { return self.count_foreign(port) };
        if self.expected[index].receive_port != port {
            let Some(copy) = self.copies.of(index, port) else { return self.count_misdirected(port) };
            signature.flow += self.expected[copy].first_flow - self.expected[index].first_flow;
            index = copy;
        }
        let expected = &self.expected[index];
        if !expected.template.is_intact(frame, signature.flow - expected.first_flow, signature.sequence) {
            return self.count_corrupted(index, port, signature, now_ns);
        }
        if self.after_drain {
            return self.count_late(index, port, signature);
        }
        let arrival = self.flows.observe(signature.flow, signature.sequence);
        let in_order = if arrival == Arrival::Next {
            true
        } else {
            match self.count_irregular(index, (port, frame), signature, arrival, now_ns) {
                Some(in_order) => in_order,
                None => return,
            }
        };
        let arrived_ns = self.senders_time_ns(index, now_ns);
        let (Some(line), Some(tally)) = (self.flows.line_mut(signature.flow), self.streams.get_mut(index)) else {
            return;
        };
        let latency_ns = match elapsed(signature.time_ns, arrived_ns) {
            Ok(latency_ns) => latency_ns,
            Err(before_ns) => tally.record_negative(before_ns),
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
        let is_first = tally.received == 0;
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
        if latency_ns >= self.quiet_ns {
            if let Some(counts) = self.shared_counts.get_mut(index) {
                counts.record(latency_ns);
            }
        }
        if is_first {
            self.note_addresses(index, frame);
        }
        if let Some(classes) = &mut self.classes {
            classes.count(index, signature.flow, frame);
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

    #[cold]
    fn analyse_and_capture(&mut self, port: usize, frames: &[Frame], time_ns: impl Fn(usize) -> u64) {
        for (place, frame) in frames.iter().enumerate() {
            let time_ns = time_ns(place);
            if let Some(capture) = self.capture.as_mut().filter(|_| !self.after_drain) {
                capture.push(port, frame.bytes(), time_ns);
            }
            self.analyse_one(port, frame.bytes(), time_ns);
        }
    }

    /// Adds what another receiver saw of the same trial: each flow came to the one or to the other.
    pub fn merge(&mut self, other: Self) {
        self.intervals.merge(other.intervals, &self.streams, &other.streams);
        self.arrivals.iter_mut().zip(&other.arrivals).for_each(|(ours, theirs)| ours.merge(theirs));
        self.flows.merge(&other.flows);
        self.streams.iter_mut().zip(&other.streams).for_each(|(tally, more)| tally.merge(more));
        self.counts.iter_mut().zip(&other.counts).for_each(|(counts, more)| counts.merge(more));
        self.shared_counts.iter_mut().zip(&other.shared_counts).for_each(|(counts, more)| counts.merge(more));
        self.ports.iter_mut().zip(&other.ports).for_each(|(tally, more)| tally.merge(more));
        if let (Some(classes), Some(more)) = (&mut self.classes, &other.classes) {
            classes.merge(more);
        }
        match (&mut self.capture, other.capture) {
            (Some(capture), Some(more)) => capture.merge(more),
            (None, more) => self.capture = more,
            (Some(_), None) => {}
        }
    }
}

/// Times in a signature have 40 bits; a clock read a moment too early must not give an age of 18 minutes, so that it is
/// an error to arrive before having been sent, and by how much.
#[inline(always)]
pub fn elapsed(then_ns: u64, now_ns: u64) -> Result<u64, u64> {
    let difference = now_ns.wrapping_sub(then_ns) & TIME_MASK;
    if difference > TIME_MASK - EARLIEST_NS { Err(TIME_MASK + 1 - difference) } else { Ok(difference) }
}

#[cfg(test)]
mod tests;
