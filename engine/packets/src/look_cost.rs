//! `nicbench-packets measure looks CPU`: what the core watch costs the CPU that it watches, by the rate and the length
//! of its looks, and how well a look of each length tells a shared core from one of its own. JSON on stdout.
//!
//! The cost is what an ordinary thread on that CPU loses: it reads the time-stamp counter in a loop, and each jump is
//! time that it did not have, interrupts and switches of threads included. Cases are interleaved, and a case's figure
//! is the median of its rounds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde::Serialize;

use crate::clock::TscClock;
use crate::core_watch::{SLOW_HUNDREDTHS, Speed, Speeds, next_slot};
use crate::error::{EngineError, ErrorKind};
use crate::port::Clock;
use crate::stall_detector::StallDetector;
use crate::sys::core_speed::{Probe, SHORT_PROBE};
use crate::sys::{self, core_speed, tsc};

const ROUNDS: usize = 9;
const ROUND_S: f64 = 0.3;
/// Shorter jumps are the loop's own; longer ones are other programs that had the CPU.
const SHORTEST_JUMP_NS: u64 = 400;
const LONGEST_JUMP_NS: u64 = 200_000;
const RATES_PER_S: [u64; 4] = [50, 250, 500, 1000];
/// Looks that compare each probe with the longest in the same moment.
const COMPARISONS: usize = 40_000;
const COMPARISON_NS: u64 = 1_000_000;
/// In thirds of the short probe's work, the last one being what the others are held against.
const LENGTHS: [u32; 8] = [1, 2, 3, 5, 7, 12, 24, 25];

#[derive(Debug, Serialize)]
pub struct Report {
    pub cpu: u32,
    pub costs: Vec<Cost>,
    pub probes: Vec<Agreement>,
}

/// What a watch costs.
#[derive(Debug, Clone, Serialize)]
pub struct Cost {
    pub looks_per_s: u64,
    pub probe_ns: f64,
    /// Whether the stall detector's timer runs too.
    pub detects_stalls: bool,
    /// Of the CPU's time, with what it loses without any watch; medians of the rounds.
    pub lost_share: f64,
    /// The looking thread's own CPU time, by the kernel's account.
    pub thread_share: f64,
    /// Of a jump, in the median round.
    pub median_jump_ns: f64,
}

/// How a probe judges the core, beside the longest probe right after it.
#[derive(Debug, Clone, Serialize)]
pub struct Agreement {
    pub probe_ns: f64,
    pub looks: u32,
    /// Looks that the longest probe calls slow.
    pub slow: u32,
    /// Called slow by this probe alone.
    pub false_slow: u32,
    /// Called slow by the longest probe alone.
    pub missed_slow: u32,
}

#[derive(Debug, Clone, Copy)]
struct Case {
    looks_per_s: u64,
    probe: Probe,
    detects_stalls: bool,
}

/// Measures for about two minutes.
pub fn run(cpu: &str) -> Result<Report, EngineError> {
    let wrong = |message: String| EngineError::new(ErrorKind::BadRequest, message, "use: measure looks CPU");
    let cpu: u32 = cpu.parse().map_err(|_| wrong(format!("there is no CPU {cpu:?}")))?;
    sys::thread::pin_to(cpu).map_err(|error| wrong(format!("CPU {cpu}: {error}")))?;
    let clock = TscClock::calibrated();
    let probes = compare_probes(cpu, &clock)?;
    let mut cases = vec![case(0, SHORT_PROBE, false), case(0, SHORT_PROBE, true)];
    for rate in RATES_PER_S {
        cases.extend(LENGTHS[2..7].iter().map(|length| case(rate, probe(*length), false)));
        cases.push(case(rate, SHORT_PROBE, true));
    }
    let mut rounds: Vec<Vec<Cost>> = vec![Vec::new(); cases.len()];
    for _ in 0..ROUNDS {
        for (case, taken) in cases.iter().zip(&mut rounds) {
            taken.push(measure(cpu, *case, &clock)?);
        }
    }
    Ok(Report { cpu, costs: rounds.iter().filter_map(|taken| median(taken)).collect(), probes })
}

