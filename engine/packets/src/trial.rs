//! One trial from its start to its reading: the parts of its workers, put together.

use std::collections::BTreeMap;
use std::time::Duration;

use nicbench_protocol::{
    HealthReading, LatencyFrom, PortReading, Reading, SentReply, Start, StreamProgress, StreamReading, WorkerReading,
};

use crate::analyser::{Analyser, Losses};
use crate::capture::Interface;
use crate::details::Details;
use crate::error::EngineError;
use crate::gaps::GAP_FLOOR_NS;
use crate::latency::Stamping;
use crate::lateness::Lateness;
use crate::plan;
use crate::port::{Clock, PortCounters, PortFacts};
use crate::sender::{Sender, SenderCounts};
use crate::signature::Signer;
use crate::stamps::{StampFacts, StampTally};
use crate::traffic::Captured;
use crate::transmit_gaps::TransmitGaps;
use crate::trial_part::{Roles, TrialPart, WorkerSlot};

/// Everything a trial has counted so far.
#[derive(Debug)]
pub struct Trial {
    pub number: u32,
    names: Vec<String>,
    /// The receiving port of each stream.
    receive_ports: Vec<usize>,
    /// The stream that sends the frames of each stream: itself, or that of which it is a copy.
    senders_of: Vec<usize>,
    latency_from: LatencyFrom,
    details: Details,
    /// By worker, the first one's first. While the others work, theirs are with them.
    pub parts: Vec<TrialPart>,
    /// The counters of the ports before the first frame.
    pub baselines: Vec<PortCounters>,
    /// The time from when the first frame was due until the last one had left its port.
    pub transmit_ticks: u64,
    /// When the last frame had been handed over, and how many had left their ports by then.
    pub sending_ticks: u64,
    pub sent_while_sending: u64,
    /// When the first frame is due, by the engine's time; `None`: as soon as all is ready.
    at_ns: Option<u64>,
    /// What another engine sent of each stream, where it sends it; empty where none does.
    sent_elsewhere: Vec<Option<u64>>,
    /// Programs in the kernel stamp frames, each when it is made and when it is received.
    pub is_stamped_in_kernel: bool,
}

impl Trial {
    /// Checks `start` and gets everything ready that takes time.
    pub fn new(
        start: &Start,
        run_key: u64,
        facts: &[PortFacts],
        workers: &[Roles],
        clock: &impl Clock,
    ) -> Result<Self, EngineError> {
        let expected = plan::check(start, facts)?;
        let signer = Signer::new(run_key, start.trial);
        let details = Details::check(start)?;
        let part = |worker| {
            let mut analyser = Analyser::with_detail(signer, expected.clone(), facts.len(), details.detail)?;
            analyser.set_capture(details.new_capture());
            if start.streams.iter().any(|stream| stream.sender_drift != 0.0) {
                analyser.set_sender_drifts(start.streams.iter().map(|stream| stream.sender_drift).collect());
            }
            TrialPart::new(start, signer, &expected, facts, WorkerSlot { workers, worker }, analyser, clock)
        };
        Ok(Self {
            number: start.trial,
            names: start.streams.iter().map(|stream| stream.name.clone()).collect(),
            receive_ports: start.streams.iter().map(|stream| stream.receive_port).collect(),
            senders_of: start.streams.iter().enumerate().map(|(own, stream)| stream.copy_of.unwrap_or(own)).collect(),
            latency_from: start.latency_from,
            parts: (0..workers.len()).map(part).collect::<Result<_, _>>()?,
            details,
            baselines: Vec::new(),
            transmit_ticks: 0,
            sending_ticks: 0,
            sent_while_sending: 0,
            at_ns: start.at_ns,
            sent_elsewhere: Vec::new(),
            is_stamped_in_kernel: false,
        })
    }

    /// The first worker's part.
    pub fn lead(&mut self) -> &mut TrialPart {
        &mut self.parts[0]
    }

    /// The tick at which the first frame is due, where a moment was agreed upon with another engine.
    pub fn agreed_tick(&self, clock: &impl Clock) -> Option<u64> {
        self.at_ns.zip(clock.counter()).map(|(at_ns, counter)| counter.tick_at(at_ns))
    }

