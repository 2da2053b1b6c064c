//! What has arrived of each flow, at each of its ports: whose a frame is, whether it is whole, and whether it came before.

use super::classifier::Classifier;
use super::flow::Flow;
use super::tags::{Tagged, Tags};
use crate::analyser::elapsed;
use crate::error::{EngineError, ErrorKind};
use crate::flows::{Arrival, FEWEST_COUNTED, FlowTable};
use crate::latency::{CopiedCounts, LatencySummary, SparseCounts};
use crate::signature::{MAXIMUM_FLOWS, Owner, SIGNATURE_BYTES, Signature, Signer};
use crate::wire::ethernet::FCS_BYTES;

/// In place of a flow: its signatures are of an earlier start.
const NOBODY: u32 = u32::MAX;

/// A number of frames, and when the first and the last of them came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Arrived {
    pub frames: u64,
    /// With FCS.
    pub bytes: u64,
    pub first: Option<u64>,
    pub last: Option<u64>,
}

impl Arrived {
    #[inline]
    pub fn add(&mut self, frame: &[u8], now: u64) {
        self.frames += 1;
        self.bytes += frame_bytes(frame);
        self.first = self.first.or(Some(now));
        self.last = Some(now);
    }
}

/// What arrived of a flow since it was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlowCounts {
    /// Frames that came to one of its ports at least.
    pub distinct: u64,
    /// Frames that were jumped over, and have not come since.
    pub missing: u64,
    pub duplicated: u64,
    pub reordered: u64,
    pub corrupted: u64,
    pub misdirected: u64,
    pub latency: LatencySummary,
}

/// One flow's receiving side.
#[derive(Debug)]
struct Receiving {
    ports: Vec<usize>,
    is_signed: bool,
    /// Its first line in the table: of all its ports together, and, where they are several, of each.
    first_line: u32,
    counts: FlowCounts,
    by_port: Vec<Arrived>,
    histogram: SparseCounts,
    /// `None`: it has no tags.
    tags: Option<Box<Tags>>,
}

/// A flow as its receiver is to know it.
#[derive(Debug)]
pub struct Expected {
    pub ports: Vec<usize>,
    pub is_signed: bool,
    pub tags: Option<Tags>,
}

impl Receiving {
    #[inline]
    fn count(&mut self, place: usize, frame: &[u8], now: u64) {
        self.by_port[place].add(frame, now);
        if let Some(tags) = &mut self.tags {
            tags.count(frame, now);
        }
    }
}

/// What arrived at a port since the flows were loaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortReceived {
    pub frames: u64,
    /// With FCS.
    pub bytes: u64,
    pub foreign: u64,
    pub stale: u64,
}

impl PortReceived {
    /// A frame that was counted as foreign is a host's, which counts it itself.
    pub fn take_back(&mut self, frame: &[u8]) {
        self.frames -= 1;
        self.bytes -= frame_bytes(frame);
        self.foreign -= 1;
    }
}

/// Counts what arrives of all flows.
#[derive(Debug)]
pub struct Receiver {
    signer: Signer,
    /// By the number in a signature: the flow.
    owners: Vec<u32>,
    flows: Vec<Receiving>,
    table: FlowTable,
    classifier: Classifier,
    pub ports: Vec<PortReceived>,
}

impl Receiver {
    pub fn new(signer: Signer, flows: Vec<Expected>, classifier: Classifier, ports: usize) -> Self {
        let mut lines = 0;
        let receiving = |Expected { ports, is_signed, tags }: Expected| {
            let first_line = lines;
            let needed = match ports.len() {
                _ if !is_signed => 0,
                0 | 1 => ports.len(),
                several => 1 + several,
            };
            lines += needed as u32;
            let by_port = vec![Arrived::default(); ports.len()];
            Receiving {
                ports,
                is_signed,
                first_line,
                counts: FlowCounts::default(),
                by_port,
                histogram: SparseCounts::default(),
                tags: tags.map(Box::new),
            }
        };
        let flows = flows.into_iter().map(receiving).collect();
        Self {
            signer,
            owners: Vec::new(),
            flows,
            table: FlowTable::new(lines as usize, FEWEST_COUNTED),
            classifier,
            ports: vec![PortReceived::default(); ports],
        }
    }

    /// A flow begins anew: its counts are 0, and frames from before are known by their number. Returns the new one.
    pub fn start(&mut self, flow: u32, before: u32) -> Result<u32, EngineError> {
        let number = self.owners.len() as u32;
        if u64::from(number) >= MAXIMUM_FLOWS {
            let message = "flows were started 16 million times since they were loaded";
            return Err(EngineError::new(ErrorKind::BadState, message, "ask for `load` again"));
        }
        if let Some(owner) = self.owners.get_mut(before as usize).filter(|owner| **owner == flow) {
            *owner = NOBODY;
        }
        self.owners.push(flow);
        let receiving = &mut self.flows[flow as usize];
        receiving.counts = FlowCounts::default();
        receiving.by_port.fill(Arrived::default());
        receiving.tags.iter_mut().for_each(|tags| tags.clear());
        let is_measured = receiving.is_signed && !receiving.ports.is_empty();
        receiving.histogram.clear();
        let lines =
            if is_measured { 1 + if receiving.ports.len() > 1 { receiving.ports.len() as u32 } else { 0 } } else { 0 };
        (receiving.first_line..receiving.first_line + lines).for_each(|line| self.table.begin_anew(line));
        Ok(number)
    }

