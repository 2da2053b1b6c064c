//! A simulated card's clock: an offset, a frequency of its own, a step, and readings and stamps that fail.

use nicbench_protocol::CardClock;

use crate::faults::Random;
use crate::port::NO_STAMP;

/// The simulated clock of a card. Times are nanoseconds since the engine began.
#[derive(Debug)]
pub struct Card {
    options: CardClock,
    seed: u64,
    random: Random,
}

/// Draws that are not those of the port's faults.
const OF_CLOCK: u64 = 0xC10C;

impl Card {
    pub fn new(options: CardClock, seed: u64) -> Self {
        Self { options, seed, random: Random::seeded(seed ^ OF_CLOCK, 0, 0) }
    }

    /// Draws depend on the trial from here on, not on what ran before.
    pub fn begin_trial(&mut self, trial: u32, load: u64) {
        self.random = Random::seeded(self.seed ^ OF_CLOCK, trial, load);
    }

    /// The clock's count at this time.
    pub fn count_at(&self, time_ns: u64) -> u64 {
        let CardClock { hz, offset, ppm, bits, step_after_s, step_ns, .. } = &self.options;
        let is_stepped = step_after_s.is_some_and(|after_s| time_ns as f64 >= after_s * 1e9);
        let time_ns = time_ns as i64 + if is_stepped { *step_ns } else { 0 };
        // The nominal count is exact; only what the clock is too fast for is small enough to be rounded.
        let nominal = i128::from(time_ns) * (*hz as i128) / 1_000_000_000;
        let fast = time_ns as f64 * (hz / 1e9) * ppm / 1e6;
        let count = offset.wrapping_add(nominal as u64).wrapping_add_signed(fast.floor() as i64);
        count & u64::MAX >> (64 - bits.clamp(&1, &64))
    }

    /// Reads the count as software does, which is wrong now and then.
    pub fn read(&mut self, time_ns: u64) -> u64 {
        let count = self.count_at(time_ns);
        let is_bad = self.random.share() < self.options.bad_reads;
        if is_bad { count ^ self.random.bits() >> 20 } else { count }
    }

    /// The stamp that a frame received now bears.
    pub fn stamp(&mut self, time_ns: u64) -> u64 {
        if self.random.share() < self.options.unstamped { NO_STAMP } else { self.count_at(time_ns) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(options: CardClock) -> Card {
        Card::new(options, 7)
    }

    #[test]
    fn a_fast_clock_counts_more_and_a_slow_one_less() {
        let second = 1_000_000_000;
        let counted = |ppm| card(CardClock { ppm, hz: 1e9, ..CardClock::default() }).count_at(second);
        assert_eq!((counted(100.0), counted(0.0), counted(-100.0)), (1_000_100_000, second, 999_900_000));
    }

    #[test]
    fn a_short_count_wraps_around_and_a_step_is_one() {
        let options = CardClock { bits: 8, offset: 250, hz: 1e9, ..CardClock::default() };
        assert_eq!(card(options).count_at(10), 4);
        let options = CardClock { step_after_s: Some(1.0), step_ns: -500, ..CardClock::default() };
        let card = card(options);
        assert_eq!((card.count_at(999_999_999), card.count_at(1_000_000_000)), (999_999_999, 999_999_500));
    }
}
