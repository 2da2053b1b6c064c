//! Opening files as another network namespace shows them.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Calls `open` within the network namespace at `path` and comes back. What it opens in `/proc/thread-self/net` stays
/// of that namespace.
///
/// If there is no way back the process cannot go on, for everything that it opens later would be of the wrong
/// namespace.
pub fn within<Opened>(path: &Path, open: impl FnOnce() -> io::Result<Opened>) -> io::Result<Opened> {
    let own = File::open("/proc/thread-self/ns/net")?;
    let other = File::open(path)?;
    enter(&other)?;
    let opened = open();
    if let Err(error) = enter(&own) {
        eprintln!("nicbench-monitor: cannot leave the network namespace {}: {error}", path.display());
        std::process::exit(1);
    }
    opened
}

fn enter(namespace: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open; the call changes the calling thread's namespace only.
    let result = unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
