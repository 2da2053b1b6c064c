//! A witness on each of the DUT's cores: fifty times a second it looks for 10 microseconds how much of the physical
//! core there is. A neighbour on the other hyperthread takes up to half of it, and no counter of a virtual machine says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nicbench_protocol::CpuTimes;

use crate::sys;
use crate::task_times::WITNESS_THREAD;

const PERIOD: Duration = Duration::from_millis(20);
/// Looks that find the best speed before the first trial.
const FIRST_LOOKS: u32 = 50;
/// Slower than this share of the best: somebody else is on the core. Two hyperthreads at work leave each half to two thirds.
const SLOW_SHARE: f64 = 0.8;

/// One witness for each watched CPU where one can be posted.
#[derive(Debug, Default)]
pub struct Witnesses {
    posts: Vec<Post>,
}

#[derive(Debug)]
struct Post {
    notes: Arc<Notes>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Notes {
    cpu: u32,
    looking: AtomicBool,
    ended: AtomicBool,
    samples: AtomicU32,
    slow: AtomicU32,
    /// The best speed so far, as the bits of an `f64`.
    best: AtomicU64,
}

impl Witnesses {
    /// Posts the witnesses. A CPU to which the calling thread is bound gets none: it would hold up the worker.
    pub fn post(cpus: &[u32]) -> Self {
        let free = cpus.iter().filter(|cpu| !sys::thread::is_pinned_to(**cpu));
        Self { posts: free.filter_map(|cpu| Post::new(*cpu)).collect() }
    }

    /// A transmission begins.
    pub fn start(&self) {
        for post in &self.posts {
            post.notes.samples.store(0, Ordering::Relaxed);
            post.notes.slow.store(0, Ordering::Relaxed);
            post.notes.looking.store(true, Ordering::Release);
            post.wake();
        }
    }

    /// It is over: what was seen is added to the CPUs' times.
    pub fn finish(&self, cpus: &mut [CpuTimes]) {
        for Post { notes, .. } in &self.posts {
            notes.looking.store(false, Ordering::Release);
            let samples = notes.samples.load(Ordering::Relaxed);
            if let Some(cpu) = cpus.iter_mut().find(|times| times.cpu == notes.cpu && samples > 0) {
                cpu.speed_samples = Some(samples);
                cpu.slow_samples = Some(notes.slow.load(Ordering::Relaxed).min(samples));
            }
        }
    }
}

impl Post {
    /// `None` where no thread can be bound to that CPU and run before others.
    fn new(cpu: u32) -> Option<Self> {
        let notes = Arc::new(Notes { cpu, ..Notes::default() });
        let of_thread = Arc::clone(&notes);
        let body = move || of_thread.keep();
        let thread = thread::Builder::new().name(WITNESS_THREAD.into()).spawn(body).ok()?;
        Some(Self { notes, thread: Some(thread) })
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        self.notes.ended.store(true, Ordering::Release);
        self.wake();
        if let Some(thread) = self.thread.take() {
            // A witness that panicked has nothing to say.
            let _ = thread.join();
        }
    }
}

impl Notes {
    fn keep(&self) {
        if sys::thread::pin_to(self.cpu).is_err() || sys::thread::run_first().is_err() {
            return;
        }
        (0..FIRST_LOOKS).for_each(|_| {
            self.is_slow(sys::core_speed::parallel_speed());
        });
        while !self.ended.load(Ordering::Acquire) {
            if self.looking.load(Ordering::Acquire) {
                let slow = self.is_slow(sys::core_speed::parallel_speed());
                self.slow.fetch_add(u32::from(slow), Ordering::Relaxed);
                self.samples.fetch_add(1, Ordering::Relaxed);
                thread::sleep(PERIOD);
            } else {
                thread::park();
            }
        }
    }

    /// Compares with the best so far, and remembers a better one.
    fn is_slow(&self, speed: f64) -> bool {
        let best = f64::from_bits(self.best.load(Ordering::Relaxed));
        if speed > best {
            self.best.store(speed.to_bits(), Ordering::Relaxed);
        }
        speed < SLOW_SHARE * best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_the_best_speed_is_slow_and_the_best_is_not() {
        let notes = Notes::default();
        let slow = [4.0, 3.9, 2.0, 5.0, 4.1, 3.9].map(|speed| notes.is_slow(speed));
        assert_eq!(slow, [false, false, true, false, false, true]);
    }

    #[test]
    fn nobody_is_posted_where_the_worker_is_bound() {
        let cpu = 0;
        let posted = thread::spawn(move || {
            sys::thread::pin_to(cpu).ok()?;
            Some(Witnesses::post(&[cpu]).posts.len())
        });
        assert!(posted.join().unwrap().is_none_or(|posts| posts == 0));
    }

    #[test]
    fn what_was_seen_is_told_of_the_cpu_it_was_seen_on() {
        let notes = Arc::new(Notes { cpu: 1, samples: 10.into(), slow: 4.into(), ..Notes::default() });
        let witnesses = Witnesses { posts: vec![Post { notes, thread: None }] };
        let mut cpus = crate::health::parse_stat("cpu0 1 1 1 1 1 1 1 1\ncpu1 1 1 1 1 1 1 1 1\n", &[0, 1], 1);
        witnesses.finish(&mut cpus);
        assert_eq!(
            cpus.iter().map(|cpu| (cpu.speed_samples, cpu.slow_samples)).collect::<Vec<_>>(),
            [(None, None), (Some(10), Some(4))]
        );
    }
}
