//! How much of a core the calling thread gets at this instant: additions that wait for nothing, beside multiplications
//! that wait for each other. Who shares the physical core (the other hyperthread) slows the first and hardly the
//! second; a change of frequency slows both, so that their ratio tells one from the other.

use super::tsc;

/// Of each kind in one probe: about a microsecond of additions, half of one of multiplications.
const ADDITION_ROUNDS: u32 = 1_600;
const MULTIPLICATIONS: u32 = 400;
const TRIES: usize = 4;

/// Additions per multiplication's time, in arbitrary units that are comparable on one machine; greater is better.
#[cfg(target_arch = "x86_64")]
pub fn parallel_speed() -> f64 {
    let shortest = |probe: fn()| (0..TRIES).map(|_| time_probe(probe)).min().unwrap_or(1).max(1) as f64;
    shortest(multiply) / shortest(add)
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn time_probe(probe: fn()) -> u64 {
    let before = tsc::ticks();
    probe();
    tsc::ticks().saturating_sub(before)
}

/// More independent additions than any core issues at once.
#[cfg(target_arch = "x86_64")]
fn add() {
    let mut sums = [1u64, 2, 3, 4, 5, 6, 7, 8];
    let [a, b, c, d, e, f, g, h] = &mut sums;
    for _ in 0..ADDITION_ROUNDS {
        // SAFETY: it changes eight registers and the flags, nothing else.
        unsafe {
            core::arch::asm!(
                "add {0}, 1",
                "add {1}, 1",
                "add {2}, 1",
                "add {3}, 1",
                "add {4}, 1",
                "add {5}, 1",
                "add {6}, 1",
                "add {7}, 1",
                inout(reg) * a,
                inout(reg) * b,
                inout(reg) * c,
                inout(reg) * d,
                inout(reg) * e,
                inout(reg) * f,
                inout(reg) * g,
                inout(reg) * h,
                options(nomem, nostack)
            );
        }
    }
    std::hint::black_box(sums);
}

/// A chain: each multiplication waits for the one before.
#[cfg(target_arch = "x86_64")]
fn multiply() {
    let mut value = std::hint::black_box(3u64);
    for _ in 0..MULTIPLICATIONS {
        value = std::hint::black_box(value.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    }
    std::hint::black_box(value);
}

/// The speed, which is not measured on other processors.
#[cfg(not(target_arch = "x86_64"))]
pub fn parallel_speed() -> f64 {
    0.0
}
