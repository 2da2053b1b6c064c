//! The counts of flows and ports as a reply: copied while frames are sent, made into text by another thread.

use nicbench_protocol::{
    FlowAtPort, FlowColumns, FlowLatency, FlowState, FlowTagged, FlowTally, HealthReading, PortCounts, Reply, Tally,
    TallyReply,
};

use super::flow::{Flow, SentCounts};
use super::receiver::{Arrived, FlowCounts, PortReceived, Receiver};
use super::tags::Tagged;
use super::times::Times;
use crate::error::EngineError;
use crate::latency::{CopiedCounts, encode_copy};
use crate::port::{Port, PortCounters};
use crate::sys::tsc::monotonic_ns;

/// Histograms that are copied before frames are looked after again.
const HISTOGRAMS_AT_ONCE: usize = 4;
/// Flows without them.
const FLOWS_AT_ONCE: usize = 1024;

/// The counts of one flow, as they were.
#[derive(Debug)]
struct Counted {
    flow: u32,
    state: FlowState,
    intended: Option<u64>,
    sent: SentCounts,
    is_signed: bool,
    is_counted: bool,
    received: FlowCounts,
    by_port: Vec<(usize, Arrived)>,
    histogram: Option<CopiedCounts>,
    tagged: Vec<Tagged>,
}

/// A tally that is being made, some flows at a time.
#[derive(Debug)]
pub struct TallyJob {
    pub id: i64,
    at_ns: u64,
    flows: Vec<u32>,
    pub histograms: bool,
    columns: bool,
    counted: Vec<Counted>,
    times: Times,
    ports: Vec<PortSnapshot>,
}

/// The counts of one port, as they were.
#[derive(Debug)]
pub struct PortSnapshot {
    name: String,
    sent: u64,
    sent_bytes: u64,
    received: PortReceived,
    counters: PortCounters,
}

impl PortSnapshot {
    /// What hosts sent, which is no flow's, is not among what was completed.
    pub fn of(port: &mut dyn Port, (sent, sent_bytes): (u64, u64), received: PortReceived, by_hosts: u64) -> Self {
        let mut counters = port.counters();
        counters.completed = counters.completed.saturating_sub(by_hosts);
        Self { name: port.facts().name.clone(), sent, sent_bytes, received, counters }
    }

    fn reply(self) -> PortCounts {
        let mut counters = self.counters.named;
        counters.insert("completed".into(), self.counters.completed);
        counters.insert("receive_overrun".into(), self.counters.receive_overrun);
        PortCounts {
            name: self.name,
            sent: self.sent,
            sent_bytes: self.sent_bytes,
            received: self.received.frames,
            received_bytes: self.received.bytes,
            foreign: self.received.foreign,
            stale: self.received.stale,
            link_up: self.counters.link_up,
            counters,
        }
    }
}

impl TallyJob {
    /// Ports are counted at once.
    pub fn new(id: i64, flows: Vec<u32>, request: &Tally, times: Times) -> Self {
        let counted = Vec::with_capacity(flows.len());
        let (histograms, columns) = (request.histograms && !request.columns, request.columns);
        Self { id, at_ns: monotonic_ns(), counted, flows, histograms, columns, times, ports: Vec::new() }
    }

    /// With what is known of ports now.
    pub fn with(mut self, ports: Vec<PortSnapshot>) -> Self {
        self.ports = ports;
        self
    }

    /// Copies the counts of some more flows; whether all are copied.
    pub fn go_on(&mut self, flows: &[Flow], receiver: &Receiver) -> bool {
        let most = if self.histograms { HISTOGRAMS_AT_ONCE } else { FLOWS_AT_ONCE };
        let done = self.counted.len();
        for number in self.flows[done..].iter().take(most) {
            let flow = &flows[*number as usize];
            self.counted.push(Counted {
                flow: *number,
                state: flow.state,
                intended: flow.intended(),
                sent: flow.sent,
                is_signed: flow.program.is_signed(),
                is_counted: flow.program.is_counted(),
                received: receiver.counts(*number),
                by_port: receiver.by_port(*number).collect(),
                histogram: self.histograms.then(|| receiver.histogram(*number)),
                tagged: if self.columns { Vec::new() } else { receiver.tagged(*number) },
            });
        }
        self.counted.len() == self.flows.len()
    }

