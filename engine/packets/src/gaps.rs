//! The primary measure of disturbance: how long the worker's loop was away between two iterations.

/// An iteration may spend tens of microseconds in one system call (AF_XDP transmits that way); longer is a gap.
pub const GAP_FLOOR_NS: u64 = 100_000;

/// Gaps since the last reset, in ticks of the clock.
#[derive(Debug, Clone, Default)]
pub struct Gaps {
    floor: u64,
    last: u64,
    longest: u64,
    total: u64,
    count: u64,
}

impl Gaps {
    /// Starts at `now`; `floor` in ticks.
    pub fn new(now: u64, floor: u64) -> Self {
        Self { floor, last: now, ..Self::default() }
    }

    /// Notes that an iteration begins at `now`.
    #[inline]
    pub fn observe(&mut self, now: u64) {
        let gap = now.saturating_sub(self.last);
        self.last = now;
        if gap > self.longest {
            self.longest = gap;
        }
        if gap > self.floor {
            self.total += gap;
            self.count += 1;
        }
    }

    /// Notes what another loop has found of itself, in ticks: the longest gap, and those over the floor.
    pub fn note(&mut self, longest: u64, total: u64, count: u64) {
        (self.longest, self.total, self.count) = (longest, total, count);
    }

    /// Leaves out time that was no gap: a virtual clock jumped over idle time.
    #[inline]
    pub fn resume(&mut self, now: u64) {
        self.last = now;
    }

    /// The longest gap, in ticks.
    pub fn longest(&self) -> u64 {
        self.longest
    }

    /// The sum of the gaps over the floor, in ticks.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The number of gaps over the floor.
    pub fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_gaps_over_the_floor_are_summed_but_the_longest_is_always_known() {
        let mut gaps = Gaps::new(1000, 100);
        for now in [1050, 1150, 1251, 1751] {
            gaps.observe(now);
        }
        assert_eq!((gaps.longest(), gaps.total(), gaps.count()), (500, 601, 2));
    }

    #[test]
    fn time_that_was_jumped_over_is_no_gap() {
        let mut gaps = Gaps::new(0, 100);
        gaps.resume(10_000);
        gaps.observe(10_001);
        assert_eq!((gaps.longest(), gaps.count()), (1, 0));
    }
}
