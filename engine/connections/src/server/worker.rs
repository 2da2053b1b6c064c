//! A thread of the server: it accepts, answers, and holds back what is to be late.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::ServerConfig;

use super::connection::{Broken, Connection, Request, Step};
use super::{Counted, Serving};
use crate::clock::{Clock, ns, thread_cpu_ns};
use crate::poll::Poll;
use crate::transport::Transport;

const BUFFER_BYTES: usize = 16 * 1024;
const LISTENERS: u64 = 1 << 63;
/// Between looks at the signal, which wakes one thread only.
const LOOK_S: f64 = 0.1;
/// The longest time between looks at who waits to be accepted, where that is done by the clock.
const ACCEPT_LOOK_NS: u64 = 1_000_000;

struct Slot {
    connection: Option<Connection>,
    generation: u32,
}

struct Late {
    until_ns: u64,
    token: u64,
    request: Request,
    number: u64,
}

/// A thread.
pub struct Worker<'a> {
    serving: &'a Serving,
    counted: &'a Counted,
    listeners: Vec<TcpListener>,
    tls: Option<Arc<ServerConfig>>,
    poll: Poll,
    clock: Clock,
    slots: Vec<Slot>,
    free: Vec<usize>,
    late: VecDeque<Late>,
    buffer: Vec<u8>,
    /// When the next connection may be accepted, and on which listener first; where that is done by the clock.
    accept_ns: u64,
    next: usize,
}

impl<'a> Worker<'a> {
    /// A thread that listens on these.
    pub fn new(
        serving: &'a Serving,
        counted: &'a Counted,
        listeners: Vec<TcpListener>,
        tls: Option<Arc<ServerConfig>>,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        if serving.accept_pause_ns.is_none() {
            for (number, listener) in listeners.iter().enumerate() {
                poll.add_listener(listener, LISTENERS | number as u64)?;
            }
        }
        Ok(Self {
            serving,
            counted,
            listeners,
            tls,
            poll,
            clock: Clock::start(),
            slots: Vec::new(),
            free: Vec::new(),
            late: VecDeque::new(),
            buffer: vec![0; BUFFER_BYTES],
            accept_ns: 0,
            next: 0,
        })
    }

    /// Serves until `stop`.
    pub fn run(mut self, stop: &AtomicBool) -> io::Result<()> {
        let mut ready = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let now = self.clock.now();
            let mut until = self.late.front().map_or(now + ns(LOOK_S), |late| late.until_ns.min(now + ns(LOOK_S)));
            if let Some(pause_ns) = self.serving.accept_pause_ns {
                until = until.min(self.accept_due(pause_ns)?);
            }
            self.poll.wait(until.saturating_sub(now), &mut ready)?;
            for token in ready.iter().map(|event| event.number) {
                if token & LISTENERS == 0 {
                    self.drive(token);
                } else {
                    while self.accept_one((token & !LISTENERS) as usize)? {}
                }
            }
            self.answer_late();
        }
        self.counted.cpu_ns.fetch_add(thread_cpu_ns(), Ordering::Relaxed);
        Ok(())
    }

    /// Accepts the connections that are due, one listener after the other. Returns when to look again.
    ///
    /// Time in which nobody waited is not saved up; time in which this thread did not run is made up for.
    fn accept_due(&mut self, pause_ns: u64) -> io::Result<u64> {
        let now = self.clock.now();
        while self.accept_ns <= now {
            let mut left = self.listeners.len();
            while left > 0 && !self.accept_one(self.next)? {
                self.next = (self.next + 1) % self.listeners.len();
                left -= 1;
            }
            if left == 0 {
                self.accept_ns = now;
                return Ok(now + pause_ns.min(ACCEPT_LOOK_NS));
            }
            self.next = (self.next + 1) % self.listeners.len();
            self.accept_ns += pause_ns;
        }
        Ok(self.accept_ns)
    }

    /// Accepts a connection, if one waits there; whether one did.
    fn accept_one(&mut self, listener: usize) -> io::Result<bool> {
        let socket = loop {
            match self.listeners[listener].accept() {
                Ok((socket, _)) => break socket,
                // Without files the kernel keeps what is waiting; it is looked at again with the next one.
                Err(error) if error.kind() == ErrorKind::WouldBlock || error.raw_os_error() == Some(24) => {
                    return Ok(false);
                }
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => {}
                Err(error) => return Err(error),
            }
        };
        self.counted.accepted.fetch_add(1, Ordering::Relaxed);
        socket.set_nonblocking(true)?;
        let _ = socket.set_nodelay(true);
        let session = match &self.tls {
            Some(config) => Some(rustls::ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?.into()),
            None => None,
        };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { connection: None, generation: 0 });
            self.slots.len() - 1
        });
        let token = u64::from(self.slots[slot].generation & 0x7fff_ffff) << 32 | slot as u64;
        self.poll.add(&socket, token)?;
        self.slots[slot].connection = Some(Connection::new(Transport::new(socket, session)));
        Ok(true)
    }

    fn drive(&mut self, token: u64) {
        let slot = (token & 0xffff_ffff) as usize;
        if u64::from(self.slots[slot].generation & 0x7fff_ffff) != token >> 32 {
            return;
        }
        loop {
            let Some(connection) = &mut self.slots[slot].connection else { return };
            let step = connection.drive(&mut self.buffer);
            let asked = step != Step::Waits;
            let step = match step {
                Step::Asked(request) => {
                    let number = self.counted.requests.fetch_add(1, Ordering::Relaxed) + 1;
                    if self.serving.delays(number) {
                        connection.delayed = true;
                        let until_ns = self.clock.now() + self.serving.delay_ns;
                        self.late.push_back(Late { until_ns, token, request, number });
                        return;
                    }
                    self.answer(slot, request, number)
                }
                step => step,
            };
            match &self.slots[slot].connection {
                Some(_) if step == Step::Over => return self.close(slot),
                // What came with the last request was read with it, and no event tells of it again.
                Some(connection) if asked && connection.may_have_more() => {}
                _ => return,
            }
        }
    }

    fn answer(&mut self, slot: usize, request: Request, number: u64) -> Step {
        let every = |count: u64| count > 0 && number % count == 0;
        let serving = self.serving;
        let broken = if every(serving.reset_every) {
            Some(Broken::Reset)
        } else if every(serving.short_every) {
            Some(Broken::Short)
        } else if every(serving.status_every) {
            Some(Broken::Status)
        } else if every(serving.corrupt_every) {
            Some(Broken::Content)
        } else {
            None
        };
        if broken.is_some() {
            self.counted.broken.fetch_add(1, Ordering::Relaxed);
        }
        match &mut self.slots[slot].connection {
            Some(connection) => connection.answer(request, broken),
            None => Step::Waits,
        }
    }

    fn answer_late(&mut self) {
        let now = self.clock.now();
        while self.late.front().is_some_and(|late| late.until_ns <= now) {
            let Some(late) = self.late.pop_front() else { return };
            let slot = (late.token & 0xffff_ffff) as usize;
            if u64::from(self.slots[slot].generation & 0x7fff_ffff) != late.token >> 32 {
                continue;
            }
            if let Some(connection) = &mut self.slots[slot].connection {
                connection.delayed = false;
            }
            match self.answer(slot, late.request, late.number) {
                Step::Over => self.close(slot),
                _ => self.drive(late.token),
            }
        }
    }

    fn close(&mut self, slot: usize) {
        self.slots[slot].connection = None;
        self.slots[slot].generation = self.slots[slot].generation.wrapping_add(1);
        self.free.push(slot);
    }
}
