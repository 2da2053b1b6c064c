//! The lease: an engine whose controller is silent ends itself (a half-open connection never delivers an end of file).

use std::time::{Duration, Instant};

/// How long a controller may be silent.
pub const LEASE: Duration = Duration::from_secs(10);
/// How long a controller waits for a reply.
const REPLY: Duration = Duration::from_secs(30);
/// What one request can add; longer durations are refused anyway.
const MOST_ADDED: Duration = Duration::from_secs(86_400);

/// When an engine ends unless somebody asks for something.
#[derive(Debug, Clone, Copy)]
pub struct Lease {
    deadline: Instant,
}

impl Lease {
    /// The exit status after an expiry.
    pub const EXPIRED: i32 = 4;

    /// A whole lease from now.
    pub fn from_now() -> Self {
        Self { deadline: Instant::now() + LEASE }
    }

    /// A request came that takes `seconds` itself.
    pub fn renew(&mut self, seconds: f64) {
        let added = Duration::try_from_secs_f64(seconds).unwrap_or_default().min(MOST_ADDED);
        let renewed = self.deadline.max(Instant::now() + LEASE);
        // Days of requests in one minute are no reason to overflow.
        self.deadline = (renewed + added).min(Instant::now() + 10 * MOST_ADDED);
    }

    /// A request is worked on: its controller waits for the reply, and asks for nothing meanwhile.
    pub fn allow_work(&mut self) {
        self.deadline = self.deadline.max(Instant::now() + REPLY);
    }

    /// Until the deadline; zero after it.
    pub fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_lengthens_the_lease_by_what_it_takes() {
        let mut lease = Lease::from_now();
        lease.renew(60.0);
        assert!(lease.left() > Duration::from_secs(69));
        lease.renew(5.0);
        assert!(lease.left() > Duration::from_secs(74));
        lease.renew(0.0);
        assert!(lease.left() > Duration::from_secs(74));
    }

    #[test]
    fn work_is_given_time_once_however_many_requests_come() {
        let mut lease = Lease::from_now();
        (0..100).for_each(|_| lease.allow_work());
        assert!(lease.left() > LEASE && lease.left() <= REPLY);
        lease.renew(60.0);
        lease.allow_work();
        assert!(lease.left() > Duration::from_secs(60));
    }

    #[test]
    fn absurd_durations_do_no_harm() {
        let mut lease = Lease::from_now();
        for seconds in [-1.0, f64::NAN, f64::INFINITY, 1e300] {
            lease.renew(seconds);
        }
        (0..100).for_each(|_| lease.renew(86_400.0));
        assert!(lease.left() <= 10 * MOST_ADDED);
    }
}
