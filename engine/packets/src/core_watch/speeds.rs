//! The speeds that were measured of one core, counted, and the best of them.

/// Speeds are kept in steps of a thousandth; a core's lie around 1 (five additions a cycle) and below 2.
const BINS_PER_UNIT: f64 = 1000.0;
const BINS: usize = 2560;
/// Faster speeds than the best are fewer than one look in so many.
const RARE: u32 = 32;
/// The best changes seldom, and finding it costs as much as a look.
const LOOKS_PER_SEARCH: u32 = 64;

/// One measured speed, in steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Speed(u16);

impl Speed {
    /// A speed that cannot be is the nearest that can; not a number is 0.
    pub fn new(speed: f64) -> Self {
        Self(((speed * BINS_PER_UNIT) as usize).min(BINS - 1) as u16)
    }

    /// Every speed that can be, from 0 upwards.
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        (0..BINS as u16).map(Self)
    }

    /// Its place among all.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Hundredths of `best`, rounded down; from 1 to 255, for 0 is no look.
    pub fn hundredths_of(self, best: Self) -> u8 {
        (100 * u32::from(self.0) / u32::from(best.0.max(1))).clamp(1, 255) as u8
    }
}

/// Counts of speeds. The best is one that was seen more than now and then: a measurement that was itself disturbed
/// between its two halves gives a speed that the core never has.
#[derive(Debug, Clone)]
pub struct Speeds {
    bins: Vec<u32>,
    looks: u32,
    best: Speed,
}

impl Default for Speeds {
    fn default() -> Self {
        Self { bins: vec![0; BINS], looks: 0, best: Speed(0) }
    }
}

impl Speeds {
    pub fn remember(&mut self, speed: Speed) {
        self.bins[speed.index()] += 1;
        self.looks += 1;
        if self.looks < LOOKS_PER_SEARCH || self.looks % LOOKS_PER_SEARCH == 0 {
            self.best = self.find_best();
        }
    }

    /// The best speed as it was when it was last searched for.
    pub fn best(&self) -> Speed {
        self.best
    }

    pub fn looks(&self) -> u32 {
        self.looks
    }

    /// Looks that found less than so many hundredths of `best`.
    pub fn slower_than(&self, hundredths: u8, best: Speed) -> u32 {
        let bins = self.bins.iter().zip(Speed::all());
        bins.filter(|(_, speed)| speed.hundredths_of(best) < hundredths).map(|(count, _)| count).sum()
    }

    fn find_best(&self) -> Speed {
        let enough = (self.looks / RARE).max(1);
        let mut seen = 0;
        let reached = |bin: &u16| {
            seen += self.bins[usize::from(*bin)];
            seen > enough
        };
        Speed((0..BINS as u16).rev().find(reached).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best_of(speeds: impl IntoIterator<Item = f64>) -> f64 {
        let mut all = Speeds::default();
        speeds.into_iter().for_each(|speed| all.remember(Speed::new(speed)));
        f64::from(all.find_best().0) / BINS_PER_UNIT
    }

    #[test]
    fn the_best_is_what_was_seen_often_enough() {
        let ordinary = [0.33, 0.2, 0.33, 0.2, 0.2, 0.33].repeat(20);
        assert!((best_of(ordinary.iter().copied()) - 0.33).abs() < 0.002);
        let with_freaks = ordinary.into_iter().chain([0.9, 0.7]);
        assert!((best_of(with_freaks) - 0.33).abs() < 0.002);
    }

    #[test]
    fn a_speed_beyond_every_bin_is_no_panic() {
        assert!(best_of([1e9; 10]) > 1.0);
        assert!(best_of([f64::NAN, -1.0]) == 0.0);
        assert_eq!(Speed::new(1e9).hundredths_of(Speed::new(0.0)), 255);
    }

    #[test]
    fn a_core_that_was_shared_at_first_is_known_by_its_later_best() {
        let mut speeds = Speeds::default();
        (0..100).for_each(|_| speeds.remember(Speed::new(0.3)));
        assert_eq!(speeds.slower_than(80, speeds.best()), 0);
        (0..100).for_each(|_| speeds.remember(Speed::new(0.5)));
        assert_eq!((speeds.best(), speeds.slower_than(80, speeds.best())), (Speed::new(0.5), 100));
    }

    #[test]
    fn a_share_is_rounded_down_and_never_that_of_no_look() {
        let best = Speed::new(0.5);
        let shares = [0.5, 0.4, 0.399, 0.0].map(|speed| Speed::new(speed).hundredths_of(best));
        assert_eq!(shares, [100, 80, 79, 1]);
    }
}
