//! The rings by which this process tells senders what is to be sent, and learns what became of it.

use std::io;
use std::sync::atomic::{Ordering, fence};

use nicbench_bpf::{Area, Loaded};

use super::records::{PLANNED, Progress, URGENT, Work, Written};

/// What a sender has to do next, as its own thread sees it.
#[derive(Debug)]
pub struct Next {
    sender: usize,
    planned: Area<Work>,
    written: Area<Written>,
    progress: Area<Progress>,
}

impl Next {
    /// Maps the rings of one sender.
    ///
    /// # Errors
    /// The memory cannot be mapped.
    pub fn new(loaded: &Loaded, sender: usize) -> io::Result<Self> {
        Ok(Self {
            sender,
            planned: Area::new(loaded.map("planned_map")?, PLANNED * (sender + 1))?,
            written: Area::new(loaded.map(".bss.written")?, sender + 1)?,
            progress: Area::new(loaded.map(".bss.progress")?, sender + 1)?,
        })
    }

    /// When it is due, by the kernel's monotonic clock: 0 at once; None where nothing is to be sent.
    pub fn due_ns(&self) -> Option<u64> {
        let (written, done) = (self.written.get(self.sender), self.progress.get(self.sender));
        fence(Ordering::Acquire);
        if written.urgent != done.urgent {
            return Some(0);
        }
        let at = self.sender * PLANNED + done.planned as usize % PLANNED;
        (written.planned != done.planned).then(|| self.planned.get(at).due_ns)
    }
}

/// Two rings for each sender: one of what is sent at once, one of what has its time. A server lacks the second.
#[derive(Debug)]
pub struct Rings {
    planned: Option<Area<Work>>,
    urgent: Area<Work>,
    written: Area<Written>,
    progress: Area<Progress>,
    /// What the programs get to know with the next [`Rings::publish`].
    wanted: Vec<Written>,
}

impl Rings {
    /// Maps the rings of this number of senders.
    ///
    /// # Errors
    /// The memory cannot be mapped.
    pub fn new(loaded: &Loaded, senders: usize, has_plans: bool) -> io::Result<Self> {
        let planned = |map| Area::new(map, PLANNED * senders);
        Ok(Self {
            planned: has_plans.then(|| loaded.map("planned_map").and_then(planned)).transpose()?,
            urgent: Area::new(loaded.map("urgent_map")?, URGENT * senders)?,
            written: Area::new(loaded.map(".bss.written")?, senders)?,
            progress: Area::new(loaded.map(".bss.progress")?, senders)?,
            wanted: vec![Written::default(); senders],
        })
    }

    /// How many senders there are.
    pub fn senders(&self) -> usize {
        self.wanted.len()
    }

    /// How many more entries a sender's ring of what is sent at once takes.
    pub fn urgent_room(&self, sender: usize) -> usize {
        URGENT - self.wanted[sender].urgent.wrapping_sub(self.progress.get(sender).urgent) as usize
    }

    /// Has something sent at once, where there is room; its number.
    pub fn send_now(&mut self, sender: usize, work: Work) -> u32 {
        let number = self.wanted[sender].urgent;
        self.urgent.set(sender * URGENT + number as usize % URGENT, work);
        self.wanted[sender].urgent = number.wrapping_add(1);
        number
    }

    /// How much of what is to be sent at once waits for a sender.
    pub fn waiting(&self, sender: usize) -> u32 {
        self.wanted[sender].urgent.wrapping_sub(self.progress(sender).urgent)
    }

    /// Whether what is sent at once as number `number` was sent; None before it had its turn.
    pub fn is_sent(&self, sender: usize, number: u32) -> Option<bool> {
        let is_done = self.progress(sender).urgent.wrapping_sub(number) as i32 > 0;
        is_done.then(|| self.urgent.get(sender * URGENT + number as usize % URGENT).kind == 0)
    }

    /// How many more entries a sender's ring of what has its time takes, given how many were collected.
    pub fn planned_room(&self, sender: usize, collected: u32) -> usize {
        PLANNED - self.wanted[sender].planned.wrapping_sub(collected) as usize
    }

    /// Has something sent when it is due, after all that was planned for the sender before.
    pub fn plan(&mut self, sender: usize, work: Work) {
        if let Some(ring) = &mut self.planned {
            let number = self.wanted[sender].planned;
            ring.set(sender * PLANNED + number as usize % PLANNED, work);
            self.wanted[sender].planned = number.wrapping_add(1);
        }
    }

    /// What became of an entry that was planned as number `number`: it has no kind where it was sent.
    pub fn planned(&self, sender: usize, number: u32) -> Work {
        let at = sender * PLANNED + number as usize % PLANNED;
        self.planned.as_ref().map(|ring| ring.get(at)).unwrap_or_default()
    }

    /// Tells the senders of what was added.
    pub fn publish(&mut self) {
        fence(Ordering::Release);
        self.written.write(0, &self.wanted);
    }

    /// Sets whether a sender counts as having been away.
    #[cfg(test)]
    pub fn set_away(&mut self, sender: usize, was_away: bool) {
        let upset_until_ns = if was_away { u64::MAX } else { 0 };
        self.progress.set(sender, Progress { upset_until_ns, ..self.progress.get(sender) });
    }

    /// How much of a sender's rings is done.
    pub fn progress(&self, sender: usize) -> Progress {
        let progress = self.progress.get(sender);
        fence(Ordering::Acquire);
        progress
    }
}
