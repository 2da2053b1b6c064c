//! The wires between simulated ports, shared by all of them.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use nicbench_protocol::{CardClock, SimulatedDut, SimulatedEgress};

use super::card_clock::Card;
use super::dut::Dut;
use super::egress::Egress;
use super::port::SimulatedPort;
use crate::faults::PS_PER_NS;
use crate::port::{Clock, Frame, NO_STAMP, Port, PortFacts};
use crate::sys::pool::FramePool;
use crate::wire::ethernet::{self, BROADCAST, FCS_BYTES, Mac, SHORTEST_FRAME_BYTES, WIRE_OVERHEAD_BYTES};
use crate::wire::{Ethernet, Header, ethertype};

/// The transmit ring of a tester with a ceiling.
const CEILING_RING_FRAMES: usize = 64;

/// The options of one simulated port.
pub struct SimulatedPortOptions {
    pub facts: PortFacts,
    pub link_bits_per_s: f64,
    /// Index of the port at which its frames arrive, but for those to another port's address.
    pub sends_to: usize,
    /// Its MAC address, where frames are switched by it.
    pub mac: Option<Mac>,
    pub dut: SimulatedDut,
    pub egress: SimulatedEgress,
    /// The clock that stamps the frames that arrive here.
    pub card_clock: Option<CardClock>,
}

/// Opens all ports of a simulated network.
pub fn open(clock: Rc<dyn Clock>, ports: Vec<SimulatedPortOptions>) -> Vec<Box<dyn Port>> {
    let facts: Vec<PortFacts> = ports.iter().map(|port| port.facts.clone()).collect();
    let links = ports.into_iter().map(Link::new).collect();
    let origin = clock.now();
    let network = Network { clock, began: origin, origin, pool: FramePool::default(), links };
    let network = Rc::new(RefCell::new(network));
    let port = |(index, facts)| Box::new(SimulatedPort::new(index, facts, Rc::clone(&network))) as Box<dyn Port>;
    facts.into_iter().enumerate().map(port).collect()
}

/// The simulated ports, and everything between them.
pub struct Network {
    clock: Rc<dyn Clock>,
    /// The tick at which the cards' clocks began to count.
    began: u64,
    /// The tick at which the trial began; all times are relative to it.
    origin: u64,
    pub pool: FramePool,
    pub links: Vec<Link>,
}

/// One port: its transmit ring, what lies behind it, and its receive ring.
pub struct Link {
    sends_to: usize,
    mac: Option<Mac>,
    pub dut: Dut,
    pub egress: Egress,
    /// The receive ring: frames, each with its stamp.
    pub received: VecDeque<(Frame, u64)>,
    pub card: Option<Card>,
    pub receive_overrun: u64,
    pub foreign: u64,
    pub completed: u64,
    pub refused: u64,
    receive_descriptors: usize,
    transmit_descriptors: usize,
    /// When each frame of the transmit ring has left it.
    leaving_ps: VecDeque<u64>,
    wire_free_ps: u64,
    ps_per_byte: f64,
    least_frame_ps: u64,
    foreign_interval_ps: Option<u64>,
    next_foreign_ps: u64,
    pause_interval_ps: Option<u64>,
    pause_ns: u64,
    next_pause_ps: u64,
}

impl Link {
    fn new(options: SimulatedPortOptions) -> Self {
        let dut = &options.dut;
        let interval_ps = |rate: f64| (1e12 / rate).round().max(1.0) as u64;
        let foreign_interval_ps = (dut.foreign_frames_per_s > 0.0).then(|| interval_ps(dut.foreign_frames_per_s));
        let pause_interval_ps = dut.pause_every_s.map(|seconds| (seconds * 1e12) as u64);
        Self {
            sends_to: options.sends_to,
            mac: options.mac,
            egress: Egress::new(&options.egress),
            received: VecDeque::new(),
            card: options.card_clock.map(|clock| Card::new(clock, options.dut.seed)),
            receive_overrun: 0,
            foreign: 0,
            completed: 0,
            refused: 0,
            receive_descriptors: options.facts.receive_descriptors as usize,
            transmit_descriptors: match dut.tester_ceiling_frames_per_s {
                // A long ring would hide the ceiling of a short trial.
                Some(_) => CEILING_RING_FRAMES.min(options.facts.transmit_descriptors as usize),
                None => options.facts.transmit_descriptors as usize,
            },
            leaving_ps: VecDeque::new(),
            wire_free_ps: 0,
            ps_per_byte: 8e12 / options.link_bits_per_s,
            least_frame_ps: dut.tester_ceiling_frames_per_s.map_or(0, interval_ps),
            foreign_interval_ps,
            next_foreign_ps: foreign_interval_ps.unwrap_or(0),
            pause_interval_ps,
            pause_ns: dut.pause_ns,
            next_pause_ps: pause_interval_ps.unwrap_or(0),
            dut: Dut::new(dut),
        }
    }

