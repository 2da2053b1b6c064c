//! What this process has cost, by the kernel's account of it.

/// CPU time of all threads of this process, user mode and kernel together, nanoseconds (getrusage(2)).
pub fn cpu_ns() -> u64 {
    // SAFETY: an all-zero rusage is valid, and the call fills it; RUSAGE_SELF always exists.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    ns(usage.ru_utime) + ns(usage.ru_stime)
}

/// The most memory that it ever held. Getrusage would tell that of the program before it in this process, too.
pub fn resident_bytes() -> Option<u64> {
    let status = std::fs::read("/proc/self/status").ok()?;
    let line = crate::text::lines(&status).find(|line| line.starts_with(b"VmHWM:"))?;
    crate::text::fields(line).nth(1).and_then(crate::text::number).map(|kib| kib * 1024)
}
