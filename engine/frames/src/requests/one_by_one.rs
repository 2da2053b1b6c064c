//! Does one request at a time, on the thread that submits it.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use super::{Answer, Completion, Request, Requests, perform};
use crate::sys::file;

/// Does one request at a time.
#[derive(Debug, Default)]
pub struct OneByOne {
    done: VecDeque<Completion>,
}

impl Requests for OneByOne {
    fn submit(&mut self, token: u64, request: Request) -> io::Result<()> {
        self.done.push_back(perform(token, request));
        Ok(())
    }

    fn next(&mut self, _until_ns: Option<u64>) -> io::Result<Option<Completion>> {
        Ok(self.done.pop_front())
    }
}

/// Does a request on this thread.
pub(super) fn answer(request: Request) -> Answer {
    match request {
        Request::Open { path, mode } => {
            let mut options = OpenOptions::new();
            options.read(!mode.write).write(mode.write).create(mode.write).create_new(mode.new);
            options.custom_flags(mode.flags());
            Answer::Opened(options.open(path))
        }
        Request::Read(mut transfer) => {
            let range = transfer.from..transfer.from + transfer.length;
            let moved = retry_interrupted(|| {
                transfer.file.read_at(&mut transfer.buffer.as_mut_slice()[range.clone()], transfer.offset)
            });
            Answer::Moved(moved, transfer)
        }
        Request::Write(transfer) => {
            let range = transfer.from..transfer.from + transfer.length;
            let moved = retry_interrupted(|| {
                transfer.file.write_at(&transfer.buffer.as_slice()[range.clone()], transfer.offset)
            });
            Answer::Moved(moved, transfer)
        }
        Request::Sync { file } => Answer::Synced(retry_interrupted(|| file.sync_all())),
        Request::Close { file } => Answer::Closed(file::close(file)),
    }
}

/// Repeats a call that a signal interrupted.
fn retry_interrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            answer => return answer,
        }
    }
}
