//! A simulated port: the worker's view of the network.

use std::cell::RefCell;
use std::rc::Rc;

use super::network::Network;
use crate::port::{Frame, NO_STAMP, Port, PortCounters, PortFacts};

/// A port of the simulated network.
pub struct SimulatedPort {
    index: usize,
    facts: PortFacts,
    network: Rc<RefCell<Network>>,
    /// Of the frames last received: their handles and stamps.
    last: Vec<(usize, u64)>,
    /// A frame whose time of leaving was asked for: its tick, and that time.
    sample: Option<(u64, u64)>,
}

impl SimulatedPort {
    pub fn new(index: usize, facts: PortFacts, network: Rc<RefCell<Network>>) -> Self {
        Self { index, facts, network, last: Vec::new(), sample: None }
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

    fn send_sampled(&mut self, frames: &[Frame], sent: u64) -> usize {
        let is_wanted = self.facts.stamps.is_some() && self.sample.is_none();
        let (first, rest) = frames.split_at(usize::from(is_wanted).min(frames.len()));
        let accepted = self.send(first);
        if accepted == 1 && is_wanted {
            let network = self.network.borrow();
            self.sample = Some((sent, network.links[self.index].last_leaves_ps()));
        }
        if accepted < first.len() { accepted } else { accepted + self.send(rest) }
    }

    fn transmit_sample(&mut self) -> Option<(u64, u64)> {
        let network = self.network.borrow();
        let (sent, leaves_ps) = self.sample.filter(|(_, leaves_ps)| *leaves_ps <= network.now_ps())?;
        self.sample = None;
        let count = network.links[self.index].card.as_ref()?.count_at(network.card_time_ns(leaves_ps));
        Some((sent, count))
    }

    fn read_clock(&mut self) -> Option<u64> {
        let mut network = self.network.borrow_mut();
        let time_ns = network.card_time_ns(network.now_ps());
        network.links[self.index].card.as_mut().map(|card| card.read(time_ns))
    }

    fn stamps(&mut self, frames: &[Frame], stamps: &mut [u64]) {
        let mut last = self.last.iter();
        for (frame, stamp) in frames.iter().zip(stamps) {
            // In the same order, though some may be missing.
            let own = last.find(|(handle, _)| *handle == frame.handle().addr());
            *stamp = own.map_or(NO_STAMP, |(_, stamp)| *stamp);
        }
    }

    fn receive(&mut self, frames: &mut [Frame]) -> usize {
        let mut network = self.network.borrow_mut();
        let now_ps = network.now_ps();
        if let Some(pause_ns) = network.links[self.index].pause_ns(now_ps) {
            network.stall(pause_ns);
        }
        let now_ps = network.now_ps();
        network.arrive(self.index, now_ps);
        let received = &mut network.links[self.index].received;
        let count = frames.len().min(received.len());
        self.last.clear();
        for (slot, (frame, stamp)) in frames.iter_mut().zip(received.drain(..count)) {
            *slot = frame;
            self.last.push((frame.handle().addr(), stamp));
        }
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
            link_up: self.facts.link_up,
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
        self.sample = None;
        self.network.borrow_mut().begin_trial(self.index, trial, load);
    }

    fn next_event(&self) -> Option<u64> {
        self.network.borrow().next_event(self.index)
    }
}
