//! A witness on each of the DUT's cores, for what no counter of a virtual machine says. Fifty times a second it looks for
//! 10 microseconds how much of the physical core there is (a neighbour on the other hyperthread takes up to half of it)
//! and whether the CPU stood still in the meantime.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nicbench_protocol::CpuTimes;

use crate::pulse::Pulse;
use crate::sys;
use crate::task_times::WITNESS_THREAD;

const PERIOD: Duration = Duration::from_millis(20);
/// Looks that find the best speed before the first trial.
const FIRST_LOOKS: u32 = 50;
/// Slower than this share of the best: somebody else is on the core. Two hyperthreads at work leave each half to two thirds.
const SLOW_SHARE: f64 = 0.8;
/// Speeds are kept in steps of half a hundredth; a core's lie between 0.1 and 1.
const BINS_PER_UNIT: f64 = 200.0;
const BINS: usize = 256;
/// Faster speeds than the best are fewer than one look in so many.
const RARE: u32 = 32;

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
    /// Nothing where a whole CPU cannot be watched.
    pulse: Mutex<Option<Pulse>>,
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
            post.notes.with_pulse(Pulse::start);
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
                cpu.longest_pause_ns = notes.with_pulse(Pulse::stop).flatten();
            }
        }
    }
}

impl Post {
    /// `None` where no thread can be bound to that CPU and run before others.
    fn new(cpu: u32) -> Option<Self> {
        let notes = Arc::new(Notes { cpu, pulse: Mutex::new(Pulse::of(cpu).ok()), ..Notes::default() });
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
        let mut speeds = Speeds::default();
        (0..FIRST_LOOKS).for_each(|_| speeds.remember(sys::core_speed::parallel_speed()));
        while !self.ended.load(Ordering::Acquire) {
            if self.looking.load(Ordering::Acquire) {
                self.look(&mut speeds);
                thread::sleep(PERIOD);
            } else {
                thread::park();
            }
        }
    }

    fn look(&self, speeds: &mut Speeds) {
        let speed = sys::core_speed::parallel_speed();
        speeds.remember(speed);
        self.slow.fetch_add(u32::from(speed < SLOW_SHARE * speeds.best()), Ordering::Relaxed);
        self.samples.fetch_add(1, Ordering::Relaxed);
        self.with_pulse(Pulse::feel);
    }

    fn with_pulse<T>(&self, action: impl FnOnce(&mut Pulse) -> T) -> Option<T> {
        // Whoever panicked with the lock did not leave half a pulse behind.
        self.pulse.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(action)
    }
}

/// All speeds that one witness has seen. The best is one that was seen more than now and then: a look that was itself
/// disturbed between its two halves gives a speed that the core never has.
#[derive(Debug)]
struct Speeds {
    bins: [u32; BINS],
    looks: u32,
}

impl Default for Speeds {
    fn default() -> Self {
        Self { bins: [0; BINS], looks: 0 }
    }
}

impl Speeds {
    fn remember(&mut self, speed: f64) {
        self.bins[((speed * BINS_PER_UNIT) as usize).min(BINS - 1)] += 1;
        self.looks += 1;
    }

    fn best(&self) -> f64 {
        let enough = (self.looks / RARE).max(1);
        let mut seen = 0;
        let reached = |bin: &usize| {
            seen += self.bins[*bin];
            seen > enough
        };
        (0..BINS).rev().find(reached).map_or(0.0, |bin| bin as f64 / BINS_PER_UNIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best_of(speeds: impl IntoIterator<Item = f64>) -> f64 {
        let mut all = Speeds::default();
        speeds.into_iter().for_each(|speed| all.remember(speed));
        all.best()
    }

    #[test]
    fn the_best_is_what_was_seen_often_enough() {
        let ordinary = [0.33, 0.2, 0.33, 0.2, 0.2, 0.33].repeat(20);
        assert!((best_of(ordinary.iter().copied()) - 0.33).abs() < 0.006);
        let with_freaks = ordinary.into_iter().chain([0.9, 0.7]);
        assert!((best_of(with_freaks) - 0.33).abs() < 0.006);
    }

    #[test]
    fn a_speed_beyond_every_bin_is_no_panic() {
        assert!(best_of([1e9; 10]) > 1.0);
        assert!(best_of([f64::NAN, -1.0]) == 0.0);
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
