//! The client: it begins what is due, asks again what was lost, and gives up on what takes too long.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::thread::available_parallelism;
use std::time::Duration;

use nicbench_bpf::Area;

use super::hook::{End, Hook, Link, find_peer};
use super::records::{Client, MOST_BODY, OBJECTS, Request, SENDERS, Work, counter, flag, kind, state, times};
use super::sender::Senders;
use super::wheel::Wheel;
use super::{now_ns, ticks};
use crate::client::tally::{Counts, Failure, Interval, Tally, Times};
use crate::client::{Plan, Task};
use crate::clock::thread_cpu_ns;

/// The local ports of connections.
const FIRST_LOCAL: u16 = 1024;
const LOCALS: u16 = u16::MAX - FIRST_LOCAL;
/// The first retransmission comes after this time, each further one after twice the time (RFC 6298 section 2).
const RETRANSMISSION_NS: u64 = 1_000_000_000;
/// How long a connection that got everything waits for the server's FIN.
const CLOSING_NS: u64 = 1_000_000_000;
/// How often the last FIN is sent again.
const LAST_TRIES: u8 = 3;
const MOST_TRIES: u8 = 20;
const SECOND_NS: u64 = 1_000_000_000;
/// The longest wait for a connection or an answer: a record has the time of its last request to 34 s.
const LONGEST_NS: u64 = 30 * SECOND_NS;
/// How long before it is due something is handed to the program, which waits for its time.
const HORIZON_NS: u64 = 20_000_000;
/// What has its time is begun later by less than this (`bpf/records.h`).
const LATEST_NS: u64 = 500_000_000;
/// The time between two looks at what happened.
const TURN: Duration = Duration::from_millis(1);
/// The most time that one RST takes.
const RESET_NS: u64 = 10_000;
/// Failures in the order of `enum failure`.
const FAILURES: [Failure; 12] = [
    Failure::Refused,
    Failure::Unreachable,
    Failure::ConnectTimeout,
    Failure::Reset,
    Failure::Short,
    Failure::ResponseTimeout,
    Failure::Status,
    Failure::Length,
    Failure::Content,
    Failure::NotHttp,
    Failure::Lost,
    Failure::Late,
];

/// Does what is planned by this interface. Returns what was counted, and how long it took in nanoseconds.
///
/// # Errors
/// The driver has no native XDP, the interface has another program, there is no route, or only the kernel's sockets can
/// do what is planned.
pub fn run(plan: &Plan, on: &Link) -> io::Result<(Tally, u64)> {
    let mut run = Run::new(plan, on)?;
    let senders = run.hook.start_senders(greatest_rate(plan))?;
    run.begin(&senders);
    while !run.is_over() && senders.are_running() {
        run.step();
    }
    run.finish(senders)
}

/// What a timer looks at: a use of a record, as it was when it was put in.
#[derive(Debug, Clone, Copy)]
struct Look {
    place: Place,
    tries: u8,
    /// Whether it stays with the connection, whatever this does next; else with one request.
    follows: bool,
    sent: u32,
}

/// A connection of the task `requests`, which is opened again where it has ended.
#[derive(Debug, Default)]
struct Lane {
    /// Numbers that were due and could not be sent.
    queue: VecDeque<u64>,
    place: Option<Place>,
    /// Whether it is among those that are served again and again.
    waits: bool,
    /// Requests that are planned and not done.
    planned: u32,
    /// What its sender is to send at once: its number there, and that of the schedule.
    sending: Option<(u32, u64)>,
}

/// A use of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    slot: u32,
    usage: u16,
    /// Whose record it is.
    sender: u16,
}

/// What one sender has of its own: records, and what was planned for it.
#[derive(Debug)]
struct Share {
    slots: Range<u32>,
    next_slot: u32,
    /// What was planned and not collected yet, in its order, and how many were collected.
    planned: VecDeque<Planned>,
    collected: u32,
}

