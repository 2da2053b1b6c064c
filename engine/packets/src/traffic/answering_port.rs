//! A port that answers those who look for its addresses, around any other port. What it answers is nobody's frame: the
//! analyser never sees the question, and the answer is not among what was sent.

use std::time::Instant;

use super::allowance::Allowance;
use super::neighbours::{Addresses, Protocol, answer, may_ask};
use crate::port::{Frame, Port, PortCounters, PortFacts, send_one};

/// The rate beyond which questions are not answered any more: a flood of questions must not become one of answers.
const ALLOWANCE: Allowance = Allowance::new(1000.0, 256.0);

/// A port that answers questions for its addresses, around another port.
pub struct AnsweringPort {
    inner: Box<dyn Port>,
    addresses: Addresses,
    /// `None` under a virtual clock, where wall time says nothing.
    limit: Option<Limit>,
    counts: Counts,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    arp: u64,
    neighbour_discovery: u64,
    unanswered: u64,
}

/// The answers that may go out.
#[derive(Debug)]
struct Limit {
    allowance: Allowance,
    since: Instant,
}

impl Limit {
    fn allows(&mut self, now: Instant) -> bool {
        self.allowance.take(now.saturating_duration_since(self.since).as_nanos() as u64)
    }
}

impl AnsweringPort {
    pub fn new(inner: Box<dyn Port>, addresses: Addresses, is_limited: bool) -> Self {
        let limit = is_limited.then(|| Limit { allowance: ALLOWANCE, since: Instant::now() });
        Self { inner, addresses, limit, counts: Counts::default() }
    }

    /// Answers the frame where it is a question for one of our addresses; returns whether it is.
    #[cold]
    fn handle(&mut self, frame: &[u8]) -> bool {
        let Some((protocol, reply)) = answer(frame, &self.addresses) else { return false };
        let is_allowed = self.limit.as_mut().is_none_or(|limit| limit.allows(Instant::now()));
        if !is_allowed || !self.send_one(&reply) {
            self.counts.unanswered += 1;
            return true;
        }
        match protocol {
            Protocol::Arp => self.counts.arp += 1,
            Protocol::NeighbourDiscovery => self.counts.neighbour_discovery += 1,
        }
        true
    }

    fn send_one(&mut self, bytes: &[u8]) -> bool {
        let is_sent = send_one(&mut *self.inner, bytes);
        if is_sent {
            self.inner.flush();
        }
        is_sent
    }
}

impl Port for AnsweringPort {
    fn facts(&self) -> &PortFacts {
        self.inner.facts()
    }

    fn allocate(&mut self, frames: &mut [Frame], length: usize) -> usize {
        self.inner.allocate(frames, length)
    }

    fn allocate_prefilled(&mut self, frames: &mut [Frame], length: usize, tag: u64) -> usize {
        self.inner.allocate_prefilled(frames, length, tag)
    }

    fn keep_up(&mut self) {
        self.inner.keep_up();
    }

    fn send(&mut self, frames: &[Frame]) -> usize {
        self.inner.send(frames)
    }

    fn send_sampled(&mut self, frames: &[Frame], sent: u64) -> usize {
        self.inner.send_sampled(frames, sent)
    }

    fn transmit_sample(&mut self) -> Option<(u64, u64)> {
        self.inner.transmit_sample()
    }

    fn read_clock(&mut self) -> Option<u64> {
        self.inner.read_clock()
    }

    fn stamps(&mut self, frames: &[Frame], stamps: &mut [u64]) {
        self.inner.stamps(frames, stamps);
    }

    fn receive(&mut self, frames: &mut [Frame]) -> usize {
        let count = self.inner.receive(frames);
        let mut kept = 0;
        for index in 0..count {
            let frame = frames[index];
            if may_ask(frame.bytes()) && self.handle(frame.bytes()) {
                self.inner.free(&frames[index..=index]);
                continue;
            }
            frames[kept] = frame;
            kept += 1;
        }
        kept
    }

    fn free(&mut self, frames: &[Frame]) {
        self.inner.free(frames);
    }

    fn flush(&mut self) {
        self.inner.flush();
    }

    fn counters(&mut self) -> PortCounters {
        let mut counters = self.inner.counters();
        let Counts { arp, neighbour_discovery, unanswered } = self.counts;
        counters.completed = counters.completed.saturating_sub(arp + neighbour_discovery);
        let named =
            [("arp_answered", arp), ("nd_answered", neighbour_discovery), ("neighbours_unanswered", unanswered)];
        counters.named.extend(named.map(|(name, value)| (name.to_owned(), value)));
        counters
    }

    fn begin_trial(&mut self, trial: u32, load: u64) {
        self.inner.begin_trial(trial, load);
    }

    fn next_event(&self) -> Option<u64> {
        self.inner.next_event()
    }
}
