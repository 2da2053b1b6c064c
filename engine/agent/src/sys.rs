//! Everything unsafe: signals, which the standard library does not have.
#![allow(unsafe_code)]

/// Sends a signal to a process group; one that has ended gets none.
pub fn signal_group(group: u32, number: i32) {
    if let Ok(group) = i32::try_from(group)
        && group > 1
    {
        // SAFETY: kill takes no pointers.
        unsafe { libc::kill(-group, number) };
    }
}

pub const KILL: i32 = libc::SIGKILL;
