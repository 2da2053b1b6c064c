//! How many frames may be answered: so many a second, and some at once. A flood of questions is not to become one of
//! answers.

/// What is left to be taken.
#[derive(Debug, Clone, Copy)]
pub struct Allowance {
    per_s: f64,
    most: f64,
    left: f64,
    at_ns: u64,
}

impl Allowance {
    /// A full one, at time 0.
    pub const fn new(per_s: f64, most: f64) -> Self {
        Self { per_s, most, left: most, at_ns: 0 }
    }

    /// Takes one, if one is left at this time.
    pub fn take(&mut self, now_ns: u64) -> bool {
        let gained = now_ns.saturating_sub(self.at_ns) as f64 * self.per_s / 1e9;
        self.left = (self.left + gained).min(self.most);
        self.at_ns = self.at_ns.max(now_ns);
        let is_left = self.left >= 1.0;
        self.left -= if is_left { 1.0 } else { 0.0 };
        is_left
    }

    /// When one will be left, if none is taken before.
    pub fn next_ns(&self) -> u64 {
        self.at_ns + ((1.0 - self.left).max(0.0) / self.per_s * 1e9) as u64 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_questions_gets_a_bounded_number_of_answers() {
        let mut allowance = Allowance::new(1000.0, 256.0);
        let answered = |allowance: &mut Allowance, at_ns| (0..10_000).filter(|_| allowance.take(at_ns)).count();
        assert_eq!(answered(&mut allowance, 0), 256);
        assert_eq!(answered(&mut allowance, 100_000_000), 100);
        assert_eq!(answered(&mut allowance, 60_000_000_000), 256);
    }

    #[test]
    fn the_next_one_is_there_when_it_is_said_to_be() {
        let mut allowance = Allowance::new(1000.0, 1.0);
        assert!(allowance.take(0));
        let next_ns = allowance.next_ns();
        assert!(!allowance.take(next_ns / 2) && allowance.take(next_ns));
    }
}
