//! Where the monitor runs.

use std::io;

/// Binds the process to CPUs; EINVAL where none of them is there.
pub fn bind_to(cpus: &[u32]) -> io::Result<()> {
    // SAFETY: an all-zero cpu_set_t is an empty set; each number is checked to lie within it; the kernel reads it
    // during the call only.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for cpu in cpus {
            if *cpu >= libc::CPU_SETSIZE as u32 {
                return Err(io::Error::from_raw_os_error(libc::EINVAL));
            }
            libc::CPU_SET(*cpu as usize, &mut set);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
