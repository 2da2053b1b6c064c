//! The generator: flows that begin, pause and end on their own while others go on; `protocol/README.md`, "Generator".
//!
//! One loop serves all ports: it sends what is due, counts what has come, and never waits for a file or a pipe. It knows
//! nothing of protocols: what frames look like was computed by the controller.

mod captures;
mod classifier;
mod control;
mod fixups;
mod flow;
mod health;
mod hosts;
mod program;
mod receiver;
mod replies;
mod schedule;
mod tags;
mod tally;
mod times;
mod transmitter;
mod values;

use std::collections::VecDeque;
use std::sync::Arc;

use nicbench_protocol::{
    CaptureAction, CapturesReply, EventKind, FlowState, Load, LoadReply, PortCapture, Reply, Tally,
};

use self::captures::Captures;
use self::classifier::Classifier;
use self::flow::Flow;
use self::health::Watch;
use self::hosts::Stations;
use self::receiver::{Expected, Receiver};
use self::replies::{Replies, reply_job};
use self::tags::Tags;
use self::tally::{PortSnapshot, TallyJob};
use self::times::Times;
use self::transmitter::Transmitter;
use crate::core_watch::CoreWatch;
use crate::error::{EngineError, ErrorKind};
use crate::orders::Orders;
use crate::output::Output;
use crate::port::{Clock, Frame, MAXIMUM_BURST, Port, PortFacts};
use crate::signature::Signer;

const MOST_FLOWS: usize = 4096;
/// After the last frame was sent the loop goes on without sleeping for so long: what is under way is to be stamped well.
const EAGER_S: f64 = 1.0;
/// The same for computed time, after which requests are looked at: a conversation goes the same way each time.
const VIRTUAL_EAGER_S: f64 = 0.05;
/// Bursts thrown away before flows are loaded, at most.
const STALE_BURSTS: usize = 4096;
/// Turns between two looks at counters of few bits.
const KEEP_UP_TURNS: u64 = 4096;
/// Turns between two looks at what hosts have to say, while frames move: a look takes a part of a turn's time.
const HOSTS_TURNS: u64 = 16;
/// Pauses of the processor before a full port is asked again.
const REFUSED_PAUSES: u32 = 6;

/// The ports of one worker, and its clock.
pub struct Bench<'a> {
    pub ports: &'a mut [Box<dyn Port>],
    pub clock: &'a dyn Clock,
    /// CPUs whose times are read around each transmission.
    pub watched_cpus: &'a [u32],
    /// Looks at them meanwhile.
    pub core_watch: &'a CoreWatch,
}

impl Bench<'_> {
    fn facts(&self) -> Vec<PortFacts> {
        self.ports.iter().map(|port| port.facts().clone()).collect()
    }
}

/// The flows of a process, and everything that is counted of them.
pub struct Generator {
    replies: Replies,
    captures: Captures,
    /// How often flows were loaded; 0: never.
    loads: u32,
    flows: Vec<Flow>,
    signer: Signer,
    times: Times,
    transmitters: Vec<Transmitter>,
    receiver: Receiver,
    stations: Stations,
    jobs: VecDeque<TallyJob>,
    watch: Watch,
    /// Flows that ended in this turn.
    ended: Vec<u32>,
    turns: u64,
    frames: [Frame; MAXIMUM_BURST],
    /// The loop does not sleep before this tick.
    eager_until: u64,
}

impl Generator {
    /// A generator without flows. Without an output, requests are done all the same, and nobody is told.
    pub fn new(output: Option<Arc<Output>>, bench: &Bench<'_>) -> Self {
        let signer = Signer::new(0, 0);
        Self {
            replies: Replies::new(output),
            captures: Captures::default(),
            loads: 0,
            flows: Vec::new(),
            signer,
            times: Times::from_now(bench.clock),
            transmitters: Vec::new(),
            receiver: Receiver::new(signer, Vec::new(), Classifier::default(), bench.ports.len()),
            stations: Stations::new(bench.ports.len()),
            jobs: VecDeque::new(),
            watch: Watch::default(),
            ended: Vec::new(),
            turns: 0,
            frames: [Frame::empty(); MAXIMUM_BURST],
            eager_until: 0,
        }
    }

