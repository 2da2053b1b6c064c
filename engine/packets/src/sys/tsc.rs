//! The time-stamp counter, and the monotonic clock it is calibrated against.

/// Ticks since some moment; constant rate on every processor this decade (`constant_tsc`, `nonstop_tsc`).
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn ticks() -> u64 {
    // SAFETY: RDTSC reads a counter and touches no memory; Linux leaves it enabled in user mode.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// As `ticks`, read when all work before it is done and before any after it begins.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn ticks_in_order() -> u64 {
    // SAFETY: LFENCE is of SSE2, which every x86-64 processor has, and touches no memory.
    unsafe {
        core::arch::x86_64::_mm_lfence();
        let ticks = core::arch::x86_64::_rdtsc();
        core::arch::x86_64::_mm_lfence();
        ticks
    }
}

/// Elsewhere nanoseconds of the monotonic clock serve as ticks.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub fn ticks() -> u64 {
    monotonic_ns()
}

/// The time of CLOCK_MONOTONIC.
pub fn monotonic_ns() -> u64 {
    time_ns(libc::CLOCK_MONOTONIC)
}

/// The time of CLOCK_REALTIME: UNIX time.
pub fn realtime_ns() -> u64 {
    time_ns(libc::CLOCK_REALTIME)
}

fn time_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec for the call to fill.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
