//! A thread of the client: it starts what is due, drives what is ready, and gives up on what takes too long.

use std::collections::VecDeque;
use std::io;

use super::connection::{Asked, Connection, Observer, State, Step};
use super::tally::{Failure, Tally};
use super::threads::Together;
use super::{Plan, Task};
use crate::clock::{Clock, ns, thread_cpu_ns};
use crate::poll::Poll;

/// So many are started before sockets are looked at again, so that a late start does not delay answers.
const AT_ONCE: usize = 64;
/// So long what is due may wait to be put in a queue.
const QUEUE_NS: u64 = 200_000;
/// So often a thread looks whether others have done their part.
const WAIT_NS: u64 = 5_000_000;
const BUFFER_BYTES: usize = 256 * 1024;

/// A connection of the task `requests`, which is opened again where the server closes it.
#[derive(Default)]
pub(super) struct Lane {
    /// Numbers of requests that are due and not sent.
    pub(super) queue: VecDeque<u64>,
    pub(super) slot: Option<usize>,
}

pub(super) struct Slot {
    pub(super) connection: Option<Connection>,
    pub(super) generation: u32,
}

/// One thread's share of the plan.
pub struct Worker<'a> {
    pub(super) plan: &'a Plan,
    pub(super) clock: Clock,
    poll: Poll,
    thread: u64,
    next: u64,
    /// When the last was really started.
    started_ns: u64,
    pub(super) slots: Vec<Slot>,
    free: Vec<usize>,
    open: u64,
    /// Connections that wait for an answer.
    pub(super) in_flight: usize,
    /// Connections and queued requests of which something is still to come.
    pub(super) pending: u64,
    deadlines: [VecDeque<(u64, u64)>; 3],
    pub(super) lanes: Vec<Lane>,
    /// When held connections are asked again, once all are open.
    pub(super) held_from: Option<u64>,
    pub(super) to_ask: Vec<u64>,
    pub(super) asked: usize,
    /// Whether it has done its part, and other threads have not.
    pub(super) waits: bool,
    pub(super) tally: Tally,
    buffer: Vec<u8>,
}

/// What a connection that is driven tells.
struct Seen<'a> {
    tally: &'a mut Tally,
    now: u64,
    sustain: (u64, u64),
    timed: bool,
}

impl Observer for Seen<'_> {
    fn connected(&mut self, from_ns: u64) {
        self.tally.connect.add(self.now - from_ns);
    }

    fn secured(&mut self, from_ns: u64) {
        self.tally.handshake.add(self.now - from_ns);
    }

    fn first_byte(&mut self, asked: &Asked) {
        if asked.measured && asked.is_first && self.timed {
            self.tally.first_byte.add(self.now - asked.due_ns);
        }
    }

    fn body(&mut self, bytes: u64) {
        self.tally.interval(self.now).bytes += bytes;
        if self.sustain.0 <= self.now && self.now < self.sustain.1 {
            self.tally.bytes += bytes;
        }
    }
}

impl<'a> Worker<'a> {
    /// The share of thread number `thread`.
    pub fn new(plan: &'a Plan, thread: u64) -> io::Result<Self> {
        let lanes = match plan.task {
            Task::Requests { connections } => (thread..connections).step_by(plan.threads as usize).count(),
            Task::Connect | Task::Hold { .. } => 0,
        };
        Ok(Self {
            plan,
            clock: Clock::start(),
            poll: Poll::new()?,
            thread,
            next: thread,
            started_ns: 0,
            slots: Vec::new(),
            free: Vec::new(),
            open: 0,
            in_flight: 0,
            pending: 0,
            deadlines: Default::default(),
            lanes: (0..lanes).map(|_| Lane::default()).collect(),
            held_from: None,
            to_ask: Vec::new(),
            asked: 0,
            waits: false,
            tally: Tally::default(),
            buffer: vec![0; BUFFER_BYTES],
        })
    }

