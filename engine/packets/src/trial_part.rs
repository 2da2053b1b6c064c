//! One worker's part of a trial: what it sends and what it receives. With one worker that is all of it.

use std::ops::Range;

use nicbench_protocol::{Fault, Start, StreamProgress};

use crate::analyser::{Analyser, Expected};
use crate::error::{EngineError, ErrorKind};
use crate::frame_writer::FrameWriter;
use crate::gaps::{GAP_FLOOR_NS, Gaps};
use crate::health::HealthChange;
use crate::pace::{Pace, Recorded};
use crate::pacer::Pacer;
use crate::port::{Clock, PortFacts};
use crate::sender::{Sender, Transmission};
use crate::signature::Signer;
use crate::stamps::StampTally;
use crate::template::Template;
use crate::traffic::Captured;

/// The ports that a worker serves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roles {
    pub transmit: Vec<usize>,
    pub receive: Vec<usize>,
}

impl Roles {
    /// Roles in which a worker transmits and receives at every port.
    pub fn all(ports: usize) -> Self {
        Self { transmit: (0..ports).collect(), receive: (0..ports).collect() }
    }
}

/// One worker among all of a trial.
#[derive(Debug, Clone, Copy)]
pub struct WorkerSlot<'a> {
    pub workers: &'a [Roles],
    pub worker: usize,
}

/// What one worker sends and receives in a trial, and what it has counted so far.
#[derive(Debug)]
pub struct TrialPart {
    pub number: u32,
    /// The tick at which the first frame is due.
    pub epoch: u64,
    pub duration_ticks: u64,
    pub catch_up_ticks: u64,
    pub shared: Transmission,
    pub senders: Vec<Sender>,
    pub analyser: Analyser,
    /// Ticks between which nothing is received, for tests.
    pub pause_receive: Option<(u64, u64)>,
    /// Every stream has a fixed number of frames: the transmission ends with them.
    pub ends_with_frames: bool,
    pub transmit_ticks: u64,
    pub gaps: Gaps,
    pub iterations: u64,
    pub idle_iterations: u64,
    pub health: HealthChange,
    /// By port, where ports stamp what they receive; noted for the reading.
    pub stamps: Vec<StampTally>,
}

impl TrialPart {
    /// Plans what a worker has to do; the request has been checked.
    pub fn new(
        start: &Start,
        signer: Signer,
        expected: &[Expected],
        facts: &[PortFacts],
        slot: WorkerSlot<'_>,
        analyser: Analyser,
        clock: &impl Clock,
    ) -> Result<Self, EngineError> {
        let hz = clock.hz();
        let mut senders = Vec::new();
        for (stream, expected) in expected.iter().enumerate() {
            let request = &start.streams[stream];
            if request.copy_of.is_some() {
                continue;
            }
            if facts[request.transmit_port].is_remote() {
                continue;
            }
            let Some(share) = Share::of(start, expected, slot.workers, stream, slot.worker)? else { continue };
            let (rate, burst_frames) = (request.rate_frames_per_s, request.burst_frames.unwrap_or(1));
            let sending_s = start.duration_s - request.begins_s;
            let pacer = Pacer::in_bursts(burst_frames, rate, sending_s, start.catch_up_s, hz);
            let pacer = pacer.with_frame_limit(request.frames).starting_at((request.begins_s * hz) as u64);
            let (template, tag) = (expected.sent().clone(), prefill_tag(start.trial, stream));
            let (first_flow, of_stream) = (expected.first_flow, expected.flows);
            let writer = FrameWriter::of_range(template, signer, first_flow, of_stream, share.flows, tag);
            let pace = match expected.sent().captured().and_then(Captured::due_ns) {
                Some(due_ns) => Pace::Recorded(Recorded::new(due_ns, request.frames, hz)),
                None => Pace::Even(pacer.part(share.index, share.count)),
            };
            let port = request.transmit_port;
            senders.push(Sender::new(stream, port, writer, pace, facts[port].lossless)?);
        }
        let ticks = |seconds: f64| (seconds * hz) as u64;
        let pause = |fault: Fault| {
            let begin = ticks(fault.pause_receive_after_s);
            (begin, begin + ticks(fault.pause_receive_s))
        };
        Ok(Self {
            number: start.trial,
            epoch: 0,
            duration_ticks: ticks(start.duration_s),
            catch_up_ticks: ticks(start.catch_up_s),
            shared: Transmission { epoch: 0, burst: start.burst as usize, latency_from: start.latency_from },
            // One that only receives cannot know when the last was sent.
            ends_with_frames: !senders.is_empty()
                && start.streams.iter().all(|stream| stream.frames.is_some() || stream.timing.is_some()),
            senders,
            analyser,
            pause_receive: start.fault.map(pause),
            transmit_ticks: 0,
            gaps: Gaps::default(),
            iterations: 0,
            idle_iterations: 0,
            health: HealthChange::default(),
            stamps: Vec::new(),
        })
    }

