//! The tester inside the kernel: a thread of each worker runs the program that makes frames, the drivers run the one
//! that checks them, and this process only begins, waits and reads.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nicbench_protocol::{ClockReply, LatencyFrom, Reading, Start, StreamProgress};

use super::generator::{Generator, Runner};
use super::port::XdpPort;
use crate::analyser::Analyser;
use crate::clock::{MonotonicClock, TscClock, simultaneous};
use crate::core_watch::{CoreWatch, PERIOD_NS};
use crate::details::Details;
use crate::error::{EngineError, ErrorKind};
use crate::health::{HealthChange, HealthProbe};
use crate::orders::{Order, Orders};
use crate::port::{Clock, PortCounters, PortFacts};
use crate::signature::Signer;
use crate::snapshot::Snapshot;
use crate::sys::bpf::{end_call, install_interruption};
use crate::sys::thread as own_thread;
use crate::tester::Tester;
use crate::trial::Trial;
use crate::trial_part::{Roles, TrialPart};

/// Between two looks at how far a transmission is.
const LOOK: Duration = Duration::from_millis(5);
/// So often between them programs are told of neighbours: a look that finds one stands for four milliseconds.
const SLOW_LOOKS: u32 = 5;
/// The first call of a transmission waits until every CPU knows the program.
const START_BOUND: Duration = Duration::from_secs(5);
/// From when everything runs until the first frame is due.
const LEAD_NS: u64 = 200_000;
/// A program that has not finished so long after it should have does not run any more.
const LATE_NS: u64 = 1_000_000_000;
/// Frames may be so long under way after the last one was sent, before the machine's state is read.
const UNDER_WAY_S: f64 = 0.01;

/// One worker: its CPU, its ports, and the program that makes its frames.
#[derive(Debug)]
pub struct Lane {
    pub cpu: Option<u32>,
    pub roles: Roles,
    pub generator: Generator,
}

/// Ports whose frames are made and checked in the kernel.
#[derive(Debug)]
pub struct XdpTester {
    ports: Vec<XdpPort>,
    lanes: Vec<Lane>,
    clock: MonotonicClock,
    tsc: TscClock,
    watched_cpus: Vec<u32>,
    core_watch: CoreWatch,
    /// The tick of the last slow look that programs were told of.
    told_slow: u64,
    /// Why the present trial was not sent as asked for.
    failure: Option<EngineError>,
}

/// A thread that makes frames.
struct Sending {
    thread: JoinHandle<io::Result<HealthChange>>,
    number: Arc<AtomicU32>,
    is_over: Arc<AtomicBool>,
}

impl XdpTester {
    pub fn new(ports: Vec<XdpPort>, lanes: Vec<Lane>, watched_cpus: Vec<u32>, tsc: TscClock) -> Self {
        install_interruption();
        let core_watch = CoreWatch::start(&watched_cpus, tsc.hz());
        Self { ports, lanes, clock: MonotonicClock, tsc, watched_cpus, core_watch, told_slow: 0, failure: None }
    }

    pub fn facts(&self) -> Vec<PortFacts> {
        self.ports.iter().map(|port| port.facts().clone()).collect()
    }

    fn counters(&self) -> Vec<PortCounters> {
        self.ports.iter().map(XdpPort::counters).collect()
    }

    fn roles(&self) -> Vec<Roles> {
        self.lanes.iter().map(|lane| lane.roles.clone()).collect()
    }

    /// Starts a thread for each worker that has something to send, and waits until their programs run.
    fn start_threads(&self, trial: &Trial) -> Result<Vec<Option<Sending>>, EngineError> {
        let start = |(lane, part): (&Lane, &TrialPart)| -> Result<Option<Sending>, EngineError> {
            if part.senders.is_empty() {
                return Ok(None);
            }
            Ok(Some(Sending::start(lane.cpu, lane.generator.runner()?, self.tsc)))
        };
        let sending = self.lanes.iter().zip(&trial.parts).map(start).collect::<Result<Vec<_>, _>>()?;
        let bound = Instant::now() + START_BOUND;
        let is_waiting = |(lane, sending): (&Lane, &Option<Sending>)| {
            sending.as_ref().is_some_and(|sending| !lane.generator.is_running() && !sending.has_ended())
        };
        while Instant::now() < bound && self.lanes.iter().zip(&sending).any(is_waiting) {
            thread::sleep(Duration::from_millis(1));
        }
        Ok(sending)
    }

