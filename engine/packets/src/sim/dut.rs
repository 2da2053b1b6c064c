//! A simulated device under test, made of a faulty path.

use std::collections::BTreeMap;

use nicbench_protocol::{Faults, SimulatedDut};

use crate::faults::{Buffers, FaultyPath, RateLimit, SignaturePlace};
use crate::port::Frame;
use crate::sys::pool::FramePool;

/// The device, and the frames on their way through it. Times are picoseconds since the trial began.
#[derive(Debug)]
pub struct Dut {
    path: FaultyPath<()>,
}

impl Dut {
    pub fn new(options: &SimulatedDut) -> Self {
        let rate_limit = options
            .capacity_frames_per_s
            .map_or(RateLimit::Unlimited, |capacity| RateLimit::queue(capacity, options.queue_frames));
        Self { path: FaultyPath::new(faults(options), rate_limit) }
    }

    /// Drops every frame that is under way; the counters are kept.
    pub fn begin_trial(&mut self, trial: u32, load: u64, pool: &mut FramePool) {
        self.path.begin_trial(trial, load).iter().for_each(|(frame, ())| pool.give(frame));
    }

    /// Takes a frame that reaches the device.
    pub fn forward(&mut self, time_ps: u64, frame: Frame, pool: &mut FramePool) {
        // What is dropped is counted there, and nobody here asks which it was.
        let _ = self.path.forward(time_ps, frame, (), pool, SignaturePlace::usual);
    }

    /// Lets frames leave that were held to be overtaken, and were not in time.
    pub fn release_overdue(&mut self, now_ps: u64) {
        self.path.release_overdue(now_ps);
    }

    /// The next frame that has come through by now, and when.
    pub fn next_passed(&mut self, now_ps: u64) -> Option<(u64, Frame)> {
        self.path.next_departure(now_ps).map(|departure| (departure.time_ps, departure.frame))
    }

    /// When the next frame comes through, where one is on its way out.
    pub fn next_passed_ps(&self) -> Option<u64> {
        self.path.next_departure_ps()
    }

    /// When the next frame comes through or is no longer held.
    pub fn next_event_ps(&self) -> Option<u64> {
        self.path.next_event_ps()
    }

    /// Adds the faults made so far, by name.
    pub fn add_counters(&self, named: &mut BTreeMap<String, u64>) {
        let counts = self.path.counts();
        let counts = [
            ("simulated_lost", counts.lost),
            ("simulated_queue_dropped", counts.dropped_rate),
            ("simulated_duplicated", counts.duplicated),
            ("simulated_reordered", counts.reordered),
            ("simulated_corrupted", counts.corrupted),
        ];
        named.extend(counts.map(|(name, count)| (name.to_owned(), count)));
    }
}

fn faults(options: &SimulatedDut) -> Faults {
    Faults {
        seed: options.seed,
        delay_ns: options.delay_ns,
        jitter_ns: options.jitter_ns,
        // Nothing passes a dead device.
        loss: if options.dead { 1.0 } else { options.loss },
        duplicate: options.duplicate,
        reorder: options.reorder,
        reorder_by: options.swap,
        corrupt_payload: options.corrupt,
        held_frames: u32::MAX,
        ..Faults::default()
    }
}

impl Buffers for FramePool {
    fn copy(&mut self, frame: &Frame) -> Option<Frame> {
        let mut copy = self.take(frame.bytes().len());
        copy.bytes_mut().copy_from_slice(frame.bytes());
        Some(copy)
    }

    fn give(&mut self, frame: &Frame) {
        FramePool::give(self, frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of `frames` arrive, and how many the counters say were lost in the queue or otherwise.
    fn arrived(options: SimulatedDut, frames: u64, interval_ps: u64) -> (u64, u64, u64) {
        let mut pool = FramePool::default();
        let mut dut = Dut::new(&options);
        dut.begin_trial(1, 1, &mut pool);
        for number in 0..frames {
            let frame = pool.take(64);
            dut.forward(number * interval_ps, frame, &mut pool);
        }
        let mut named = BTreeMap::new();
        dut.add_counters(&mut named);
        let arrived = std::iter::from_fn(|| dut.next_passed(u64::MAX)).count() as u64;
        (arrived, named["simulated_queue_dropped"], named["simulated_lost"])
    }

    #[test]
    fn over_its_capacity_a_device_drops_what_its_queue_cannot_hold() {
        let options = SimulatedDut { capacity_frames_per_s: Some(1e6), queue_frames: 10, ..SimulatedDut::default() };
        let (arrived, dropped, _) = arrived(options, 3000, 500_000);
        assert_eq!(arrived + dropped, 3000);
        assert!((1500..1515).contains(&arrived), "{arrived}");
    }

    #[test]
    fn at_its_capacity_a_device_drops_nothing() {
        let options = SimulatedDut { capacity_frames_per_s: Some(1e6), queue_frames: 1, ..SimulatedDut::default() };
        assert_eq!(arrived(options, 3000, 1_000_000), (3000, 0, 0));
    }

    #[test]
    fn nothing_arrives_from_a_dead_device() {
        assert_eq!(arrived(SimulatedDut { dead: true, ..SimulatedDut::default() }, 10, 1000), (0, 0, 10));
    }
}
