//! What a simulated device under test does to each frame: one fate each, drawn from a seed.

use std::collections::{BTreeMap, VecDeque};

use nicbench_protocol::SimulatedDut;

use super::random::Random;
use crate::port::Frame;
use crate::signature::SIGNATURE_BYTES;
use crate::sys::pool::FramePool;
use crate::template::signature_offset;

/// A frame that waits to be overtaken arrives after this long all the same.
const LONGEST_HOLD_PS: u64 = 1_000_000_000;

/// Times are picoseconds since the trial began, so that no rate is rounded visibly.
pub const PS_PER_NS: u64 = 1000;

/// The device, and the frames on their way through it.
#[derive(Debug)]
pub struct Dut {
    options: SimulatedDut,
    random: Random,
    service_ps: Option<u64>,
    served_until_ps: u64,
    last_arrival_ps: u64,
    held: Vec<Held>,
    /// In order of time.
    pub arrivals: VecDeque<(u64, Frame)>,
    counts: Counts,
}

#[derive(Debug)]
struct Held {
    overtakers_left: u32,
    until_ps: u64,
    frame: Frame,
}

/// Faults so far: the truth that tests compare with.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    lost: u64,
    queue_dropped: u64,
    duplicated: u64,
    reordered: u64,
    corrupted: u64,
}

impl Dut {
    pub fn new(options: SimulatedDut) -> Self {
        let service_ps = options.capacity_frames_per_s.map(|capacity| (1e12 / capacity).round().max(1.0) as u64);
        let random = Random::seeded(options.seed, 0, 0);
        Self {
            options,
            random,
            service_ps,
            served_until_ps: 0,
            last_arrival_ps: 0,
            held: Vec::new(),
            arrivals: VecDeque::new(),
            counts: Counts::default(),
        }
    }

    /// Forgets every frame and fault but the counters, which only rise.
    pub fn begin_trial(&mut self, trial: u32, load: u64, pool: &mut FramePool) {
        self.random = Random::seeded(self.options.seed, trial, load);
        (self.served_until_ps, self.last_arrival_ps) = (0, 0);
        self.arrivals.drain(..).for_each(|(_, frame)| pool.give(&frame));
        self.held.drain(..).for_each(|held| pool.give(&held.frame));
    }

    /// A frame reaches the device at `time_ps`.
    pub fn forward(&mut self, time_ps: u64, mut frame: Frame, pool: &mut FramePool) {
        let share = self.random.share();
        let options = &self.options;
        let corrupt_from = options.loss;
        let duplicate_from = corrupt_from + options.corrupt;
        let reorder_from = duplicate_from + options.duplicate;
        let reorder_until = reorder_from + options.reorder;
        if options.dead || share < options.loss {
            self.counts.lost += 1;
            return pool.give(&frame);
        }
        let Some(served_ps) = self.serve(time_ps) else {
            self.counts.queue_dropped += 1;
            return pool.give(&frame);
        };
        let jitter_ns = self.random.below(self.options.jitter_ns + 1);
        let arrival_ps = served_ps + (self.options.delay_ns + jitter_ns) * PS_PER_NS;
        // Jitter delays, it does not overtake.
        let arrival_ps = arrival_ps.max(self.last_arrival_ps);
        self.last_arrival_ps = arrival_ps;
        if (corrupt_from..duplicate_from).contains(&share) {
            // The receiver cannot place a broken frame, so it overtakes nobody.
            self.corrupt(frame.bytes_mut());
            return self.arrivals.push_back((arrival_ps, frame));
        } else if (reorder_from..reorder_until).contains(&share) {
            let until_ps = arrival_ps + LONGEST_HOLD_PS;
            self.held.push(Held { overtakers_left: self.options.swap, until_ps, frame });
            return;
        } else if (duplicate_from..reorder_from).contains(&share) {
            let mut copy = pool.take(frame.bytes().len());
            copy.bytes_mut().copy_from_slice(frame.bytes());
            self.arrivals.push_back((arrival_ps, copy));
            self.counts.duplicated += 1;
        }
        self.arrivals.push_back((arrival_ps, frame));
        self.count_overtaking(arrival_ps);
    }

    /// A server with a queue, drop tail: when the frame leaves, or `None` where there is no room.
    fn serve(&mut self, time_ps: u64) -> Option<u64> {
        let Some(service_ps) = self.service_ps else { return Some(time_ps) };
        let present = self.served_until_ps.saturating_sub(time_ps).div_ceil(service_ps);
        if present > u64::from(self.options.queue_frames) {
            return None;
        }
        self.served_until_ps = self.served_until_ps.max(time_ps) + service_ps;
        Some(self.served_until_ps)
    }

    /// Flips a bit behind the signature, or in it where the frame ends there.
    fn corrupt(&mut self, bytes: &mut [u8]) {
        self.counts.corrupted += 1;
        let payload = signature_offset(bytes).unwrap_or(0);
        let first = if payload + SIGNATURE_BYTES < bytes.len() { payload + SIGNATURE_BYTES } else { payload };
        let bit = self.random.below((bytes.len() - first) as u64 * 8) as usize;
        bytes[first + bit / 8] ^= 1 << (bit % 8);
    }

