//! The forwarder itself: its ports, the ways between them, and one turn of its loop.

use std::rc::Rc;

use nicbench_protocol::{Faults, ReflectMode, ReflectStats, WhenFull};

use super::faulty::{Faulty, Journal, Turn};
use super::log::FateLog;
use super::plain::Plain;
use super::work::Work;
use crate::port::{Clock, Frame, MAXIMUM_BURST, Port};
use crate::signature::Signer;

/// An idle port is flushed this often: some need it to push out what is sent.
const FLUSH_NS: f64 = 20_000.0;

/// The settings of a forwarder.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Frames go back out of the port that they came in at; with one port they always do.
    pub same_port: bool,
    pub mode: ReflectMode,
    pub burst: usize,
    pub when_full: WhenFull,
    pub faults: Faults,
    /// The log's run key, and how many records to keep.
    pub log: Option<(u64, usize)>,
    /// The number of the first trial.
    pub trial: u32,
}

/// One direction. Without faults and without a log it is a bare loop.
#[derive(Debug)]
enum Way {
    Plain(Box<Plain>),
    Faulty(Box<Faulty>),
}

/// Forwards frames between ports.
pub struct Reflector<C: Clock> {
    clock: Rc<C>,
    ports: Vec<Box<dyn Port>>,
    ways: Vec<Way>,
    mode: ReflectMode,
    burst: usize,
    when_full: WhenFull,
    run_key: u64,
    journal: Option<Journal>,
    /// The tick from which all times are counted.
    origin: u64,
    turned: u64,
    next_flush: u64,
    flush_ticks: u64,
    work: Work,
    frames: [Frame; MAXIMUM_BURST],
}

impl<C: Clock> Reflector<C> {
    /// A forwarder between the two ports of each pair, or back out of each port.
    pub fn new(clock: Rc<C>, ports: Vec<Box<dyn Port>>, setup: &Setup) -> Self {
        let is_plain = setup.log.is_none() && is_faultless(&setup.faults);
        let back = setup.same_port || ports.len() == 1;
        let way = |from: usize| {
            // The other of a pair has the number whose last bit differs.
            let to = if back { from } else { from ^ 1 };
            match is_plain {
                true => Way::Plain(Box::new(Plain::new(from, to))),
                false => Way::Faulty(Box::new(Faulty::new(from, to, from as u8, &setup.faults))),
            }
        };
        let ways = (0..ports.len()).map(way).collect();
        let (run_key, origin) = (setup.log.map_or(0, |(run_key, _)| run_key), clock.now());
        let journal = setup.log.map(|(run_key, capacity)| Journal {
            signer: Signer::new(run_key, setup.trial),
            trial: setup.trial,
            log: FateLog::new(capacity),
        });
        let flush_ticks = (FLUSH_NS * clock.hz() / 1e9) as u64;
        let mut reflector = Self {
            clock,
            ports,
            ways,
            mode: setup.mode,
            burst: setup.burst.clamp(1, MAXIMUM_BURST),
            when_full: setup.when_full,
            run_key,
            journal,
            origin,
            turned: origin,
            next_flush: origin,
            flush_ticks,
            work: Work::default(),
            frames: [Frame::empty(); MAXIMUM_BURST],
        };
        reflector.begin_trial(setup.trial);
        reflector
    }

    /// The tick from which all times are counted.
    pub fn origin(&self) -> u64 {
        self.origin
    }

    /// Makes one turn, in which every direction moves a burst. Returns how many frames moved.
    #[inline]
    pub fn turn(&mut self) -> usize {
        let mut moved = 0;
        for way in &mut self.ways {
            moved += match way {
                Way::Plain(plain) => plain.step(&mut self.ports, self.mode, self.burst, self.when_full),
                Way::Faulty(faulty) => {
                    let mut turn = Turn {
                        ports: &mut self.ports,
                        journal: &mut self.journal,
                        mode: self.mode,
                        burst: self.burst,
                        clock: &*self.clock,
                        origin: self.origin,
                    };
                    faulty.step(&mut turn, &mut self.frames)
                }
            };
        }
        let now = self.clock.now();
        self.work.turn(moved, now.saturating_sub(self.turned));
        self.turned = now;
        if moved == 0 && now >= self.next_flush {
            self.next_flush = now + self.flush_ticks;
            self.ports.iter_mut().for_each(|port| port.flush());
        }
        moved
    }

    /// Leaves time that passed outside of the loop out of its turns.
    pub fn resume(&mut self) {
        self.turned = self.clock.now();
    }

    /// Begins trial `trial`: frames that are under way are dropped.
    pub fn begin_trial(&mut self, trial: u32) {
        for way in &mut self.ways {
            if let Way::Faulty(faulty) = way {
                faulty.begin_trial(&mut self.ports, &mut self.journal, trial);
            }
        }
        if let Some(journal) = &mut self.journal {
            journal.signer = Signer::new(self.run_key, trial);
            journal.trial = trial;
        }
    }

    /// No more turns: what is under way is dropped, and the log is complete.
    pub fn finish(&mut self) {
        let trial = self.journal.as_ref().map_or(0, |journal| journal.trial);
        for way in &mut self.ways {
            match way {
                Way::Plain(plain) => plain.finish(&mut self.ports),
                Way::Faulty(faulty) => faulty.begin_trial(&mut self.ports, &mut self.journal, trial),
            }
        }
    }

    pub fn log(&mut self) -> Option<&mut FateLog> {
        self.journal.as_mut().map(|journal| &mut journal.log)
    }

    /// What was counted since the start.
    pub fn stats(&self, core_clock_hz: Option<f64>) -> ReflectStats {
        let directions: Vec<_> = self
            .ways
            .iter()
            .map(|way| match way {
                Way::Plain(plain) => plain.stats(),
                Way::Faulty(faulty) => faulty.stats(),
            })
            .collect();
        let frames = directions.iter().map(|direction| direction.received).sum();
        let tsc_hz = self.clock.hz();
        let busy_tsc_cycles_per_frame = self.work.busy_ticks_per_frame(frames);
        ReflectStats {
            iterations: self.work.iterations,
            idle_polls: self.work.idle_polls,
            tsc_cycles: self.work.ticks,
            busy_tsc_cycles: self.work.busy_ticks,
            tsc_hz,
            core_clock_hz,
            busy_tsc_cycles_per_frame,
            busy_core_cycles_per_frame: busy_tsc_cycles_per_frame
                .zip(core_clock_hz)
                .map(|(cycles, core_hz)| cycles * core_hz / tsc_hz),
            directions,
        }
    }
}

fn is_faultless(faults: &Faults) -> bool {
    *faults == Faults { seed: faults.seed, reorder_by: faults.reorder_by, ..Faults::default() }
}
