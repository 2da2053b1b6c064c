//! How much of a core the calling thread gets at this instant: additions that wait for nothing, beside multiplications
//! that wait for each other. Who shares the physical core (the other hyperthread) slows the first and hardly the
//! second; a change of frequency slows both, so that their ratio tells one from the other.
//!
//! A probe runs right after a wake-up, with cold caches and predictors: the first of several tries warms them up, and
//! the shortest counts. Fences keep the time-stamp counter from being read while the work is still in flight; without
//! them a short chain of multiplications fits into the reorder buffer and appears to take no time.

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

/// Additions per multiplication's time, in arbitrary units that are comparable on one machine for one probe; greater
/// is better.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
pub fn parallel_speed(probe: Probe) -> f64 {
    let shortest =
        |work: fn(u32), rounds| (0..probe.tries).map(|_| time(work, rounds)).min().unwrap_or(1).max(1) as f64;
    shortest(multiply, probe.multiplication_rounds) / shortest(add, probe.addition_rounds)
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

/// The speed, which is not measured on other processors.
#[cfg(not(target_arch = "x86_64"))]
pub fn parallel_speed(_probe: Probe) -> f64 {
    0.0
}
