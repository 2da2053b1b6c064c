//! Does several requests at a time without the kernel's queue, by threads.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::{Completion, Request, Requests, perform};
use crate::sys::clock::monotonic_ns;

/// Does several requests at a time, each on a thread.
#[derive(Debug)]
pub struct Threads {
    asked: Option<Sender<(u64, Request)>>,
    done: Receiver<Completion>,
    in_flight: usize,
    helpers: Vec<JoinHandle<()>>,
}

impl Threads {
    /// Starts `depth` threads.
    pub fn new(depth: usize) -> io::Result<Self> {
        let (asked, to_do) = channel::<(u64, Request)>();
        let (tell, done) = channel();
        let to_do = Arc::new(Mutex::new(to_do));
        let helpers = (0..depth)
            .map(|_| {
                let (to_do, tell) = (Arc::clone(&to_do), tell.clone());
                thread::Builder::new().name("frames-request".into()).spawn(move || serve(&to_do, &tell))
            })
            .collect::<io::Result<_>>()?;
        Ok(Self { asked: Some(asked), done, in_flight: 0, helpers })
    }
}

fn serve(to_do: &Mutex<Receiver<(u64, Request)>>, tell: &Sender<Completion>) {
    loop {
        let next = to_do.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((token, request)) = next else { return };
        if tell.send(perform(token, request)).is_err() {
            return;
        }
    }
}

impl Requests for Threads {
    fn submit(&mut self, token: u64, request: Request) -> io::Result<()> {
        let asked = self.asked.as_ref().ok_or_else(thread_ended_error)?;
        asked.send((token, request)).map_err(|_| thread_ended_error())?;
        self.in_flight += 1;
        Ok(())
    }

    fn next(&mut self, until_ns: Option<u64>) -> io::Result<Option<Completion>> {
        if self.in_flight == 0 {
            return Ok(None);
        }
        let done = match until_ns {
            None => self.done.recv().map_err(|_| thread_ended_error())?,
            Some(until) => match self.done.recv_timeout(Duration::from_nanos(until.saturating_sub(monotonic_ns()))) {
                Ok(done) => done,
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => return Err(thread_ended_error()),
            },
        };
        self.in_flight -= 1;
        Ok(Some(done))
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.asked = None;
        for helper in self.helpers.drain(..) {
            // One that panicked has said so.
            let _ = helper.join();
        }
    }
}

fn thread_ended_error() -> io::Error {
    io::Error::other("the threads for requests have ended")
}
