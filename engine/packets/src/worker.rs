//! The worker: one loop that transmits what is due and receives what has come, on one core, to completion.

use std::rc::Rc;

use crate::clock::simultaneous;
use crate::core_watch::CoreWatch;
use crate::health::HealthProbe;
use crate::orders::{Order, Orders};
use crate::port::{Clock, Frame, MAXIMUM_BURST, Port, PortCounters, PortFacts};
use crate::sender::Sender;
use crate::snapshot::Snapshot;
use crate::stamps::Stamper;
use crate::trial::Trial;
use crate::trial_part::{Roles, TrialPart};

mod stamped;

/// Iterations between two snapshots for `stats`.
const SNAPSHOT_ITERATIONS: u64 = 4096;
/// How long frames may be under way after the last one was sent, before the machine's state is read.
const UNDER_WAY_S: f64 = 0.01;
/// Frames still in the transmit ring get this long to leave.
const COMPLETION_BOUND_S: f64 = 0.1;
/// The time between two looks at the counters of a port, which cost system calls.
const COMPLETION_POLL_S: f64 = 50e-6;
/// An idle port is flushed this often: with AF_XDP each time is a system call, and what is sent is pushed out at once
/// anyway.
const FLUSH_S: f64 = 20e-6;
/// Pauses of the processor, of some 50 ns each, before a port that took nothing is asked again.
const REFUSED_PAUSES: u32 = 6;
/// Bursts thrown away before a trial, at most: a port that is flooded must not hold it up.
const STALE_BURSTS: usize = 4096;

/// A worker: its ports, and the loop that serves them.
pub struct Worker<C: Clock> {
    pub clock: Rc<C>,
    pub ports: Vec<Box<dyn Port>>,
    roles: Roles,
    pub watched_cpus: Vec<u32>,
    pub core_watch: CoreWatch,
    frames: [Frame; MAXIMUM_BURST],
    /// Of every port, where ports stamp what they receive; empty where the worker's clock does.
    stampers: Vec<Stamper>,
    /// Ports are not flushed before this tick of the trial.
    next_flush: u64,
}

impl<C: Clock> Worker<C> {
    /// A worker that serves all ports.
    pub fn new(clock: Rc<C>, ports: Vec<Box<dyn Port>>, watched_cpus: Vec<u32>) -> Self {
        let roles = Roles::all(ports.len());
        let watched = if clock.is_virtual() { &[] } else { watched_cpus.as_slice() };
        let core_watch = CoreWatch::start(watched, clock.hz());
        Self::with_roles(clock, ports, roles, watched_cpus, core_watch)
    }

    /// A worker that serves the ports that its roles name; of the others only the counters are read.
    pub fn with_roles(
        clock: Rc<C>,
        ports: Vec<Box<dyn Port>>,
        roles: Roles,
        watched_cpus: Vec<u32>,
        core_watch: CoreWatch,
    ) -> Self {
        let stamps = ports.iter().map(|port| port.facts().stamps.clone());
        let stamper = |facts: Option<_>| Some(Stamper::new(facts?, clock.hz()));
        let stampers = stamps.map(stamper).collect::<Option<Vec<_>>>().unwrap_or_default();
        let frames = [Frame::empty(); MAXIMUM_BURST];
        Self { clock, ports, roles, watched_cpus, core_watch, frames, stampers, next_flush: 0 }
    }

    /// The clocks that stamp received frames.
    pub fn stampers(&self) -> &[Stamper] {
        &self.stampers
    }

    /// The facts of every port, in order.
    pub fn facts(&self) -> Vec<PortFacts> {
        self.ports.iter().map(|port| port.facts().clone()).collect()
    }

    /// The counters of every port, in order.
    pub fn counters(&mut self) -> Vec<PortCounters> {
        self.ports.iter_mut().map(|port| port.counters()).collect()
    }

    /// Receives a burst and throws it away; returns whether anything came.
    pub fn discard(&mut self) -> bool {
        let mut any = false;
        for index in &self.roles.receive {
            let port = &mut self.ports[*index];
            let count = port.receive(&mut self.frames);
            port.free(&self.frames[..count]);
            any |= count > 0;
        }
        self.flush();
        any
    }

    /// Receives and throws away what is left of earlier transmissions; from tick `until` on it may be of the next one,
    /// which another engine has begun.
    pub fn discard_stale(&mut self, until: Option<u64>) {
        for _ in 0..STALE_BURSTS {
            let is_over = until.is_some_and(|until| self.clock.now() >= until);
            if is_over || self.clock.is_virtual() || !self.discard() {
                break;
            }
        }
    }

    /// Makes the ports send what they hold back.
    pub fn flush(&mut self) {
        self.roles.transmit.iter().for_each(|index| self.ports[*index].flush());
    }