    /// Makes the reply.
    pub fn reply(self, health: Option<HealthReading>) -> Result<Reply, EngineError> {
        let times = self.times;
        let mut flows: Vec<FlowTally> =
            self.counted.into_iter().map(|counted| counted.reply(&times)).collect::<Result<_, _>>()?;
        let columns = self.columns.then(|| {
            let mut columns = FlowColumns::default();
            flows.drain(..).for_each(|flow| columns.push(&flow));
            columns
        });
        let ports = self.ports.into_iter().map(PortSnapshot::reply).collect();
        Ok(Reply::Tally(Box::new(TallyReply { at_ns: self.at_ns, flows, columns, ports, health })))
    }
}

fn tell(Tagged { values, arrived }: Tagged, times: &Times) -> FlowTagged {
    let unix = |tick: Option<u64>| tick.map_or(0, |tick| times.unix_ns(tick));
    let (first_ns, last_ns) = (unix(arrived.first), unix(arrived.last));
    FlowTagged { values, frames: arrived.frames, bytes: arrived.bytes, first_ns, last_ns }
}

impl Counted {
    fn reply(self, times: &Times) -> Result<FlowTally, EngineError> {
        let Self { sent, received, is_signed, .. } = self;
        let unix = |tick: Option<u64>| tick.map(|tick| times.unix_ns(tick));
        let at_ports = |of: fn(&Arrived) -> u64| self.by_port.iter().map(|(_, arrived)| of(arrived)).sum::<u64>();
        let is_received = self.is_counted && !self.by_port.is_empty();
        let arrived = at_ports(|arrived| arrived.frames);
        let distinct = if is_signed { received.distinct } else { arrived };
        let absent = sent.frames.saturating_sub(distinct + received.corrupted);
        // While frames are under way, only a signature tells which are lost.
        let lost = match self.state {
            FlowState::Stopped => Some(absent),
            _ => is_signed.then_some(received.missing.min(absent)),
        };
        let in_flight = match self.state {
            FlowState::Stopped => Some(0),
            _ => lost.map(|lost| absent - lost),
        };
        let told = |count: u64| (is_signed && is_received).then_some(count);
        let latency = self.latency()?;
        let at_port = |(port, arrived): &(usize, Arrived)| FlowAtPort {
            port: *port,
            received: arrived.frames,
            received_bytes: arrived.bytes,
            first_received_ns: unix(arrived.first),
            last_received_ns: unix(arrived.last),
        };
        Ok(FlowTally {
            flow: self.flow,
            state: self.state,
            sent: sent.frames,
            sent_bytes: sent.bytes,
            intended: self.intended,
            unsent_tester: sent.unsent_tester,
            unsent_backpressure: sent.unsent_backpressure,
            late_maximum_ns: times.nanoseconds(sent.late_ticks),
            received: is_received.then_some(arrived),
            received_bytes: is_received.then(|| at_ports(|arrived| arrived.bytes)),
            lost: lost.filter(|_| is_received),
            in_flight: in_flight.filter(|_| is_received),
            duplicated: told(received.duplicated),
            reordered: told(received.reordered),
            corrupted: told(received.corrupted),
            misdirected: Some(received.misdirected),
            latency,
            first_sent_ns: unix(sent.first),
            last_sent_ns: unix(sent.last),
            first_received_ns: unix(self.by_port.iter().filter_map(|(_, arrived)| arrived.first).min()),
            last_received_ns: unix(self.by_port.iter().filter_map(|(_, arrived)| arrived.last).max()),
            by_port: self.by_port.iter().map(at_port).collect(),
            tagged: self.tagged.into_iter().map(|each| tell(each, times)).collect(),
        })
    }

    fn latency(&self) -> Result<Option<FlowLatency>, EngineError> {
        let latency = self.received.latency;
        if latency.count == 0 {
            return Ok(None);
        }
        Ok(Some(FlowLatency {
            count: latency.count,
            minimum_ns: latency.minimum_ns,
            mean_ns: latency.mean_ns(),
            maximum_ns: latency.maximum_ns,
            histogram: self.histogram.as_ref().map(encode_copy).transpose()?,
        }))
    }
}