    /// Begins the transmission: the first frame is due at tick `epoch`.
    pub fn begin(&mut self, epoch: u64, clock: &impl Clock) {
        (self.epoch, self.shared.epoch) = (epoch, epoch);
        self.gaps = Gaps::new(epoch, (GAP_FLOOR_NS as f64 * clock.hz() / 1e9) as u64);
    }

    /// Frames that `port` has taken from this worker.
    pub fn accepted(&self, port: usize) -> u64 {
        self.senders.iter().filter(|sender| sender.transmit_port == port).map(|sender| sender.counts().accepted).sum()
    }

    /// What this worker sent and received of every stream, for `stats`.
    pub fn progress(&self) -> impl Iterator<Item = StreamProgress> + '_ {
        self.analyser.streams().iter().enumerate().map(|(stream, tally)| {
            let own = self.senders.iter().filter(|sender| sender.stream == stream);
            StreamProgress { sent: own.map(|sender| sender.counts().accepted).sum(), received: tally.received }
        })
    }
}

/// The share of a stream that one worker sends.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Share {
    /// The flows of the stream that it sends, counted from 0.
    flows: Range<u32>,
    /// The worker sends every `count`th frame of the schedule, from frame `index` on.
    index: u64,
    count: u64,
}

impl Share {
    /// A flow belongs to one worker, so that its sequence does; each worker has as many flows as every other, so that
    /// all flows have the same rate. A stream of fewer flows than there are workers is sent by as many workers as
    /// flows.
    fn of(
        start: &Start,
        expected: &Expected,
        roles: &[Roles],
        stream: usize,
        worker: usize,
    ) -> Result<Option<Self>, EngineError> {
        let request = &start.streams[stream];
        let port = request.transmit_port;
        let workers: Vec<usize> = (0..roles.len()).filter(|index| roles[*index].transmit.contains(&port)).collect();
        let refuse = |what: String, next: &str| {
            Err(EngineError::new(ErrorKind::BadRequest, format!("stream {}: {what}", request.name), next))
        };
        if workers.is_empty() {
            return refuse(format!("no worker transmits at port {port}"), "give a worker this port");
        }
        if !roles.iter().any(|roles| roles.receive.contains(&request.receive_port)) {
            let what = format!("no worker receives at port {}", request.receive_port);
            return refuse(what, "give a worker this port");
        }
        // The flows of a file's frames are in the file's order.
        let most = if matches!(expected.template, Template::Captured(_)) { 1 } else { expected.flows };
        let count = most.min(workers.len() as u32);
        if expected.flows % count != 0 {
            let what = format!("{} flows cannot be divided among the {count} workers of port {port}", expected.flows);
            return refuse(what, "give a number of flows that is a multiple of the workers that transmit there");
        }
        let Some(index) = workers.iter().position(|other| *other == worker).map(|index| index as u32) else {
            return Ok(None);
        };
        let each = expected.flows / count;
        Ok((index < count).then(|| Self {
            flows: index * each..(index + 1) * each,
            index: index.into(),
            count: count.into(),
        }))
    }
}

/// The tag of buffers that hold the constant bytes of a stream: trials and streams of a process have each their own.
fn prefill_tag(trial: u32, stream: usize) -> u64 {
    u64::from(trial) << 16 | (stream as u64 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::tests::request;

    fn shares(flows: u32, workers: usize) -> Result<Vec<Option<Share>>, EngineError> {
        let mut stream = request(4, 64);
        (stream.flows, stream.receive_port) = (flows, 0);
        let template = Template::new(&stream).unwrap();
        let expected = Expected { template, sent: None, receive_port: 0, first_flow: 0, flows, copy_of: None };
        let start: Start = serde_json::from_value(serde_json::json!({
            "trial": 1, "duration_s": 1, "streams": [serde_json::to_value(&stream).unwrap()]}))
        .unwrap();
        let roles = vec![Roles::all(1); workers];
        (0..workers).map(|worker| Share::of(&start, &expected, &roles, 0, worker)).collect()
    }

    #[test]
    fn flows_are_divided_evenly_and_frames_in_turn() {
        let shares: Vec<_> = shares(24, 3).unwrap().into_iter().flatten().collect();
        assert_eq!(shares.iter().map(|share| share.flows.clone()).collect::<Vec<_>>(), [0..8, 8..16, 16..24]);
        assert_eq!(shares.iter().map(|share| (share.index, share.count)).collect::<Vec<_>>(), [(0, 3), (1, 3), (2, 3)]);
    }

    #[test]
    fn one_flow_is_sent_by_one_worker() {
        let shares = shares(1, 2).unwrap();
        assert_eq!(shares, [Some(Share { flows: 0..1, index: 0, count: 1 }), None]);
    }

    #[test]
    fn flows_that_cannot_be_divided_are_refused_by_name() {
        assert!(shares(3, 2).unwrap_err().message.contains("3 flows cannot be divided among the 2 workers"));
    }
}