    /// A frame arrived at `port`, at tick `now`, which is `now_ns` after the flows were loaded.
    #[inline]
    pub fn receive(&mut self, port: usize, frame: &[u8], flows: &[Flow], now: u64, now_ns: u64) {
        let received = &mut self.ports[port];
        received.frames += 1;
        received.bytes += frame_bytes(frame);
        let signature = frame.last_chunk::<SIGNATURE_BYTES>().map_or(Owner::Unknown, |place| self.signer.read(place));
        match signature {
            Owner::Ours(signature) => match self.owners.get(signature.flow as usize) {
                Some(flow) if *flow != NOBODY => self.count_signed(port, frame, *flow, signature, flows, now, now_ns),
                _ => received.stale += 1,
            },
            Owner::EarlierTrial => received.stale += 1,
            Owner::Unknown => match self.classifier.find(port, frame) {
                Some(flow) => self.count_matched(port, frame, flow, now),
                None => received.foreign += 1,
            },
        }
    }

    /// Whether a frame is of no flow: it has no signature of ours, and no flow's headers.
    pub fn is_foreign(&mut self, port: usize, frame: &[u8]) -> bool {
        let signature = frame.last_chunk::<SIGNATURE_BYTES>().map_or(Owner::Unknown, |place| self.signer.read(place));
        matches!(signature, Owner::Unknown) && self.classifier.find(port, frame).is_none()
    }

    #[inline]
    #[expect(clippy::too_many_arguments, reason = "what is known of one frame")]
    fn count_signed(
        &mut self,
        port: usize,
        frame: &[u8],
        flow: u32,
        signature: Signature,
        flows: &[Flow],
        now: u64,
        now_ns: u64,
    ) {
        let receiving = &mut self.flows[flow as usize];
        let Some(place) = receiving.ports.iter().position(|own| *own == port) else {
            receiving.counts.misdirected += 1;
            return;
        };
        let next = self.table.line(receiving.first_line).map_or(0, |line| line.next);
        let number = next.wrapping_add_signed(i64::from(signature.sequence.wrapping_sub(next as u32) as i32));
        if !flows[flow as usize].program.is_intact(number, frame) {
            // An altered copy of a frame that came as well is no frame of its own.
            match self.table.observe_broken(receiving.first_line, signature.sequence) {
                Arrival::Duplicate => {}
                Arrival::Impossible => self.ports[port].foreign += 1,
                _ => receiving.counts.corrupted += 1,
            }
            return;
        }
        let mut arrival = self.table.observe(receiving.first_line, signature.sequence);
        if arrival == Arrival::Impossible {
            self.ports[port].foreign += 1;
            return;
        }
        if arrival != Arrival::Duplicate {
            receiving.counts.distinct += 1;
            self.table.note_received(receiving.first_line);
        }
        if receiving.ports.len() > 1 {
            let line = receiving.first_line + 1 + place as u32;
            arrival = self.table.observe(line, signature.sequence);
            if arrival != Arrival::Duplicate {
                self.table.note_received(line);
            }
        }
        match arrival {
            Arrival::Duplicate => {
                receiving.counts.duplicated += 1;
                return;
            }
            Arrival::Reordered(_) => receiving.counts.reordered += 1,
            _ => {}
        }
        receiving.count(place, frame, now);
        let latency_ns = elapsed(signature.time_ns, now_ns).unwrap_or(0);
        receiving.counts.latency.record(latency_ns);
        receiving.histogram.record(latency_ns);
    }

    fn count_matched(&mut self, port: usize, frame: &[u8], flow: u32, now: u64) {
        let receiving = &mut self.flows[flow as usize];
        match receiving.ports.iter().position(|own| *own == port) {
            Some(place) => receiving.count(place, frame, now),
            None => receiving.counts.misdirected += 1,
        }
    }

    /// What arrived of a flow.
    pub fn counts(&self, flow: u32) -> FlowCounts {
        let receiving = &self.flows[flow as usize];
        let line = self.table.line(receiving.first_line).filter(|_| receiving.is_signed && !receiving.ports.is_empty());
        let missing = line.map_or(0, |line| line.missing()).saturating_sub(receiving.counts.corrupted);
        FlowCounts { missing, ..receiving.counts }
    }

    /// What arrived of a flow at each of its ports.
    pub fn by_port(&self, flow: u32) -> impl Iterator<Item = (usize, Arrived)> + '_ {
        let receiving = &self.flows[flow as usize];
        receiving.ports.iter().copied().zip(receiving.by_port.iter().copied())
    }

    /// What arrived of a flow by the values of its tags.
    pub fn tagged(&self, flow: u32) -> Vec<Tagged> {
        self.flows[flow as usize].tags.as_ref().map_or_else(Vec::new, |tags| tags.counted())
    }

    /// How often each latency of a flow came.
    pub fn histogram(&self, flow: u32) -> CopiedCounts {
        self.flows[flow as usize].histogram.copy()
    }
}

fn frame_bytes(frame: &[u8]) -> u64 {
    frame.len() as u64 + u64::from(FCS_BYTES)
}