fn case(looks_per_s: u64, probe: Probe, detects_stalls: bool) -> Case {
    Case { looks_per_s, probe, detects_stalls }
}

fn probe(thirds: u32) -> Probe {
    let part = |work: u32| work * thirds / 3;
    Probe {
        addition_rounds: part(SHORT_PROBE.addition_rounds),
        multiplication_rounds: part(SHORT_PROBE.multiplication_rounds),
        ..SHORT_PROBE
    }
}

fn median(rounds: &[Cost]) -> Option<Cost> {
    let of = |value: fn(&Cost) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(0.0)
    };
    let first = rounds.first()?;
    Some(Cost {
        probe_ns: of(|cost| cost.probe_ns),
        lost_share: of(|cost| cost.lost_share),
        thread_share: of(|cost| cost.thread_share),
        median_jump_ns: of(|cost| cost.median_jump_ns),
        ..first.clone()
    })
}

/// What this thread, bound to the CPU, loses while another looks at it.
fn measure(cpu: u32, case: Case, clock: &TscClock) -> Result<Cost, EngineError> {
    let (ends, ticks) = (Arc::new(AtomicBool::new(false)), |ns: u64| (ns as f64 * clock.hz() / 1e9) as u64);
    let looker = (case.looks_per_s > 0 || case.detects_stalls).then(|| {
        let ends = Arc::clone(&ends);
        thread::spawn(move || look_until_end(cpu, case, &ends))
    });
    // The looking thread gets ready meanwhile.
    thread::sleep(std::time::Duration::from_millis(20));
    let (mut jumps, mut lost) = (Vec::new(), 0);
    let (first, shortest, longest) = (clock.now(), ticks(SHORTEST_JUMP_NS), ticks(LONGEST_JUMP_NS));
    let (mut last, end) = (first, first + (ROUND_S * clock.hz()) as u64);
    let mut away = 0;
    while last < end {
        let now = clock.now();
        let jump = now - last;
        if jump > shortest {
            if jump < longest {
                jumps.push(jump);
                lost += jump;
            } else {
                away += jump;
            }
        }
        last = now;
    }
    let whole = (last - first).saturating_sub(away).max(1);
    ends.store(true, Ordering::Relaxed);
    let (probe_ns, thread_share) = looker.map_or(Ok((0.0, 0.0)), |looker| looker.join().unwrap_or(Err(stopped())))?;
    jumps.sort_unstable();
    Ok(Cost {
        looks_per_s: case.looks_per_s,
        probe_ns,
        detects_stalls: case.detects_stalls,
        lost_share: lost as f64 / whole as f64,
        thread_share,
        median_jump_ns: clock.nanoseconds(jumps.get(jumps.len() / 2).copied().unwrap_or(0)) as f64,
    })
}

/// Looks as the core watch does. Returns the mean time of a probe, and the thread's share of the CPU.
fn look_until_end(cpu: u32, case: Case, ends: &AtomicBool) -> Result<(f64, f64), EngineError> {
    bind(cpu)?;
    let mut stalls = if case.detects_stalls { StallDetector::open(cpu).ok() } else { None };
    let begins_ns = next_slot(tsc::monotonic_ns());
    stalls.iter_mut().for_each(|stalls| stalls.start_before(begins_ns));
    let (cpu_before_ns, mut looks, mut probe_ns) = (sys::thread::cpu_time_ns(), 0, 0);
    let period_ns = 1_000_000_000u64.checked_div(case.looks_per_s);
    let mut next_ns = begins_ns;
    while !ends.load(Ordering::Relaxed) {
        let Some(period_ns) = period_ns else {
            thread::sleep(std::time::Duration::from_millis(100));
            continue;
        };
        next_ns = (next_ns + period_ns).max(tsc::monotonic_ns() / period_ns * period_ns);
        sys::thread::sleep_until(next_ns);
        let before_ns = tsc::monotonic_ns();
        std::hint::black_box(core_speed::measure(case.probe));
        probe_ns += tsc::monotonic_ns() - before_ns;
        looks += 1;
        stalls.iter_mut().for_each(StallDetector::read);
    }
    let (used_ns, passed_ns) = (sys::thread::cpu_time_ns() - cpu_before_ns, tsc::monotonic_ns() - begins_ns);
    Ok((probe_ns as f64 / f64::from(looks.max(1)), used_ns as f64 / passed_ns as f64))
}

