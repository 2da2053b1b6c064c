//! Requests to files, and the engines that do them: one at a time, threads, or the kernel's queue. All three do the
//! same requests.

mod one_by_one;
mod threads;

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

pub use one_by_one::OneByOne;
pub use threads::Threads;

use crate::sys::buffer::Buffer;
use crate::sys::clock::monotonic_ns;
pub use crate::sys::uring::Uring;

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode {
    /// Opened for writing, and made where it does not exist.
    pub write: bool,
    /// Refused where it exists.
    pub new: bool,
    /// Past the page cache.
    pub direct: bool,
}

impl Mode {
    /// The flags of open(2). Frames are files, never links to some.
    pub fn flags(self) -> i32 {
        let access = if self.write { libc::O_WRONLY | libc::O_CREAT } else { libc::O_RDONLY };
        let new = if self.new { libc::O_EXCL } else { 0 };
        access | new | libc::O_CLOEXEC | libc::O_NOFOLLOW | if self.direct { libc::O_DIRECT } else { 0 }
    }
}

/// `length` bytes of `buffer` from `from` on, at `offset` of the file.
#[derive(Debug)]
pub struct Transfer {
    pub file: Arc<File>,
    pub buffer: Buffer,
    pub from: usize,
    pub length: usize,
    pub offset: u64,
}

/// A request to a file.
#[derive(Debug)]
pub enum Request {
    Open { path: PathBuf, mode: Mode },
    Read(Transfer),
    Write(Transfer),
    Sync { file: Arc<File> },
    Close { file: File },
}

/// A request that is done.
#[derive(Debug)]
pub struct Completion {
    /// The token that was given with the request.
    pub token: u64,
    /// When it was done, on the monotonic clock.
    pub at_ns: u64,
    pub answer: Answer,
}

/// The result of a request, by its kind.
#[derive(Debug)]
pub enum Answer {
    Opened(io::Result<File>),
    /// Bytes moved; the transfer comes back as it was.
    Moved(io::Result<usize>, Transfer),
    Synced(io::Result<()>),
    Closed(io::Result<()>),
}

/// An engine that does requests. Every request is done and reported.
pub trait Requests: Send {
    /// Begins a request. It may be done before this returns.
    fn submit(&mut self, token: u64, request: Request) -> io::Result<()>;

    /// Waits for the next that is done, until a time on the monotonic clock; `None` at that time, or where nothing was
    /// asked.
    fn next(&mut self, until_ns: Option<u64>) -> io::Result<Option<Completion>>;
}

/// Does a request on this thread.
pub(crate) fn perform(token: u64, request: Request) -> Completion {
    let answer = one_by_one::answer(request);
    Completion { token, at_ns: monotonic_ns(), answer }
}

#[cfg(test)]
mod tests;
