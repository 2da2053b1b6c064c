//! Starts EAL, once per process, without disturbing the process around it.

use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};

use super::ffi;
use crate::error::{EngineError, ErrorKind};

/// EAL cannot be started twice in a process, not even after a failure; the kernel of this rule is here and nowhere
/// else.
static STARTED: AtomicBool = AtomicBool::new(false);

/// Starts EAL with `arguments`. An error means that the process must be replaced.
pub(super) fn start(arguments: &[String], pin: bool) -> Result<(), EngineError> {
    if STARTED.swap(true, Ordering::SeqCst) {
        return Err(failure("EAL was started before in this process".to_owned()));
    }
    let texts: Result<Vec<_>, _> = arguments.iter().map(|argument| CString::new(argument.as_str())).collect();
    let texts = texts.map_err(|_| failure("an EAL argument holds a zero byte".to_owned()))?;
    let allowed = affinity();
    let result = ffi::eal_start(&texts);
    if !pin {
        restore(&allowed);
    }
    if result < 0 {
        let reason = ffi::error_text(result);
        return Err(failure(format!("EAL did not start: {reason}; arguments: {}", arguments.join(" "))));
    }
    Ok(())
}

/// The first CPU this thread may run on.
pub(super) fn first_allowed_cpu() -> u32 {
    let allowed = affinity();
    let capacity = usize::try_from(libc::CPU_SETSIZE).unwrap_or_default();
    // SAFETY: `cpu` is below the number of bits of a cpu_set_t.
    let first = (0..capacity).find(|&cpu| unsafe { libc::CPU_ISSET(cpu, &allowed) });
    first.and_then(|cpu| u32::try_from(cpu).ok()).unwrap_or_default()
}

fn affinity() -> libc::cpu_set_t {
    // SAFETY: all zeros is the empty set; the kernel fills at most its size. On an error the set stays empty.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set);
        set
    }
}

/// EAL binds the calling thread to its main CPU; without a CPU asked for, the thread is given back what it had.
fn restore(allowed: &libc::cpu_set_t) {
    // SAFETY: a set of this thread's own, only read. A failure leaves the thread pinned, which harms nothing.
    unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), allowed) };
}

fn failure(message: String) -> EngineError {
    let next = "replace the process; DPDK's own words are on stderr; where huge pages are short, raise \
                /proc/sys/vm/nr_hugepages or set huge_pages to false";
    EngineError::new(ErrorKind::Eal, message, next)
}
