//! The lease: an engine whose controller is silent ends itself (a half-open connection never delivers an end of file).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use nicbench_protocol::Lease as Deadline;

use super::mailbox::{MailboxSender, Message};

/// A worker stuck in a driver is not waited for any longer.
const GRACE: Duration = Duration::from_secs(5);

/// The exit status after an expiry.
pub const EXPIRED: i32 = Deadline::EXPIRED;

/// When the engine ends unless somebody asks for something; shared by the thread that reads and the one that watches.
#[derive(Debug)]
pub struct Lease {
    deadline: Mutex<Deadline>,
}

impl Lease {
    /// A lease that begins now.
    pub fn new() -> Self {
        Self { deadline: Mutex::new(Deadline::from_now()) }
    }

    /// Renews the lease: a request came that takes `seconds` itself.
    pub fn renew(&self, seconds: f64) {
        self.lock().renew(seconds);
    }

    /// Gives the time that a request takes to the lease.
    pub fn allow_work(&self) {
        self.lock().allow_work();
    }

    fn lock(&self) -> MutexGuard<'_, Deadline> {
        self.deadline.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches from a thread that sleeps until the deadline: it takes no time from a trial.
    pub fn watch(self: &Arc<Self>, mailbox: MailboxSender) {
        let lease = Arc::clone(self);
        thread::spawn(move || {
            loop {
                let left = lease.lock().left();
                if left.is_zero() {
                    break;
                }
                thread::sleep(left);
            }
            eprintln!("nicbench-packets: the controller has asked for nothing for too long; this ends");
            mailbox.post(Message::End(EXPIRED));
            thread::sleep(GRACE);
            std::process::exit(EXPIRED);
        });
    }
}
