//! Threads that share a plan by turns: each takes every so-many-th number, so that none waits for another.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::Plan;
use super::tally::Tally;
use super::worker::Worker;
use crate::clock::Clock;

const LOOK: Duration = Duration::from_micros(50);

/// What threads wait for together.
pub struct Together {
    threads: u64,
    /// How many are ready, have opened all that they hold, and have asked all of it again.
    ready: AtomicU64,
    opened: AtomicU64,
    asked: AtomicU64,
}

impl Together {
    fn of(threads: u64) -> Self {
        Self { threads, ready: AtomicU64::new(0), opened: AtomicU64::new(0), asked: AtomicU64::new(0) }
    }

    /// A thread is ready, and waits until every one is.
    pub fn begin(&self) {
        self.ready.fetch_add(1, Ordering::AcqRel);
        while self.ready.load(Ordering::Acquire) < self.threads {
            std::thread::sleep(LOOK);
        }
    }

    /// A thread has opened all that it holds.
    pub fn note_opened(&self) {
        self.opened.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether every thread has.
    pub fn are_all_open(&self) -> bool {
        self.opened.load(Ordering::Acquire) >= self.threads
    }

    /// A thread has asked all that it holds again, and its time is over.
    pub fn note_asked(&self) {
        self.asked.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether every thread has.
    pub fn are_all_asked(&self) -> bool {
        self.asked.load(Ordering::Acquire) >= self.threads
    }
}

/// A thread that ends, with an error or not, is waited for no longer.
struct Leaving<'a>(&'a Together);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.ready.fetch_add(1, Ordering::AcqRel);
        self.0.note_opened();
        self.0.note_asked();
    }
}

/// Does what is planned, and gives what was counted and how long it took, in nanoseconds.
///
/// An error is one of the machine, such as no epoll; what fails of connections is counted.
pub fn run(plan: &Plan) -> io::Result<(Tally, u64)> {
    let together = Together::of(plan.threads);
    let clock = Clock::start();
    let tallies = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..plan.threads)
            .map(|thread| {
                let together = &together;
                scope.spawn(move || {
                    let _leaving = Leaving(together);
                    Worker::new(plan, thread)?.run(together)
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|_| Err(io::Error::other("a thread of the client died"))))
            .collect::<io::Result<Vec<Tally>>>()
    })?;
    let mut whole = Tally::default();
    for tally in &tallies {
        whole.merge(tally);
    }
    Ok((whole, clock.now()))
}
