//! Where requests wait for the worker, and which of them are answered while it is busy.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use nicbench_protocol::{Command, Reply, Request};

use super::lease::Lease;
use super::{bad_state, input};
use crate::clock::TscClock;
use crate::error::{EngineError, ErrorKind};
use crate::orders::{Order, Orders};
use crate::output::Output;
use crate::snapshot::Snapshot;
use crate::sys::signal;

/// What other threads send to the worker.
#[derive(Debug)]
pub enum Message {
    Request(Request),
    /// A request to exit with this status.
    End(i32),
}

/// The sending end of the mailbox, for other threads.
#[derive(Debug, Clone)]
pub struct MailboxSender {
    sender: Sender<Message>,
    waiting: Arc<AtomicBool>,
}

impl MailboxSender {
    /// Puts a message into the mailbox; never blocks.
    pub fn post(&self, message: Message) {
        // The worker is gone only when the process is about to be.
        let _ = self.sender.send(message);
        self.waiting.store(true, Ordering::Release);
    }
}

/// The messages that wait for the worker.
#[derive(Debug)]
pub struct Mailbox {
    output: Arc<Output>,
    receiver: Receiver<Message>,
    waiting: Arc<AtomicBool>,
    /// Taken while the worker was busy, to be done after.
    deferred: VecDeque<Request>,
    transmitting: bool,
    exit_status: Option<i32>,
    closing: Option<i64>,
}

impl Mailbox {
    /// Starts the threads that read stdin and watch the lease.
    pub fn open(output: Arc<Output>, snapshot: Arc<Snapshot>, counter: Arc<OnceLock<TscClock>>) -> Self {
        let (sender, receiver) = channel();
        let waiting = Arc::new(AtomicBool::new(false));
        let mailbox = MailboxSender { sender, waiting: Arc::clone(&waiting) };
        let lease = Arc::new(Lease::new());
        lease.watch(mailbox.clone());
        input::read(input::Shared { output: Arc::clone(&output), snapshot, lease, counter }, mailbox);
        Self {
            output,
            receiver,
            waiting,
            deferred: VecDeque::new(),
            transmitting: false,
            exit_status: None,
            closing: None,
        }
    }

    /// The next message, or `None` after `wait`.
    pub fn next(&mut self, wait: Duration) -> Option<Message> {
        if let Some(request) = self.deferred.pop_front() {
            return Some(Message::Request(request));
        }
        if let Some(signal) = signal::received() {
            return Some(Message::End(128 + signal));
        }
        // Cleared first: whatever is posted later sets it again. Where one message came, others may wait behind it.
        self.waiting.store(false, Ordering::Release);
        let message = self.receiver.recv_timeout(wait).ok();
        if message.is_some() {
            self.waiting.store(true, Ordering::Release);
        }
        message
    }

    /// Notes whether a transmission is running, which decides what requests are allowed.
    pub fn set_transmitting(&mut self, transmitting: bool) {
        self.transmitting = transmitting;
    }

    /// Makes the engine exit with `status`; the first reason counts.
    pub fn request_exit(&mut self, status: i32) {
        self.exit_status.get_or_insert(status);
    }

    /// The exit status, once there is one.
    pub fn exit_status(&self) -> Option<i32> {
        self.exit_status
    }

    /// Makes the engine exit; the reply to request `id` follows when the ports are free.
    pub fn close(&mut self, id: i64) {
        self.request_exit(0);
        self.closing = Some(id);
    }

    /// Replies to `close`.
    pub fn confirm_close(&mut self) {
        if let Some(id) = self.closing.take() {
            self.output.reply(id, &Reply::Done {});
        }
    }

    /// Replies that a request was cut short.
    pub fn reply_interrupted(&self, id: i64) {
        let error = EngineError::new(ErrorKind::Interrupted, "the engine was told to end", "start another process");
        self.output.fail(id, error);
    }

    /// Refuses the requests that wait and will not be done any more: every request is answered.
    pub fn refuse_pending(&mut self) {
        let posted = std::iter::from_fn(|| self.receiver.try_recv().ok());
        let posted = posted.filter_map(|message| match message {
            Message::Request(request) => Some(request),
            Message::End(_) => None,
        });
        let requests: Vec<Request> = self.deferred.drain(..).chain(posted).collect();
        for request in requests {
            self.reply_interrupted(request.id);
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

impl Orders for Mailbox {
    #[inline]
    fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) || signal::received().is_some()
    }

    fn take(&mut self) -> Order {
        if let Some(signal) = signal::received() {
            self.request_exit(128 + signal);
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
                    self.request_exit(status);
                    return Order::Quit;
                }
            }
        }
        order
    }
}
