//! The clock of a core, look by look: cycles of the probe's chain of multiplications per tick of the time-stamp counter.

use super::SLOW_HUNDREDTHS;
use super::speeds::Speed;
use crate::sys::core_speed::{self, CHAIN_STEPS_PER_ROUND, Probe};

/// Comparisons of chains, which take half a millisecond together; those in the middle half count.
const COMPARISONS: usize = 100;
/// Something that disturbs the comparisons is over before long.
const ATTEMPTS: usize = 3;
/// So many times longer than the probe's chain is the one that it is compared with.
const LONGER: u32 = 5;
/// Rounds of the shorter chain of exclusive ors.
const REFERENCE_ROUNDS: u32 = 100;
/// A multiplication of 64 bits takes 3 cycles on Intel and since Zen 2, 4 on Zen, 5 on Atom.
const CYCLES: std::ops::RangeInclusive<f64> = 3.0..=6.0;
/// Of a whole number of cycles: a neighbour on the core slows both chains, and not alike.
const GREATEST_DEVIATION: f64 = 0.3;
/// Chains that take longer are told apart no more: a clock of a sixth of the counter's.
const LONGEST_TICKS: usize = 4096;
/// The highest clock is that of the fastest look but one in so many.
const FASTEST_LOOKS: u32 = 100;
/// Where fewer looks than one in so many found the core unshared, all of them tell the clock.
const UNSHARED_LOOKS: u32 = 10;

/// The cycles between the two readings of the counter around the probe's chain, those of the readings included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChainLength {
    pub cycles: f64,
}

impl ChainLength {
    /// Compares chains on the CPU of the calling thread; `None` where they do not tell, as under emulation.
    pub fn measure(probe: Probe) -> Option<Self> {
        (0..ATTEMPTS).find_map(|_| {
            let (mut chains, mut references) = (Vec::new(), Vec::new());
            for _ in 0..COMPARISONS {
                let multiply =
                    |times| core_speed::multiplication_ticks(times * probe.multiplication_rounds, probe.tries);
                let refer = |times| core_speed::exclusive_or_ticks(times * REFERENCE_ROUNDS, probe.tries);
                let [chain, long_chain, reference, long_reference] =
                    [multiply(1), multiply(LONGER), refer(1), refer(LONGER)].map(|ticks| ticks as f64);
                chains.push(chain / long_chain);
                references.push((long_reference - reference) / long_chain);
            }
            Self::compute(probe, middle_mean(&mut chains), middle_mean(&mut references))
        })
    }

    /// From the time of the probe's chain, and from what the longer chain of exclusive ors takes more than the shorter,
    /// both as shares of the longer chain's time: whatever the clock was, it was the same for all.
    fn compute(probe: Probe, chain: f64, reference: f64) -> Option<Self> {
        let steps = |rounds: u32| f64::from(rounds * CHAIN_STEPS_PER_ROUND);
        let per_multiplication = (1.0 - chain) / steps((LONGER - 1) * probe.multiplication_rounds);
        let per_cycle = reference / steps((LONGER - 1) * REFERENCE_ROUNDS);
        let measured = per_multiplication / per_cycle;
        let per_step = measured.round();
        let cycles = chain / per_multiplication * per_step;
        let chain_alone = steps(probe.multiplication_rounds) * per_step;
        // Readings that take longer than the chain are intercepted by a hypervisor.
        let is_plausible = (0.95 * chain_alone..2.0 * chain_alone).contains(&cycles);
        let is_whole = CYCLES.contains(&per_step) && (measured - per_step).abs() < GREATEST_DEVIATION;
        (is_plausible && is_whole).then_some(Self { cycles })
    }

    /// Cycles per tick, of a chain that took so many ticks.
    pub fn clock(self, ticks: u64) -> f64 {
        self.cycles / ticks.max(1) as f64
    }
}

/// The mean of the middle half; not a number where there is none.
fn middle_mean(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = &values[values.len() / 4..values.len() - values.len() / 4];
    middle.iter().sum::<f64>() / middle.len() as f64
}

/// The clocks of one core since the watch began, counted.
#[derive(Debug, Clone)]
pub struct Clocks {
    /// By the ticks of the chain.
    looks_by_ticks: Vec<u32>,
    looks: u32,
}

impl Default for Clocks {
    fn default() -> Self {
        Self { looks_by_ticks: vec![0; LONGEST_TICKS], looks: 0 }
    }
}

impl Clocks {
    pub fn remember(&mut self, ticks: u64) {
        self.looks_by_ticks[(ticks as usize).min(LONGEST_TICKS - 1)] += 1;
        self.looks += 1;
    }

    /// The 99th percentile, in cycles per tick; `None` where there was no look.
    pub fn highest(&self, chain: ChainLength) -> Option<f64> {
        let (mut seen, faster) = (0, self.looks / FASTEST_LOOKS);
        let reached = |looks: &u32| {
            seen += looks;
            seen > faster
        };
        self.looks_by_ticks.iter().position(reached).map(|ticks| chain.clock(ticks as u64))
    }
}

