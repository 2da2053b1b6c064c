//! stdout: whole lines of the protocol and nothing else. A reader that is slow is waited for, one that is gone is
//! noticed.

use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use nicbench_protocol::{Event, MonitorEvent, MonitorReply, Refusal, Reply, sample_line};

use crate::sys::clock::monotonic_ns;
use crate::sys::poll::{Wait, never_wait, writable};

/// Nobody reads: the controller is gone, or hangs for longer than its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputClosed;

/// The protocol's lines on stdout.
#[derive(Debug)]
pub struct Output {
    stdout: std::fs::File,
    next_event: u64,
    /// Of a sample, kept from one to the next.
    line: String,
}

impl Output {
    /// Of this process's stdout, of which it takes a descriptor of its own.
    pub fn open() -> io::Result<Self> {
        let stdout = io::stdout();
        let descriptor = std::os::fd::AsFd::as_fd(&stdout).try_clone_to_owned()?;
        never_wait(descriptor.as_raw_fd())?;
        Ok(Self { stdout: descriptor.into(), next_event: 0, line: String::with_capacity(16 << 10) })
    }

    /// A request was done.
    pub fn reply(&mut self, id: i64, reply: &MonitorReply, patience: Duration) -> Result<(), OutputClosed> {
        self.write(&reply.line(id), patience)
    }

    /// A request, or a line that is none, was refused.
    pub fn refuse(&mut self, refusal: &Refusal, patience: Duration) -> Result<(), OutputClosed> {
        self.write(&Reply::error_line(refusal.id, &refusal.error), patience)
    }

    /// Something happened.
    pub fn event(&mut self, kind: MonitorEvent, patience: Duration) -> Result<(), OutputClosed> {
        let event = Event { kind, seq: self.number(), time_ns: monotonic_ns() };
        self.write(&event.line(), patience)
    }

    /// A sample was taken.
    pub fn sample(
        &mut self,
        values: &[(u32, Option<i64>)],
        interval_ns: u64,
        time_ns: u64,
        patience: Duration,
    ) -> Result<(), OutputClosed> {
        let mut line = std::mem::take(&mut self.line);
        let number = self.number();
        sample_line(&mut line, values, interval_ns, number, time_ns);
        let written = self.write(&line, patience);
        self.line = line;
        written
    }

    fn number(&mut self) -> u64 {
        self.next_event += 1;
        self.next_event - 1
    }

    fn write(&mut self, line: &str, patience: Duration) -> Result<(), OutputClosed> {
        self.write_bytes(line.as_bytes(), patience)?;
        self.write_bytes(b"\n", patience)
    }

    fn write_bytes(&mut self, mut bytes: &[u8], patience: Duration) -> Result<(), OutputClosed> {
        while !bytes.is_empty() {
            match io::Write::write(&mut self.stdout, bytes) {
                Ok(0) => return Err(OutputClosed),
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    match writable(self.stdout.as_raw_fd(), patience) {
                        Ok(Wait::Ready) => {}
                        Ok(Wait::Interrupted) if crate::sys::signal::received().is_none() => {}
                        _ => return Err(OutputClosed),
                    }
                }
                Err(_) => return Err(OutputClosed),
            }
        }
        Ok(())
    }
}
