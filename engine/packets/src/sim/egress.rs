//! The way out of the device towards one port: frames of every sender leave by it one after another.

use std::collections::{BTreeMap, VecDeque};

use nicbench_protocol::SimulatedEgress;

use crate::faults::RateLimit;
use crate::port::Frame;
use crate::sys::pool::FramePool;

/// A queue in front of one port, drop tail. Times are picoseconds since the trial began.
#[derive(Debug)]
pub struct Egress {
    rate_limit: RateLimit,
    /// The frames that will leave, in order of time.
    leaving: VecDeque<(u64, Frame)>,
    dropped: u64,
}

impl Egress {
    pub fn new(options: &SimulatedEgress) -> Self {
        let rate_limit = options
            .capacity_frames_per_s
            .map_or(RateLimit::Unlimited, |capacity| RateLimit::queue(capacity, options.queue_frames));
        Self { rate_limit, leaving: VecDeque::new(), dropped: 0 }
    }

    /// Drops every frame; the counter is kept.
    pub fn begin_trial(&mut self, pool: &mut FramePool) {
        self.rate_limit.reset();
        self.leaving.drain(..).for_each(|(_, frame)| pool.give(&frame));
    }

    /// A frame comes; those of all senders must come in the order of time.
    pub fn take(&mut self, time_ps: u64, frame: Frame, pool: &mut FramePool) {
        match self.rate_limit.admit(time_ps) {
            Some(leaves_ps) => self.leaving.push_back((leaves_ps, frame)),
            None => {
                self.dropped += 1;
                pool.give(&frame);
            }
        }
    }

    /// The next frame that has left by now, and when.
    pub fn next_left(&mut self, now_ps: u64) -> Option<(u64, Frame)> {
        if self.next_leaving_ps()? > now_ps {
            return None;
        }
        self.leaving.pop_front()
    }

    /// When the next frame leaves.
    pub fn next_leaving_ps(&self) -> Option<u64> {
        self.leaving.front().map(|(time_ps, _)| *time_ps)
    }

    /// Adds the frames that were dropped here, by name.
    pub fn add_counters(&self, named: &mut BTreeMap<String, u64>) {
        named.insert("simulated_egress_dropped".into(), self.dropped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of `frames` frames at the same moment every `interval_ps`, from each of `senders`, get out.
    fn left(options: &SimulatedEgress, senders: u64, frames: u64, interval_ps: u64) -> (u64, u64) {
        let (mut pool, mut egress) = (FramePool::default(), Egress::new(options));
        for number in 0..frames {
            for _ in 0..senders {
                let frame = pool.take(64);
                egress.take(number * interval_ps, frame, &mut pool);
            }
        }
        let left = std::iter::from_fn(|| egress.next_left(u64::MAX)).count() as u64;
        (left, egress.dropped)
    }

    #[test]
    fn senders_share_what_the_way_out_carries_and_what_its_queue_cannot_hold_is_dropped() {
        let options = SimulatedEgress { capacity_frames_per_s: Some(1e6), queue_frames: 10 };
        let (out, dropped) = left(&options, 3, 1000, 1_000_000);
        assert_eq!(out + dropped, 3000);
        assert!((1000..1012).contains(&out), "{out}");
    }

    #[test]
    fn without_a_capacity_everything_gets_out() {
        assert_eq!(left(&SimulatedEgress::default(), 3, 1000, 0), (3000, 0));
    }
}
