//! A worker beside the first: its thread, and the tasks that the first one gives it.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::clock::TscClock;
use crate::core_watch::CoreWatch;
use crate::error::EngineError;
use crate::health::HealthProbe;
use crate::orders::{Order, Orders};
use crate::port::{Clock, Port};
use crate::snapshot::Snapshot;
use crate::sys::dpdk::{EalThread, WorkerPorts};
use crate::trial_part::{Roles, TrialPart};
use crate::worker::Worker;

/// For this long after a transmission a worker receives without sleeping.
const BUSY_POLL: Duration = Duration::from_secs(1);
/// The sleep between two looks at the ports, later.
const NAP: Duration = Duration::from_millis(1);
/// Turns of the loop between two looks at a port that may hold something back.
const FLUSH_EVERY: u32 = 256;

/// What the first worker asks another one to do.
pub enum Task {
    /// Get ready, wait at the gate, transmit; then go on receiving.
    Transmit(Box<TrialPart>, Arc<StartGate>),
    /// End the transmission.
    Stop,
    /// The frames under way have come: read how the machine fared.
    ReadHealth,
    /// Give the part back, and receive nothing until told.
    Return,
    /// Receive for this part.
    Receive(Box<TrialPart>),
    /// End the thread.
    Quit,
}

/// What a worker reports of a task.
pub enum Outcome {
    /// Frames that each port has taken.
    Transmitted {
        accepted: Vec<u64>,
        transmit_ticks: u64,
    },
    Returned(Box<TrialPart>),
}

/// Where workers wait for each other before a transmission.
#[derive(Debug, Default)]
pub struct StartGate {
    pub ready: AtomicUsize,
    /// The tick at which the first frame is due; 0 until it is known.
    pub epoch: AtomicU64,
}

/// A worker on a thread of its own, as the first worker sees it.
pub struct WorkerThread {
    tasks: Sender<Task>,
    waiting: Arc<AtomicBool>,
    outcomes: Receiver<Outcome>,
    /// Waits for the thread's end when it is dropped; fields are dropped in order.
    _thread: EalThread,
}

impl WorkerThread {
    /// Starts worker `number` on its thread.
    pub fn launch(
        number: u32,
        clock: TscClock,
        ports: WorkerPorts,
        roles: Roles,
        core_watch: CoreWatch,
        snapshot: Arc<Snapshot>,
    ) -> Result<Self, EngineError> {
        let ((tasks, inbox), (outbox, outcomes)) = (channel(), channel());
        let waiting = Arc::new(AtomicBool::new(false));
        let queue = TaskQueue { inbox, waiting: Arc::clone(&waiting), ended: false };
        let body = move || {
            let ports = ports.into_iter().map(|port| port as Box<dyn Port>).collect();
            let worker = Worker::with_roles(Rc::new(clock), ports, roles, Vec::new(), core_watch);
            WorkerLoop { worker, tasks: queue, outbox, snapshot, part: None, probe: None, transmitted: Instant::now() }
                .serve();
        };
        Ok(Self { tasks, waiting, outcomes, _thread: EalThread::launch(number, Box::new(body))? })
    }

    /// Gives the worker a task; never blocks.
    pub fn give(&self, task: Task) {
        // A worker that is gone is found out by its missing outcome.
        let _ = self.tasks.send(task);
        self.waiting.store(true, Ordering::Release);
    }

    /// The next outcome, if there is one.
    pub fn take_outcome(&self) -> Option<Outcome> {
        self.outcomes.try_recv().ok()
    }
}

impl Drop for WorkerThread {
    fn drop(&mut self) {
        self.give(Task::Quit);
    }
}

/// The tasks that wait for the worker, on its own side.
struct TaskQueue {
    inbox: Receiver<Task>,
    waiting: Arc<AtomicBool>,
    ended: bool,
}

impl Orders for TaskQueue {
    #[inline]
    fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed)
    }

    /// While transmitting nothing but an end can be asked for.
    fn take(&mut self) -> Order {
        self.waiting.store(false, Ordering::Release);
        match self.inbox.try_recv() {
            Ok(Task::Stop) => Order::Stop,
            Ok(Task::Quit) => {
                self.ended = true;
                Order::Quit
            }
            _ => Order::Continue,
        }
    }
}

