//! SplitMix64: small, seedable, good enough for faults.

use crate::signature::scramble;

/// A seeded sequence of random numbers.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The sequence of this seed, trial and load; equal seeds give equal sequences.
    pub fn seeded(seed: u64, trial: u32, load: u64) -> Self {
        Self { state: scramble(seed ^ scramble(load ^ scramble(trial.into()))) }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let value = scramble(self.state);
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        value
    }

    /// A number drawn uniformly from 0..1.
    pub fn share(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number drawn uniformly from 0..limit; 0 for a limit of 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(limit)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_sequences_and_others_do_not() {
        let draw = |seed, trial, load| {
            let mut random = Random::seeded(seed, trial, load);
            [random.bits(), random.bits(), random.bits()]
        };
        assert_eq!(draw(1, 2, 3), draw(1, 2, 3));
        assert!(draw(1, 2, 3) != draw(1, 3, 3) && draw(1, 2, 3) != draw(1, 2, 4) && draw(1, 2, 3) != draw(2, 2, 3));
    }

    #[test]
    fn shares_are_uniform_and_stay_below_one() {
        let mut random = Random::seeded(1, 1, 1);
        let shares: Vec<f64> = (0..10_000).map(|_| random.share()).collect();
        let mean = shares.iter().sum::<f64>() / 10_000.0;
        assert!((0.48..0.52).contains(&mean) && shares.iter().all(|share| (0.0..1.0).contains(share)));
        assert!((0..1000).all(|_| random.below(7) < 7));
    }
}