    /// Notes what another engine sent of each stream, for the reading.
    pub fn set_sent_elsewhere(&mut self, sent: Vec<Option<u64>>) {
        self.sent_elsewhere = sent;
    }

    /// What left the ports of this engine, for `sent`.
    pub fn sent_reply(&self, counters: &[PortCounters], clock: &impl Clock) -> SentReply {
        let changes: Vec<PortCounters> =
            counters.iter().zip(&self.baselines).map(|(after, before)| difference(before, after)).collect();
        let streams = 0..self.names.len();
        SentReply {
            trial: self.number,
            sent: streams.clone().map(|stream| self.sent(stream, &changes)).collect(),
            burst_ns: streams.map(|stream| burst_ns(&self.counts_of(stream), clock)).collect(),
        }
    }

    /// What all workers sent of a stream.
    fn counts_of(&self, stream: usize) -> SenderCounts {
        let mut counts = SenderCounts::default();
        let sending = self.senders_of[stream];
        self.senders().filter(|sender| sender.stream == sending).for_each(|sender| counts.add(&sender.counts()));
        counts
    }

    /// Frames that each port has taken, from the workers whose parts are here.
    pub fn accepted(&self) -> Vec<u64> {
        (0..self.baselines.len()).map(|port| self.parts.iter().map(|part| part.accepted(port)).sum()).collect()
    }