/// What the thread runs: the worker, and the loop that takes its tasks.
struct WorkerLoop {
    worker: Worker<TscClock>,
    tasks: TaskQueue,
    outbox: Sender<Outcome>,
    snapshot: Arc<Snapshot>,
    part: Option<Box<TrialPart>>,
    probe: Option<HealthProbe>,
    transmitted: Instant,
}

impl WorkerLoop {
    fn serve(&mut self) {
        let mut is_paused = false;
        while !self.tasks.ended {
            let polls = self.part.is_some() && self.transmitted.elapsed() < BUSY_POLL;
            match self.tasks.inbox.recv_timeout(if polls { Duration::ZERO } else { NAP }) {
                Ok(Task::Transmit(part, gate)) => {
                    is_paused = false;
                    self.transmit(part, &gate);
                }
                Ok(Task::Receive(part)) => {
                    is_paused = false;
                    self.part = Some(part);
                    // Late frames are few: the thread may sleep between looks.
                    self.transmitted -= BUSY_POLL;
                }
                Ok(Task::Return) => {
                    is_paused = true;
                    if let Some(mut part) = self.part.take() {
                        self.worker.note_stamps(&mut part);
                        self.report(Outcome::Returned(part));
                    }
                }
                Ok(Task::ReadHealth) => self.read_health(),
                Ok(Task::Stop) => {}
                Ok(Task::Quit) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) if !is_paused => self.receive(),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Receives until a task comes, nothing arrives any more, or a port must be flushed.
    fn receive(&mut self) {
        let Some(part) = &mut self.part else {
            // Who floods the port is not to find its ring full at each nap.
            let mut last = Instant::now();
            let mut is_flooded = self.worker.discard();
            while is_flooded && !self.tasks.is_waiting() {
                if self.worker.discard() {
                    last = Instant::now();
                }
                is_flooded = last.elapsed() < NAP;
            }
            return;
        };
        self.tasks.waiting.store(false, Ordering::Release);
        for turn in 1..=FLUSH_EVERY {
            let received = self.worker.receive(part);
            if self.tasks.is_waiting() || (received == 0 && turn > 16) {
                break;
            }
        }
        self.worker.flush();
    }

    fn transmit(&mut self, mut part: Box<TrialPart>, gate: &StartGate) {
        self.worker.calibrate_clocks();
        self.worker.discard_stale(None);
        self.probe = self.worker.probe();
        self.tasks.waiting.store(false, Ordering::Release);
        gate.ready.fetch_add(1, Ordering::AcqRel);
        let epoch = loop {
            match gate.epoch.load(Ordering::Acquire) {
                0 if self.tasks.is_waiting() && self.tasks.take() != Order::Continue => return,
                0 => std::hint::spin_loop(),
                epoch => break epoch,
            }
        };
        part.begin(epoch, &*self.worker.clock);
        self.worker.transmission_loop(&mut part, &self.snapshot, &mut self.tasks);
        self.worker.finish_senders(&mut part);
        self.worker.flush();
        self.worker.publish(&part, &self.snapshot);
        let accepted = (0..self.worker.ports.len()).map(|port| part.accepted(port)).collect();
        self.report(Outcome::Transmitted { accepted, transmit_ticks: part.transmit_ticks });
        self.transmitted = Instant::now();
        self.part = Some(part);
    }

    fn read_health(&mut self) {
        if let (Some(part), Some(probe)) = (&mut self.part, self.probe.take()) {
            part.health = probe.finish(&*self.worker.clock);
        }
    }

    fn report(&self, answer: Outcome) {
        // The first worker is gone only when the process is about to be.
        let _ = self.outbox.send(answer);
    }
}

impl TscClock {
    /// The tick `seconds` from now.
    pub fn tick_in(&self, seconds: f64) -> u64 {
        self.now() + (seconds * self.hz()) as u64
    }

    /// Whether a tick has passed.
    pub fn is_past(&self, tick: u64) -> bool {
        self.now() >= tick
    }
}