    /// Waits until every program has finished, an order comes, or one has ended too early.
    fn wait(
        &mut self,
        trial: &Trial,
        sending: &[Option<Sending>],
        snapshot: &Snapshot,
        orders: &mut dyn Orders,
    ) -> Order {
        let part = &trial.parts[0];
        let late = part.epoch + part.duration_ticks + part.catch_up_ticks + LATE_NS;
        loop {
            self.rest();
            self.follow(trial, snapshot);
            if orders.is_waiting() {
                let order = orders.take();
                if order != Order::Continue {
                    return order;
                }
            }
            let is_over = |(lane, sending): (&Lane, &Option<Sending>)| {
                sending.is_none() || lane.generator.finished_ns().is_some()
            };
            if self.lanes.iter().zip(sending).all(is_over) {
                return Order::Continue;
            }
            if self.clock.now() > late || sending.iter().flatten().any(Sending::has_ended) {
                self.failure = Some(self.explain_unfinished(part.epoch));
                return Order::Continue;
            }
        }
    }

    /// A program that still runs, and whose clock is far behind the one of this process, does not share it: time
    /// namespaces, and libraries that are loaded before others, give a process a clock of its own.
    fn explain_unfinished(&self, epoch: u64) -> EngineError {
        let before: Vec<(u64, u64)> = self.lanes.iter().map(|lane| lane.generator.runs_and_time_ns()).collect();
        thread::sleep(LOOK);
        let elapsed = self.clock.now().saturating_sub(epoch);
        for (lane, (runs_before, _)) in self.lanes.iter().zip(before) {
            let (runs, time_ns) = lane.generator.runs_and_time_ns();
            let behind_ns = elapsed.saturating_sub(time_ns);
            if runs > runs_before && behind_ns > LATE_NS / 2 {
                let message = format!(
                    "the kernel's clock is {:.1} s or more behind the monotonic clock of this process",
                    behind_ns as f64 / 1e9
                );
                let next =
                    "run nicbench outside a time namespace (/proc/self/timens_offsets), or use `driver: net_af_xdp`";
                return EngineError::new(ErrorKind::Port, message, next);
            }
        }
        not_sent("it did not run until the end")
    }

    /// Reads what programs hand over, tells them of neighbours, and says how far the trial is.
    fn follow(&mut self, trial: &Trial, snapshot: &Snapshot) {
        self.poll();
        let mut progress = vec![StreamProgress { sent: 0, received: 0 }; trial.progress().count()];
        for (lane, part) in self.lanes.iter().zip(&trial.parts) {
            for (stream, sent) in lane.generator.sent(part) {
                progress[stream].sent += sent;
            }
        }
        for port in &self.ports {
            for (stream, received) in port.receiver.received().into_iter().enumerate() {
                progress[stream].received += received;
            }
        }
        let elapsed = self.clock.now().saturating_sub(trial.parts[0].epoch);
        snapshot.publish(trial.number, elapsed, progress.into_iter());
    }

    fn poll(&mut self) {
        self.tell_slow_look();
        self.ports.iter_mut().for_each(|port| port.receiver.poll());
    }

    /// Sleeps until the next look at the programs, and tells them meanwhile of neighbours.
    fn rest(&mut self) {
        for _ in 0..SLOW_LOOKS {
            thread::sleep(LOOK / SLOW_LOOKS);
            self.tell_slow_look();
        }
    }

    /// Tells the programs until when the last look that found a CPU slow stands: until the next one.
    fn tell_slow_look(&mut self) {
        let Some(tick) = self.core_watch.last_slow().filter(|tick| *tick != self.told_slow) else { return };
        self.told_slow = tick;
        let (ticks, monotonic_ns) = simultaneous();
        let stands_ns = monotonic_ns.saturating_sub(self.tsc.nanoseconds(ticks.saturating_sub(tick))) + PERIOD_NS;
        self.ports.iter_mut().for_each(|port| port.receiver.set_last_slow(stands_ns));
    }

