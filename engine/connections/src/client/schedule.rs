//! When each connection or request is due: a rate that rises from nothing in a straight line, then stays.

/// The moments of a run, in nanoseconds since its first. They depend on nothing that happens.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// A second, after the ramp.
    pub rate: f64,
    ramp_s: f64,
    /// How many are due in all.
    pub count: u64,
}

impl Schedule {
    /// So many a second for `sustain_s`, after a ramp.
    pub fn steady(rate: f64, ramp_s: f64, sustain_s: f64) -> Self {
        Self { rate, ramp_s, count: (rate * (ramp_s / 2.0 + sustain_s)).round() as u64 }
    }

    /// So many, at this rate.
    pub fn counted(rate: f64, count: u64) -> Self {
        Self { rate, ramp_s: 0.0, count }
    }

    /// When number `number` is due.
    pub fn due(&self, number: u64) -> u64 {
        let (number, in_ramp) = (number as f64, self.rate * self.ramp_s / 2.0);
        let seconds = if number < in_ramp {
            (2.0 * number * self.ramp_s / self.rate).sqrt()
        } else {
            self.ramp_s + (number - in_ramp) / self.rate
        };
        (seconds * 1e9) as u64
    }
}

/// Which object each number asks for: sizes in turn, each as often as its weight says, spread evenly.
#[derive(Clone, Debug)]
pub struct Mix(Vec<usize>);

impl Mix {
    /// The turns of kinds with these weights.
    pub fn new(weights: &[u32]) -> Self {
        let whole: i64 = weights.iter().map(|&weight| i64::from(weight)).sum();
        let mut credit = vec![0i64; weights.len()];
        let turns = (0..whole).map(|_| {
            for (each, &weight) in credit.iter_mut().zip(weights) {
                *each += i64::from(weight);
            }
            // Of equal ones the first, so that the order is always the same.
            let most = (0..credit.len()).rev().max_by_key(|&kind| credit[kind]).unwrap_or(0);
            credit[most] -= whole;
            most
        });
        Self(turns.collect())
    }

    /// The kind of number `number`.
    pub fn kind(&self, number: u64) -> usize {
        self.0[(number % self.0.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ramp_ends_at_the_rate_and_the_sustain_phase_keeps_it() {
        let schedule = Schedule::steady(1000.0, 2.0, 3.0);
        assert_eq!(schedule.count, 4000);
        assert_eq!(schedule.due(0), 0);
        assert_eq!(schedule.due(1000), 2_000_000_000);
        assert_eq!(schedule.due(4000), 5_000_000_000);
        let dues: Vec<u64> = (0..4000).map(|number| schedule.due(number)).collect();
        assert!(dues.is_sorted());
        assert_eq!(dues.iter().filter(|&&due| due < 1_000_000_000).count(), 250);
    }

    #[test]
    fn a_mix_has_each_kind_as_often_as_it_weighs() {
        let mix = Mix::new(&[3, 1]);
        let kinds: Vec<usize> = (0..8).map(|number| mix.kind(number)).collect();
        assert_eq!(kinds, [0, 0, 1, 0, 0, 0, 1, 0]);
    }
}