    /// Does it all; the threads begin together.
    pub fn run(mut self, together: &Together) -> io::Result<Tally> {
        self.open_lanes()?;
        together.begin();
        self.clock = Clock::start();
        for queue in &mut self.deadlines {
            queue.clear();
        }
        let last_ns = self.plan.schedule.due(self.plan.schedule.count.saturating_sub(1));
        let within_ns = self.plan.longest_ns();
        let mut events = Vec::new();
        loop {
            self.start_due();
            self.expire();
            if self.next >= self.plan.schedule.count {
                let over = match self.plan.task {
                    Task::Hold { .. } => self.hold(together),
                    _ => self.pending == 0 || self.clock.now() >= last_ns.max(self.started_ns) + within_ns,
                };
                if over {
                    break;
                }
            }
            self.poll.wait(self.sleep_ns(), &mut events)?;
            for event in &events {
                self.drive(event.number, event.is_closing);
            }
            let now = self.clock.now();
            self.tally.interval(now).open = self.open;
        }
        self.give_up();
        self.tally.cpu_ns = thread_cpu_ns();
        self.tally.busiest_ns = self.tally.cpu_ns;
        Ok(self.tally)
    }

    /// Opens the connections that requests will use, before the first is due. One that fails is opened when needed.
    fn open_lanes(&mut self) -> io::Result<()> {
        for lane in 0..self.lanes.len() {
            self.open_lane(lane);
        }
        let mut events = Vec::new();
        let opening =
            |worker: &Self| worker.slots.iter().flat_map(|slot| &slot.connection).any(|one| one.state != State::Idle);
        while opening(self) {
            self.poll.wait(self.sleep_ns().min(ns(0.1)), &mut events)?;
            for event in &events {
                self.drive(event.number, event.is_closing);
            }
            self.expire();
        }
        Ok(())
    }

    fn start_due(&mut self) {
        for _ in 0..AT_ONCE {
            if self.next >= self.plan.schedule.count {
                return;
            }
            let (number, due, now) = (self.next, self.plan.schedule.due(self.next), self.clock.now());
            if due > now {
                return;
            }
            self.advance();
            self.started_ns = now;
            let measured = self.is_measured(due);
            self.tally.due(measured);
            if measured {
                self.tally.lateness.add(now - due);
            }
            if self.lanes.is_empty() {
                self.pending += 1;
                if let Err(failure) = self.open(number, number) {
                    self.fail_number(number, failure);
                }
            } else {
                let lane = self.lane_of(number);
                self.lanes[lane].queue.push_back(number);
                self.pending += 1;
                self.serve_lane(lane);
            }
        }
    }

    /// Goes on to the next number of this thread: of requests, the next whose connection is one of its own.
    fn advance(&mut self) {
        self.next += match self.plan.task {
            Task::Requests { connections } => {
                let lane = self.next % connections;
                let is_last = lane + self.plan.threads >= connections;
                if is_last { connections - lane + self.thread } else { self.plan.threads }
            }
            Task::Connect | Task::Hold { .. } => self.plan.threads,
        };
    }

    /// The connection, among those of this thread, that the request of this number is sent on.
    fn lane_of(&self, number: u64) -> usize {
        let Task::Requests { connections } = self.plan.task else { return 0 };
        (number % connections / self.plan.threads) as usize
    }

    /// The number, among those of all threads, of a connection of this thread.
    pub(super) fn number_of_lane(&self, lane: usize) -> u64 {
        lane as u64 * self.plan.threads + self.thread
    }

