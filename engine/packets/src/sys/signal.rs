//! SIGINT and SIGTERM become a number that loops look at. A handler may do no more.

use std::sync::atomic::{AtomicI32, Ordering};

/// The one mutable global of the engine: a signal handler has no other way to speak.
static RECEIVED: AtomicI32 = AtomicI32::new(0);

extern "C" fn note(signal: libc::c_int) {
    RECEIVED.store(signal, Ordering::Relaxed);
}

/// Makes SIGINT and SIGTERM be noted instead of ending the process.
pub fn install() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler only stores to an atomic, which is async-signal-safe; the struct is fully initialised.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = note as *const () as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}

extern "C" fn interrupt_only(_: libc::c_int) {}

/// Makes [`end_call`] end system calls and nothing else.
pub fn install_interruption() {
    // SAFETY: the handler does nothing; without SA_RESTART the interrupted call returns EINTR.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = interrupt_only as *const () as usize;
        libc::sigaction(libc::SIGUSR2, &raw const action, std::ptr::null_mut());
    }
}

/// Ends the system call that a thread of this process is in, with EINTR; a thread that is in none does not notice.
pub fn end_call(thread: u32) {
    // SAFETY: no pointers; a thread that has ended is an error that changes nothing.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread as libc::c_int, libc::SIGUSR2) };
}

/// The signal that was received, if any.
#[inline]
pub fn received() -> Option<i32> {
    match RECEIVED.load(Ordering::Relaxed) {
        0 => None,
        signal => Some(signal),
    }
}
