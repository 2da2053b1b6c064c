//! The worker: one loop that transmits what is due and receives what has come, on one core, to completion.

use std::rc::Rc;

use crate::health::HealthProbe;
use crate::port::{Clock, Frame, MAXIMUM_BURST, Port, PortFacts};
use crate::snapshot::Snapshot;
use crate::trial::Trial;
use crate::witness::Witnesses;

/// What somebody outside wants of a running loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Continue,
    /// End the transmission.
    Stop,
    /// End everything.
    Quit,
}

/// Where a running loop looks for orders, without waiting.
pub trait Orders {
    /// Cheap: called in every iteration.
    fn waiting(&self) -> bool;

    /// What is wanted, where something is waiting.
    fn take(&mut self) -> Order;
}

/// Iterations between two snapshots for `stats`.
const SNAPSHOT_ITERATIONS: u64 = 4096;
/// How long frames may be under way after the last one was sent, before the machine's state is read.
const UNDER_WAY_S: f64 = 0.01;
/// Frames still in the transmit ring get this long to leave.
const COMPLETION_BOUND_S: f64 = 0.1;
/// Counters of a port cost system calls.
const COMPLETION_POLL_S: f64 = 50e-6;
/// An idle port is flushed this often: with AF_XDP each time is a system call, and what is sent is pushed out at once anyway.
const FLUSH_S: f64 = 20e-6;
/// Bursts thrown away before a trial, at most: a port that is flooded must not hold it up.
const STALE_BURSTS: usize = 4096;

/// The ports and the loop over them.
pub struct Worker<C: Clock> {
    pub clock: Rc<C>,
    pub ports: Vec<Box<dyn Port>>,
    watched_cpus: Vec<u32>,
    witnesses: Witnesses,
    frames: [Frame; MAXIMUM_BURST],
    /// Ports are not flushed before this tick of the trial.
    next_flush: u64,
}

impl<C: Clock> Worker<C> {
    pub fn new(clock: Rc<C>, ports: Vec<Box<dyn Port>>, watched_cpus: Vec<u32>) -> Self {
        let watched = if clock.is_virtual() { &[] } else { watched_cpus.as_slice() };
        let witnesses = Witnesses::post(watched);
        Self { clock, ports, watched_cpus, witnesses, frames: [Frame::empty(); MAXIMUM_BURST], next_flush: 0 }
    }

    /// Of every port, in order.
    pub fn facts(&self) -> Vec<PortFacts> {
        self.ports.iter().map(|port| port.facts().clone()).collect()
    }

    /// Receives and throws away; returns whether anything came.
    pub fn discard(&mut self) -> bool {
        let mut any = false;
        for port in &mut self.ports {
            let count = port.receive(&mut self.frames);
            port.free(&self.frames[..count]);
            port.flush();
            any |= count > 0;
        }
        any
    }

    /// One transmission, until everything sent has left the ports.
    pub fn transmit(&mut self, trial: &mut Trial, load: u64, snapshot: &Snapshot, orders: &mut dyn Orders) -> Order {
        for _ in 0..STALE_BURSTS {
            if self.clock.is_virtual() || !self.discard() {
                break;
            }
        }
        self.ports.iter_mut().for_each(|port| port.begin_trial(trial.number, load));
        trial.baselines = self.ports.iter_mut().map(|port| port.counters()).collect();
        let probe = (!self.clock.is_virtual()).then(|| HealthProbe::start(&*self.clock, &self.watched_cpus));
        self.next_flush = 0;
        self.witnesses.start();
        trial.begin(&*self.clock);
        let order = self.transmission_loop(trial, snapshot, orders);
        for sender in &mut trial.senders {
            sender.finish(&mut *self.ports[sender.transmit_port]);
        }
        if order == Order::Quit {
            return order;
        }
        let mut order = self.completion_loop(trial, orders);
        if let Some(probe) = probe {
            // The probe takes milliseconds in which nothing is received: the frames under way come first.
            if order != Order::Quit {
                order = self.receive_for(trial, UNDER_WAY_S, orders);
            }
            trial.health = probe.finish(&*self.clock);
            self.witnesses.finish(&mut trial.health.cpus);
        }
        self.publish(trial, snapshot);
        order
    }

    /// The loop everything is about.
    fn transmission_loop(&mut self, trial: &mut Trial, snapshot: &Snapshot, orders: &mut dyn Orders) -> Order {
        let clock = Rc::clone(&self.clock);
        let end = trial.duration_ticks;
        let last = end + trial.catch_up_ticks;
        loop {
            clock.tick();
            let now = clock.now();
            trial.gaps.observe(now);
            let elapsed = now - trial.epoch;
            trial.iterations += 1;
            // After the end only the schedule's rest is made good, for no longer than a catch-up.
            let over = elapsed >= end && (elapsed >= last || trial.senders.iter().all(|sender| !unfinished(sender)));
            let all_sent = trial.ends_with_frames && trial.senders.iter().all(|sender| sender.finished());
            if over || all_sent {
                trial.transmit_ticks = elapsed;
                return Order::Continue;
            }
            let sent = self.transmit_due(trial, elapsed);
            let paused = trial.pause_receive.is_some_and(|(begin, until)| (begin..until).contains(&elapsed));
            let received = if paused { 0 } else { self.receive(trial) };
            if sent + received == 0 {
                trial.idle_iterations += 1;
            }
            if orders.waiting() {
                let order = orders.take();
                if order != Order::Continue {
                    trial.transmit_ticks = clock.now() - trial.epoch;
                    return order;
                }
            }
            if trial.iterations % SNAPSHOT_ITERATIONS == 0 {
                self.publish(trial, snapshot);
            }
            if clock.is_virtual() {
                self.jump(trial, sent + received, end);
            }
        }
    }