/// The clocks of one trial, summed up by the speed that the same look found.
#[derive(Debug, Clone)]
pub struct ClocksBySpeed {
    bins: Vec<(u32, f64)>,
}

impl Default for ClocksBySpeed {
    fn default() -> Self {
        Self { bins: vec![(0, 0.0); Speed::all().len()] }
    }
}

impl ClocksBySpeed {
    pub fn add(&mut self, speed: Speed, clock: f64) {
        let (looks, sum) = &mut self.bins[speed.index()];
        *looks += 1;
        *sum += clock;
    }

    /// The mean over the looks that found the core unshared: a neighbour holds multiplications up as well, by a little.
    /// Where there are next to none, the mean over all. `None` where there was no look.
    pub fn mean(&self, best: Speed) -> Option<f64> {
        let total = |is_counted: &dyn Fn(Speed) -> bool| {
            let counted = self.bins.iter().zip(Speed::all()).filter(|(_, speed)| is_counted(*speed));
            counted.fold((0, 0.0), |(looks, sum), ((more, clocks), _)| (looks + more, sum + clocks))
        };
        let all = total(&|_| true);
        let unshared = total(&|speed| speed.hundredths_of(best) >= SLOW_HUNDREDTHS);
        let (looks, sum) = if unshared.0 * UNSHARED_LOOKS < all.0 { all } else { unshared };
        (looks > 0).then(|| sum / f64::from(looks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::core_speed::SHORT_PROBE;

    /// As a core would find it that takes so many cycles for a multiplication, and for reading the counter.
    fn length(per_multiplication: f64, per_exclusive_or: f64, reading: f64) -> Option<ChainLength> {
        let rounds = f64::from(SHORT_PROBE.multiplication_rounds);
        let (chain, long) = (4.0 * rounds * per_multiplication + reading, 20.0 * rounds * per_multiplication + reading);
        let reference = 16.0 * f64::from(REFERENCE_ROUNDS) * per_exclusive_or;
        ChainLength::compute(SHORT_PROBE, chain / long, reference / long)
    }

    #[test]
    fn a_multiplication_takes_a_whole_number_of_cycles_and_reading_the_counter_some_more() {
        for (per_multiplication, reading) in [(3.0, 63.0), (4.0, 30.0), (5.0, 0.0)] {
            let cycles = length(per_multiplication, 1.0, reading).unwrap().cycles;
            assert!((cycles - 200.0 * per_multiplication - reading).abs() < 1e-6, "{cycles}");
        }
        let beside_a_neighbour = length(3.1, 1.1, 60.0).unwrap().cycles;
        assert!((beside_a_neighbour / 660.0 - 1.0).abs() < 0.01, "{beside_a_neighbour}");
    }

    #[test]
    fn chains_that_do_not_tell_the_clock_are_left_apart() {
        assert_eq!(length(1.1, 1.0, 60.0), None, "an emulated processor");
        assert_eq!(length(3.5, 1.0, 60.0), None, "neither three cycles nor four");
        assert_eq!(length(3.0, 1.0, 3_000.0), None, "reading the counter ends in a hypervisor");
        assert_eq!(ChainLength::compute(SHORT_PROBE, f64::NAN, f64::NAN), None);
    }

    #[test]
    fn the_middle_half_counts() {
        assert_eq!(middle_mean(&mut [900.0, 3.0, 2.0, 1.0]), 2.5);
        assert!(middle_mean(&mut []).is_nan());
    }

    #[test]
    fn the_highest_clock_is_that_of_the_fastest_look_but_one_in_a_hundred() {
        let (chain, mut clocks) = (ChainLength { cycles: 600.0 }, Clocks::default());
        assert_eq!(clocks.highest(chain), None);
        (0..197).for_each(|_| clocks.remember(600));
        [300, 400, 500, u64::MAX].into_iter().for_each(|ticks| clocks.remember(ticks));
        assert_eq!(clocks.highest(chain), Some(1.2));
    }

    #[test]
    fn looks_beside_a_neighbour_tell_the_clock_only_where_there_are_no_others() {
        let (quiet, shared, mut clocks) = (Speed::new(0.5), Speed::new(0.3), ClocksBySpeed::default());
        assert_eq!(clocks.mean(quiet), None);
        (0..60).for_each(|_| clocks.add(shared, 1.0));
        assert_eq!(clocks.mean(quiet), Some(1.0));
        clocks.add(quiet, 2.0);
        assert!(clocks.mean(quiet).is_some_and(|mean| mean < 1.1));
        (0..9).for_each(|_| clocks.add(quiet, 1.5));
        assert_eq!(clocks.mean(quiet), Some(1.55));
    }
}
