//! The thread that writes the generator's lines: whoever sends frames never waits for a pipe, nor for long texts.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use nicbench_protocol::{EventKind, Reply};

use crate::error::EngineError;
use crate::output::Output;

type Job = Box<dyn FnOnce(&Output) + Send>;

/// Lines that wait to be written, in their order.
#[derive(Debug)]
pub struct Replies {
    sender: Option<Sender<Job>>,
    writer: Option<JoinHandle<()>>,
}

impl Replies {
    /// Without an output nobody reads, and nothing is written.
    pub fn new(output: Option<Arc<Output>>) -> Self {
        let Some(output) = output else { return Self { sender: None, writer: None } };
        let (sender, receiver) = channel::<Job>();
        let writer = thread::spawn(move || receiver.iter().for_each(|job| job(&output)));
        Self { sender: Some(sender), writer: Some(writer) }
    }

    /// Where another thread posts its own lines.
    pub fn sender(&self) -> Option<Sender<Job>> {
        self.sender.clone()
    }

    /// Has the reply to request `id` made and written.
    pub fn reply_with(&self, id: i64, make: impl FnOnce() -> Result<Reply, EngineError> + Send + 'static) {
        self.post(reply_job(id, make));
    }

    /// Reports an event.
    pub fn event(&self, kind: EventKind) {
        self.post(Box::new(move |output| output.event(kind)));
    }

    fn post(&self, job: Job) {
        // The writer ends only when this does.
        let _ = self.sender.as_ref().map(|sender| sender.send(job));
    }
}

/// What makes a reply and writes it.
pub fn reply_job(id: i64, make: impl FnOnce() -> Result<Reply, EngineError> + Send + 'static) -> Job {
    Box::new(move |output| match make() {
        Ok(reply) => output.reply(id, &reply),
        Err(error) => output.fail(id, error),
    })
}

impl Drop for Replies {
    /// Waits until everything is written.
    fn drop(&mut self) {
        self.sender = None;
        let _ = self.writer.take().map(JoinHandle::join);
    }
}