    /// Replaces all flows.
    pub fn load(&mut self, id: i64, request: &Load, run_key: u64, bench: &mut Bench<'_>) {
        let result = self.try_load(request, run_key, bench);
        self.replies.reply_with(id, move || result.map(Reply::Load));
    }

    fn try_load(&mut self, request: &Load, run_key: u64, bench: &mut Bench<'_>) -> Result<LoadReply, EngineError> {
        if let Some(place) = self.flows.iter().position(|flow| flow.state != FlowState::Stopped) {
            let message = format!("flow {place} transmits, or pauses");
            return Err(EngineError::new(ErrorKind::BadState, message, "stop all flows before `load`"));
        }
        let facts = bench.facts();
        check(request, &facts)?;
        let hz = bench.clock.hz();
        let flow = |request| Flow::of(request, &facts[request.transmit_port], hz);
        let flows = request.flows.iter().map(flow).collect::<Result<Vec<_>, _>>()?;
        let mut classifier = Classifier::of(&request.flows)?;
        classifier.check_apart(&request.flows, &flows)?;
        let receiving = request.flows.iter().map(|flow| {
            let tags = Tags::of(&flow.name, &flow.tags)?;
            Ok(Expected { ports: flow.receive_ports.clone(), is_signed: flow.signature, tags })
        });
        let receiving = receiving.collect::<Result<_, EngineError>>()?;
        self.loads += 1;
        for (place, port) in bench.ports.iter_mut().enumerate() {
            discard_stale(&mut **port, &mut self.frames, bench.clock, |frame, now_ns| {
                self.stations.receive(place, frame, now_ns);
            });
            port.begin_trial(self.loads, 0);
        }
        self.signer = Signer::new(run_key, self.loads);
        self.receiver = Receiver::new(self.signer, receiving, classifier, facts.len());
        self.transmitters = facts.iter().map(|_| Transmitter::default()).collect();
        self.times = Times::from_now(bench.clock);
        self.flows = flows;
        Ok(LoadReply { loaded: self.flows.len() as u32 })
    }

    /// Counts ports now, and flows in the turns that follow.
    pub fn tally(&mut self, id: i64, request: &Tally, bench: &mut Bench<'_>) {
        let flows = match self.numbers(request.flows.as_deref()) {
            Ok(flows) => flows,
            Err(error) => return self.replies.reply_with(id, move || Err(error)),
        };
        let received = &self.receiver.ports;
        let sent = |place: usize| self.transmitters.get(place).map_or((0, 0), |port| (port.sent, port.sent_bytes));
        let ports = bench.ports.iter_mut().enumerate();
        let hosts = &self.stations;
        let of = |(place, port): (usize, &mut Box<dyn Port>)| {
            PortSnapshot::of(&mut **port, sent(place), received[place], hosts.sent(place))
        };
        let ports = ports.map(of).collect();
        self.jobs.push_back(TallyJob::new(id, flows, request, self.times).with(ports));
    }

    /// Begins or ends captures. The reply to an end follows when the files are complete.
    pub fn capture(&mut self, id: i64, request: &PortCapture, bench: &Bench<'_>) {
        if request.action == CaptureAction::Start {
            let result = self.captures.start(request, &bench.facts());
            let reply = result.map(|captures| Reply::Captures(CapturesReply { captures }));
            return self.replies.reply_with(id, move || reply);
        }
        match (self.captures.stop(&request.ports), self.replies.sender()) {
            (Ok(ended), Some(sender)) => {
                // A file may take seconds, in which others are answered.
                std::thread::spawn(move || {
                    let captures = ended.wait();
                    let _ = sender.send(reply_job(id, move || Ok(Reply::Captures(CapturesReply { captures }))));
                });
            }
            (Err(error), _) => self.replies.reply_with(id, move || Err(error)),
            (Ok(_), None) => {}
        }
    }

    /// The numbers of flows that a request names.
    fn numbers(&self, named: Option<&[u32]>) -> Result<Vec<u32>, EngineError> {
        let all = self.flows.len() as u32;
        let Some(named) = named else { return Ok((0..all).collect()) };
        match named.iter().find(|number| **number >= all) {
            None => Ok(named.to_vec()),
            Some(number) => {
                let message = format!("flow {number}, and there are {all} flows");
                Err(EngineError::new(ErrorKind::BadRequest, message, "use a flow's number, from 0"))
            }
        }
    }