    /// Opens a connection, to the port whose turn it is at number `turn`; its token is in its slot.
    pub(super) fn open(&mut self, number: u64, turn: u64) -> Result<usize, Failure> {
        let to = self.plan.to[(turn % self.plan.to.len() as u64) as usize];
        let mut connection = Connection::open(to, self.plan.tls.clone(), self.clock.now(), number)?;
        connection.left = self.plan.exchanges;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { connection: None, generation: 0 });
            self.slots.len() - 1
        });
        if self.poll.add(connection.socket(), self.token(slot)).is_err() {
            self.free.push(slot);
            return Err(Failure::NoFiles);
        }
        self.slots[slot].connection = Some(connection);
        self.open += 1;
        self.tally.opened += 1;
        self.tally.most_open = self.tally.most_open.max(self.open);
        self.set_deadline(slot, self.plan.connect_within_ns, 0);
        Ok(slot)
    }

    pub(super) fn token(&self, slot: usize) -> u64 {
        u64::from(self.slots[slot].generation) << 32 | slot as u64
    }

    /// Waits so long for what the connection does now. Each queue has one length of time, so is in order.
    pub(super) fn set_deadline(&mut self, slot: usize, within_ns: u64, queue: usize) {
        let (token, deadline) = (self.token(slot), self.clock.now() + within_ns);
        if let Some(connection) = &mut self.slots[slot].connection {
            connection.deadline_ns = deadline;
            self.deadlines[queue].push_back((deadline, token));
        }
    }

    pub(super) fn close(&mut self, slot: usize) {
        if let Some(connection) = self.slots[slot].connection.take() {
            if self.plan.reset {
                connection.reset_when_closed();
            }
            self.open -= 1;
            self.slots[slot].generation = self.slots[slot].generation.wrapping_add(1);
            self.free.push(slot);
        }
    }

    pub(super) fn is_measured(&self, due: u64) -> bool {
        due >= self.plan.sustain_ns.0
    }

    /// Has a connection do what it can; `is_closing`: the server's FIN has come, maybe together with an answer.
    pub(super) fn drive(&mut self, token: u64, is_closing: bool) {
        let slot = (token & 0xffff_ffff) as usize;
        if self.slots[slot].generation != (token >> 32) as u32 {
            return;
        }
        let now = self.clock.now();
        let Some(connection) = &mut self.slots[slot].connection else { return };
        let was = connection.state;
        let mut seen =
            Seen { tally: &mut self.tally, now, sustain: self.plan.sustain_ns, timed: self.held_from.is_none() };
        let step = connection.drive(&mut self.buffer, &mut seen);
        if connection.state == State::Shaking && was == State::Connecting {
            connection.since_ns = now;
            self.set_deadline(slot, self.plan.connect_within_ns, 0);
        }
        match step {
            Step::Nothing => {}
            Step::Ready => self.ready(slot),
            Step::Answered { closes } => self.answered(slot, closes || is_closing, now),
            Step::Failed(failure) => self.failed(slot, failure),
            Step::Ended => self.ended(slot),
        }
    }

    fn expire(&mut self) {
        let now = self.clock.now();
        for queue in 0..self.deadlines.len() {
            while let Some(&(deadline, token)) = self.deadlines[queue].front() {
                if deadline > now {
                    break;
                }
                self.deadlines[queue].pop_front();
                let slot = (token & 0xffff_ffff) as usize;
                if self.slots[slot].generation != (token >> 32) as u32 {
                    continue;
                }
                let Some(connection) = &self.slots[slot].connection else { continue };
                if connection.deadline_ns <= now {
                    let failure = connection.timeout();
                    self.failed(slot, failure);
                }
            }
        }
    }

    /// How long nothing is due.
    fn sleep_ns(&self) -> u64 {
        let now = self.clock.now();
        let mut until = now + ns(0.2);
        if self.next < self.plan.schedule.count {
            let due = self.plan.schedule.due(self.next);
            // Where each connection waits for an answer, what is due can only be put in a queue.
            let is_full = !self.lanes.is_empty() && self.in_flight >= self.lanes.len();
            until = until.min(if is_full { due.max(now + QUEUE_NS) } else { due });
        }
        if let Some(next_ns) = self.next_held_ns() {
            until = until.min(next_ns);
        }
        if self.waits {
            until = until.min(now + WAIT_NS);
        }
        for queue in &self.deadlines {
            if let Some(&(deadline, _)) = queue.front() {
                until = until.min(deadline);
            }
        }
        until.saturating_sub(now)
    }

    /// Counts what is still open at the end as out of time.
    fn give_up(&mut self) {
        for lane in 0..self.lanes.len() {
            while let Some(number) = self.lanes[lane].queue.pop_front() {
                self.fail_number(number, Failure::ResponseTimeout);
            }
        }
        for slot in 0..self.slots.len() {
            let unfinished = self.slots[slot].connection.as_ref().filter(|one| one.state.is_unfinished());
            if let Some(failure) = unfinished.map(Connection::timeout) {
                self.failed(slot, failure);
            }
            self.close(slot);
        }
    }
}