    /// Counts the frames that have left the transmit ring by now.
    pub fn complete(&mut self, now_ps: u64) {
        while self.leaving_ps.front().is_some_and(|time_ps| *time_ps <= now_ps) {
            self.leaving_ps.pop_front();
            self.completed += 1;
        }
    }

    /// Takes a frame into the transmit ring; false where it is full.
    pub fn send(&mut self, frame: &Frame, now_ps: u64, pool: &mut FramePool) -> bool {
        if self.leaving_ps.len() >= self.transmit_descriptors {
            self.refused += 1;
            return false;
        }
        let wire_bytes = frame.bytes().len() + FCS_BYTES as usize + WIRE_OVERHEAD_BYTES;
        let frame_ps = ((wire_bytes as f64 * self.ps_per_byte) as u64).max(self.least_frame_ps);
        self.wire_free_ps = self.wire_free_ps.max(now_ps) + frame_ps;
        self.leaving_ps.push_back(self.wire_free_ps);
        self.dut.forward(self.wire_free_ps, *frame, pool);
        true
    }

    /// When the last frame that was taken will have left.
    pub fn last_leaves_ps(&self) -> u64 {
        self.wire_free_ps
    }

    /// Whether the worker is to be held up now, and for how long.
    pub fn pause_ns(&mut self, now_ps: u64) -> Option<u64> {
        let interval_ps = self.pause_interval_ps?;
        if now_ps < self.next_pause_ps {
            return None;
        }
        self.next_pause_ps = now_ps + interval_ps;
        Some(self.pause_ns)
    }

    /// When there will be room in the transmit ring, where it is full.
    fn room_ps(&self) -> Option<u64> {
        (self.leaving_ps.len() >= self.transmit_descriptors).then(|| self.leaving_ps.front().copied()).flatten()
    }

    /// When something it sent, or somebody else's frame, is to come through the device.
    fn next_crossing_ps(&self) -> Option<u64> {
        let foreign = self.foreign_interval_ps.map(|_| self.next_foreign_ps);
        self.dut.next_event_ps().into_iter().chain(foreign).min()
    }
}

impl Network {
    /// Picoseconds since the trial began.
    pub fn now_ps(&self) -> u64 {
        self.clock.nanoseconds(self.clock.now().saturating_sub(self.origin)) * PS_PER_NS
    }

    /// Nanoseconds since the cards' clocks began to count, at `time_ps` of the trial.
    pub fn card_time_ns(&self, time_ps: u64) -> u64 {
        self.clock.nanoseconds(self.origin.saturating_sub(self.began)) + time_ps / PS_PER_NS
    }

    /// Holds the worker up for this time.
    pub fn stall(&self, pause_ns: u64) {
        self.clock.wait_until(self.clock.now() + (pause_ns as f64 * self.clock.hz() / 1e9) as u64);
    }

    /// Starts port `index` afresh; the first port also starts the trial's time.
    pub fn begin_trial(&mut self, index: usize, trial: u32, load: u64) {
        if index == 0 {
            self.origin = self.clock.now();
        }
        let link = &mut self.links[index];
        link.dut.begin_trial(trial, load, &mut self.pool);
        link.egress.begin_trial(&mut self.pool);
        link.received.drain(..).for_each(|(frame, _)| self.pool.give(&frame));
        link.card.iter_mut().for_each(|card| card.begin_trial(trial, load));
        link.leaving_ps.clear();
        link.wire_free_ps = 0;
        link.next_foreign_ps = link.foreign_interval_ps.unwrap_or(0);
        link.next_pause_ps = link.pause_interval_ps.unwrap_or(0);
    }

