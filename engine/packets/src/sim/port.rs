//! A simulated port: the worker's view of the network.

use std::cell::RefCell;
use std::rc::Rc;

use super::network::Network;
use crate::port::{Frame, Port, PortCounters, PortFacts};

/// See the module.
pub struct SimulatedPort {
    index: usize,
    facts: PortFacts,
    network: Rc<RefCell<Network>>,
}

impl SimulatedPort {
    pub fn new(index: usize, facts: PortFacts, network: Rc<RefCell<Network>>) -> Self {
        Self { index, facts, network }
    }
}

impl Port for SimulatedPort {
    fn facts(&self) -> &PortFacts {
        &self.facts
    }

    fn allocate(&mut self, frames: &mut [Frame], length: usize) -> usize {
        let mut network = self.network.borrow_mut();
        frames.iter_mut().for_each(|frame| *frame = network.pool.take(length));
        frames.len()
    }

    fn send(&mut self, frames: &[Frame]) -> usize {
        let network = &mut *self.network.borrow_mut();
        let now_ps = network.now_ps();
        let link = &mut network.links[self.index];
        link.complete(now_ps);
        frames.iter().take_while(|frame| link.send(frame, now_ps, &mut network.pool)).count()
    }

    fn receive(&mut self, frames: &mut [Frame]) -> usize {
        let mut network = self.network.borrow_mut();
        let now_ps = network.now_ps();
        if let Some(pause_ns) = network.links[self.index].pause_ns(now_ps) {
            network.hold_up(pause_ns);
        }
        let now_ps = network.now_ps();
        network.arrive(self.index, now_ps);
        let received = &mut network.links[self.index].received;
        let count = frames.len().min(received.len());
        frames.iter_mut().zip(received.drain(..count)).for_each(|(slot, frame)| *slot = frame);
        count
    }

    fn free(&mut self, frames: &[Frame]) {
        let mut network = self.network.borrow_mut();
        frames.iter().for_each(|frame| network.pool.give(frame));
    }

    fn flush(&mut self) {
        let mut network = self.network.borrow_mut();
        let now_ps = network.now_ps();
        network.links[self.index].complete(now_ps);
    }

    fn counters(&mut self) -> PortCounters {
        self.flush();
        let network = self.network.borrow();
        let link = &network.links[self.index];
        let mut counters = PortCounters {
            completed: link.completed,
            receive_overrun: link.receive_overrun,
            ..PortCounters::default()
        };
        link.dut.add_counters(&mut counters.named);
        link.egress.add_counters(&mut counters.named);
        counters.named.insert("simulated_foreign".into(), link.foreign);
        counters.named.insert("simulated_refused".into(), link.refused);
        counters.named.insert("simulated_receive_overrun".into(), link.receive_overrun);
        counters
    }

    fn begin_trial(&mut self, trial: u32, load: u64) {
        self.network.borrow_mut().begin_trial(self.index, trial, load);
    }

    fn next_event(&self) -> Option<u64> {
        self.network.borrow().next_event(self.index)
    }
}