    /// Whether the loop is to go on without sleeping.
    pub fn is_busy(&self, clock: &dyn Clock) -> bool {
        self.is_moving(clock) || !self.jobs.is_empty() || self.captures.is_any() && !clock.is_virtual()
    }

    /// Whether frames are sent, or under way.
    fn is_moving(&self, clock: &dyn Clock) -> bool {
        clock.now() < self.eager_until
            || self.flows.iter().any(|flow| flow.state == FlowState::Started)
            || clock.is_virtual() && self.stations.is_waiting()
    }

    /// Sends and receives until an order waits, or nothing is left to do.
    pub fn run(&mut self, bench: &mut Bench<'_>, orders: &dyn Orders) {
        let is_virtual = bench.clock.is_virtual();
        loop {
            let moved = self.step(bench);
            // Whether anything is left is not asked for in every turn of many flows.
            let is_over = (moved == 0 || self.turns % KEEP_UP_TURNS == 0)
                && bench.clock.now() >= self.eager_until
                && !self.is_busy(bench.clock);
            let is_asked = orders.is_waiting() && (!is_virtual || self.is_endless());
            if is_over || is_asked {
                return;
            }
        }
    }

    /// One turn, after which computed time goes on; returns how many frames were moved.
    pub fn step(&mut self, bench: &mut Bench<'_>) -> usize {
        bench.clock.tick();
        let moved = self.turn(bench);
        if moved == 0 {
            self.watch.note_idle();
            // Between transmissions computed time stands still, however long nobody asks for anything.
            if bench.clock.is_virtual() && self.is_moving(bench.clock) {
                self.jump(bench);
            }
        }
        moved
    }

    /// Whether some flow would never end by itself: then computed time cannot wait for the end.
    fn is_endless(&self) -> bool {
        self.flows.iter().any(|flow| flow.state == FlowState::Started && flow.intended().is_none())
    }

    /// Sends what is due and counts what has come; returns how many frames that were.
    fn turn(&mut self, bench: &mut Bench<'_>) -> usize {
        self.turns += 1;
        self.watch.turn(bench);
        let mut moved = 0;
        let means = (&self.signer, bench.clock, &self.times);
        for (port, transmitter) in bench.ports.iter_mut().zip(&mut self.transmitters) {
            moved += transmitter.send(&mut **port, &mut self.flows, means, &mut self.ended);
        }
        if moved > 0 {
            let eager_s = if bench.clock.is_virtual() { VIRTUAL_EAGER_S } else { EAGER_S };
            self.eager_until = bench.clock.now() + (eager_s * bench.clock.hz()) as u64;
        }
        for (place, port) in bench.ports.iter_mut().enumerate() {
            moved += self.receive(place, &mut **port, bench.clock);
        }
        if self.stations.is_any() && (moved == 0 || self.turns % HOSTS_TURNS == 0) {
            moved += self.stations.send(bench);
        }
        if !self.ended.is_empty() {
            self.watch.end(self.ended.len(), bench.clock);
            self.replies.event(EventKind::FlowsEnded { flows: std::mem::take(&mut self.ended) });
        }
        if let Some(job) = self.jobs.front_mut() {
            // What the end of a transmission tells is known in a moment.
            if job.go_on(&self.flows, &self.receiver) && !self.watch.is_settling() {
                if let Some(job) = self.jobs.pop_front() {
                    let health = self.watch.reading(bench.clock, job.histograms);
                    self.replies.reply_with(job.id, move || job.reply(health));
                }
            }
        }
        if self.turns % KEEP_UP_TURNS == 0 {
            bench.ports.iter_mut().for_each(|port| port.keep_up());
        }
        if moved == 0 && !bench.clock.is_virtual() && self.transmitters.iter().any(Transmitter::is_refused) {
            (0..REFUSED_PAUSES).for_each(|_| std::hint::spin_loop());
        }
        moved
    }