impl Share {
    fn new(slots: Range<u32>) -> Self {
        Self { next_slot: slots.start, slots, planned: VecDeque::new(), collected: 0 }
    }
}

/// What was planned: a number of the schedule, or the second exchange of a held connection.
#[derive(Debug, Clone, Copy)]
enum Planned {
    Number(u64),
    Held,
}

struct Run<'a> {
    plan: &'a Plan,
    hook: Hook,
    clients: Area<Client>,
    shares: Vec<Share>,
    started_ns: u64,
    /// The next number that is to be planned.
    next: u64,
    wheel: Wheel<Look>,
    lanes: Vec<Lane>,
    waiting: VecDeque<usize>,
    /// Connections that are held, and when the second exchanges begin.
    held: Vec<Place>,
    held_from_ns: Option<u64>,
    held_asked: usize,
    /// How many this process itself has failed.
    failed: u64,
    tally: Tally,
    second: usize,
    before: Interval,
}

impl<'a> Run<'a> {
    fn new(plan: &'a Plan, on: &Link) -> io::Result<Self> {
        let requests = requests_of(plan)?;
        let to = plan.to[0].ip();
        let slots = slots_of(plan)?;
        let ports = plan.to.len() as u32;
        // More than there are CPUs would be in each other's way.
        let senders = (plan.threads as usize).min(available_parallelism()?.get()).min(SENDERS);
        let hop = find_peer(&on.interface, to)?;
        let mut hook = Hook::load(on, End::Client { records: slots, senders }, hop.from)?;
        hook.set_peer(to, hop);
        hook.set_requests(&requests)?;
        hook.fill_bodies()?;
        hook.wanted.first_port = plan.to[0].port();
        hook.wanted.ports = ports as u16;
        hook.wanted.first_local = FIRST_LOCAL;
        hook.wanted.locals = (slots / ports) as u16;
        hook.wanted.resets = u32::from(plan.reset);
        hook.attach()?;
        let lanes = match plan.task {
            Task::Requests { connections } => connections,
            _ => 0,
        };
        Ok(Self {
            plan,
            clients: hook.clients(slots as usize)?,
            hook,
            shares: shares_of(slots, senders as u32).map(Share::new).collect(),
            started_ns: 0,
            next: 0,
            wheel: Wheel::new(now_ns()),
            lanes: (0..lanes).map(|_| Lane::default()).collect(),
            waiting: VecDeque::new(),
            held: Vec::new(),
            held_from_ns: None,
            held_asked: 0,
            failed: 0,
            tally: Tally::default(),
            second: 0,
            before: Interval::default(),
        })
    }

    /// Sets the moment of the first number, once all threads send: the kernel takes its time to begin.
    fn begin(&mut self, senders: &Senders) {
        let nothing = Work { kind: kind::RESEND, usage: u16::MAX, ..Work::default() };
        for sender in 0..self.shares.len() {
            self.hook.rings.send_now(sender, nothing);
        }
        self.hook.publish();
        while (0..self.shares.len()).any(|sender| self.hook.rings.waiting(sender) > 0) && senders.are_running() {
            std::thread::sleep(TURN);
        }
        self.started_ns = now_ns() + HORIZON_NS;
        self.hook.wanted.sustain_from_ns = self.started_ns + self.plan.sustain_ns.0;
        self.hook.wanted.sustain_to_ns = self.started_ns + self.plan.sustain_ns.1;
    }

    fn due_ns(&self, number: u64) -> u64 {
        self.started_ns + self.plan.schedule.due(number)
    }

    fn is_measured(&self, number: u64) -> bool {
        self.plan.schedule.due(number) >= self.plan.sustain_ns.0
    }

    fn record(&self, place: Place) -> Option<Client> {
        let record = self.clients.get(place.slot as usize);
        (record.usage() == place.usage).then_some(record)
    }

