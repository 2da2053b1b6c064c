//! One request at a time, by the thread that asks.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use super::{Answer, Done, Request, Requests, perform};
use crate::sys::file;

/// See the module.
#[derive(Debug, Default)]
pub struct OneByOne {
    done: VecDeque<Done>,
}

impl Requests for OneByOne {
    fn ask(&mut self, token: u64, request: Request) -> io::Result<()> {
        self.done.push_back(perform(token, request));
        Ok(())
    }

    fn next(&mut self, _until_ns: Option<u64>) -> io::Result<Option<Done>> {
        Ok(self.done.pop_front())
    }
}

/// Does it here and now.
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
            let moved = uninterrupted(|| {
                transfer.file.read_at(&mut transfer.buffer.as_mut_slice()[range.clone()], transfer.offset)
            });
            Answer::Moved(moved, transfer)
        }
        Request::Write(transfer) => {
            let range = transfer.from..transfer.from + transfer.length;
            let moved =
                uninterrupted(|| transfer.file.write_at(&transfer.buffer.as_slice()[range.clone()], transfer.offset));
            Answer::Moved(moved, transfer)
        }
        Request::Sync { file } => Answer::Synced(uninterrupted(|| file.sync_all())),
        Request::Close { file } => Answer::Closed(file::close(file)),
    }
}

/// A signal is no error: again.
fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            answer => return answer,
        }
    }
}