    #[inline]
    fn transmit_due(&mut self, trial: &mut Trial, elapsed: u64) -> usize {
        let mut total = 0;
        for sender in &mut trial.senders {
            let flat_out_is_over = elapsed >= trial.duration_ticks && sender.next_tick().is_none();
            if flat_out_is_over {
                continue;
            }
            let port = &mut *self.ports[sender.transmit_port];
            let sent = sender.transmit(port, &*self.clock, elapsed, &trial.shared);
            total += sent;
        }
        if total == 0 && elapsed >= self.next_flush {
            self.next_flush = elapsed + (FLUSH_S * self.clock.hz()) as u64;
            trial.senders.iter().for_each(|sender| self.ports[sender.transmit_port].flush());
        }
        total
    }

    #[inline]
    pub fn receive(&mut self, trial: &mut Trial) -> usize {
        let mut total = 0;
        for (index, port) in self.ports.iter_mut().enumerate() {
            let count = port.receive(&mut self.frames);
            if count == 0 {
                continue;
            }
            let now_ns = self.clock.nanoseconds(self.clock.now() - trial.epoch);
            trial.analyser.analyse_burst(index, &self.frames[..count], now_ns);
            port.free(&self.frames[..count]);
            total += count;
        }
        total
    }

    /// Receives until every frame taken by a port has left it, or the bound has passed.
    fn completion_loop(&mut self, trial: &mut Trial, orders: &mut dyn Orders) -> Order {
        let clock = Rc::clone(&self.clock);
        let ticks = |seconds: f64| (seconds * clock.hz()) as u64;
        let bound = clock.now() + ticks(COMPLETION_BOUND_S);
        let mut completed_before = None;
        loop {
            self.ports.iter_mut().for_each(|port| port.flush());
            let completed: Vec<u64> = self.ports.iter_mut().map(|port| port.counters().completed).collect();
            let missing = |index: usize| trial.baselines[index].completed + trial.accepted(index) > completed[index];
            let complete = !(0..self.ports.len()).any(missing);
            let now = clock.now();
            if completed_before.as_ref().is_some_and(|before| *before != completed) {
                trial.transmit_ticks = now - trial.epoch;
            }
            if now >= bound || complete {
                return Order::Continue;
            }
            completed_before = Some(completed);
            let order = self.receive_until(trial, now + ticks(COMPLETION_POLL_S), orders);
            if order == Order::Quit {
                return order;
            }
        }
    }

    /// Receives for `seconds`: drain and settle.
    pub fn receive_for(&mut self, trial: &mut Trial, seconds: f64, orders: &mut dyn Orders) -> Order {
        let until = self.clock.now() + (seconds * self.clock.hz()) as u64;
        self.receive_until(trial, until, orders)
    }

    fn receive_until(&mut self, trial: &mut Trial, until: u64, orders: &mut dyn Orders) -> Order {
        let clock = Rc::clone(&self.clock);
        while clock.now() < until {
            clock.tick();
            let received = self.receive(trial);
            if orders.waiting() && orders.take() == Order::Quit {
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
    fn jump(&mut self, trial: &mut Trial, frames: usize, end: u64) {
        if frames > 0 {
            return;
        }
        trial.gaps.observe(self.clock.now());
        let after_now = |tick: &u64| *tick > self.clock.now();
        let due = trial.senders.iter().filter(|sender| !sender.is_refused()).map(|sender| match sender.next_tick() {
            Some(tick) => trial.epoch + tick,
            None if sender.finished() => u64::MAX,
            None => self.clock.now(),
        });
        let events = self.ports.iter().filter_map(|port| port.next_event());
        let ends = [trial.epoch + end, trial.epoch + end + trial.catch_up_ticks].into_iter().filter(after_now);
        if let Some(next) = due.chain(events).chain(ends).min() {
            self.clock.wait_until(next);
        }
        trial.gaps.resume(self.clock.now());
    }

    fn publish(&self, trial: &Trial, snapshot: &Snapshot) {
        let elapsed = self.clock.now().saturating_sub(trial.epoch);
        snapshot.publish(trial.number, self.clock.nanoseconds(elapsed), trial.progress());
    }
}

/// Whether a paced stream has frames left; a stream without a pace has none after the end.
fn unfinished(sender: &crate::sender::Sender) -> bool {
    sender.next_tick().is_some()
}