    /// One turn: what was done, what is due soon, what waits, and what takes too long.
    fn step(&mut self) {
        let now = now_ns();
        (0..self.shares.len()).for_each(|sender| self.collect(sender));
        self.plan_numbers(now);
        self.plan_held(now);
        self.serve_lanes(now);
        self.look_after(now);
        self.hook.publish();
        self.sample(now);
        if self.waiting.is_empty() {
            std::thread::sleep(TURN);
        }
    }

    /// Looks at what a sender has had its turn with: a record was not free, or a connection was not idle.
    fn collect(&mut self, sender: usize) {
        let done = self.hook.rings.progress(sender).planned;
        while self.shares[sender].collected != done {
            let share = &mut self.shares[sender];
            let work = self.hook.rings.planned(sender, share.collected);
            share.collected = share.collected.wrapping_add(1);
            let Some(planned) = share.planned.pop_front() else { break };
            let is_sent = work.kind == 0;
            match planned {
                Planned::Held if !is_sent => {
                    let place = Place { slot: work.slot, usage: work.usage, sender: sender as u16 };
                    // One that never stood was counted when it failed.
                    if self.record(place).is_some_and(|record| record.state() != state::FREE || record.left == 0) {
                        self.fail(Failure::Lost, true);
                    }
                }
                Planned::Number(number) if !self.lanes.is_empty() => {
                    let lane = self.lane_of(number);
                    self.lanes[lane].planned -= 1;
                    if !is_sent {
                        self.queue_up(lane, number); // its connection was busy, or the process late
                    }
                }
                Planned::Number(number) if !is_sent => {
                    let is_late = now_ns().saturating_sub(self.due_ns(number)) >= LATEST_NS;
                    let why = if is_late { Failure::NotBegun } else { Failure::NoPorts };
                    self.fail(why, self.is_measured(number));
                }
                _ => {}
            }
        }
    }

    fn lane_of(&self, number: u64) -> usize {
        (number % self.lanes.len() as u64) as usize
    }

    /// The sender of a number of the schedule: they take turns, and a lane keeps its sender.
    fn sender_of(&self, number: u64) -> usize {
        let turn = if self.lanes.is_empty() { number } else { self.lane_of(number) as u64 };
        (turn % self.shares.len() as u64) as usize
    }

    fn plan(&mut self, sender: usize, work: Work, planned: Planned) {
        self.hook.rings.plan(sender, work);
        self.shares[sender].planned.push_back(planned);
    }

    fn has_room(&self, sender: usize) -> bool {
        self.hook.rings.planned_room(sender, self.shares[sender].collected) > 0
    }

    fn plan_numbers(&mut self, now: u64) {
        let until = now + HORIZON_NS;
        while self.next < self.plan.schedule.count
            && self.has_room(self.sender_of(self.next))
            && self.due_ns(self.next) <= until
        {
            let number = self.next;
            let sender = self.sender_of(number);
            self.next += 1;
            self.tally.due(self.is_measured(number));
            let work = if self.lanes.is_empty() {
                self.take_place(sender).map(|place| self.opening(place, number))
            } else {
                self.on_lane(number)
            };
            match work {
                Some(work) => self.plan(sender, work, Planned::Number(number)),
                None if self.lanes.is_empty() => self.fail(Failure::NoPorts, self.is_measured(number)),
                None => {}
            }
        }
    }

    /// What a lane is to send for this number when it is due; None where others wait there before it.
    fn on_lane(&mut self, number: u64) -> Option<Work> {
        let at = self.lane_of(number);
        if !self.lanes[at].queue.is_empty() || self.lanes[at].sending.is_some() {
            self.queue_up(at, number);
            return None;
        }
        let present = self.lanes[at].place.filter(|&place| self.is_usable(place));
        let work = match present {
            Some(place) => Some(self.asking(place, number)),
            None if self.lanes[at].planned > 0 => None, // it is being opened
            None => self.open_lane(at, number),
        };
        match work {
            Some(_) => self.lanes[at].planned += 1,
            None => self.queue_up(at, number),
        }
        work
    }