    #[inline]
    fn receive(&mut self, place: usize, port: &mut dyn Port, clock: &dyn Clock) -> usize {
        let count = port.receive(&mut self.frames);
        if count == 0 {
            return 0;
        }
        let now = clock.now();
        let now_ns = self.times.since_begin_ns(now);
        let is_captured = self.captures.is_any();
        let foreign = self.receiver.ports[place].foreign;
        for frame in &self.frames[..count] {
            if is_captured {
                self.captures.push(place, frame.bytes(), self.times.unix_ns(now));
            }
            self.receiver.receive(place, frame.bytes(), &self.flows, now, now_ns);
        }
        if self.receiver.ports[place].foreign > foreign && self.stations.is_any() {
            self.show_hosts(place, count, clock.nanoseconds(now));
        }
        if is_captured {
            self.captures.hand_over(place);
        }
        port.free(&self.frames[..count]);
        count
    }

    /// Hosts see the frames of a burst that are of no flow, and those that are theirs are not foreign. Here, and not as
    /// each frame is counted: that is done at many millions a second.
    #[cold]
    fn show_hosts(&mut self, place: usize, count: usize, now_ns: u64) {
        for frame in &self.frames[..count] {
            if self.receiver.is_foreign(place, frame.bytes()) && self.stations.receive(place, frame.bytes(), now_ns) {
                self.receiver.ports[place].take_back(frame.bytes());
            }
        }
    }

    /// Computed time goes on to the next thing that will happen.
    fn jump(&mut self, bench: &Bench<'_>) {
        let due = self.transmitters.iter().filter_map(Transmitter::next_tick);
        let events = bench.ports.iter().filter_map(|port| port.next_event());
        let hosts = self.stations.next_tick(bench.clock);
        let later = due.chain(events).chain(hosts).chain([self.eager_until]).filter(|tick| *tick > bench.clock.now());
        if let Some(next) = later.min() {
            bench.clock.wait_until(next);
            self.watch.resume(bench.clock.now());
        }
    }

    /// Gives frames back to their ports, and completes the files of captures.
    pub fn finish(&mut self, bench: &mut Bench<'_>) {
        for (port, transmitter) in bench.ports.iter_mut().zip(&mut self.transmitters) {
            transmitter.finish(&mut **port);
        }
        self.captures.finish().wait();
    }
}

fn check(request: &Load, facts: &[PortFacts]) -> Result<(), EngineError> {
    if request.flows.len() > MOST_FLOWS {
        let message = format!("there are {} flows", request.flows.len());
        return Err(EngineError::new(ErrorKind::BadRequest, message, format!("load at most {MOST_FLOWS} flows")));
    }
    if let Some(port) = facts.iter().find(|port| port.stamps.is_some()) {
        let message = format!("port {}: the generator stamps what it receives by the worker's clock", port.name);
        return Err(EngineError::new(ErrorKind::BadRequest, message, "configure ports with `timestamps: tsc`"));
    }
    for flow in &request.flows {
        let ports = [&[flow.transmit_port], flow.receive_ports.as_slice()].concat();
        if let Some(port) = ports.iter().find(|port| **port >= facts.len()) {
            let message = format!("flow {}: port {port}, and there are {} ports", flow.name, facts.len());
            return Err(EngineError::new(ErrorKind::BadRequest, message, "use a port's number, from 0"));
        }
        let received = &flow.receive_ports;
        if (1..received.len()).any(|place| received[..place].contains(&received[place])) {
            let message = format!("flow {}: a port is named twice in receive_ports", flow.name);
            return Err(EngineError::new(ErrorKind::BadRequest, message, "name each port once"));
        }
    }
    Ok(())
}

/// Receives what is left of earlier flows, which hosts alone see.
fn discard_stale(port: &mut dyn Port, frames: &mut [Frame], clock: &dyn Clock, mut see: impl FnMut(&[u8], u64)) {
    for _ in 0..STALE_BURSTS {
        let count = if clock.is_virtual() { 0 } else { port.receive(frames) };
        let now_ns = clock.nanoseconds(clock.now());
        frames[..count].iter().for_each(|frame| see(frame.bytes(), now_ns));
        port.free(&frames[..count]);
        if count == 0 {
            return;
        }
    }
}
