//! Ends a system call of another thread: programs run in one for as long as a transmission lasts.

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

/// The number of the calling thread, for [`end_call`].
pub fn this_thread() -> u32 {
    // SAFETY: no pointers.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}
