//! Tester and reference forwarder in one process and one EAL, joined by rings of DPDK's `net_ring`, and stepped in one
//! loop: nothing but the faults that are asked for can lose, copy or reorder a frame, and every time is on one clock.
#![cfg(feature = "dpdk")]
#![allow(dead_code)] // Each test binary uses its own part.

use std::cell::RefCell;
use std::rc::Rc;

use nicbench_packets::clock::TscClock;
use nicbench_packets::orders::{Order, Orders};
use nicbench_packets::port::{Clock, Frame, Port, PortCounters, PortFacts};
use nicbench_packets::reflector::log::Record;
use nicbench_packets::reflector::{Reflector, Setup};
use nicbench_packets::snapshot::Snapshot;
use nicbench_packets::sys::dpdk::{EalOptions, PortKind, PortOptions, start};
use nicbench_packets::tester::Tester;
use nicbench_packets::trial::Trial;
use nicbench_packets::worker::Worker;
use nicbench_protocol::{Reading, Start, Timestamps};

/// The tester's port that is joined with itself, with no device between.
pub const CABLE: usize = 2;
pub const RUN_KEY: u64 = 0x0123_4567_89AB_CDEF;
/// What is under way gets this long, again and again, until it has come.
const DRAIN_S: f64 = 0.003;
const LONGEST_DRAINS: usize = 1000;

/// A port that is looped to itself: what one end sends into it, the other takes out.
type Wire = Rc<RefCell<Box<dyn Port>>>;

/// A port over two wires.
struct End {
    facts: PortFacts,
    out: Wire,
    back: Wire,
}

impl End {
    fn new(out: &Wire, back: &Wire) -> Self {
        Self { facts: out.borrow().facts().clone(), out: Rc::clone(out), back: Rc::clone(back) }
    }
}

impl Port for End {
    fn facts(&self) -> &PortFacts {
        &self.facts
    }

    fn allocate(&mut self, frames: &mut [Frame], length: usize) -> usize {
        self.out.borrow_mut().allocate(frames, length)
    }

    fn allocate_prefilled(&mut self, frames: &mut [Frame], length: usize, tag: u64) -> usize {
        self.out.borrow_mut().allocate_prefilled(frames, length, tag)
    }

    fn send(&mut self, frames: &[Frame]) -> usize {
        self.out.borrow_mut().send(frames)
    }

    fn receive(&mut self, frames: &mut [Frame]) -> usize {
        self.back.borrow_mut().receive(frames)
    }

    fn free(&mut self, frames: &[Frame]) {
        self.out.borrow_mut().free(frames);
    }

    fn flush(&mut self) {}

    fn counters(&mut self) -> PortCounters {
        self.out.borrow_mut().counters()
    }
}

/// What lies between the tester's ports, and when it was given its turns.
#[derive(Default)]
struct Middle {
    reflector: Option<Reflector<TscClock>>,
    /// Ticks at which turns that moved frames began, and the next turn's.
    turns: Vec<(u64, u64)>,
    last_turn: Option<u64>,
    /// One frame of somebody else is sent after so many of ours; 0 for none.
    foreign_every: u64,
    sent: u64,
}

impl Middle {
    fn turn(&mut self, clock: &TscClock) {
        let now = clock.now();
        if let Some(begin) = self.last_turn.take() {
            self.turns.push((begin, now));
        }
        if self.reflector.as_mut().is_some_and(|reflector| reflector.turn() > 0) {
            self.last_turn = Some(now);
        }
    }
}

/// A port of the tester. The first of them gives the forwarder a turn whenever the tester looks for frames, so that
/// what leaves in a turn has been received, by every port, before the next.
struct TesterEnd {
    end: End,
    clock: Rc<TscClock>,
    middle: Rc<RefCell<Middle>>,
    is_first: bool,
}

impl TesterEnd {
    /// An ARP request, as any neighbour sends it.
    fn send_foreign(&mut self) {
        let mut frame = [Frame::empty()];
        assert_eq!(self.end.allocate(&mut frame, 60), 1);
        frame[0].bytes_mut().fill(0);
        frame[0].bytes_mut()[..6].fill(0xFF);
        frame[0].bytes_mut()[12..14].copy_from_slice(&[0x08, 0x06]);
        if self.end.send(&frame) == 0 {
            self.end.free(&frame);
        }
    }
}

impl Port for TesterEnd {
    fn facts(&self) -> &PortFacts {
        self.end.facts()
    }

    fn allocate(&mut self, frames: &mut [Frame], length: usize) -> usize {
        self.end.allocate(frames, length)
    }

    fn allocate_prefilled(&mut self, frames: &mut [Frame], length: usize, tag: u64) -> usize {
        self.end.allocate_prefilled(frames, length, tag)
    }

    fn send(&mut self, frames: &[Frame]) -> usize {
        let accepted = self.end.send(frames);
        let every = self.middle.borrow().foreign_every;
        for _ in 0..accepted {
            self.middle.borrow_mut().sent += 1;
            if every > 0 && self.middle.borrow().sent % every == 0 {
                self.send_foreign();
            }
        }
        accepted
    }

    fn receive(&mut self, frames: &mut [Frame]) -> usize {
        if self.is_first {
            self.middle.borrow_mut().turn(&self.clock);
        }
        self.end.receive(frames)
    }

    fn free(&mut self, frames: &[Frame]) {
        self.end.free(frames);
    }

    fn flush(&mut self) {}

    fn counters(&mut self) -> PortCounters {
        self.end.counters()
    }
}

/// Nobody orders anything.
struct NoOrders;