    fn is_usable(&self, place: Place) -> bool {
        self.record(place).is_some_and(|record| matches!(record.state(), state::OPENING | state::ASKED | state::IDLE))
    }

    fn open_lane(&mut self, at: usize, number: u64) -> Option<Work> {
        let place = self.take_place(self.sender_of(number))?;
        self.tally.reopened += u64::from(self.lanes[at].place.is_some());
        self.lanes[at].place = Some(place);
        Some(self.opening(place, number))
    }

    fn fail(&mut self, failure: Failure, measured: bool) {
        self.failed += 1;
        self.tally.fail(failure, measured, now_ns().saturating_sub(self.started_ns));
    }

    /// The next of a sender's records in turn, if nobody uses it: ports are used again as late as can be.
    fn take_place(&mut self, sender: usize) -> Option<Place> {
        let share = &mut self.shares[sender];
        let slot = share.next_slot;
        if share.slots.is_empty() {
            return None;
        }
        let record = self.clients.get(slot as usize);
        (record.state() == state::FREE).then(|| {
            share.next_slot = if slot + 1 == share.slots.end { share.slots.start } else { slot + 1 };
            Place { slot, usage: record.usage().wrapping_add(1), sender: sender as u16 }
        })
    }

    fn opening(&mut self, place: Place, number: u64) -> Work {
        let due_ns = self.due_ns(number);
        let measured = if self.is_measured(number) { flag::MEASURED } else { 0 };
        let (flags, exchanges) = match self.plan.task {
            Task::Connect => (flag::CLOSES, self.plan.exchanges as u16),
            Task::Requests { .. } => (0, 1),
            Task::Hold { .. } => (flag::KEPT, 1),
        };
        self.wheel.put(
            due_ns + self.plan.connect_within_ns.min(RETRANSMISSION_NS),
            Look { place, tries: 0, follows: true, sent: 0 },
        );
        if matches!(self.plan.task, Task::Hold { .. }) {
            self.held.push(place);
        }
        let flags = flags | measured | flag::TIMED;
        self.work(place, kind::OPEN, number, due_ns, flags, exchanges)
    }

    fn asking(&mut self, place: Place, number: u64) -> Work {
        let measured = if self.is_measured(number) { flag::MEASURED } else { 0 };
        self.ask(place, number, self.due_ns(number), flag::TIMED | measured)
    }

    fn ask(&mut self, place: Place, number: u64, due_ns: u64, flags: u8) -> Work {
        let patience_ns = self.plan.answer_within_ns.min(RETRANSMISSION_NS);
        let from_ns = due_ns.max(now_ns());
        self.wheel.put(from_ns + patience_ns, Look { place, tries: 0, follows: false, sent: 0 });
        self.work(place, kind::ASK, number, due_ns, flags, 1)
    }

    fn work(&self, place: Place, kind: u8, number: u64, due_ns: u64, flags: u8, exchanges: u16) -> Work {
        let object = self.plan.mix.kind(number) as u16;
        Work { due_ns, slot: place.slot, object, exchanges, kind, flags, usage: place.usage, sent: 0 }
    }

    fn queue_up(&mut self, lane: usize, number: u64) {
        let late_ns = now_ns().saturating_sub(self.due_ns(number));
        self.tally.lateness.add(late_ns);
        self.lanes[lane].queue.push_back(number);
        self.let_wait(lane);
    }

    fn let_wait(&mut self, lane: usize) {
        if !self.lanes[lane].waits {
            self.lanes[lane].waits = true;
            self.waiting.push_back(lane);
        }
    }

    /// Sends what waits on connections that are idle, and opens those that have ended.
    fn serve_lanes(&mut self, now: u64) {
        for _ in 0..self.waiting.len() {
            let Some(at) = self.waiting.pop_front() else { break };
            self.lanes[at].waits = false;
            if self.hook.rings.urgent_room(at % self.shares.len()) > 0 {
                self.serve_lane(at, now);
            }
            if !self.lanes[at].queue.is_empty() || self.lanes[at].sending.is_some() {
                self.let_wait(at);
            }
        }
    }

