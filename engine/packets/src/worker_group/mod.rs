//! Several workers, each on a core of its own with queues of its own; the first runs on the session's thread and leads.
//!
//! In the hot path a worker shares nothing that is written: it has its ports' queues, its senders, its analyser. Parts
//! of a trial are handed over by value: out before the transmission, back for the reading, out again while late frames
//! are counted, and back at the end.

mod worker_thread;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nicbench_protocol::{ClockReply, Reading, Start};

use crate::clock::TscClock;
use crate::core_watch::CoreWatch;
use crate::error::{EngineError, ErrorKind};
use crate::orders::{Order, Orders};
use crate::snapshot::Snapshot;
use crate::sys::dpdk::WorkerPorts;
use crate::tester::Tester;
use crate::trial::Trial;
use crate::trial_part::{Roles, TrialPart};
use crate::worker::Worker;
use worker_thread::{Outcome, StartGate, Task, WorkerThread};

/// Between the moment when all are ready and the first frame: longer than a cache line needs to reach every core.
const LEAD_TIME_NS: f64 = 20_000.0;
/// A worker that says nothing for so long has failed.
const ANSWER_BOUND_S: f64 = 5.0;

/// Several workers that make one tester.
pub struct WorkerGroup {
    roles: Vec<Roles>,
    /// Dropped first: their ports go before the first worker's.
    others: Vec<WorkerThread>,
    lead: Worker<TscClock>,
}

impl WorkerGroup {
    /// A worker for each of `ports` and `roles`; the calling thread becomes the first one's. No worker may run on a CPU
    /// of the watch.
    pub fn new(
        clock: TscClock,
        ports: Vec<WorkerPorts>,
        roles: Vec<Roles>,
        watched_cpus: Vec<u32>,
        core_watch: CoreWatch,
        snapshot: &Snapshot,
    ) -> Result<Self, EngineError> {
        let mut workers = ports.into_iter().zip(&roles).enumerate();
        let (_, (ports, first)) = workers.next().ok_or_else(|| worker_error("there are no workers"))?;
        let ports = ports.into_iter().map(|port| port as Box<dyn crate::port::Port>).collect();
        let of_others = core_watch.follow();
        let lead = Worker::with_roles(Rc::new(clock), ports, first.clone(), watched_cpus, core_watch);
        let mut others = Vec::new();
        for (index, (ports, roles)) in workers {
            let own = Arc::new(Snapshot::default());
            snapshot.attach(Arc::clone(&own));
            let watch = of_others.follow();
            others.push(WorkerThread::launch(index as u32, clock, ports, roles.clone(), watch, own)?);
        }
        Ok(Self { roles, others, lead })
    }

    /// The first worker, which knows the facts of the ports.
    pub fn worker(&self) -> &Worker<TscClock> {
        &self.lead
    }

    /// The first worker.
    pub fn lead_mut(&mut self) -> &mut Worker<TscClock> {
        &mut self.lead
    }

    fn give_all(&self, task: impl Fn() -> Task) {
        self.others.iter().for_each(|other| other.give(task()));
    }

    /// Waits for one outcome of each other worker, in order, until tick `latest`; the first worker receives meanwhile.
    fn wait_for_outcomes(
        &mut self,
        part: &mut TrialPart,
        latest: u64,
        mut orders: Option<&mut dyn Orders>,
    ) -> Result<Vec<Outcome>, EngineError> {
        let mut outcomes = Vec::new();
        while outcomes.len() < self.others.len() {
            match self.others[outcomes.len()].take_outcome() {
                Some(outcome) => outcomes.push(outcome),
                None if self.lead.clock.is_past(latest) => return Err(worker_error("a worker does not answer")),
                None => {
                    self.lead.receive(part);
                    let waiting = orders.as_mut().filter(|orders| orders.is_waiting());
                    if waiting.is_some_and(|orders| orders.take() != Order::Continue) {
                        self.give_all(|| Task::Stop);
                    }
                }
            }
        }
        Ok(outcomes)
    }

    /// Takes the parts of the other workers back into the trial.
    fn collect(&mut self, trial: &mut Trial) -> Result<(), EngineError> {
        self.give_all(|| Task::Return);
        let latest = self.lead.clock.tick_in(ANSWER_BOUND_S);
        for outcome in self.wait_for_outcomes(trial.lead(), latest, None)? {
            let Outcome::Returned(part) = outcome else {
                return Err(worker_error("a worker lost its part of the trial"));
            };
            trial.parts.push(*part);
        }
        Ok(())
    }

