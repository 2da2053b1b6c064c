//! One trial from its start to its reading.

use std::collections::BTreeMap;
use std::time::Duration;

use nicbench_protocol::{
    Fault, HealthReading, LatencyFrom, PortReading, Reading, Start, StreamProgress, StreamReading,
};

use crate::analyser::{Analyser, Losses};
use crate::capture::Interface;
use crate::details::Details;
use crate::error::EngineError;
use crate::frame_writer::FrameWriter;
use crate::gaps::{GAP_FLOOR_NS, Gaps};
use crate::health::HealthChange;
use crate::latency::Stamping;
use crate::pacer::Pacer;
use crate::plan;
use crate::port::{Clock, Port, PortCounters, PortFacts};
use crate::sender::{Sender, Transmission};
use crate::signature::Signer;

/// Everything a trial has counted so far.
#[derive(Debug)]
pub struct Trial {
    pub number: u32,
    names: Vec<String>,
    /// The tick at which the first frame is due.
    pub epoch: u64,
    pub duration_ticks: u64,
    pub catch_up_ticks: u64,
    pub shared: Transmission,
    pub senders: Vec<Sender>,
    pub analyser: Analyser,
    details: Details,
    /// Ticks between which nothing is received, for tests.
    pub pause_receive: Option<(u64, u64)>,
    /// Every stream has a fixed number of frames: the transmission ends with them.
    pub ends_with_frames: bool,
    /// Counters of the ports before the first frame.
    pub baselines: Vec<PortCounters>,
    pub transmit_ticks: u64,
    pub gaps: Gaps,
    pub iterations: u64,
    pub idle_iterations: u64,
    pub health: HealthChange,
}

impl Trial {
    /// Checks `start` and gets everything ready that takes time.
    pub fn new(start: &Start, run_key: u64, facts: &[PortFacts], clock: &impl Clock) -> Result<Self, EngineError> {
        let expected = plan::check(start, facts)?;
        let signer = Signer::new(run_key, start.trial);
        let details = Details::check(start)?;
        let mut analyser = Analyser::with_detail(signer, expected.clone(), facts.len(), details.detail)?;
        analyser.set_capture(details.new_capture());
        let hz = clock.hz();
        let senders = start.streams.iter().zip(&expected).enumerate().map(|(index, (stream, expected))| {
            let (rate, burst_frames) = (stream.rate_frames_per_s, stream.burst_frames.unwrap_or(1));
            let pacer = Pacer::in_bursts(burst_frames, rate, start.duration_s, start.catch_up_s, hz);
            let pacer = pacer.limited_to(stream.frames);
            let (template, tag) = (expected.template.clone(), prefill_tag(start.trial, index));
            let writer = FrameWriter::new(template, signer, expected.first_flow, expected.flows, tag);
            Sender::new(stream.transmit_port, writer, pacer, facts[stream.transmit_port].lossless)
        });
        let ticks = |seconds: f64| (seconds * hz) as u64;
        let pause = |fault: Fault| {
            let begin = ticks(fault.pause_receive_after_s);
            (begin, begin + ticks(fault.pause_receive_s))
        };
        Ok(Self {
            number: start.trial,
            names: start.streams.iter().map(|stream| stream.name.clone()).collect(),
            epoch: 0,
            duration_ticks: ticks(start.duration_s),
            catch_up_ticks: ticks(start.catch_up_s),
            shared: Transmission { burst: start.burst as usize, latency_from: start.latency_from },
            senders: senders.collect(),
            analyser,
            details,
            pause_receive: start.fault.map(pause),
            ends_with_frames: start.streams.iter().all(|stream| stream.frames.is_some()),
            baselines: Vec::new(),
            transmit_ticks: 0,
            gaps: Gaps::default(),
            iterations: 0,
            idle_iterations: 0,
            health: HealthChange::default(),
        })
    }

    /// The first frame is due now.
    pub fn begin(&mut self, clock: &impl Clock) {
        self.epoch = clock.now();
        self.gaps = Gaps::new(self.epoch, (GAP_FLOOR_NS as f64 * clock.hz() / 1e9) as u64);
    }

    /// Frames that each port has taken.
    pub fn accepted(&self, port: usize) -> u64 {
        self.senders.iter().filter(|sender| sender.transmit_port == port).map(|sender| sender.counts().accepted).sum()
    }

