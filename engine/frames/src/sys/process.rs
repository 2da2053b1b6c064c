//! This process: its CPU time, and the CPUs it runs on.

use std::io;

/// CPU time of all threads of this process (getrusage(2)), those that the kernel starts for its queue included: user
/// mode, kernel.
pub fn cpu_ns() -> (u64, u64) {
    // SAFETY: an all-zero rusage is valid, and the call fills it; RUSAGE_SELF always exists.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    (ns(usage.ru_utime), ns(usage.ru_stime))
}

/// From now on this thread, and those that it starts, run on these CPUs alone.
pub fn bind_to(cpus: &[u32]) -> io::Result<()> {
    // SAFETY: an all-zero set is empty and valid; CPU_SET writes within it, for numbers beyond it are left out before.
    let status = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for cpu in cpus.iter().filter(|cpu| (**cpu as usize) < libc::CPU_SETSIZE as usize) {
            libc::CPU_SET(*cpu as usize, &mut set);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