    /// Ends the programs, and notes what they counted.
    fn finish(&mut self, trial: &mut Trial, sending: Vec<Option<Sending>>) -> Result<(), EngineError> {
        let elapsed_ns = self.clock.now().saturating_sub(trial.parts[0].epoch);
        self.lanes.iter_mut().for_each(|lane| lane.generator.end());
        // Every thread is ended, whatever became of the others.
        let ended: Vec<Option<io::Result<HealthChange>>> =
            sending.into_iter().map(|sending| sending.map(Sending::end)).collect();
        for (lane, (part, ended)) in self.lanes.iter().zip(trial.parts.iter_mut().zip(ended)) {
            if let Some(health) = ended {
                part.health = health.map_err(|error| not_sent(&error.to_string()))?;
            }
            lane.generator.note(part, elapsed_ns)?;
            for (port, flushed) in self.ports.iter_mut().zip(lane.generator.flushed()) {
                port.note(flushed);
            }
        }
        Ok(())
    }

    /// Ends the trial before, if it was not ended by itself: nothing counts any more.
    fn stop_counting(&mut self) {
        if self.ports.iter().any(|port| port.receiver.is_counting()) {
            self.ports.iter_mut().for_each(|port| port.receiver.end());
            self.settle();
        }
    }

    /// Waits until what every port was told holds for every frame.
    fn settle(&self) {
        if let Some(port) = self.ports.first() {
            port.receiver.settle();
        }
    }

    fn read_received(&mut self, trial: &mut Trial) -> Result<(), EngineError> {
        let mut whole: Option<Analyser> = None;
        for port in &mut self.ports {
            port.receiver.poll();
            let analyser = port.receiver.analyser()?;
            match &mut whole {
                None => whole = Some(analyser),
                Some(whole) => whole.merge(analyser),
            }
        }
        if let Some(mut whole) = whole {
            whole.set_watched(trial.lead().analyser.is_watched());
            trial.lead().analyser = whole;
        }
        trial.lead().stamps = self.ports.iter().map(|port| port.receiver.stamp_tally()).collect();
        Ok(())
    }
}

impl Tester for XdpTester {
    fn new_trial(&mut self, start: &Start, run_key: u64) -> Result<Trial, EngineError> {
        let mut trial = Trial::new(start, run_key, &self.facts(), &self.roles(), &self.clock)?;
        trial.is_stamped_in_kernel = true;
        let signer = Signer::new(run_key, start.trial);
        let is_scheduled = start.latency_from == LatencyFrom::Scheduled;
        for (lane, part) in self.lanes.iter_mut().zip(&trial.parts) {
            lane.generator.prepare(part, &signer, is_scheduled)?;
        }
        self.stop_counting();
        let details = Details::check(start)?;
        let duration_ns = (start.duration_s * 1e9) as u64;
        let expected = trial.parts[0].analyser.expected();
        for port in &mut self.ports {
            let capture = details.new_capture();
            port.receiver.begin(start.trial, &signer, expected, details.detail, duration_ns, capture)?;
        }
        Ok(trial)
    }