    /// For `stats`.
    pub fn progress(&self) -> impl Iterator<Item = StreamProgress> + '_ {
        let pairs = self.senders.iter().zip(self.analyser.streams());
        pairs.map(|(sender, tally)| StreamProgress { sent: sender.counts().accepted, received: tally.received })
    }

    /// For `settle`.
    pub fn late(&self) -> Vec<u64> {
        self.analyser.streams().iter().map(|tally| tally.late).collect()
    }

    /// For `drain`.
    pub fn reading(&self, ports: &mut [Box<dyn Port>], clock: &impl Clock) -> Result<Reading, EngineError> {
        let changes: Vec<PortCounters> =
            ports.iter_mut().zip(&self.baselines).map(|(port, before)| difference(before, &port.counters())).collect();
        let sent = self.sent(&changes);
        let losses = self.analyser.losses(&sent);
        let streams =
            (0..self.senders.len()).map(|index| self.stream_reading(index, sent[index], losses[index], clock));
        let streams = streams.collect::<Result<_, _>>()?;
        let interfaces = ports.iter().map(|port| Interface {
            name: port.facts().name.clone(),
            description: "received; one time stamp a burst, by software".into(),
        });
        let interfaces: Vec<Interface> = interfaces.collect();
        let elapsed_ns = clock.nanoseconds(clock.now().saturating_sub(self.epoch));
        let elapsed = (!clock.is_virtual()).then(|| Duration::from_nanos(elapsed_ns));
        let capture = self.details.write_capture(&self.analyser, &interfaces, elapsed);
        let named: Vec<(String, u64)> = self.names.iter().cloned().zip(sent).collect();
        let flow_report = self.details.write_flows(&self.analyser, &named);
        let ports = ports.iter().zip(&changes).zip(self.analyser.ports()).map(|((port, change), tally)| {
            let mut counters = change.named.clone();
            counters.insert("completions".into(), change.completed);
            PortReading {
                name: port.facts().name.clone(),
                foreign: tally.foreign,
                corrupted_unattributed: tally.corrupted_unattributed,
                receive_overrun: change.receive_overrun,
                counters,
                link_changed: change.link_changes > 0,
            }
        });
        Ok(Reading {
            trial: self.number,
            transmit_ns: clock.nanoseconds(self.transmit_ticks),
            streams,
            ports: ports.collect(),
            health: self.health_reading(clock),
            capture,
            flow_report,
        })
    }

    /// Completed frames by stream. Exact where a port has one stream; otherwise what a port did not complete is shared out in
    /// proportion, for the port does not say whose it was.
    fn sent(&self, changes: &[PortCounters]) -> Vec<u64> {
        let share = |sender: &Sender| {
            let accepted = sender.counts().accepted;
            let of_port = self.accepted(sender.transmit_port);
            let missing = of_port.saturating_sub(changes[sender.transmit_port].completed);
            accepted - (u128::from(missing) * u128::from(accepted)).div_ceil(u128::from(of_port.max(1))) as u64
        };
        self.senders.iter().map(share).collect()
    }

    fn stream_reading(
        &self,
        index: usize,
        sent: u64,
        losses: Losses,
        clock: &impl Clock,
    ) -> Result<StreamReading, EngineError> {
        let (sender, tally) = (&self.senders[index], &self.analyser.streams()[index]);
        let counts = sender.counts();
        let resolution_ns = 1e9 / clock.hz();
        let burst_ns = clock.nanoseconds(counts.burst_ticks) as f64 / counts.bursts.max(1) as f64;
        let source = match self.shared.latency_from {
            LatencyFrom::Software => "software",
            LatencyFrom::Scheduled => "scheduled",
        };
        let stamping = Stamping { source, resolution_ns, uncertainty_ns: burst_ns.max(resolution_ns) };
        let received = self.analyser.reading(index, sent, stamping)?;
        Ok(StreamReading {
            name: self.names[index].clone(),
            intended: sender.intended(),
            sent,
            // Taken by the port and never completed: the tester's shortfall.
            unsent_tester: counts.unsent_tester + (counts.accepted - sent),
            unsent_backpressure: counts.unsent_backpressure,
            received: tally.received,
            lost: losses.lost,
            late: tally.late,
            duplicated: tally.duplicated,
            reordered: tally.reordered,
            corrupted: tally.corrupted,
            unattributed: losses.unattributed,
            checked_bytes: Some(received.checked_bytes),
            maximum_burst: counts.maximum_burst,
            latency: received.latency,
            reordering: received.reordering,
            variation: received.variation,
            intervals: received.intervals,
            groups: received.groups,
            flows: Some(received.flows),
        })
    }

    fn health_reading(&self, clock: &impl Clock) -> HealthReading {
        HealthReading {
            longest_gap_ns: clock.nanoseconds(self.gaps.longest()),
            total_gap_ns: clock.nanoseconds(self.gaps.total()),
            gap_floor_ns: GAP_FLOOR_NS,
            gaps: self.gaps.count(),
            iterations: self.iterations,
            idle_iterations: self.idle_iterations,
            voluntary_switches: self.health.voluntary_switches,
            involuntary_switches: self.health.involuntary_switches,
            clock_step_ns: self.health.clock_step_ns,
            core_clock_hz: self.health.core_clock_hz,
            cpus: self.health.cpus.clone(),
        }
    }
}

/// The tag of buffers that hold the constant bytes of a stream: trials and streams of a process have each their own.
fn prefill_tag(trial: u32, stream: usize) -> u64 {
    u64::from(trial) << 16 | (stream as u64 + 1)
}

/// What has been counted between two readings; a counter that ran backwards (a device was reset) counts as 0.
fn difference(before: &PortCounters, after: &PortCounters) -> PortCounters {
    let named: BTreeMap<String, u64> = after
        .named
        .iter()
        .map(|(name, value)| (name.clone(), value.saturating_sub(before.named.get(name).copied().unwrap_or(0))))
        .collect();
    PortCounters {
        completed: after.completed.saturating_sub(before.completed),
        receive_overrun: after.receive_overrun.saturating_sub(before.receive_overrun),
        link_changes: after.link_changes.saturating_sub(before.link_changes),
        named,
    }
}
