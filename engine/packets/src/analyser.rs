//! The receiver's judgement on every frame: whose it is, whether it is whole, and whether it came before.

use crate::error::EngineError;
use crate::flows::{Arrival, FlowTable};
use crate::latency::Latency;
use crate::signature::{Owner, SIGNATURE_BYTES, Signature, Signer, TIME_MASK};
use crate::template::{Template, signature_offset};
use crate::traffic::Elsewhere;

/// What the receiver must know of a stream.
#[derive(Debug, Clone)]
pub struct Expected {
    pub template: Template,
    pub receive_port: usize,
    /// Flows are numbered over all streams.
    pub first_flow: u32,
    pub flows: u32,
}

/// Counts and latencies of one stream.
#[derive(Debug)]
pub struct StreamTally {
    pub received: u64,
    pub duplicated: u64,
    pub reordered: u64,
    pub corrupted: u64,
    pub late: u64,
    pub latency: Latency,
}

/// Frames that belong to no stream, of one port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortTally {
    pub foreign: u64,
    pub corrupted_unattributed: u64,
}

/// All frames received in one trial.
#[derive(Debug)]
pub struct Analyser {
    signer: Signer,
    /// Where else than in the payload of UDP and TCP a signature may be.
    elsewhere: Elsewhere,
    expected: Vec<Expected>,
    flows: FlowTable,
    streams: Vec<StreamTally>,
    ports: Vec<PortTally>,
    after_drain: bool,
}

impl Analyser {
    pub fn new(signer: Signer, expected: Vec<Expected>, ports: usize) -> Result<Self, EngineError> {
        let flows = expected.iter().map(|stream| stream.flows as usize).sum();
        let tally = |_: &Expected| {
            Latency::new().map(|latency| StreamTally {
                received: 0,
                duplicated: 0,
                reordered: 0,
                corrupted: 0,
                late: 0,
                latency,
            })
        };
        let streams = expected.iter().map(tally).collect::<Result<_, _>>()?;
        let ports = vec![PortTally::default(); ports];
        let elsewhere = Elsewhere::new(expected.iter().map(|stream| stream.template.search()));
        Ok(Self { signer, elsewhere, expected, flows: FlowTable::new(flows), streams, ports, after_drain: false })
    }

    /// The drain is over: what comes now is late.
    pub fn end_drain(&mut self) {
        self.after_drain = true;
    }

    /// Adds what another worker received. A flow is received by one worker, so nothing is counted twice.
    pub fn absorb(&mut self, other: &Self) -> Result<(), EngineError> {
        for (own, other) in self.streams.iter_mut().zip(&other.streams) {
            own.received += other.received;
            own.duplicated += other.duplicated;
            own.reordered += other.reordered;
            own.corrupted += other.corrupted;
            own.late += other.late;
            own.latency.absorb(&other.latency)?;
        }
        for (own, other) in self.ports.iter_mut().zip(&other.ports) {
            own.foreign += other.foreign;
            own.corrupted_unattributed += other.corrupted_unattributed;
        }
        Ok(())
    }

    /// In the order of the streams.
    pub fn streams(&self) -> &[StreamTally] {
        &self.streams
    }

    /// In the order of the ports.
    pub fn ports(&self) -> &[PortTally] {
        &self.ports
    }

    /// Judges one frame that arrived at `port` at `now_ns` (since the trial began).
    #[inline]
    pub fn analyse(&mut self, port: usize, frame: &[u8], now_ns: u64) {
        let offset = signature_offset(frame);
        let payload = offset.and_then(|offset| frame.get(offset..)?.first_chunk::<SIGNATURE_BYTES>());
        match payload.map(|payload| self.signer.read(payload)) {
            Some(Owner::Ours(signature)) => self.analyse_ours(port, frame, signature, now_ns),
            Some(Owner::EarlierTrial) => {}
            Some(Owner::Unknown) | None => self.analyse_unknown(port, frame, now_ns),
        }
    }

    #[inline]
    fn analyse_ours(&mut self, port: usize, frame: &[u8], signature: Signature, now_ns: u64) {
        let Some(index) = self.stream_of(signature.flow) else { return self.count_foreign(port) };
        let expected = &self.expected[index];
        if expected.receive_port != port {
            // A stray frame is no proof that the stream's own port got it.
            return self.count_foreign(port);
        }
        let tally = &mut self.streams[index];
        if !expected.template.is_intact(frame, signature.flow - expected.first_flow, signature.sequence) {
            if !self.after_drain {
                tally.corrupted += 1;
            }
            return;
        }
        let arrival = self.flows.observe(signature.flow as usize, signature.sequence);
        match (arrival, self.after_drain) {
            (Arrival::InOrder | Arrival::Reordered, true) => tally.late += 1,
            (Arrival::InOrder | Arrival::Reordered, false) => {
                tally.received += 1;
                tally.reordered += u64::from(arrival == Arrival::Reordered);
                tally.latency.record(elapsed(signature.time_ns, now_ns));
            }
            (Arrival::Duplicate, false) => tally.duplicated += 1,
            (Arrival::Duplicate, true) => {}
            (Arrival::Impossible, _) => self.count_foreign(port),
        }
    }

    fn stream_of(&self, flow: u32) -> Option<usize> {
        self.expected.iter().position(|stream| flow.wrapping_sub(stream.first_flow) < stream.flows)
    }

    #[cold]
    fn count_foreign(&mut self, port: usize) {
        if !self.after_drain {
            self.ports[port].foreign += 1;
        }
    }

    #[cold]
    fn analyse_unknown(&mut self, port: usize, frame: &[u8], now_ns: u64) {
        let elsewhere = self.elsewhere.offsets(frame).filter_map(|offset| frame.get(offset..)?.first_chunk());
        let owner = elsewhere.map(|payload| self.signer.read(payload)).find(|owner| *owner != Owner::Unknown);
        match owner {
            Some(Owner::Ours(signature)) => return self.analyse_ours(port, frame, signature, now_ns),
            Some(_) => return,
            None => {}
        }
        let ours = |stream: &Expected| stream.receive_port == port && stream.template.is_addressed_as_ours(frame);
        if !self.expected.iter().any(ours) {
            self.count_foreign(port);
        } else if !self.after_drain {
            self.ports[port].corrupted_unattributed += 1;
        }
    }
}

/// Times in a signature have 40 bits; a clock read a moment too early must not give an age of 18 minutes.
#[inline]
fn elapsed(then_ns: u64, now_ns: u64) -> u64 {
    let difference = now_ns.wrapping_sub(then_ns) & TIME_MASK;
    if difference > TIME_MASK / 2 { 0 } else { difference }
}

#[cfg(test)]
mod tests;
