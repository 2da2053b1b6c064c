//! Writes stdout: whole lines of the protocol and nothing else.

use std::io::{self, Write};

use nicbench_protocol::{ErrorReport, Event, FramesEvent, FramesReply, Reply};

use crate::sys::clock::monotonic_ns;

/// The error that nobody reads stdout any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputClosed;

/// The protocol's lines on stdout.
#[derive(Debug, Default)]
pub struct Output {
    next_event: u64,
}

impl Output {
    /// Replies that a request was done.
    pub fn reply(&self, id: i64, reply: &FramesReply) -> Result<(), OutputClosed> {
        write(&reply.line(id))
    }

    /// Replies that a request, or a line that is none, was refused.
    pub fn refuse(&self, id: Option<i64>, error: &ErrorReport) -> Result<(), OutputClosed> {
        write(&Reply::error_line(id, error))
    }

    /// Reports an event.
    pub fn event(&mut self, kind: FramesEvent) -> Result<(), OutputClosed> {
        let event = Event { kind, seq: self.next_event, time_ns: monotonic_ns() };
        self.next_event += 1;
        write(&event.line())
    }
}

fn write(line: &str) -> Result<(), OutputClosed> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(line.as_bytes()).and_then(|()| stdout.write_all(b"\n"));
    written.and_then(|()| stdout.flush()).map_err(|_| OutputClosed)
}