    /// Makes one transmission, until everything sent has left the ports.
    pub fn transmit(&mut self, trial: &mut Trial, load: u64, snapshot: &Snapshot, orders: &mut dyn Orders) -> Order {
        self.calibrate_clocks();
        let agreed = trial.agreed_tick(&*self.clock);
        self.discard_stale(agreed);
        self.read_baselines(trial, load);
        let probe = self.probe();
        self.begin_watch();
        let epoch = agreed.unwrap_or_else(|| self.clock.now());
        trial.lead().begin(epoch, &*self.clock);
        let order = self.transmission_loop(trial.lead(), snapshot, orders);
        self.finish_senders(trial.lead());
        if order == Order::Quit {
            return order;
        }
        let accepted = trial.accepted();
        let order = self.complete(trial, &accepted, probe, orders);
        self.publish(trial.lead(), snapshot);
        order
    }

    /// Reads the counters of all ports before a trial.
    pub fn read_baselines(&mut self, trial: &mut Trial, load: u64) {
        self.ports.iter_mut().for_each(|port| port.begin_trial(trial.number, load));
        trial.baselines = self.counters();
    }

    /// Reads the state of thread and machine before a transmission, where time is real.
    pub fn probe(&self) -> Option<HealthProbe> {
        (!self.clock.is_virtual()).then(|| HealthProbe::start(&*self.clock, &self.watched_cpus))
    }

    /// Begins to watch the DUT's cores: the transmission begins.
    pub fn begin_watch(&self) {
        self.core_watch.begin();
    }

    /// Gives the frames back that the ports did not take.
    pub fn finish_senders(&mut self, part: &mut TrialPart) {
        for sender in &mut part.senders {
            sender.finish(&mut *self.ports[sender.transmit_port]);
        }
    }

    /// Receives until what was sent has left the ports, and reads how the machine fared.
    pub fn complete(
        &mut self,
        trial: &mut Trial,
        accepted: &[u64],
        probe: Option<HealthProbe>,
        orders: &mut dyn Orders,
    ) -> Order {
        trial.transmit_ticks = trial.transmit_ticks.max(trial.lead().transmit_ticks);
        trial.sending_ticks = trial.transmit_ticks;
        let completed = self.ports.iter_mut().map(|port| port.counters().completed);
        let since = |(completed, before): (u64, &PortCounters)| completed.saturating_sub(before.completed);
        trial.sent_while_sending = completed.zip(&trial.baselines).map(since).sum();
        let mut order = self.completion_loop(trial, accepted, orders);
        let Some(probe) = probe else { return order };
        // The probe takes milliseconds in which nothing is received: the frames under way come first.
        if order != Order::Quit {
            order = self.receive_for(trial.lead(), UNDER_WAY_S, orders);
        }
        let part = trial.lead();
        part.health = probe.finish(&*self.clock);
        let (ticks, monotonic_ns) = simultaneous();
        let epoch_ns = monotonic_ns.saturating_sub(self.clock.nanoseconds(ticks.saturating_sub(part.epoch)));
        let is_watched = self.core_watch.finish(&mut part.health.cpus, epoch_ns);
        part.analyser.set_watched(is_watched);
        order
    }

    /// The hot loop: transmits what is due and receives what has come, until the transmission ends or an order comes.
    pub fn transmission_loop(&mut self, part: &mut TrialPart, snapshot: &Snapshot, orders: &mut dyn Orders) -> Order {
        let clock = Rc::clone(&self.clock);
        self.next_flush = 0;
        let end = part.duration_ticks;
        let last = end + part.catch_up_ticks;
        while clock.now() < part.epoch {
            std::hint::spin_loop();
        }
        loop {
            clock.tick();
            let now = clock.now();
            part.gaps.observe(now);
            let elapsed = now - part.epoch;
            part.iterations += 1;
            // After the end only the schedule's rest is made good, for no longer than a catch-up.
            let over = elapsed >= end && (elapsed >= last || !part.senders.iter().any(Sender::is_behind));
            let all_sent = part.ends_with_frames && part.senders.iter().all(|sender| sender.is_finished());
            if over || all_sent {
                part.transmit_ticks = elapsed;
                return Order::Continue;
            }
            let sent = self.transmit_due(part, elapsed);
            let paused = part.pause_receive.is_some_and(|(begin, until)| (begin..until).contains(&elapsed));
            let received = if paused { 0 } else { self.receive(part) };
            if sent + received == 0 {
                part.idle_iterations += 1;
                if !clock.is_virtual() && part.senders.iter().any(Sender::is_refused) {
                    // A full ring is not asked again at once: who empties it needs its cache lines.
                    (0..REFUSED_PAUSES).for_each(|_| std::hint::spin_loop());
                }
            }
            if orders.is_waiting() {
                let order = orders.take();
                if order != Order::Continue {
                    part.transmit_ticks = clock.now() - part.epoch;
                    return order;
                }
            }
            if part.iterations % SNAPSHOT_ITERATIONS == 0 {
                self.publish(part, snapshot);
                self.ports.iter_mut().for_each(|port| port.keep_up());
            }
            if clock.is_virtual() {
                self.jump(part, sent + received, end);
            }
        }
    }

