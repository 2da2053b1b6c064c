//! How much of a core the calling thread gets at this instant: additions that wait for nothing, beside multiplications
//! that wait for each other. Who shares the physical core (the other hyperthread) slows the first and hardly the
//! second; a change of frequency slows both, so that their ratio tells one from the other.
//!
//! The multiplications take a fixed number of the core's cycles, so that their time also tells the core's clock.
//!
//! A probe runs right after a wake-up, with cold caches and predictors: the first of several tries warms them up, and
//! the shortest counts. Fences keep the time-stamp counter from being read while the work is still in flight; without
//! them a short chain of multiplications fits into the reorder buffer and appears to take no time.

#[cfg(target_arch = "x86_64")]
use super::tsc;

/// How much work one probe does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// Rounds of eight additions.
    pub addition_rounds: u32,
    /// Rounds of four multiplications.
    pub multiplication_rounds: u32,
    /// Of each kind; the shortest counts.
    pub tries: usize,
}

/// The shortest probe that calls no quiet core slow (`nicbench-packets measure looks`): a microsecond and a quarter.
pub const SHORT_PROBE: Probe = Probe { addition_rounds: 400, multiplication_rounds: 50, tries: 3 };

/// In a round of either chain.
pub const CHAIN_STEPS_PER_ROUND: u32 = 4;

/// What a probe found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CoreSpeed {
    /// Additions per multiplication's time, in arbitrary units that are comparable on one machine for one probe;
    /// greater is better.
    pub parallel: f64,
    /// Ticks of the time-stamp counter that the multiplications took; 0 where they are not measured.
    pub chain_ticks: u64,
}

/// Measures how much of its core the calling thread gets.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
pub fn measure(probe: Probe) -> CoreSpeed {
    let chain_ticks = shortest(multiply, probe.multiplication_rounds, probe.tries);
    let parallel = chain_ticks as f64 / shortest(add, probe.addition_rounds, probe.tries) as f64;
    CoreSpeed { parallel, chain_ticks }
}

/// Ticks of a chain of multiplications, in the shortest of these tries.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
pub fn multiplication_ticks(rounds: u32, tries: usize) -> u64 {
    shortest(multiply, rounds, tries)
}

/// Ticks of a chain of exclusive ors, each of which takes one cycle on every core, in the shortest of these tries.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
pub fn exclusive_or_ticks(rounds: u32, tries: usize) -> u64 {
    shortest(exclusive_or, rounds, tries)
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn shortest(work: fn(u32), rounds: u32, tries: usize) -> u64 {
    (0..tries).map(|_| time(work, rounds)).min().unwrap_or(1).max(1)
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn time(work: fn(u32), rounds: u32) -> u64 {
    let before = tsc::ticks_in_order();
    work(rounds);
    tsc::ticks_in_order().saturating_sub(before)
}

/// More independent additions than any core issues at once.
#[cfg(target_arch = "x86_64")]
fn add(rounds: u32) {
    // SAFETY: it changes nine registers, all named, and the flags. `rounds` above 0 ends the loop at 0.
    unsafe {
        core::arch::asm!(
            "2:",
            "add {0}, 1",
            "add {1}, 1",
            "add {2}, 1",
            "add {3}, 1",
            "add {4}, 1",
            "add {5}, 1",
            "add {6}, 1",
            "add {7}, 1",
            "dec {rounds:e}",
            "jnz 2b",
            out(reg) _,
            out(reg) _,
            out(reg) _,
            out(reg) _,
            out(reg) _,
            out(reg) _,
            out(reg) _,
            out(reg) _,
            rounds = inout(reg) rounds.max(1) => _,
            options(nomem, nostack)
        );
    }
}

/// A chain: each multiplication waits for the one before.
#[cfg(target_arch = "x86_64")]
fn multiply(rounds: u32) {
    // SAFETY: it changes two registers, both named, and the flags. `rounds` above 0 ends the loop at 0.
    unsafe {
        core::arch::asm!(
            "2:",
            "imul {value}, {factor}",
            "imul {value}, {factor}",
            "imul {value}, {factor}",
            "imul {value}, {factor}",
            "dec {rounds:e}",
            "jnz 2b",
            value = inout(reg) 3u64 => _,
            factor = in(reg) 0x9E37_79B9_7F4A_7C15u64,
            rounds = inout(reg) rounds.max(1) => _,
            options(nomem, nostack)
        );
    }
}

/// A chain: each exclusive or waits for the one before. No core leaves one out, as some do with an addition of a
/// constant.
#[cfg(target_arch = "x86_64")]
fn exclusive_or(rounds: u32) {
    // SAFETY: it changes two registers, both named, and the flags. `rounds` above 0 ends the loop at 0.
    unsafe {
        core::arch::asm!(
            "2:",
            "xor {value}, {factor}",
            "xor {value}, {factor}",
            "xor {value}, {factor}",
            "xor {value}, {factor}",
            "dec {rounds:e}",
            "jnz 2b",
            value = inout(reg) 3u64 => _,
            factor = in(reg) 0x9E37_79B9_7F4A_7C15u64,
            rounds = inout(reg) rounds.max(1) => _,
            options(nomem, nostack)
        );
    }
}

/// The speed, which is not measured on other processors.
#[cfg(not(target_arch = "x86_64"))]
pub fn measure(_probe: Probe) -> CoreSpeed {
    CoreSpeed { parallel: 0.0, chain_ticks: 0 }
}

/// Not measured on other processors.
#[cfg(not(target_arch = "x86_64"))]
pub fn multiplication_ticks(_rounds: u32, _tries: usize) -> u64 {
    0
}

/// Not measured on other processors.
#[cfg(not(target_arch = "x86_64"))]
pub fn exclusive_or_ticks(_rounds: u32, _tries: usize) -> u64 {
    0
}
