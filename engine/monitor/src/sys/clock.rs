//! Time, and the kernel's tick.

/// CLOCK_MONOTONIC, nanoseconds.
pub fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills the struct; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The unit of times in `/proc/stat` and `/proc/PID/stat`, nanoseconds (proc(5), USER_HZ).
pub fn tick_ns() -> u64 {
    // SAFETY: sysconf only returns a number.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    1_000_000_000 / u64::try_from(ticks).unwrap_or(100).max(1)
}