    fn serve_lane(&mut self, at: usize, now: u64) {
        let sender = at % self.shares.len();
        if let Some((number, scheduled)) = self.lanes[at].sending {
            match self.hook.rings.is_sent(sender, number) {
                None => return,
                Some(true) => {}
                Some(false) => self.lanes[at].queue.push_front(scheduled),
            }
            self.lanes[at].sending = None;
        }
        let Some(&number) = self.lanes[at].queue.front() else { return };
        if self.lanes[at].planned > 0 || self.due_ns(number) > now {
            return;
        }
        let present = self.lanes[at].place.and_then(|place| self.record(place).map(|record| (place, record.state())));
        let work = match present {
            Some((place, state::IDLE)) => Some(self.asking(place, number)),
            Some((_, state::OPENING | state::ASKED)) => None,
            _ => self.open_lane(at, number),
        };
        if let Some(mut work) = work {
            work.flags |= flag::WAITED;
            self.lanes[at].queue.pop_front();
            self.lanes[at].sending = Some((self.hook.rings.send_now(sender, work), number));
        }
    }

    /// Plans the second exchanges of held connections, once all of them stand or have failed, spread over the time for
    /// which they are held.
    fn plan_held(&mut self, now: u64) {
        let Task::Hold { hold_ns } = self.plan.task else { return };
        let Some(from) = self.held_from_ns else {
            if self.next == self.plan.schedule.count && self.is_all_collected() && self.are_all_open() {
                self.held_from_ns = Some(now);
            }
            return;
        };
        let of = self.held.len() as u128;
        while let Some(&place) = self.held.get(self.held_asked)
            && self.has_room(place.sender.into())
        {
            let due_ns = from + (u128::from(hold_ns) * self.held_asked as u128 / of) as u64;
            if due_ns > now + HORIZON_NS {
                break;
            }
            let work = self.ask(place, self.held_asked as u64, due_ns, flag::TIMED | flag::HELD | flag::MEASURED);
            self.held_asked += 1;
            self.plan(place.sender.into(), work, Planned::Held);
        }
    }

    fn is_all_collected(&self) -> bool {
        self.shares.iter().all(|share| share.planned.is_empty())
    }

    fn are_all_open(&self) -> bool {
        let counts = self.hook.counts();
        counts[counter::KEPT_ANSWERED] + failures_in(&counts) + self.failed >= self.plan.schedule.count
    }

    /// Looks at connections whose time for something is over.
    fn look_after(&mut self, now: u64) {
        while let Some(looks) = self.wheel.take(now) {
            for look in looks {
                self.look_at(look, now);
            }
        }
    }

    fn look_at(&mut self, mut look: Look, now: u64) {
        let Some(record) = self.record(look.place) else { return };
        let state = record.state();
        if matches!(state, state::FREE | state::IDLE) {
            return;
        }
        if look.sent != record.sent {
            if !look.follows && look.sent != 0 {
                return; // another request is under way, which has a look of its own
            }
            (look.sent, look.tries) = (record.sent, 0);
        }
        // It may have been sent since this turn began.
        let age_ticks = (ticks(now).wrapping_sub(record.sent) as i32).max(0) as u64;
        let age_ns = age_ticks << super::records::TICK_BITS;
        let (within_ns, resends) = match state {
            state::OPENING => (self.plan.connect_within_ns, true),
            state::ASKED => (self.plan.answer_within_ns, record.flags() & flag::ACKNOWLEDGED == 0),
            state::CLOSING => (CLOSING_NS, false),
            _ => (after_tries(LAST_TRIES), true),
        };
        let kind = if age_ns >= within_ns {
            Some(kind::GIVE_UP)
        } else if resends && age_ns >= after_tries(look.tries) {
            look.tries = (look.tries + 1).min(MOST_TRIES);
            Some(kind::RESEND)
        } else {
            None
        };
        if let Some(kind) = kind {
            let Place { slot, usage, sender } = look.place;
            if self.hook.rings.urgent_room(sender.into()) == 0 {
                self.wheel.put(now + 1, look);
                return;
            }
            self.hook.rings.send_now(sender.into(), Work { slot, usage, kind, sent: record.sent, ..Work::default() });
        }
        // Also of one that is given up: it may go on before the program gives it up.
        let wait_ns = if resends { within_ns.min(after_tries(look.tries)) } else { within_ns };
        self.wheel.put(now + wait_ns.saturating_sub(age_ns), look);
    }

