//! Draws a fate for each frame.

use nicbench_protocol::Faults;

use super::random::Random;

/// What a fault does to a frame, delay and rate apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Pass,
    Lose,
    CorruptPayload,
    Duplicate,
    Reorder,
    CorruptSignature,
    CorruptLength,
}

/// The probabilities of the fates.
#[derive(Debug, Clone)]
pub struct Odds {
    /// A share below the bound, and not below the one before, is this fate.
    bounds: [(f64, Fate); 6],
}

fn probabilities(faults: &Faults) -> [(f64, Fate, &'static str); 6] {
    [
        (faults.loss, Fate::Lose, "loss"),
        (faults.corrupt_payload, Fate::CorruptPayload, "corrupt_payload"),
        (faults.duplicate, Fate::Duplicate, "duplicate"),
        (faults.reorder, Fate::Reorder, "reorder"),
        (faults.corrupt_signature, Fate::CorruptSignature, "corrupt_signature"),
        (faults.corrupt_length, Fate::CorruptLength, "corrupt_length"),
    ]
}

impl Odds {
    pub fn new(faults: &Faults) -> Self {
        let mut sum = 0.0;
        let bounds = probabilities(faults).map(|(probability, fate, _)| {
            sum += probability;
            (sum, fate)
        });
        Self { bounds }
    }

    /// Always draws once, so that equal seeds keep in step whatever the odds are.
    pub fn draw(&self, random: &mut Random) -> Fate {
        let share = random.share();
        self.bounds.iter().find(|(bound, _)| share < *bound).map_or(Fate::Pass, |(_, fate)| *fate)
    }
}

/// Describes a probability that is impossible, if there is one.
pub fn impossible_odds(faults: &Faults) -> Option<String> {
    let all = probabilities(faults);
    if let Some((value, _, name)) = all.iter().find(|(value, ..)| !(0.0..=1.0).contains(value)) {
        return Some(format!("{name} is {value}, and a probability is from 0 to 1"));
    }
    let sum: f64 = all.iter().map(|(value, ..)| value).sum();
    (sum > 1.0 + 1e-9).then(|| {
        let names: Vec<_> = all.iter().map(|(.., name)| *name).collect();
        format!("{} is {sum} in all, and a frame has one fate", names.join(" + "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fate_comes_as_often_as_asked() {
        let faults = Faults { loss: 0.1, duplicate: 0.2, corrupt_length: 0.3, ..Faults::default() };
        let (odds, mut random) = (Odds::new(&faults), Random::seeded(1, 1, 1));
        let fates: Vec<Fate> = (0..10_000).map(|_| odds.draw(&mut random)).collect();
        let share = |fate| fates.iter().filter(|drawn| **drawn == fate).count() / 100;
        assert!((9..=11).contains(&share(Fate::Lose)) && (19..=21).contains(&share(Fate::Duplicate)));
        assert!((29..=31).contains(&share(Fate::CorruptLength)) && share(Fate::Reorder) == 0);
        assert!((39..=41).contains(&share(Fate::Pass)));
    }

    #[test]
    fn impossible_odds_are_named() {
        let problem = |faults: &Faults| impossible_odds(faults).unwrap_or_default();
        assert_eq!(problem(&Faults::default()), "");
        assert!(problem(&Faults { loss: 1.1, ..Faults::default() }).contains("loss is 1.1"));
        assert!(problem(&Faults { reorder: f64::NAN, ..Faults::default() }).contains("reorder"));
        assert!(problem(&Faults { loss: 0.6, duplicate: 0.5, ..Faults::default() }).contains("in all"));
    }
}
