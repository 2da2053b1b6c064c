//! What goes back over the port, in whole frames.

use std::fs::File;
use std::io::{Error, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::frame::{FAILED, Frame, STARTED};

/// Shared by the threads of a conversation. Those of one that is over write nothing into the next one.
#[derive(Clone)]
pub struct Answers {
    port: Arc<Mutex<File>>,
    open: Arc<AtomicBool>,
}

impl Answers {
    pub fn new(port: File) -> Answers {
        Answers { port: Arc::new(Mutex::new(port)), open: Arc::new(AtomicBool::new(true)) }
    }

    /// One frame, whole.
    pub fn send(&self, kind: u8, id: u32, body: Vec<u8>) {
        self.raw(&Frame { kind, id, body }.bytes());
    }

    pub fn started(&self, id: u32, pid: u32) {
        self.send(STARTED, id, pid.to_le_bytes().to_vec());
    }

    /// The number of the system's error, 0 where it is none of its, and its words.
    pub fn failed(&self, id: u32, error: &Error) {
        let mut body = error.raw_os_error().unwrap_or(0).to_le_bytes().to_vec();
        body.extend(error.to_string().bytes());
        self.send(FAILED, id, body);
    }

    /// Bytes as they are, such as the greeting.
    pub fn raw(&self, bytes: &[u8]) {
        let mut port = self.port.lock().unwrap_or_else(PoisonError::into_inner);
        if self.open.load(Ordering::Acquire) && port.write_all(bytes).is_err() {
            self.open.store(false, Ordering::Release);
        }
    }

    /// Nothing more is written: the conversation is over.
    pub fn end(&self) {
        self.open.store(false, Ordering::Release);
    }
}
