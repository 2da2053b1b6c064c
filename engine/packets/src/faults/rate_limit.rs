//! Limits the rate of frames, by a server with a queue or by a token bucket.

/// A limit of the rate, which drops what exceeds it.
#[derive(Debug, Clone)]
pub enum RateLimit {
    /// Everything passes at once.
    Unlimited,
    /// A server with a queue, drop tail: frames leave when they have been served.
    Queue { service_ps: u64, frames: u64, served_until_ps: u64 },
    /// A policer: frames pass at once or not at all (RFC 2697 in frames, as the generic cell rate algorithm of ITU-T
    /// I.371).
    Bucket { interval_ps: u64, tolerance_ps: u64, expected_ps: u64 },
}

impl RateLimit {
    /// A server for `rate` frames per second, and room for `frames` that wait.
    pub fn queue(rate: f64, frames: u32) -> Self {
        Self::Queue { service_ps: interval_ps(rate), frames: frames.into(), served_until_ps: 0 }
    }

    /// A bucket of `burst` tokens, filled with `rate` tokens per second, full at first.
    pub fn bucket(rate: f64, burst: u32) -> Self {
        let interval_ps = interval_ps(rate);
        let tolerance_ps = interval_ps.saturating_mul(u64::from(burst.saturating_sub(1)));
        Self::Bucket { interval_ps, tolerance_ps, expected_ps: 0 }
    }

    /// When a frame that comes at `time_ps` may go on, or `None` where it is dropped.
    pub fn admit(&mut self, time_ps: u64) -> Option<u64> {
        match self {
            Self::Unlimited => Some(time_ps),
            Self::Queue { service_ps, frames, served_until_ps } => {
                let present = served_until_ps.saturating_sub(time_ps).div_ceil(*service_ps);
                if present > *frames {
                    return None;
                }
                *served_until_ps = time_ps.max(*served_until_ps) + *service_ps;
                Some(*served_until_ps)
            }
            Self::Bucket { interval_ps, tolerance_ps, expected_ps } => {
                if expected_ps.saturating_sub(time_ps) > *tolerance_ps {
                    return None;
                }
                *expected_ps = time_ps.max(*expected_ps) + *interval_ps;
                Some(time_ps)
            }
        }
    }

    /// Returns to the initial state.
    pub fn reset(&mut self) {
        match self {
            Self::Unlimited => {}
            Self::Queue { served_until_ps, .. } => *served_until_ps = 0,
            Self::Bucket { expected_ps, .. } => *expected_ps = 0,
        }
    }
}

fn interval_ps(rate: f64) -> u64 {
    (1e12 / rate).round().max(1.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(mut rate_limit: RateLimit, frames: u64, interval_ps: u64) -> u64 {
        (0..frames).filter(|number| rate_limit.admit(number * interval_ps).is_some()).count() as u64
    }

    #[test]
    fn a_bucket_lets_a_burst_pass_and_then_its_rate() {
        assert_eq!(admitted(RateLimit::bucket(1e6, 32), 100, 0), 32);
        assert_eq!(admitted(RateLimit::bucket(1e6, 32), 2032, 500_000), 32 + 1016 - 1);
        assert_eq!(admitted(RateLimit::bucket(1e6, 1), 1000, 1_000_000), 1000);
    }

    #[test]
    fn a_full_queue_drops_the_newest_and_the_rest_leave_at_its_rate() {
        let mut rate_limit = RateLimit::queue(1e6, 2);
        let times: Vec<_> = (0..5).map(|_| rate_limit.admit(0)).collect();
        assert_eq!(times, [Some(1_000_000), Some(2_000_000), Some(3_000_000), None, None]);
        rate_limit.reset();
        assert_eq!(rate_limit.admit(0), Some(1_000_000));
    }
}
