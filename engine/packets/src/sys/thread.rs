//! The calling thread: where it runs, and how often it was switched away.

use std::io;

/// Binds the thread to one CPU.
pub fn pin_to(cpu: u32) -> io::Result<()> {
    if cpu >= libc::CPU_SETSIZE as u32 {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: an all-zero cpu_set_t is an empty set, and `cpu` lies within it; the kernel reads it during the call
    // only.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu as usize, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The number of the calling thread, by which the kernel knows it.
pub fn number() -> u32 {
    // SAFETY: no pointers, and it cannot fail.
    unsafe { libc::gettid() as u32 }
}

/// Lets the thread run before every ordinary one (sched(7), SCHED_FIFO); needs CAP_SYS_NICE.
pub fn run_first() -> io::Result<()> {
    // SAFETY: an all-zero sched_param is valid; the kernel reads it during the call only.
    let result = unsafe {
        let mut parameters: libc::sched_param = std::mem::zeroed();
        parameters.sched_priority = 1;
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sleeps until this time of CLOCK_MONOTONIC; a signal may end it early.
pub fn sleep_until(monotonic_ns: u64) {
    let until = libc::timespec {
        tv_sec: (monotonic_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (monotonic_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: the kernel reads `until` during the call only, and an absolute sleep leaves no rest to be written.
    unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const until, std::ptr::null_mut());
    }
}

/// The CPU time that the calling thread has used.
pub fn cpu_time_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec for the call to fill.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Asks for the largest share of its CPU that an ordinary program can have: nice -20 for the thread and those it starts
/// later, and for the session as a whole, where the kernel shares out by sessions first (sched(7), autogroup).
///
/// What is not granted is no error: the pauses of the worker are measured in any case.
pub fn prefer() {
    // SAFETY: both calls change the scheduling of this process only. Setsid fails where it leads a session already.
    unsafe {
        libc::setsid();
        libc::setpriority(libc::PRIO_PROCESS, 0, -20);
    }
    let _ = std::fs::write("/proc/self/autogroup", "-20");
}

/// Does the same for a thread of the kernel by its name; where it is not seen, or may not be changed, nothing.
pub fn prefer_kernel_thread(name: &str) {
    let threads = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for number in threads.filter_map(|entry| entry.file_name().to_str()?.parse::<libc::id_t>().ok()) {
        if std::fs::read_to_string(format!("/proc/{number}/comm")).is_ok_and(|comm| comm.trim_end() == name) {
            // SAFETY: no pointers; it changes how a thread is scheduled.
            unsafe { libc::setpriority(libc::PRIO_PROCESS, number, -20) };
        }
    }
}

/// Whether the thread may run on this CPU and no other.
pub fn is_pinned_to(cpu: u32) -> bool {
    if cpu >= libc::CPU_SETSIZE as u32 {
        return false;
    }
    // SAFETY: an all-zero cpu_set_t is an empty set that the call fills; `cpu` lies within it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) == 0
            && libc::CPU_COUNT(&set) == 1
            && libc::CPU_ISSET(cpu as usize, &set)
    }
}

/// Context switches of the thread so far: voluntary, involuntary.
pub fn context_switches() -> Option<(u64, u64)> {
    // SAFETY: an all-zero rusage is valid, and the call fills it.
    let (result, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage), usage)
    };
    (result == 0).then_some((usage.ru_nvcsw as u64, usage.ru_nivcsw as u64))
}

/// Ticks of `/proc/stat` a second.
pub fn stat_ticks_per_s() -> u64 {
    // SAFETY: sysconf only returns a number.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).unwrap_or(100).max(1)
}