    /// Once a second, what happened in it.
    fn sample(&mut self, now: u64) {
        let open = self.open_now();
        self.tally.most_open = self.tally.most_open.max(open);
        let second = (now.saturating_sub(self.started_ns) / SECOND_NS) as usize;
        if second > self.second {
            self.close_second(open);
            self.second = second;
        }
    }

    fn open_now(&self) -> u64 {
        self.hook.count(counter::OPENED).saturating_sub(self.hook.count(counter::ENDED))
    }

    fn close_second(&mut self, open: u64) {
        let counts = self.hook.counts();
        let whole = Interval {
            completed: counts[counter::COMPLETED] + counts[counter::COMPLETED + 1],
            failed: failures_in(&counts),
            bytes: counts[counter::ALL_BYTES],
            open,
        };
        let interval = self.tally.interval(self.second as u64 * SECOND_NS);
        interval.completed += whole.completed - self.before.completed;
        interval.failed += whole.failed - self.before.failed;
        interval.bytes += whole.bytes - self.before.bytes;
        interval.open = open;
        self.before = whole;
    }

    /// Whether all that was due has ended, and of held connections the time is over.
    fn is_over(&self) -> bool {
        if self.next < self.plan.schedule.count || !self.waiting.is_empty() || !self.is_all_collected() {
            return false;
        }
        if let Task::Hold { hold_ns } = self.plan.task
            && self.held_from_ns.is_none_or(|from| self.held_asked < self.held.len() || now_ns() < from + hold_ns)
        {
            return false;
        }
        let counts = self.hook.counts();
        let done = counts[counter::COMPLETED] + counts[counter::COMPLETED + 1] + failures_in(&counts) + self.failed;
        done >= self.plan.schedule.count
    }

    /// Ends connections that stay, waits for those that are about to end, and reads all counts.
    fn finish(mut self, senders: Senders) -> io::Result<(Tally, u64)> {
        let wall_ns = now_ns() - self.started_ns;
        self.close_second(self.open_now());
        let mut places: Vec<Place> = self.lanes.iter().filter_map(|lane| lane.place).collect();
        places.append(&mut self.held);
        let until = now_ns() + CLOSING_NS + places.len() as u64 * RESET_NS;
        while (self.open_now() > 0 || !places.is_empty()) && now_ns() < until && senders.are_running() {
            while let Some(&Place { slot, usage, sender }) = places.last()
                && self.hook.rings.urgent_room(sender.into()) > 0
            {
                self.hook.rings.send_now(sender.into(), Work { slot, usage, kind: kind::RESET, ..Work::default() });
                places.pop();
            }
            self.look_after(now_ns());
            self.hook.publish();
            std::thread::sleep(TURN);
        }
        let sender_ns = senders.end()?;
        let counts = self.hook.counts();
        let tally = &mut self.tally;
        for (phase, offset) in [(&mut tally.ramp, 0), (&mut tally.sustain, 1)] {
            add_counts(phase, &counts, offset);
        }
        tally.in_time = counts[counter::IN_TIME];
        tally.bytes = counts[counter::BODY_BYTES];
        tally.opened = counts[counter::OPENED];
        tally.held = counts[counter::HELD_ANSWERED];
        tally.segments = Some(self.hook.segments());
        for (times, which) in [
            (&mut tally.connect, times::CONNECT),
            (&mut tally.first_byte, times::FIRST_BYTE),
            (&mut tally.last_byte, times::LAST_BYTE),
            (&mut tally.lateness, times::LATENESS),
        ] {
            add_times(times, self.hook.times(which));
        }
        tally.cpu_ns = thread_cpu_ns() + sender_ns;
        // Threads that send look at the clock all the time: what they do beside cannot be told from that.
        tally.busiest_ns = thread_cpu_ns();
        Ok((self.tally, wall_ns))
    }
}

