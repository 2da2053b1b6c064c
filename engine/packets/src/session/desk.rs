//! Where requests wait for the worker, and what they may do while it is busy.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use nicbench_protocol::{Command, Reply, Request};

use super::lease::Lease;
use super::{bad_state, input};
use crate::error::{EngineError, ErrorKind};
use crate::output::Output;
use crate::snapshot::Snapshot;
use crate::sys::signal;
use crate::worker::{Order, Orders};

/// What the other threads tell the worker.
#[derive(Debug)]
pub enum Message {
    Request(Request),
    /// The engine is to exit with this status.
    End(i32),
}

/// The way in for other threads.
#[derive(Debug, Clone)]
pub struct Mailbox {
    sender: Sender<Message>,
    waiting: Arc<AtomicBool>,
}

impl Mailbox {
    /// Never blocks.
    pub fn post(&self, message: Message) {
        // The worker is gone only when the process is about to be.
        let _ = self.sender.send(message);
        self.waiting.store(true, Ordering::Release);
    }
}

/// See the module.
#[derive(Debug)]
pub struct Desk {
    output: Arc<Output>,
    receiver: Receiver<Message>,
    waiting: Arc<AtomicBool>,
    /// Taken while the worker was busy, to be done after.
    deferred: VecDeque<Request>,
    transmitting: bool,
    ending: Option<i32>,
    closing: Option<i64>,
}

impl Desk {
    /// Starts the threads that read stdin and watch the lease.
    pub fn open(output: Arc<Output>, snapshot: Arc<Snapshot>) -> Self {
        let (sender, receiver) = channel();
        let waiting = Arc::new(AtomicBool::new(false));
        let mailbox = Mailbox { sender, waiting: Arc::clone(&waiting) };
        let lease = Arc::new(Lease::new());
        lease.watch(mailbox.clone());
        input::read(Arc::clone(&output), snapshot, lease, mailbox);
        Self { output, receiver, waiting, deferred: VecDeque::new(), transmitting: false, ending: None, closing: None }
    }

    /// The next message, or `None` after `wait`.
    pub fn next(&mut self, wait: Duration) -> Option<Message> {
        if let Some(request) = self.deferred.pop_front() {
            return Some(Message::Request(request));
        }
        if let Some(signal) = signal::received() {
            return Some(Message::End(128 + signal));
        }
        self.receiver.recv_timeout(wait).ok()
    }

    /// Says which requests make sense now.
    pub fn transmitting(&mut self, transmitting: bool) {
        self.transmitting = transmitting;
    }

    /// The engine is to exit with `status`; the first reason counts.
    pub fn end(&mut self, status: i32) {
        self.ending.get_or_insert(status);
    }

    /// The exit status, once there is one.
    pub fn ending(&self) -> Option<i32> {
        self.ending
    }

    /// The engine is to exit; the reply follows when the ports are free.
    pub fn close(&mut self, id: i64) {
        self.end(0);
        self.closing = Some(id);
    }

    /// The reply to `close`.
    pub fn confirm_close(&mut self) {
        if let Some(id) = self.closing.take() {
            self.output.reply(id, &Reply::Done {});
        }
    }

    /// The reply to a request that was cut short.
    pub fn interrupted(&self, id: i64) {
        let error = EngineError::new(ErrorKind::Interrupted, "the engine was told to end", "start another process");
        self.output.fail(id, error);
    }

    /// Every request is answered, also those that nobody will do any more.
    pub fn refuse_the_rest(&mut self) {
        let posted = std::iter::from_fn(|| self.receiver.try_recv().ok());
        let posted = posted.filter_map(|message| match message {
            Message::Request(request) => Some(request),
            Message::End(_) => None,
        });
        let requests: Vec<Request> = self.deferred.drain(..).chain(posted).collect();
        for request in requests {
            self.interrupted(request.id);
        }
    }

    fn handle_while_busy(&mut self, request: Request) -> Order {
        match request.command {
            Command::Stop if self.transmitting => {
                self.output.reply(request.id, &Reply::Done {});
                return Order::Stop;
            }
            Command::Close => {
                self.close(request.id);
                return Order::Quit;
            }
            Command::Start(_) | Command::Configure(_) | Command::Settle { .. }
                if self.transmitting && self.deferred.is_empty() =>
            {
                let next = "wait for `transmitted`, or ask for `stop`";
                self.output.fail(request.id, bad_state("a transmission is running", next));
            }
            _ => self.deferred.push_back(request),
        }
        Order::Continue
    }
}

impl Orders for Desk {
    #[inline]
    fn waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) || signal::received().is_some()
    }

    fn take(&mut self) -> Order {
        if let Some(signal) = signal::received() {
            self.end(128 + signal);
            return Order::Quit;
        }
        // Cleared first: whatever is posted later sets it again.
        self.waiting.store(false, Ordering::Release);
        let mut order = Order::Continue;
        while let Ok(message) = self.receiver.try_recv() {
            match message {
                Message::Request(request) => match self.handle_while_busy(request) {
                    Order::Quit => return Order::Quit,
                    Order::Stop => order = Order::Stop,
                    Order::Continue => {}
                },
                Message::End(status) => {
                    self.end(status);
                    return Order::Quit;
                }
            }
        }
        order
    }
}
