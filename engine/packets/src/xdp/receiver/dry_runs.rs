//! A receiver without an interface: its program runs over frames that come from no driver, in tests and measurements.

use std::io;

use super::{ONE_QUEUE, Receiver};
use crate::error::EngineError;
use crate::stamps::StampedLine;
use crate::sys::bpf::receiving::{Repetition, Settings};
use crate::sys::bpf::test_run;
use crate::xdp::card_clock::clock_line;

impl Receiver {
    /// A receiver whose program runs only when [`Self::run`] is called, by a clock that is told.
    pub fn for_test(port: usize) -> Result<Self, EngineError> {
        Self::detached(port, ONE_QUEUE, Settings { is_told_time: 1, ..Settings::default() }, None)
    }

    /// As [`Self::for_test`], for frames that bear the stamps of [`Self::stamp`]: counts of a clock that runs as this
    /// line says, in nanoseconds of the told one.
    pub fn for_stamped_test(port: usize, line: StampedLine) -> Result<Self, EngineError> {
        let settings = Settings { is_told_time: 1, is_repeated: 0, is_stamped: 1 };
        let mut receiver = Self::detached(port, ONE_QUEUE, settings, None)?;
        receiver.tables.set_clock_line(clock_line(line));
        Ok(receiver)
    }

    /// The stamp of frames from now on; 0: they have none.
    pub fn stamp(&mut self, stamp: u64) {
        self.tables.configure(|config| config.test_stamp = stamp);
    }

    /// Frames with a stamp that was believed, without one, with one that was not, and with one after their receipt.
    pub fn stamp_counts(&self) -> [u64; 4] {
        let shard = self.tables.shards.get(0);
        [shard.stamped, shard.unstamped, shard.implausible, shard.before_stamp]
    }

    /// A receiver whose program runs only when [`Self::run`] is called, and takes a frame that comes again for the next
    /// one; its clock is told, or the kernel's.
    pub fn for_measurement(port: usize, is_told_time: bool) -> Result<Self, EngineError> {
        let settings = Settings { is_told_time: is_told_time.into(), is_repeated: 1, is_stamped: 0 };
        Self::detached(port, ONE_QUEUE, settings, None)
    }

    /// Gives a receiver without an interface one frame at `now_ns` of its clock, `repeat` times. Returns whether it was
    /// dropped, and the mean time of a run in nanoseconds.
    pub fn run(&mut self, frame: &[u8], now_ns: u64, repeat: u32) -> io::Result<(bool, u32)> {
        const XDP_DROP: u32 = 1;
        self.tables.configure(|config| config.test_now_ns = now_ns);
        let (verdict, ns) = test_run(self.tables.program()?, frame, repeat)?;
        Ok((verdict == XDP_DROP, ns))
    }

    /// In a measurement: a frame that comes again stands for one of each of `flows` flows, then for their second ones.
    pub fn repeat_over(&mut self, flows: u32) {
        let step = step_through(flows);
        self.tables.repetition.set(0, Repetition { flows, step, ..Repetition::default() });
    }
}

/// A step that goes through all flows before it comes back, far from one to the next.
fn step_through(flows: u32) -> u32 {
    let has_common_divisor = |step: &u32| {
        let (mut left, mut right) = (flows, *step);
        while right > 0 {
            (left, right) = (right, left % right);
        }
        left > 1
    };
    (flows / 5 * 2 + 1..flows).find(|step| !has_common_divisor(step)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_go_through_every_flow_once() {
        for flows in [1, 2, 3, 10, 8192, 999_999, 1_000_000] {
            let (mut flow, step) = (0, step_through(flows));
            let passed = (0..flows).filter(|_| {
                flow = (flow + step) % flows;
                flow == 0
            });
            assert_eq!(passed.count(), 1, "{flows}");
            assert_eq!(flow, 0, "{flows}");
        }
    }
}
