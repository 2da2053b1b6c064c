//! Waiting for stdin, or for room in stdout, with an end.

use std::io;
use std::time::Duration;

/// What became of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    Ready,
    TimedOut,
    /// By a signal.
    Interrupted,
}

/// Until something can be read from one of them, its other end is closed, or `wait` is over.
pub fn readable(descriptors: &[i32], wait: Duration) -> io::Result<Wait> {
    until(descriptors, libc::POLLIN, wait)
}

/// Whether something can be read from `descriptor` now, or its other end is closed.
pub fn has_input(descriptor: i32) -> bool {
    readable(&[descriptor], Duration::ZERO).is_ok_and(|wait| wait == Wait::Ready)
}

/// Until `descriptor` takes at least a byte.
pub fn writable(descriptor: i32, wait: Duration) -> io::Result<Wait> {
    until(&[descriptor], libc::POLLOUT, wait)
}

fn until(descriptors: &[i32], events: i16, wait: Duration) -> io::Result<Wait> {
    let mut watched: Vec<_> = descriptors.iter().map(|fd| libc::pollfd { fd: *fd, events, revents: 0 }).collect();
    let wait = libc::timespec { tv_sec: wait.as_secs() as libc::time_t, tv_nsec: wait.subsec_nanos().into() };
    let count = watched.len() as libc::nfds_t;
    // SAFETY: `count` pollfds and one timespec, which outlive the call; no signal mask.
    let result = unsafe { libc::ppoll(watched.as_mut_ptr(), count, &raw const wait, std::ptr::null()) };
    match result {
        0 => Ok(Wait::TimedOut),
        1.. => Ok(Wait::Ready),
        _ => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(Wait::Interrupted),
            error => Err(error),
        },
    }
}

/// From now on writing to `descriptor` gives up where it would wait.
pub fn never_wait(descriptor: i32) -> io::Result<()> {
    // SAFETY: both calls read and set flags of an open descriptor.
    let result = unsafe {
        let flags = libc::fcntl(descriptor, libc::F_GETFL);
        if flags < 0 { flags } else { libc::fcntl(descriptor, libc::F_SETFL, flags | libc::O_NONBLOCK) }
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