    /// The progress of each stream, for `stats`, before anything is sent.
    pub fn progress(&self) -> impl Iterator<Item = StreamProgress> + '_ {
        self.names.iter().map(|_| StreamProgress { sent: 0, received: 0 })
    }

    /// Ends the drain: frames that come from now on are late.
    pub fn end_drain(&mut self) {
        self.parts.iter_mut().for_each(|part| part.analyser.end_drain());
    }

    /// The late frames of each stream, for `settle`.
    pub fn late(&self) -> Vec<u64> {
        let late = |stream: usize| self.parts.iter().map(|part| part.analyser.streams()[stream].late).sum();
        (0..self.names.len()).map(late).collect()
    }

    /// Makes the reading, for `drain`. What the other workers received is added to the first one's.
    pub fn reading(
        &mut self,
        facts: &[PortFacts],
        counters: &[PortCounters],
        clock: &impl Clock,
    ) -> Result<Reading, EngineError> {
        if let [first, others @ ..] = self.parts.as_mut_slice() {
            // A copy, for they go on counting what is late.
            others.iter().for_each(|other| first.analyser.merge(other.analyser.clone()));
        }
        facts.iter().zip(counters).try_for_each(|(facts, counters)| counters.check_present(&facts.name))?;
        let changes: Vec<PortCounters> =
            counters.iter().zip(&self.baselines).map(|(after, before)| difference(before, after)).collect();
        let elsewhere = |stream: usize| self.sent_elsewhere.get(stream).copied().flatten();
        let sent = |stream| elsewhere(stream).unwrap_or_else(|| self.sent(stream, &changes).max(self.arrived(stream)));
        let sent: Vec<u64> = (0..self.names.len()).map(sent).collect();
        let analyser = &self.parts[0].analyser;
        let losses = analyser.losses(&sent);
        let stamps = self.stamps();
        let received_by = |port: usize| Some((facts.get(port)?.stamps.as_ref()?, stamps.get(port)?));
        let stream = |index: usize| {
            let stamps = received_by(self.receive_ports[index]);
            self.stream_reading(index, sent[index], losses[index], stamps, clock)
        };
        let streams = (0..self.names.len()).map(stream).collect::<Result<_, _>>()?;
        let interfaces = facts.iter().map(|facts| Interface {
            name: facts.name.clone(),
            description: match &facts.stamps {
                None => "received; one time stamp a burst, by software".into(),
                Some(stamps) => format!("received; each frame stamped by the {}", stamps.source.name()),
            },
        });
        let interfaces: Vec<Interface> = interfaces.collect();
        let elapsed_ns = clock.nanoseconds(clock.now().saturating_sub(self.parts[0].epoch));
        let elapsed = (!clock.is_virtual()).then(|| Duration::from_nanos(elapsed_ns));
        let capture = self.details.write_capture(analyser, &interfaces, elapsed);
        let named: Vec<(String, u64)> = self.names.iter().cloned().zip(sent).collect();
        let flow_report = self.details.write_flows(analyser, &named);
        let ports = facts.iter().zip(&changes).zip(analyser.ports()).enumerate();
        let ports = ports.map(|(index, ((facts, change), tally))| {
            let mut counters = change.named.clone();
            counters.insert("completions".into(), change.completed);
            PortReading {
                name: facts.name.clone(),
                arrived: Some(tally.arrived),
                foreign: tally.foreign,
                misdirected: tally.misdirected,
                stale: tally.stale,
                corrupted_unattributed: tally.corrupted_unattributed,
                receive_overrun: change.receive_overrun,
                counters,
                link_changed: change.link_changes > 0,
                timestamps: received_by(index).map(|(facts, tally)| tally.reading(facts, clock)),
            }
        });
        Ok(Reading {
            trial: self.number,
            transmit_ns: clock.nanoseconds(self.transmit_ticks),
            sending_ns: clock.nanoseconds(self.sending_ticks),
            sent_while_sending: self.sent_while_sending,
            streams,
            ports: ports.collect(),
            health: self.health_reading(clock),
            capture,
            flow_report,
        })
    }

    /// The time stamps of all workers, by port.
    fn stamps(&self) -> Vec<StampTally> {
        let mut all = self.parts[0].stamps.clone();
        for part in &self.parts[1..] {
            all.iter_mut().zip(&part.stamps).for_each(|(sum, own)| sum.merge(own));
        }
        all
    }

    fn senders(&self) -> impl Iterator<Item = &Sender> {
        self.parts.iter().flat_map(|part| &part.senders)
    }

    /// Completed frames of a stream. Exact where its port has one stream; otherwise what the port did not complete is
    /// shared out in proportion, for the port does not say whose it was.
    fn sent(&self, stream: usize, changes: &[PortCounters]) -> u64 {
        let sending = self.senders_of[stream];
        let mut senders = self.senders().filter(|sender| sender.stream == sending).peekable();
        let Some(port) = senders.peek().map(|sender| sender.transmit_port) else { return 0 };
        let accepted: u64 = senders.map(|sender| sender.counts().accepted).sum();
        let of_port: u64 = self.parts.iter().map(|part| part.accepted(port)).sum();
        let missing = of_port.saturating_sub(changes[port].completed);
        accepted - (u128::from(missing) * u128::from(accepted)).div_ceil(u128::from(of_port.max(1))) as u64
    }

    /// Frames of a stream, or of a copy of it, that came back: they were sent, whatever share of its port's it is given.
    fn arrived(&self, stream: usize) -> u64 {
        let tallies = self.parts[0].analyser.streams().iter().zip(&self.senders_of);
        let same_sender = tallies.filter(|(_, sending)| **sending == self.senders_of[stream]);
        same_sender.map(|(tally, _)| tally.received + tally.late + tally.corrupted).max().unwrap_or(0)
    }

    fn stream_reading(
        &self,
        stream: usize,
        sent: u64,
        losses: Losses,
        stamps: Option<(&StampFacts, &StampTally)>,
        clock: &impl Clock,
    ) -> Result<StreamReading, EngineError> {
        let analyser = &self.parts[0].analyser;
        let tally = &analyser.streams()[stream];
        let (counts, mut gaps, mut intended) = (self.counts_of(stream), TransmitGaps::new()?, 0);
        let mut lateness = Lateness::new()?;
        for sender in self.senders().filter(|sender| sender.stream == self.senders_of[stream]) {
            gaps.absorb(sender.gaps())?;
            lateness.absorb(sender.lateness())?;
            intended += sender.intended();
        }
        let resolution_ns = 1e9 / clock.hz();
        let received_by = if self.is_stamped_in_kernel { "program" } else { "tsc" };
        let captured = analyser.expected()[stream].template.captured();
        let has_times = captured.is_none_or(Captured::has_times);
        let source = match self.latency_from {
            // Frames without a signature do not say when they were sent.
            _ if captured.is_some_and(Captured::is_unsigned) => "scheduled",
            LatencyFrom::Software if self.is_stamped_in_kernel => "program",
            LatencyFrom::Software => "software",
            LatencyFrom::Scheduled => "scheduled",
        };
        let software_ns = burst_ns(&counts, clock).max(resolution_ns);
        let stamping = match stamps {
            None => Stamping { source, received_by, resolution_ns, uncertainty_ns: software_ns },
            Some((facts, tally)) => {
                let of_stamp_ns = tally.resolution_ns(facts).unwrap_or(resolution_ns);
                Stamping {
                    source,
                    received_by: facts.source.name(),
                    resolution_ns: resolution_ns.max(of_stamp_ns),
                    uncertainty_ns: software_ns + tally.uncertainty_ns(clock).unwrap_or(0.0) + of_stamp_ns / 2.0,
                }
            }
        };
        let received = analyser.reading(stream, sent, stamping)?;
        let (lateness, gap_errors) = lateness.readings()?;
        Ok(StreamReading {
            name: self.names[stream].clone(),
            intended,
            sent,
            // Taken by the port and never completed: the tester's shortfall.
            unsent_tester: counts.unsent_tester + counts.accepted.saturating_sub(sent),
            unsent_backpressure: counts.unsent_backpressure,
            received: tally.received,
            lost: losses.lost,
            late: tally.late,
            duplicated: tally.duplicated,
            reordered: tally.reordered,
            corrupted: tally.corrupted,
            corrupted_copies: tally.corrupted_copies,
            unattributed: losses.unattributed,
            checked_bytes: Some(received.checked_bytes),
            maximum_burst: counts.maximum_burst,
            transmit_gaps: gaps.reading()?,
            lateness,
            gap_errors,
            latency: received.latency.filter(|_| has_times),
            reordering: received.reordering,
            variation: received.variation.filter(|_| has_times),
            intervals: received.intervals,
            arrivals: received.arrivals,
            last_jump_ns: received.last_jump_ns,
            groups: received.groups,
            flows: Some(received.flows),
            traffic_classes: received.traffic_classes,
        })
    }

    fn health_reading(&self, clock: &impl Clock) -> HealthReading {
        let sum = |value: fn(&TrialPart) -> u64| self.parts.iter().map(value).sum::<u64>();
        let switches = |value: fn(&TrialPart) -> Option<u64>| self.parts.iter().map(value).sum::<Option<u64>>();
        let workers: Vec<WorkerReading> = self.parts.iter().map(|part| worker_reading(part, clock)).collect();
        let first = &self.parts[0].health;
        HealthReading {
            longest_gap_ns: workers.iter().map(|worker| worker.longest_gap_ns).max().unwrap_or(0),
            total_gap_ns: clock.nanoseconds(sum(|part| part.gaps.total())),
            gap_floor_ns: GAP_FLOOR_NS,
            gaps: sum(|part| part.gaps.count()),
            iterations: sum(|part| part.iterations),
            idle_iterations: sum(|part| part.idle_iterations),
            voluntary_switches: switches(|part| part.health.voluntary_switches),
            involuntary_switches: switches(|part| part.health.involuntary_switches),
            clock_step_ns: first.clock_step_ns,
            core_clock_hz: first.core_clock_hz,
            cpus: first.cpus.clone(),
            // One worker's are those above.
            workers: if workers.len() > 1 { workers } else { Vec::new() },
        }
    }
}

/// The mean time that a burst needed.
fn burst_ns(counts: &SenderCounts, clock: &impl Clock) -> f64 {
    clock.nanoseconds(counts.burst_ticks) as f64 / counts.timed_bursts.max(1) as f64
}

fn worker_reading(part: &TrialPart, clock: &impl Clock) -> WorkerReading {
    WorkerReading {
        longest_gap_ns: clock.nanoseconds(part.gaps.longest()),
        total_gap_ns: clock.nanoseconds(part.gaps.total()),
        gaps: part.gaps.count(),
        iterations: part.iterations,
        idle_iterations: part.idle_iterations,
        sent: part.senders.iter().map(|sender| sender.counts().accepted).sum(),
        core_clock_hz: part.health.core_clock_hz,
    }
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
        link_up: after.link_up,
        named,
        gone: after.gone.clone(),
    }
}