    /// Makes all workers transmit at once, until the transmission ends or an order comes.
    fn transmit_together(
        &mut self,
        trial: &mut Trial,
        snapshot: &Snapshot,
        orders: &mut dyn Orders,
    ) -> Result<(Order, Vec<u64>), EngineError> {
        let gate = Arc::new(StartGate::default());
        for (other, part) in self.others.iter().zip(trial.parts.drain(1..)) {
            other.give(Task::Transmit(Box::new(part), Arc::clone(&gate)));
        }
        let bound = self.lead.clock.tick_in(ANSWER_BOUND_S);
        while gate.ready.load(Ordering::Acquire) < self.others.len() {
            if self.lead.clock.is_past(bound) {
                return Err(worker_error("a worker does not begin"));
            }
            self.lead.discard();
        }
        self.lead.begin_watch();
        let epoch = self.lead.clock.tick_in(LEAD_TIME_NS / 1e9);
        trial.lead().begin(epoch, &*self.lead.clock);
        gate.epoch.store(epoch, Ordering::Release);
        let order = self.lead.transmission_loop(trial.lead(), snapshot, orders);
        if order != Order::Continue {
            self.give_all(|| Task::Stop);
        }
        self.lead.finish_senders(trial.lead());
        let mut accepted = trial.accepted();
        let part = trial.lead();
        let schedule = part.duration_ticks + part.catch_up_ticks;
        let latest = schedule + self.lead.clock.tick_in(ANSWER_BOUND_S);
        for outcome in self.wait_for_outcomes(part, latest, Some(orders))? {
            let Outcome::Transmitted { accepted: others, transmit_ticks } = outcome else {
                return Err(worker_error("a worker reported an outcome that nobody asked for"));
            };
            accepted.iter_mut().zip(others).for_each(|(sum, own)| *sum += own);
            trial.transmit_ticks = trial.transmit_ticks.max(transmit_ticks);
        }
        Ok((order, accepted))
    }
}

impl Tester for WorkerGroup {
    fn new_trial(&mut self, start: &Start, run_key: u64) -> Result<Trial, EngineError> {
        Trial::new(start, run_key, &self.lead.facts(), &self.roles, &*self.lead.clock)
    }

    fn transmit(&mut self, trial: &mut Trial, load: u64, snapshot: &Snapshot, orders: &mut dyn Orders) -> Order {
        self.lead.calibrate_clocks();
        self.lead.discard_stale(None);
        self.lead.read_baselines(trial, load);
        let probe = self.lead.probe();
        let (order, accepted) = match self.transmit_together(trial, snapshot, orders) {
            Ok(result) => result,
            Err(error) => {
                // Without its workers this process is of no more use; its end tells the controller.
                eprintln!("nicbench-packets: {error}");
                return Order::Quit;
            }
        };
        if order == Order::Quit {
            return order;
        }
        let order = self.lead.complete(trial, &accepted, probe, orders);
        self.give_all(|| Task::ReadHealth);
        self.lead.publish(trial.lead(), snapshot);
        order
    }

    fn receive_for(&mut self, trial: &mut Trial, seconds: f64, orders: &mut dyn Orders) -> Order {
        self.lead.receive_for(trial.lead(), seconds, orders)
    }

    fn end_drain(&mut self, trial: &mut Trial) -> Result<Reading, EngineError> {
        self.collect(trial)?;
        trial.end_drain();
        self.lead.note_stamps(trial.lead());
        let (facts, counters) = (self.lead.facts(), self.lead.counters());
        let reading = trial.reading(&facts, &counters, &*self.lead.clock)?;
        for (other, part) in self.others.iter().zip(trial.parts.drain(1..)) {
            other.give(Task::Receive(Box::new(part)));
        }
        Ok(reading)
    }

    fn end(&mut self, trial: &mut Trial) -> Result<Vec<u64>, EngineError> {
        self.collect(trial)?;
        Ok(trial.late())
    }

    fn idle(&mut self, trial: Option<&mut Trial>) {
        self.lead.idle(trial);
    }

    fn is_virtual(&self) -> bool {
        false
    }

    fn clock_reply(&self) -> ClockReply {
        self.lead.clock_reply()
    }
}

fn worker_error(what: &str) -> EngineError {
    EngineError::new(ErrorKind::BadState, what, "start another process")
}

#[cfg(test)]
mod tests;
