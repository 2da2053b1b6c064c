//! A frame that is being written or read: how far it is, and when each step was done.

use std::fs::File;
use std::sync::Arc;

use crate::frames::FrameLocation;
use crate::sample::Sample;
use crate::schedule::Schedule;

/// The step that a frame waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Opening,
    Moving,
    Syncing,
    Closing,
}

/// A frame that is being written or read. Times are on the monotonic clock.
#[derive(Debug)]
pub struct FrameInProgress {
    pub token: u64,
    pub position: u64,
    pub location: FrameLocation,
    pub step: Step,
    pub file: Option<Arc<File>>,
    /// The offset in the frame of the next request.
    pub next_offset: u64,
    /// Requests for its bytes that are not done.
    pub requests: usize,
    pub turn_ns: u64,
    pub begun_ns: u64,
    opened_ns: Option<u64>,
    moved_ns: u64,
    synced_ns: Option<u64>,
}

impl FrameInProgress {
    pub fn new(token: u64, position: u64, location: FrameLocation, turn_ns: u64, begun_ns: u64) -> Self {
        Self {
            token,
            position,
            location,
            step: Step::Opening,
            file: None,
            next_offset: 0,
            requests: 0,
            turn_ns,
            begun_ns,
            opened_ns: None,
            moved_ns: 0,
            synced_ns: None,
        }
    }

    /// Its file is there: one that was opened for it, at `opened_ns`, or that of all frames.
    pub fn begin_transfer(&mut self, file: Arc<File>, opened_ns: Option<u64>) {
        self.file = Some(file);
        self.opened_ns = opened_ns;
        self.step = Step::Moving;
    }

    /// Bytes for which no request was made yet.
    pub fn unrequested_bytes(&self) -> u64 {
        if self.step == Step::Moving { self.location.bytes - self.next_offset } else { 0 }
    }

    /// Whether all of its bytes were written or read.
    pub fn is_transferred(&self) -> bool {
        self.step == Step::Moving && self.unrequested_bytes() == 0 && self.requests == 0
    }

    pub fn end_transfer(&mut self, now_ns: u64) {
        self.moved_ns = now_ns;
    }

    pub fn end_sync(&mut self, now_ns: u64) {
        self.synced_ns = Some(now_ns);
    }

    /// The times of the frame, once all is done. `is_closed`: closing was a step of it.
    pub fn sample(&self, began_ns: u64, now_ns: u64, is_closed: bool, thread: u16, schedule: &Schedule) -> Sample {
        let opened_ns = self.opened_ns.unwrap_or(self.begun_ns);
        let before_close_ns = self.synced_ns.unwrap_or(self.moved_ns);
        let completed_ns = now_ns.saturating_sub(began_ns);
        Sample {
            position: self.position,
            frame: self.location.number,
            thread,
            is_measured: schedule.is_measured(completed_ns),
            bytes: self.location.bytes,
            turn_ns: self.turn_ns.saturating_sub(began_ns),
            begun_ns: self.begun_ns.saturating_sub(began_ns),
            open_ns: self.opened_ns.map(|opened_ns| opened_ns.saturating_sub(self.begun_ns)),
            io_ns: self.moved_ns.saturating_sub(opened_ns),
            sync_ns: self.synced_ns.map(|synced_ns| synced_ns.saturating_sub(self.moved_ns)),
            close_ns: is_closed.then(|| now_ns.saturating_sub(before_close_ns)),
            completed_ns,
            late_by_ns: schedule.due_ns(self.position).map(|due_ns| completed_ns as i64 - due_ns as i64),
        }
    }
}