/// When a segment is sent again for this time, in nanoseconds after it was sent first.
fn after_tries(tries: u8) -> u64 {
    RETRANSMISSION_NS * ((2 << tries) - 1)
}

/// The most that is due in a second.
fn greatest_rate(plan: &Plan) -> f64 {
    let asked_again = match plan.task {
        Task::Hold { hold_ns } => plan.schedule.count as f64 * SECOND_NS as f64 / hold_ns.max(1) as f64,
        _ => 0.0,
    };
    asked_again.max(plan.schedule.rate)
}

/// The records of each sender, as many as it has numbers of the schedule in its turns.
fn shares_of(slots: u32, senders: u32) -> impl Iterator<Item = Range<u32>> {
    let mut end = 0;
    (0..senders).map(move |sender| {
        let start = end;
        end += (slots + senders - 1 - sender) / senders;
        start..end
    })
}

/// The number of records that a plan needs: as many as it has connections, so that no port is used twice, or as there
/// are ports.
fn slots_of(plan: &Plan) -> io::Result<u32> {
    let ports = plan.to.len() as u64;
    let all = u64::from(LOCALS) * ports;
    let wanted = match plan.task {
        Task::Connect | Task::Hold { .. } => plan.schedule.count,
        Task::Requests { connections } => 2 * connections,
    };
    if matches!(plan.task, Task::Hold { .. }) && wanted > all {
        let what = format!("{ports} ports of one address have {all} connections, and {wanted} are to be held");
        return Err(io::Error::other(format!("{what}: next, give more --ports")));
    }
    Ok(wanted.next_multiple_of(ports).clamp(ports, all) as u32)
}

fn add_times(times: &mut Times, seen: impl Iterator<Item = (u64, u64)>) {
    seen.for_each(|(ns, count)| times.add_many(ns, count));
}

fn add_counts(phase: &mut Counts, counts: &[u64], offset: usize) {
    phase.completed += counts[counter::COMPLETED + offset];
    for (number, failure) in FAILURES.into_iter().enumerate() {
        let count = counts[counter::FAILED + 2 * number + offset];
        if count > 0 {
            *phase.failed.entry(failure).or_default() += count;
        }
    }
}

fn failures_in(counts: &[u64]) -> u64 {
    counts[counter::FAILED..].iter().sum()
}

/// The requests of a plan, as the programs send them.
fn requests_of(plan: &Plan) -> io::Result<Vec<Request>> {
    let other = |what: &str| {
        Err(io::Error::other(format!("an end in the driver's hook {what}: next, use the kernel's sockets")))
    };
    if plan.tls.is_some() {
        return other("speaks no TLS");
    }
    if plan.connect_within_ns.max(plan.answer_within_ns) > LONGEST_NS {
        return other(&format!("waits at most {} s", LONGEST_NS / SECOND_NS));
    }
    if plan.exchanges > u32::from(u16::MAX) {
        return other(&format!("makes at most {} exchanges of a connection", u16::MAX));
    }
    if plan.objects.len() > OBJECTS {
        return other(&format!("asks for at most {OBJECTS} kinds of objects"));
    }
    let mut requests = Vec::new();
    for object in &plan.objects {
        let Some(body) = object.expected.filter(|&bytes| bytes <= MOST_BODY) else {
            return other(&format!("takes answers of a known length, of at most {MOST_BODY} bytes"));
        };
        match Request::new(&object.request, &object.last_request, body as u32) {
            Some(request) => requests.push(request),
            None => return other("sends a request in one segment"),
        }
    }
    Ok(requests)
}
