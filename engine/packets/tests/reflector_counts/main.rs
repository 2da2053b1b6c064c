//! What the reference forwarder injects is what the tester reports: seeded cases of mixed faults on `net_ring`, the
//! tester's counts against those derived from the forwarder's log.
//!
//! `NICBENCH_FAULT_SEED` repeats a run, `NICBENCH_FAULT_CASES` sets how many cases there are (50; `make soak` runs
//! 500).
#![cfg(feature = "dpdk")]

mod case;
mod check;
#[path = "../rings/mod.rs"]
mod rings;

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use case::Case;
use check::Totals;
use rings::Rings;

const USUAL_CASES: u64 = 50;

#[test]
fn the_testers_counts_are_those_of_the_forwarders_log() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    let seed = from_environment("NICBENCH_FAULT_SEED").unwrap_or(now);
    let cases = from_environment("NICBENCH_FAULT_CASES").unwrap_or(USUAL_CASES);
    say(&format!("{cases} cases of mixed faults, NICBENCH_FAULT_SEED={seed}"));
    let mut rings = Rings::open();
    let mut totals = Totals::default();
    for number in 0..cases {
        let case = Case::drawn(seed, number);
        let outcome = rings.trial(&case.start(rings.next_trial()), &case.setup(rings.next_trial()), case.foreign_every);
        if let Err(problem) = check::check(&case, &outcome, &mut totals) {
            panic!("case {number} of NICBENCH_FAULT_SEED={seed}: {problem}\n{case:#?}");
        }
    }
    say(&format!("{totals}"));
    assert!(cases < USUAL_CASES || totals.everything_happened(), "a kind of fault never happened: {totals}");
}

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text:?} is no number")))
}

/// Also where the test passes: cargo hides only what is printed by macros.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