    fn count_overtaking(&mut self, arrival_ps: u64) {
        let mut index = 0;
        while index < self.held.len() {
            self.held[index].overtakers_left = self.held[index].overtakers_left.saturating_sub(1);
            if self.held[index].overtakers_left == 0 {
                let held = self.held.remove(index);
                self.arrivals.push_back((arrival_ps, held.frame));
                self.counts.reordered += 1;
            } else {
                index += 1;
            }
        }
    }

    /// Lets go of frames that nobody overtook in time.
    pub fn release_overdue(&mut self, now_ps: u64) {
        while self.held.first().is_some_and(|held| held.until_ps <= now_ps) {
            let held = self.held.remove(0);
            let arrival_ps = held.until_ps.max(self.arrivals.back().map_or(0, |(last_ps, _)| *last_ps));
            self.arrivals.push_back((arrival_ps, held.frame));
        }
    }

    /// The next frame that has arrived by now.
    pub fn next_arrived(&mut self, now_ps: u64) -> Option<Frame> {
        let (time_ps, frame) = *self.arrivals.front()?;
        if time_ps > now_ps {
            return None;
        }
        self.arrivals.pop_front();
        Some(frame)
    }

    /// When the next frame arrives or is let go.
    pub fn next_event_ps(&self) -> Option<u64> {
        let arrival = self.arrivals.front().map(|(time_ps, _)| *time_ps);
        let release = self.held.first().map(|held| held.until_ps);
        arrival.into_iter().chain(release).min()
    }

    /// The faults by name.
    pub fn add_counters(&self, named: &mut BTreeMap<String, u64>) {
        let counts = [
            ("simulated_lost", self.counts.lost),
            ("simulated_queue_dropped", self.counts.queue_dropped),
            ("simulated_duplicated", self.counts.duplicated),
            ("simulated_reordered", self.counts.reordered),
            ("simulated_corrupted", self.counts.corrupted),
        ];
        named.extend(counts.map(|(name, count)| (name.to_owned(), count)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(options: SimulatedDut, frames: u64, interval_ps: u64) -> (Vec<(u64, u8)>, Dut) {
        let mut pool = FramePool::default();
        let mut dut = Dut::new(options);
        dut.begin_trial(1, 1, &mut pool);
        for number in 0..frames {
            let mut frame = pool.take(64);
            frame.bytes_mut().fill(number as u8);
            dut.forward(number * interval_ps, frame, &mut pool);
        }
        dut.release_overdue(u64::MAX);
        assert!(dut.arrivals.iter().zip(dut.arrivals.iter().skip(1)).all(|(first, second)| first.0 <= second.0));
        (dut.arrivals.iter().map(|(time_ps, frame)| (*time_ps, frame.bytes()[63])).collect(), dut)
    }

    #[test]
    fn over_its_capacity_a_device_drops_what_its_queue_cannot_hold() {
        let options = SimulatedDut { capacity_frames_per_s: Some(1e6), queue_frames: 10, ..SimulatedDut::default() };
        let (arrived, dut) = arrivals(options, 3000, 500_000);
        assert_eq!(arrived.len() as u64 + dut.counts.queue_dropped, 3000);
        assert!((1500..1515).contains(&arrived.len()), "{}", arrived.len());
    }

    #[test]
    fn at_its_capacity_a_device_drops_nothing() {
        let options = SimulatedDut { capacity_frames_per_s: Some(1e6), queue_frames: 1, ..SimulatedDut::default() };
        assert_eq!(arrivals(options, 3000, 1_000_000).0.len(), 3000);
    }

    #[test]
    fn a_reordered_frame_arrives_after_as_many_others_as_asked() {
        let options = SimulatedDut { reorder: 0.1, swap: 3, ..SimulatedDut::default() };
        let (arrived, dut) = arrivals(options, 200, 1000);
        let overtaken = arrived.windows(2).filter(|pair| pair[0].1 > pair[1].1).count() as u64;
        assert!(dut.counts.reordered > 5);
        assert!(overtaken > 0 && overtaken <= dut.counts.reordered);
        assert_eq!(arrived.len(), 200);
    }

    #[test]
    fn jitter_delays_and_does_not_overtake() {
        let options = SimulatedDut { delay_ns: 10, jitter_ns: 100, ..SimulatedDut::default() };
        let (arrived, _) = arrivals(options, 100, 1000);
        assert!(arrived.windows(2).all(|pair| pair[0].1 < pair[1].1));
        assert!(arrived[0].0 >= 10 * PS_PER_NS);
    }

    #[test]
    fn nothing_arrives_from_a_dead_device() {
        let (arrived, dut) = arrivals(SimulatedDut { dead: true, ..SimulatedDut::default() }, 10, 1000);
        assert_eq!((arrived.len(), dut.counts.lost), (0, 10));
    }
}
