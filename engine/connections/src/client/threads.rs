//! Threads that share a plan by turns: each takes every so-many-th number, so that none waits for another.

use std::io;
use std::sync::Barrier;

use super::Plan;
use super::tally::Tally;
use super::worker::Worker;
use crate::clock::Clock;

/// Does what is planned, and gives what was counted and how long it took, in nanoseconds.
///
/// An error is one of the machine, such as no epoll; what fails of connections is counted.
pub fn run(plan: &Plan) -> io::Result<(Tally, u64)> {
    let ready = Barrier::new(plan.threads as usize);
    let clock = Clock::start();
    let tallies = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..plan.threads)
            .map(|thread| {
                let ready = &ready;
                scope.spawn(move || Worker::new(plan, thread)?.run(ready))
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