impl Orders for NoOrders {
    fn is_waiting(&self) -> bool {
        false
    }

    fn take(&mut self) -> Order {
        Order::Continue
    }
}

/// A frame that was received, by the log: the earliest and the latest latency the tester can have measured.
pub struct Window {
    pub least_ns: u64,
    pub most_ns: u64,
}

/// What a trial gave on both sides.
pub struct Outcome {
    pub reading: Reading,
    pub records: Vec<Record>,
    /// From the tester's epoch to a time in the log: what must be taken off.
    epoch_ns: i64,
    /// Turns that moved frames, in the log's time.
    turns: Vec<(u64, u64)>,
}

impl Outcome {
    /// The latency of a frame of the log that was sent at `sent_ns` and stamped at `stamp_ns`.
    pub fn window(&self, sent_ns: u64, stamp_ns: u64) -> Window {
        let turn = self.turns.partition_point(|(begin, _)| *begin <= sent_ns);
        let next = turn.checked_sub(1).map_or(sent_ns, |turn| self.turns[turn].1);
        let latency = |ns: u64| (ns as i64 - self.epoch_ns - stamp_ns as i64).max(0) as u64;
        Window { least_ns: latency(sent_ns), most_ns: latency(next) }
    }
}

/// The whole arrangement, once per process.
pub struct Rings {
    clock: Rc<TscClock>,
    middle: Rc<RefCell<Middle>>,
    /// tester 0 -> forwarder -> tester 1, back, and one without a forwarder.
    wires: Vec<Wire>,
    worker: Worker<TscClock>,
    trials: u32,
}

impl Rings {
    pub fn open() -> Self {
        let port = |name: &str| PortOptions {
            name: name.into(),
            kind: PortKind::Ring,
            transmit_descriptors: 1024,
            receive_descriptors: 1024,
            lossless: false,
            send_buffer_bytes: None,
            timestamps: Timestamps::Tsc,
        };
        let eal = EalOptions { worker_cpu: None, huge_pages: false, memory_mib: 512, further: Vec::new() };
        let ports = start(&eal, &["out0", "in1", "out1", "in0", "cable"].map(port)).expect("five rings");
        let wires: Vec<Wire> = ports.into_iter().map(|port| Rc::new(RefCell::new(port))).collect();
        let (clock, middle) = (Rc::new(TscClock::calibrated()), Rc::new(RefCell::new(Middle::default())));
        let end = |out: usize, back: usize, is_first: bool| -> Box<dyn Port> {
            let end = End::new(&wires[out], &wires[back]);
            Box::new(TesterEnd { end, clock: Rc::clone(&clock), middle: Rc::clone(&middle), is_first })
        };
        let worker =
            Worker::new(Rc::clone(&clock), vec![end(0, 3, true), end(2, 1, false), end(4, 4, false)], Vec::new());
        Self { clock, middle, wires, worker, trials: 0 }
    }

    /// The number of the next trial.
    pub fn next_trial(&self) -> u32 {
        self.trials + 1
    }

    /// One trial through a new forwarder, until every frame has come or was dropped.
    pub fn trial(&mut self, start: &Start, setup: &Setup, foreign_every: u64) -> Outcome {
        self.trials += 1;
        assert_eq!((start.trial, setup.trial), (self.trials, self.trials));
        let ends = [End::new(&self.wires[3], &self.wires[0]), End::new(&self.wires[1], &self.wires[2])];
        let ports = ends.into_iter().map(|end| Box::new(end) as Box<dyn Port>).collect();
        let reflector = Reflector::new(Rc::clone(&self.clock), ports, setup);
        let origin = reflector.origin();
        *self.middle.borrow_mut() = Middle { reflector: Some(reflector), foreign_every, ..Middle::default() };
        let mut trial = self.worker.new_trial(start, RUN_KEY).expect("a possible trial");
        self.run(&mut trial);
        let reading = self.worker.end_drain(&mut trial).expect("a reading");
        let mut middle = self.middle.take();
        let reflector = middle.reflector.as_mut().expect("the forwarder");
        reflector.finish();
        let since = |tick: u64| self.clock.nanoseconds(tick.saturating_sub(origin));
        let turns = middle.turns.iter().map(|(begin, next)| (since(*begin), since(*next))).collect();
        let records = reflector.log().map(|log| log.take()).unwrap_or_default();
        Outcome { reading, records, epoch_ns: since(trial.lead().epoch) as i64, turns }
    }

    /// One trial over the cable.
    pub fn trial_without_device(&mut self, start: &Start) -> Reading {
        self.trials += 1;
        assert_eq!(start.trial, self.trials);
        *self.middle.borrow_mut() = Middle::default();
        let mut trial = self.worker.new_trial(start, RUN_KEY).expect("a possible trial");
        self.run(&mut trial);
        self.worker.end_drain(&mut trial).expect("a reading")
    }

    fn run(&mut self, trial: &mut Trial) {
        Tester::transmit(&mut self.worker, trial, 0, &Snapshot::default(), &mut NoOrders);
        for _ in 0..LONGEST_DRAINS {
            Tester::receive_for(&mut self.worker, trial, DRAIN_S, &mut NoOrders);
            let stats = self.middle.borrow().reflector.as_ref().map(|reflector| reflector.stats(None));
            if stats.is_none_or(|stats| stats.directions.iter().all(|direction| direction.under_way == 0)) {
                break;
            }
        }
        // What left in the last turn.
        Tester::receive_for(&mut self.worker, trial, DRAIN_S, &mut NoOrders);
    }
}
