//! Watches each of the DUT's cores for what no counter of a virtual machine says. Fifty times a second a thread looks
//! for 10 microseconds how much of the physical core there is (a neighbour on the other hyperthread takes up to half of
//! it) and whether the CPU stood still in the meantime.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nicbench_protocol::CpuTimes;

use crate::stall_detector::StallDetector;
use crate::sys;
use crate::task_times::CORE_WATCH_THREAD;

const PERIOD: Duration = Duration::from_millis(20);
/// Measurements that find the best speed before the first trial.
const FIRST_LOOKS: u32 = 50;
/// Slower than this share of the best: somebody else is on the core. Two hyperthreads at work leave each half to two
/// thirds.
const SLOW_SHARE: f64 = 0.8;
/// Speeds are kept in steps of half a hundredth; a core's lie between 0.1 and 1.
const BINS_PER_UNIT: f64 = 200.0;
const BINS: usize = 256;
/// Faster speeds than the best are fewer than one look in so many.
const RARE: u32 = 32;

/// Threads that watch CPUs, one for each CPU where that is possible.
#[derive(Debug, Default)]
pub struct CoreWatch {
    watchers: Vec<Watcher>,
}

#[derive(Debug)]
struct Watcher {
    observations: Arc<Observations>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Observations {
    cpu: u32,
    looking: AtomicBool,
    ended: AtomicBool,
    samples: AtomicU32,
    slow: AtomicU32,
    /// `None` where the kernel does not let this process watch a whole CPU.
    stalls: Mutex<Option<StallDetector>>,
}

impl CoreWatch {
    /// Starts the threads. A CPU to which the calling thread is bound gets none: it would hold up the worker.
    pub fn start(cpus: &[u32]) -> Self {
        let free = cpus.iter().filter(|cpu| !sys::thread::is_pinned_to(**cpu));
        Self { watchers: free.filter_map(|cpu| Watcher::new(*cpu)).collect() }
    }

    /// Begins to watch: a transmission begins.
    pub fn begin(&self) {
        for watcher in &self.watchers {
            watcher.observations.samples.store(0, Ordering::Relaxed);
            watcher.observations.slow.store(0, Ordering::Relaxed);
            watcher.observations.with_stalls(StallDetector::start);
            watcher.observations.looking.store(true, Ordering::Release);
            watcher.wake();
        }
    }

    /// Ends watching and adds what was seen to the CPUs' times.
    pub fn finish(&self, cpus: &mut [CpuTimes]) {
        for Watcher { observations, .. } in &self.watchers {
            observations.looking.store(false, Ordering::Release);
            let samples = observations.samples.load(Ordering::Relaxed);
            if let Some(cpu) = cpus.iter_mut().find(|times| times.cpu == observations.cpu && samples > 0) {
                cpu.speed_samples = Some(samples);
                cpu.slow_samples = Some(observations.slow.load(Ordering::Relaxed).min(samples));
                cpu.longest_pause_ns = observations.with_stalls(StallDetector::stop).flatten();
            }
        }
    }
}

impl Watcher {
    /// `None` where no thread can be bound to that CPU and run before others.
    fn new(cpu: u32) -> Option<Self> {
        let observations = Arc::new(Observations {
            cpu,
            stalls: Mutex::new(StallDetector::open(cpu).ok()),
            ..Observations::default()
        });
        let of_thread = Arc::clone(&observations);
        let body = move || of_thread.run();
        let thread = thread::Builder::new().name(CORE_WATCH_THREAD.into()).spawn(body).ok()?;
        Some(Self { observations, thread: Some(thread) })
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.observations.ended.store(true, Ordering::Release);
        self.wake();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has seen nothing.
            let _ = thread.join();
        }
    }
}

impl Observations {
    fn run(&self) {
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
        self.with_stalls(StallDetector::read);
    }

    fn with_stalls<T>(&self, action: impl FnOnce(&mut StallDetector) -> T) -> Option<T> {
        // A thread that panicked with the lock left the detector whole.
        self.stalls.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(action)
    }
}

/// All speeds that one thread has measured. The best is one that was seen more than now and then: a measurement that
/// was itself disturbed between its two halves gives a speed that the core never has.
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
            Some(CoreWatch::start(&[cpu]).watchers.len())
        });
        assert!(posted.join().unwrap().is_none_or(|watchers| watchers == 0));
    }

    #[test]
    fn what_was_seen_is_told_of_the_cpu_it_was_seen_on() {
        let observations =
            Arc::new(Observations { cpu: 1, samples: 10.into(), slow: 4.into(), ..Observations::default() });
        let core_watch = CoreWatch { watchers: vec![Watcher { observations, thread: None }] };
        let mut cpus = crate::health::parse_stat("cpu0 1 1 1 1 1 1 1 1\ncpu1 1 1 1 1 1 1 1 1\n", &[0, 1], 1);
        core_watch.finish(&mut cpus);
        assert_eq!(
            cpus.iter().map(|cpu| (cpu.speed_samples, cpu.slow_samples)).collect::<Vec<_>>(),
            [(None, None), (Some(10), Some(4))]
        );
    }
}
