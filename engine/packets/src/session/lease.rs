//! The lease: an engine whose controller is silent ends itself (a half-open connection never delivers an end of file).

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::desk::{Mailbox, Message};

const LEASE: Duration = Duration::from_secs(10);
/// A worker stuck in a driver is not waited for any longer.
const GRACE: Duration = Duration::from_secs(5);
/// What one request can add; longer durations are refused anyway.
const MOST_ADDED: Duration = Duration::from_secs(86_400);

/// The exit status after an expiry.
pub const EXPIRED: i32 = 4;

/// When the engine ends unless somebody asks for something.
#[derive(Debug)]
pub struct Lease {
    deadline: Mutex<Instant>,
}

impl Lease {
    /// A whole lease from now.
    pub fn new() -> Self {
        Self { deadline: Mutex::new(Instant::now() + LEASE) }
    }

    /// A request came that takes `seconds` itself.
    pub fn renew(&self, seconds: f64) {
        let added = Duration::try_from_secs_f64(seconds).unwrap_or_default().min(MOST_ADDED);
        let mut deadline = self.deadline.lock().unwrap_or_else(PoisonError::into_inner);
        let renewed = (*deadline).max(Instant::now() + LEASE);
        // Days of requests in one minute are no reason to overflow.
        *deadline = (renewed + added).min(Instant::now() + 10 * MOST_ADDED);
    }

    fn left(&self) -> Duration {
        let deadline = *self.deadline.lock().unwrap_or_else(PoisonError::into_inner);
        deadline.saturating_duration_since(Instant::now())
    }

    /// Watches from a thread that sleeps until the deadline: it takes no time from a trial.
    pub fn watch(self: &Arc<Self>, mailbox: Mailbox) {
        let lease = Arc::clone(self);
        thread::spawn(move || {
            loop {
                let left = lease.left();
                if left.is_zero() {
                    break;
                }
                thread::sleep(left);
            }
            mailbox.post(Message::End(EXPIRED));
            thread::sleep(GRACE);
            std::process::exit(EXPIRED);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_lengthens_the_lease_by_what_it_takes() {
        let lease = Lease::new();
        lease.renew(60.0);
        assert!(lease.left() > Duration::from_secs(69));
        lease.renew(5.0);
        assert!(lease.left() > Duration::from_secs(74));
        lease.renew(0.0);
        assert!(lease.left() > Duration::from_secs(74));
    }

    #[test]
    fn absurd_durations_do_no_harm() {
        let lease = Lease::new();
        for seconds in [-1.0, f64::NAN, f64::INFINITY, 1e300] {
            lease.renew(seconds);
        }
        (0..100).for_each(|_| lease.renew(86_400.0));
        assert!(lease.left() <= 10 * MOST_ADDED);
    }
}
