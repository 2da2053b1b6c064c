//! How the forwarding loop spends its cycles: testpmd's record of core cycles, and its idle polls.

/// The turns of the loop since the start, and what they cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    pub iterations: u64,
    /// Turns that moved no frame.
    pub idle_polls: u64,
    /// Ticks of all turns,
    pub ticks: u64,
    /// and of those that moved frames.
    pub busy_ticks: u64,
}

impl Work {
    /// One turn has moved `frames` frames in `ticks`. One reading of the clock for each turn serves both its end and
    /// the next one's beginning.
    #[inline(always)]
    pub fn turn(&mut self, frames: usize, ticks: u64) {
        self.iterations += 1;
        self.ticks += ticks;
        if frames > 0 {
            self.busy_ticks += ticks;
        } else {
            self.idle_polls += 1;
        }
    }

    /// Busy ticks for each of `frames`; `None` where there was none.
    pub fn busy_ticks_per_frame(&self, frames: u64) -> Option<f64> {
        (frames > 0).then(|| self.busy_ticks as f64 / frames as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_turns_cost_no_busy_cycles() {
        let mut work = Work::default();
        work.turn(32, 3200);
        work.turn(0, 50);
        work.turn(8, 800);
        assert_eq!((work.iterations, work.idle_polls, work.ticks, work.busy_ticks), (3, 1, 4050, 4000));
        assert_eq!(work.busy_ticks_per_frame(40), Some(100.0));
        assert_eq!(Work::default().busy_ticks_per_frame(0), None);
    }
}
