//! A worker beside the first: its thread, and what the first one asks of it.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::clock::TscClock;
use crate::error::EngineError;
use crate::health::HealthProbe;
use crate::part::{Part, Roles};
use crate::port::{Clock, Port};
use crate::snapshot::Snapshot;
use crate::sys::dpdk::{EalThread, WorkerPorts};
use crate::worker::{Order, Orders, Worker};

/// After a transmission a worker goes on without sleeping for so long.
const EAGER: Duration = Duration::from_secs(1);
const NAP: Duration = Duration::from_millis(1);
/// Turns of the loop between two looks at a port that may hold something back.
const FLUSH_EVERY: u32 = 256;

/// What the first worker wants.
pub enum Ask {
    /// Get ready, wait at the gate, transmit; then go on receiving.
    Transmit(Box<Part>, Arc<Gate>),
    /// End the transmission.
    Stop,
    /// The frames under way have come: read how the machine fared.
    ReadHealth,
    /// Give the part back, and receive nothing until told.
    Return,
    /// Receive for this part.
    Receive(Box<Part>),
    /// End.
    Quit,
}

/// What a worker answers.
pub enum Answer {
    /// Frames that each port has taken.
    Transmitted {
        accepted: Vec<u64>,
        transmit_ticks: u64,
    },
    Part(Box<Part>),
}

/// Where workers wait for each other before a transmission.
#[derive(Debug, Default)]
pub struct Gate {
    pub ready: AtomicUsize,
    /// The tick at which the first frame is due; 0 until it is known.
    pub epoch: AtomicU64,
}

/// The first worker's view of another.
pub struct Mate {
    asks: Sender<Ask>,
    waiting: Arc<AtomicBool>,
    answers: Receiver<Answer>,
    /// Waits for the thread's end when it is dropped; fields are dropped in order.
    _thread: EalThread,
}

impl Mate {
    /// Starts worker `number` on its thread.
    pub fn launch(
        number: u32,
        clock: TscClock,
        ports: WorkerPorts,
        roles: Roles,
        snapshot: Arc<Snapshot>,
    ) -> Result<Self, EngineError> {
        let ((asks, inbox), (outbox, answers)) = (channel(), channel());
        let waiting = Arc::new(AtomicBool::new(false));
        let desk = Desk { inbox, waiting: Arc::clone(&waiting), ended: false };
        let task = move || {
            let ports = ports.into_iter().map(|port| port as Box<dyn Port>).collect();
            let worker = Worker::with_roles(Rc::new(clock), ports, roles, Vec::new());
            Serving { worker, desk, outbox, snapshot, part: None, probe: None, transmitted: Instant::now() }.serve();
        };
        Ok(Self { asks, waiting, answers, _thread: EalThread::launch(number, Box::new(task))? })
    }

    /// Never blocks.
    pub fn ask(&self, ask: Ask) {
        // A worker that is gone is found out by its missing answer.
        let _ = self.asks.send(ask);
        self.waiting.store(true, Ordering::Release);
    }

    /// The next answer, if there is one.
    pub fn answer(&self) -> Option<Answer> {
        self.answers.try_recv().ok()
    }
}

impl Drop for Mate {
    fn drop(&mut self) {
        self.ask(Ask::Quit);
    }
}

/// Where asks wait for the worker.
struct Desk {
    inbox: Receiver<Ask>,
    waiting: Arc<AtomicBool>,
    ended: bool,
}

impl Orders for Desk {
    #[inline]
    fn waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed)
    }

    /// While transmitting nothing but an end can be asked for.
    fn take(&mut self) -> Order {
        self.waiting.store(false, Ordering::Release);
        match self.inbox.try_recv() {
            Ok(Ask::Stop) => Order::Stop,
            Ok(Ask::Quit) => {
                self.ended = true;
                Order::Quit
            }
            _ => Order::Continue,
        }
    }
}

/// The worker on its own thread.
struct Serving {
    worker: Worker<TscClock>,
    desk: Desk,
    outbox: Sender<Answer>,
    snapshot: Arc<Snapshot>,
    part: Option<Box<Part>>,
    probe: Option<HealthProbe>,
    transmitted: Instant,
}

impl Serving {
    fn serve(&mut self) {
        let mut is_paused = false;
        while !self.desk.ended {
            let eager = self.part.is_some() && self.transmitted.elapsed() < EAGER;
            match self.desk.inbox.recv_timeout(if eager { Duration::ZERO } else { NAP }) {
                Ok(Ask::Transmit(part, gate)) => {
                    is_paused = false;
                    self.transmit(part, &gate);
                }
                Ok(Ask::Receive(part)) => {
                    is_paused = false;
                    self.part = Some(part);
                    // What is late now is not awaited with open eyes.
                    self.transmitted -= EAGER;
                }
                Ok(Ask::Return) => {
                    is_paused = true;
                    if let Some(mut part) = self.part.take() {
                        self.worker.note_stamps(&mut part);
                        self.answer(Answer::Part(part));
                    }
                }
                Ok(Ask::ReadHealth) => self.read_health(),
                Ok(Ask::Stop) => {}
                Ok(Ask::Quit) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) if !is_paused => self.receive(),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// A while of receiving: until an ask comes, or, where nobody is eager, until nothing arrives.
    fn receive(&mut self) {
        let Some(part) = &mut self.part else {
            while self.worker.discard() && !self.desk.waiting() {}
            return;
        };
        self.desk.waiting.store(false, Ordering::Release);
        for turn in 1..=FLUSH_EVERY {
            let received = self.worker.receive(part);
            if self.desk.waiting() || (received == 0 && turn > 16) {
                break;
            }
        }
        self.worker.flush();
    }

    fn transmit(&mut self, mut part: Box<Part>, gate: &Gate) {
        self.worker.calibrate_clocks();
        self.worker.discard_stale();
        self.probe = self.worker.probe();
        self.desk.waiting.store(false, Ordering::Release);
        gate.ready.fetch_add(1, Ordering::AcqRel);
        let epoch = loop {
            match gate.epoch.load(Ordering::Acquire) {
                0 if self.desk.waiting() && self.desk.take() != Order::Continue => return,
                0 => std::hint::spin_loop(),
                epoch => break epoch,
            }
        };
        part.begin(epoch, &*self.worker.clock);
        self.worker.transmission_loop(&mut part, &self.snapshot, &mut self.desk);
        self.worker.finish_senders(&mut part);
        self.worker.flush();
        self.worker.publish(&part, &self.snapshot);
        let accepted = (0..self.worker.ports.len()).map(|port| part.accepted(port)).collect();
        self.answer(Answer::Transmitted { accepted, transmit_ticks: part.transmit_ticks });
        self.transmitted = Instant::now();
        self.part = Some(part);
    }

    fn read_health(&mut self) {
        if let (Some(part), Some(probe)) = (&mut self.part, self.probe.take()) {
            part.health = probe.finish(&*self.worker.clock);
        }
    }

    fn answer(&self, answer: Answer) {
        // The first worker is gone only when the process is about to be.
        let _ = self.outbox.send(answer);
    }
}

impl TscClock {
    /// The tick in so many seconds.
    pub fn tick_in(&self, seconds: f64) -> u64 {
        self.now() + (seconds * self.hz()) as u64
    }

    /// Whether a tick has been.
    pub fn is_past(&self, tick: u64) -> bool {
        self.now() >= tick
    }
}