    #[inline]
    fn transmit_due(&mut self, part: &mut TrialPart, elapsed: u64) -> usize {
        let mut total = 0;
        let mut now = elapsed;
        let is_one_of_many = part.senders.len() > 1;
        for sender in &mut part.senders {
            let flat_out_is_over = elapsed >= part.duration_ticks && sender.next_tick().is_none();
            if flat_out_is_over {
                continue;
            }
            let port = &mut *self.ports[sender.transmit_port];
            let sent = sender.transmit(port, &*self.clock, now, &part.shared);
            if sent > 0 && is_one_of_many {
                // The next stream's stamps are not to be older than its burst.
                now = self.clock.now() - part.epoch;
            }
            total += sent;
        }
        if total == 0 && elapsed >= self.next_flush {
            self.next_flush = elapsed + (FLUSH_S * self.clock.hz()) as u64;
            part.senders.iter().for_each(|sender| self.ports[sender.transmit_port].flush());
        }
        total
    }

    #[inline]
    pub fn receive(&mut self, part: &mut TrialPart) -> usize {
        if self.stampers.is_empty() {
            return self.receive_unstamped(part);
        }
        self.receive_stamped(part)
    }

    #[inline]
    fn receive_unstamped(&mut self, part: &mut TrialPart) -> usize {
        let mut total = 0;
        for index in self.roles.receive.iter().copied() {
            let port = &mut self.ports[index];
            let count = port.receive(&mut self.frames);
            if count == 0 {
                continue;
            }
            let now = self.clock.now();
            let now_ns = self.clock.nanoseconds(now - part.epoch);
            part.analyser.set_quiet_ns(self.core_watch.quiet_ns(now, &*self.clock));
            part.analyser.analyse_burst(index, &self.frames[..count], now_ns);
            port.free(&self.frames[..count]);
            total += count;
        }
        total
    }

    /// Receives until every frame taken by a port has left it, or the bound has passed.
    fn completion_loop(&mut self, trial: &mut Trial, accepted: &[u64], orders: &mut dyn Orders) -> Order {
        let clock = Rc::clone(&self.clock);
        let ticks = |seconds: f64| (seconds * clock.hz()) as u64;
        let bound = clock.now() + ticks(COMPLETION_BOUND_S);
        let mut completed_before = None;
        loop {
            self.flush();
            let completed: Vec<u64> = self.ports.iter_mut().map(|port| port.counters().completed).collect();
            let missing = |index: usize| trial.baselines[index].completed + accepted[index] > completed[index];
            let complete = !(0..self.ports.len()).any(missing);
            let now = clock.now();
            if completed_before.as_ref().is_some_and(|before| *before != completed) {
                trial.transmit_ticks = now - trial.lead().epoch;
            }
            if now >= bound || complete {
                return Order::Continue;
            }
            completed_before = Some(completed);
            let order = self.receive_until(trial.lead(), now + ticks(COMPLETION_POLL_S), orders);
            if order == Order::Quit {
                return order;
            }
        }
    }

    /// Receives for `seconds`, for `drain` and `settle`.
    pub fn receive_for(&mut self, part: &mut TrialPart, seconds: f64, orders: &mut dyn Orders) -> Order {
        let until = self.clock.now() + (seconds * self.clock.hz()) as u64;
        self.receive_until(part, until, orders)
    }

    fn receive_until(&mut self, part: &mut TrialPart, until: u64, orders: &mut dyn Orders) -> Order {
        let clock = Rc::clone(&self.clock);
        while clock.now() < until {
            clock.tick();
            let received = self.receive(part);
            if orders.is_waiting() && orders.take() == Order::Quit {
                return Order::Quit;
            }
            if clock.is_virtual() && received == 0 {
                let next = self.ports.iter().filter_map(|port| port.next_event()).min();
                clock.wait_until(next.unwrap_or(until).min(until));
            }
        }
        Order::Continue
    }

    /// A virtual clock goes to the next thing that will happen; the time in between is no gap.
    fn jump(&mut self, part: &mut TrialPart, frames: usize, end: u64) {
        if frames > 0 {
            return;
        }
        part.gaps.observe(self.clock.now());
        let after_now = |tick: &u64| *tick > self.clock.now();
        let due = part.senders.iter().filter(|sender| !sender.is_refused()).map(|sender| match sender.next_tick() {
            Some(tick) => part.epoch + tick,
            None if sender.is_finished() => u64::MAX,
            None => self.clock.now(),
        });
        let events = self.ports.iter().filter_map(|port| port.next_event());
        let ends = [part.epoch + end, part.epoch + end + part.catch_up_ticks].into_iter().filter(after_now);
        if let Some(next) = due.chain(events).chain(ends).min() {
            self.clock.wait_until(next);
        }
        part.gaps.resume(self.clock.now());
    }

    pub fn publish(&self, part: &TrialPart, snapshot: &Snapshot) {
        let elapsed = self.clock.now().saturating_sub(part.epoch);
        snapshot.publish(part.number, self.clock.nanoseconds(elapsed), part.progress());
    }
}