/// Each probe right after a wake-up, as in the core watch, and the longest right after it.
fn compare_probes(cpu: u32, clock: &TscClock) -> Result<Vec<Agreement>, EngineError> {
    let compared = thread::spawn(move || {
        bind(cpu)?;
        let tested = LENGTHS.len() - 1;
        let mut seen: Vec<Vec<(Speed, Speed, u64)>> = vec![Vec::new(); tested];
        let mut next_ns = next_slot(tsc::monotonic_ns());
        for look in 0..COMPARISONS {
            next_ns = (next_ns + COMPARISON_NS).max(tsc::monotonic_ns());
            sys::thread::sleep_until(next_ns);
            let which = look % tested;
            let before = tsc::ticks();
            let speed = Speed::new(core_speed::measure(probe(LENGTHS[which])).parallel);
            let ticks = tsc::ticks() - before;
            seen[which].push((speed, Speed::new(core_speed::measure(probe(LENGTHS[tested])).parallel), ticks));
        }
        Ok(seen)
    });
    let seen = compared.join().unwrap_or(Err(stopped()))?;
    let best_of = |speeds: &mut dyn Iterator<Item = Speed>| {
        let mut all = Speeds::default();
        speeds.for_each(|speed| all.remember(speed));
        all.best()
    };
    let best = best_of(&mut seen.iter().flatten().map(|(_, long, _)| *long));
    let agreement = |looks: &Vec<(Speed, Speed, u64)>| {
        let own_best = best_of(&mut looks.iter().map(|(short, ..)| *short));
        let is_slow = |speed: Speed, best| speed.hundredths_of(best) < SLOW_HUNDREDTHS;
        let count = |wanted: (bool, bool)| {
            looks.iter().filter(|(short, long, _)| (is_slow(*short, own_best), is_slow(*long, best)) == wanted).count()
        };
        let mut times: Vec<u64> = looks.iter().map(|(.., ticks)| *ticks).collect();
        times.sort_unstable();
        Agreement {
            probe_ns: clock.nanoseconds(times.get(times.len() / 2).copied().unwrap_or(0)) as f64,
            looks: looks.len() as u32,
            slow: (count((true, true)) + count((false, true))) as u32,
            false_slow: count((true, false)) as u32,
            missed_slow: count((false, true)) as u32,
        }
    };
    Ok(seen.iter().map(agreement).collect())
}

fn bind(cpu: u32) -> Result<(), EngineError> {
    sys::thread::pin_to(cpu).and_then(|()| sys::thread::run_first()).map_err(|error| {
        EngineError::new(ErrorKind::BadState, format!("CPU {cpu}: {error}"), "call it as root, or with CAP_SYS_NICE")
    })
}

fn stopped() -> EngineError {
    EngineError::new(ErrorKind::SelfCheck, "the looking thread panicked", "report this as a fault of nicbench-packets")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_of_three_thirds_is_the_short_one() {
        assert_eq!(probe(3), SHORT_PROBE);
        assert_eq!(probe(6).addition_rounds, 2 * SHORT_PROBE.addition_rounds);
    }

    #[test]
    fn a_cost_is_the_median_of_its_rounds() {
        let of = |lost_share| Cost {
            looks_per_s: 50,
            probe_ns: 1.0,
            detects_stalls: false,
            lost_share,
            thread_share: 0.0,
            median_jump_ns: 0.0,
        };
        assert_eq!(median(&[of(0.3), of(0.1), of(0.2)]).map(|cost| cost.lost_share), Some(0.2));
        assert!(median(&[]).is_none());
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_refused_by_name() {
        assert!(run("four").unwrap_err().message.contains("four"));
        assert!(run("1023").is_err());
    }
}