    fn transmit(&mut self, trial: &mut Trial, _load: u64, snapshot: &Snapshot, orders: &mut dyn Orders) -> Order {
        self.failure = None;
        trial.baselines = self.counters();
        let probe = HealthProbe::start(&self.tsc, &self.watched_cpus);
        self.core_watch.begin();
        let sending = match self.start_threads(trial) {
            Ok(sending) => sending,
            Err(error) => {
                self.failure = Some(error);
                return Order::Continue;
            }
        };
        let epoch = self.clock.now() + LEAD_NS;
        for port in &mut self.ports {
            port.receiver.set_epoch(epoch);
        }
        for (lane, part) in self.lanes.iter_mut().zip(trial.parts.iter_mut()) {
            part.begin(epoch, &self.clock);
            lane.generator.begin(epoch);
        }
        let mut order = self.wait(trial, &sending, snapshot, orders);
        if let Err(error) = self.finish(trial, sending) {
            self.failure = Some(error);
        }
        if order == Order::Quit {
            return order;
        }
        trial.transmit_ticks = trial.parts.iter().map(|part| part.transmit_ticks).max().unwrap_or(0);
        trial.sending_ticks = trial.transmit_ticks;
        let completed = self.ports.iter().map(|port| port.counters().completed);
        let since = |(completed, before): (u64, &PortCounters)| completed.saturating_sub(before.completed);
        trial.sent_while_sending = completed.zip(&trial.baselines).map(since).sum();
        order = match self.receive_for(trial, UNDER_WAY_S, orders) {
            Order::Quit => return Order::Quit,
            _ => order,
        };
        let machine = probe.finish(&self.tsc);
        let part = trial.lead();
        part.health.clock_step_ns = machine.clock_step_ns;
        part.health.cpus = machine.cpus;
        let is_watched = self.core_watch.finish(&mut part.health.cpus, part.epoch);
        part.analyser.set_watched(is_watched);
        order
    }

    fn receive_for(&mut self, _trial: &mut Trial, seconds: f64, orders: &mut dyn Orders) -> Order {
        let until = self.clock.now() + (seconds * 1e9) as u64;
        while self.clock.now() < until {
            let left = until.saturating_sub(self.clock.now());
            thread::sleep(LOOK.min(Duration::from_nanos(left)));
            self.poll();
            if orders.is_waiting() && orders.take() == Order::Quit {
                return Order::Quit;
            }
        }
        Order::Continue
    }

    fn end_drain(&mut self, trial: &mut Trial) -> Result<Reading, EngineError> {
        self.ports.iter_mut().for_each(|port| port.receiver.end_drain());
        self.settle();
        // What else broke than the DUT is no measurement of it.
        self.ports.iter().try_for_each(|port| port.counters().check_present(&port.facts().name))?;
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        self.read_received(trial)?;
        trial.end_drain();
        trial.reading(&self.facts(), &self.counters(), &self.clock)
    }

    fn end(&mut self, trial: &mut Trial) -> Result<Vec<u64>, EngineError> {
        self.read_received(trial)?;
        self.stop_counting();
        Ok(trial.late())
    }

    fn idle(&mut self, _trial: Option<&mut Trial>) {
        self.poll();
    }

    fn receives_by_itself(&self) -> bool {
        true
    }

    fn is_virtual(&self) -> bool {
        false
    }

    fn clock_reply(&self) -> ClockReply {
        ClockReply { source: "monotonic".into(), hz: 1e9, resolution_ns: 1.0 }
    }
}

impl Sending {
    fn start(cpu: Option<u32>, runner: Runner, tsc: TscClock) -> Self {
        let number = Arc::new(AtomicU32::new(0));
        let is_over = Arc::new(AtomicBool::new(false));
        let (own_number, own_end) = (Arc::clone(&number), Arc::clone(&is_over));
        let thread = thread::spawn(move || {
            if let Some(cpu) = cpu {
                own_thread::pin_to(cpu)?;
            }
            own_number.store(own_thread::number(), Ordering::Release);
            let probe = HealthProbe::start(&tsc, &[]);
            while !own_end.load(Ordering::Acquire) {
                runner.run()?;
            }
            Ok(probe.finish(&tsc))
        });
        Self { thread, number, is_over }
    }

    /// Whether the thread ended although nobody has ended it.
    fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends the program and the thread.
    fn end(self) -> io::Result<HealthChange> {
        self.is_over.store(true, Ordering::Release);
        while !self.thread.is_finished() {
            // A signal that comes before the call is lost: another follows.
            end_call(self.number.load(Ordering::Acquire));
            thread::sleep(Duration::from_micros(200));
        }
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("its thread panicked")))
    }
}

fn not_sent(reason: &str) -> EngineError {
    let message = format!("the program that makes frames has failed: {reason}");
    EngineError::new(ErrorKind::Port, message, "look at the kernel's log (dmesg), or use `driver: net_af_xdp`")
}
