//! Writes stdout: whole lines of the protocol, from any thread, and nothing else.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use nicbench_protocol::{ErrorReport, Event, Reply};
use serde::Serialize;

use crate::error::EngineError;
use crate::sys::tsc::monotonic_ns;

/// The protocol's lines on stdout.
#[derive(Debug, Default)]
pub struct Output {
    /// The number of the next event; also keeps lines apart.
    next_event: Mutex<u64>,
    broken: AtomicBool,
}

impl Output {
    /// Replies that a request was done.
    pub fn reply(&self, id: i64, reply: &Reply) {
        let _lines = self.next_event.lock().unwrap_or_else(PoisonError::into_inner);
        self.write(&reply.line(id));
    }

    /// Replies that a request, or a line that is none, was refused.
    pub fn refuse(&self, id: Option<i64>, error: &ErrorReport) {
        let _lines = self.next_event.lock().unwrap_or_else(PoisonError::into_inner);
        self.write(&Reply::error_line(id, error));
    }

    /// Replies that a request failed.
    pub fn fail(&self, id: i64, error: EngineError) {
        self.refuse(Some(id), &error.into());
    }

    /// Reports an event.
    pub fn event(&self, kind: impl Serialize) {
        let mut next = self.next_event.lock().unwrap_or_else(PoisonError::into_inner);
        let event = Event { kind, seq: *next, time_ns: monotonic_ns() };
        *next += 1;
        self.write(&event.line());
    }

    /// Whether nobody reads any more: the controller is gone.
    pub fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    fn write(&self, line: &str) {
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(line.as_bytes()).and_then(|()| stdout.write_all(b"\n"));
        if written.and_then(|()| stdout.flush()).is_err() {
            self.broken.store(true, Ordering::Relaxed);
        }
    }
}
