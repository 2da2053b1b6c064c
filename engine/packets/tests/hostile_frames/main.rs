//! Frames that nobody of ours made, or that were spoilt on the way: the receiver neither fails nor miscounts.
//!
//! Some hundred cases from a fixed seed in every run; `NICBENCH_FUZZ_S=500` goes on for so many seconds, from
//! `NICBENCH_FUZZ_SEED` on. `engine/fuzz` gives the same cases to libFuzzer.

mod harness;
mod truth;

use std::io::Write;
use std::time::{Duration, Instant};

use nicbench_packets::faults::Random;

const USUAL_CASES: u64 = 150;

/// Runs `case` for each seed, for as long as asked; tells how many there were.
fn for_seeds(name: &str, mut case: impl FnMut(&mut Random) -> u64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (first, seconds) = (number("NICBENCH_FUZZ_SEED").unwrap_or(1), number("NICBENCH_FUZZ_S"));
    let (began, mut cases, mut frames) = (Instant::now(), 0, 0);
    let goes_on = |cases| seconds.map_or(cases < USUAL_CASES, |seconds| began.elapsed() < Duration::from_secs(seconds));
    while goes_on(cases) {
        let seed = first.wrapping_add(cases);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| case(&mut Random::seeded(seed, 1, 1))));
        match outcome {
            Ok(more) => frames += more,
            Err(panic) => {
                let _ = writeln!(std::io::stderr(), "{name}: NICBENCH_FUZZ_SEED={seed} fails");
                std::panic::resume_unwind(panic);
            }
        }
        cases += 1;
    }
    let _ = writeln!(std::io::stderr(), "{name}: {cases} cases, {frames} frames, from NICBENCH_FUZZ_SEED={first}");
}

#[test]
fn whatever_arrives_has_one_place_in_the_counts() {
    for_seeds("any bytes", |random| {
        let length = random.below(4_000) as usize;
        let input: Vec<u8> = (0..length).map(|_| random.bits() as u8).collect();
        harness::judge(&input)
    });
}

#[test]
fn counts_are_those_of_a_record_of_every_frame() {
    for_seeds("known fates", truth::compare);
}
