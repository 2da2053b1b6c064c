//! The workers as the session sees them, whatever their number and clock.

use nicbench_protocol::{ClockReply, Reading, SentReply, Start};

use crate::clock::TscClock;
use crate::error::EngineError;
use crate::generator::Bench;
use crate::orders::{Order, Orders};
use crate::port::Clock;
use crate::snapshot::Snapshot;
use crate::trial::Trial;
use crate::trial_part::Roles;
use crate::worker::Worker;

/// Ports with the workers that serve them, and a clock.
pub trait Tester {
    fn new_trial(&mut self, start: &Start, run_key: u64) -> Result<Trial, EngineError>;

    fn transmit(&mut self, trial: &mut Trial, load: u64, snapshot: &Snapshot, orders: &mut dyn Orders) -> Order;

    fn receive_for(&mut self, trial: &mut Trial, seconds: f64, orders: &mut dyn Orders) -> Order;

    /// What has left its ports, after the transmission; `None` where another engine cannot be
    /// its other half.
    fn sent(&mut self, _trial: &Trial) -> Option<SentReply> {
        None
    }

    /// Its clock, where it tells its time to others.
    fn counter(&self) -> Option<TscClock> {
        None
    }

    /// Ends the drain and makes the reading; frames that come from now on are late.
    fn end_drain(&mut self, trial: &mut Trial) -> Result<Reading, EngineError>;

    /// Ends the trial; returns the late frames of each stream.
    fn end(&mut self, trial: &mut Trial) -> Result<Vec<u64>, EngineError>;

    /// Keeps receive rings empty between commands; frames count for `trial` while there is one.
    fn idle(&mut self, trial: Option<&mut Trial>);

    /// Its ports and its clock, where one worker on this thread serves all ports; others cannot generate.
    fn bench(&mut self) -> Option<Bench<'_>> {
        None
    }

    /// Whether frames are received also while nothing is called, so that nobody has to hurry.
    fn receives_by_itself(&self) -> bool {
        false
    }

    fn is_virtual(&self) -> bool;

    fn clock_reply(&self) -> ClockReply;
}

impl<C: Clock> Tester for Worker<C> {
    fn new_trial(&mut self, start: &Start, run_key: u64) -> Result<Trial, EngineError> {
        Trial::new(start, run_key, &self.facts(), &[Roles::all(self.ports.len())], &*self.clock)
    }

    fn transmit(&mut self, trial: &mut Trial, load: u64, snapshot: &Snapshot, orders: &mut dyn Orders) -> Order {
        Worker::transmit(self, trial, load, snapshot, orders)
    }

    fn receive_for(&mut self, trial: &mut Trial, seconds: f64, orders: &mut dyn Orders) -> Order {
        Worker::receive_for(self, trial.lead(), seconds, orders)
    }

    fn sent(&mut self, trial: &Trial) -> Option<SentReply> {
        Some(trial.sent_reply(&self.counters(), &*self.clock))
    }

    fn counter(&self) -> Option<TscClock> {
        self.clock.counter()
    }

    fn end_drain(&mut self, trial: &mut Trial) -> Result<Reading, EngineError> {
        trial.end_drain();
        self.note_stamps(trial.lead());
        let (facts, counters) = (self.facts(), self.counters());
        trial.reading(&facts, &counters, &*self.clock)
    }

    fn end(&mut self, trial: &mut Trial) -> Result<Vec<u64>, EngineError> {
        Ok(trial.late())
    }

    fn idle(&mut self, trial: Option<&mut Trial>) {
        if self.clock.is_virtual() {
            return; // Computed time stands still, so nothing arrives.
        }
        match trial {
            Some(trial) => while self.receive(trial.lead()) > 0 {},
            None => {
                self.discard();
            }
        }
    }

    fn bench(&mut self) -> Option<Bench<'_>> {
        let Self { clock, watched_cpus, core_watch, ports, .. } = self;
        Some(Bench { clock: &**clock, watched_cpus, core_watch, ports })
    }

    fn is_virtual(&self) -> bool {
        self.clock.is_virtual()
    }

    fn clock_reply(&self) -> ClockReply {
        clock_reply(&*self.clock)
    }
}

/// Describes a clock as replies do.
pub fn clock_reply(clock: &impl Clock) -> ClockReply {
    let source = if clock.is_virtual() { "virtual" } else { "tsc" };
    ClockReply { source: source.into(), hz: clock.hz(), resolution_ns: 1e9 / clock.hz() }
}