    /// Moves what has arrived at port `index` into its receive ring; what finds no room is the tester's overrun.
    pub fn arrive(&mut self, index: usize, now_ps: u64) {
        self.cross(now_ps);
        while let Some((time_ps, frame)) = self.links[index].egress.next_left(now_ps) {
            self.deliver(index, frame, time_ps);
        }
    }

    /// Brings what came through the device by now to the ports that it leaves by, in the order of time: frames of
    /// several senders share a port's way out.
    fn cross(&mut self, now_ps: u64) {
        self.links.iter_mut().for_each(|link| link.dut.release_overdue(now_ps));
        while let Some(sender) = self.next_to_cross(now_ps) {
            let Some((time_ps, frame)) = self.links[sender].dut.next_passed(now_ps) else { break };
            let egress_port = self.egress_port(sender, &frame);
            self.links[egress_port].egress.take(time_ps, frame, &mut self.pool);
        }
        for sender in 0..self.links.len() {
            while let Some(interval_ps) = self.links[sender].foreign_interval_ps {
                let time_ps = self.links[sender].next_foreign_ps;
                if time_ps > now_ps {
                    break;
                }
                self.links[sender].next_foreign_ps += interval_ps;
                self.links[sender].foreign += 1;
                let frame = foreign_frame(&mut self.pool);
                let egress_port = self.links[sender].sends_to;
                self.deliver(egress_port, frame, time_ps);
            }
        }
    }

    /// The port whose frame comes through next, by now; the first of several at the same time.
    fn next_to_cross(&self, now_ps: u64) -> Option<usize> {
        let times = self.links.iter().enumerate().filter_map(|(index, link)| Some((link.dut.next_passed_ps()?, index)));
        times.min().filter(|(time_ps, _)| *time_ps <= now_ps).map(|(_, index)| index)
    }

    /// The port at which a frame arrives: the one it is addressed to, else the one its sender is connected with.
    fn egress_port(&self, sender: usize, frame: &Frame) -> usize {
        let destination = Ethernet::at(frame.bytes(), 0).map(|header| header.get(ethernet::DESTINATION));
        let addressed = self.links.iter().position(|link| link.mac.is_some() && link.mac == destination);
        addressed.unwrap_or(self.links[sender].sends_to)
    }

    fn deliver(&mut self, index: usize, frame: Frame, time_ps: u64) {
        let time_ns = self.card_time_ns(time_ps);
        let link = &mut self.links[index];
        if link.received.len() < link.receive_descriptors {
            let stamp = link.card.as_mut().map_or(NO_STAMP, |card| card.stamp(time_ns));
            link.received.push_back((frame, stamp));
        } else {
            link.receive_overrun += 1;
            self.pool.give(&frame);
        }
    }

    /// The tick of the next arrival at port `index`, or of the first room in its full transmit ring.
    pub fn next_event(&self, index: usize) -> Option<u64> {
        if !self.links[index].received.is_empty() {
            return Some(self.clock.now());
        }
        let crossing = self.links.iter().filter_map(Link::next_crossing_ps);
        let link = &self.links[index];
        let next_ps = crossing.chain(link.egress.next_leaving_ps()).chain(link.room_ps()).min()?;
        let ticks = (next_ps.div_ceil(PS_PER_NS)) as f64 * (self.clock.hz() / 1e9);
        Some(self.origin + ticks.ceil() as u64)
    }
}

/// An ARP request, as any neighbour sends it.
fn foreign_frame(pool: &mut FramePool) -> Frame {
    let mut frame = pool.take((SHORTEST_FRAME_BYTES - FCS_BYTES) as usize);
    let bytes = frame.bytes_mut();
    bytes.fill(0);
    if let Some(mut header) = Ethernet::at_mut(bytes, 0) {
        header.set(ethernet::DESTINATION, BROADCAST);
        header.set(ethernet::SOURCE, [0x02, 0, 0, 0, 0, 0xAA]);
        header.set(ethernet::TYPE, ethertype::ARP);
    }
    frame
}
