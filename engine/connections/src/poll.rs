//! What a thread waits for: sockets that became ready, and a moment, to the nanosecond.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use crate::clock::Clock;

const TIMER: u64 = u64::MAX;
/// Nearer than this a thread looks again instead of sleeping, which takes as long.
const NEAR_NS: u64 = 20_000;
/// Two moments that are no farther apart are one: they are the same moment, reckoned from two readings of the clock.
const SAME_NS: u64 = 2_000;
const MOST_EVENTS: usize = 512;

/// Sockets by their number, each told of once when it becomes readable, writable or broken (edge-triggered).
pub struct Poll {
    epoll: OwnedFd,
    timer: OwnedFd,
    events: Vec<Event>,
    /// When the timer fires, in nanoseconds of `clock`; 0: it is not armed.
    armed_ns: u64,
    clock: Clock,
}

/// A socket that is ready.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    /// Its number.
    pub number: u64,
    /// Whether the peer has closed its side: what came before is still to be read, and no other event tells of it.
    pub is_closing: bool,
}

impl Poll {
    /// Nothing to wait for yet.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        // epoll's own time is whole milliseconds before Linux 5.11; a timer has nanoseconds everywhere.
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN | EventFlags::ET)?;
        Ok(Self { epoll, timer, events: Vec::with_capacity(MOST_EVENTS), armed_ns: 0, clock: Clock::start() })
    }

    /// Adds a socket, which leaves when it is closed.
    pub fn add(&self, socket: impl AsFd, number: u64) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(number), flags)?)
    }

    /// Adds a socket that is told of as long as somebody waits to be accepted.
    pub fn add_listener(&self, socket: impl AsFd, number: u64) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(number), EventFlags::IN)?)
    }

    /// Has the timer fire so much later, or earlier: what it is armed for stays where it comes before that, so that
    /// answers that come between two moments cost no call of the kernel.
    fn arm(&mut self, after_ns: u64) -> io::Result<()> {
        let until_ns = self.clock.now() + after_ns;
        if self.armed_ns != 0 && self.armed_ns <= until_ns + SAME_NS {
            return Ok(());
        }
        let it_value = Timespec { tv_sec: (after_ns / 1_000_000_000) as i64, tv_nsec: (after_ns % 1_000_000_000) as _ };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &Itimerspec { it_interval, it_value })?;
        self.armed_ns = until_ns;
        Ok(())
    }

    /// Waits at most so long, and puts the sockets that are ready into `ready`; a signal ends the wait.
    pub fn wait(&mut self, at_most_ns: u64, ready: &mut Vec<Ready>) -> io::Result<()> {
        ready.clear();
        self.events.clear();
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut timeout = Some(&at_once);
        if at_most_ns > NEAR_NS {
            self.arm(at_most_ns)?;
            timeout = None;
        }
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.events), timeout) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        if self.armed_ns <= self.clock.now() {
            self.armed_ns = 0;
        }
        ready.extend(
            self.events.iter().filter(|event| event.data.u64() != TIMER).map(|event| Ready {
                number: event.data.u64(),
                is_closing: { event.flags }.contains(EventFlags::RDHUP),
            }),
        );
        Ok(())
    }
}
