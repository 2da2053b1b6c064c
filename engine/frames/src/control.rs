//! Controls a running job, and shows its progress.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nicbench_protocol::{FramesFailure, FramesStats};

use crate::job::Job;
use crate::recorder::Recorder;
use crate::sys::clock::monotonic_ns;

/// The longest sleep of a worker before it looks whether it was stopped.
const LOOK_UP: Duration = Duration::from_millis(50);

/// The state that workers share with the thread that controls them.
#[derive(Debug)]
pub struct Control {
    stop: AtomicBool,
    /// The next position to be taken.
    next: AtomicU64,
    /// On the monotonic clock; 0 before it is known.
    began_at_ns: AtomicU64,
    recorder: Mutex<Recorder>,
    failure: Mutex<Option<FramesFailure>>,
    /// Of each worker: when its oldest frame was begun; 0 where it has none.
    oldest_ns: Vec<AtomicU64>,
    content_ns: AtomicU64,
    is_over: AtomicBool,
}

impl Control {
    pub fn new(job: &Job) -> Self {
        let keeps_samples = job.samples.is_some() || job.csv.is_some();
        Self {
            stop: AtomicBool::new(false),
            next: AtomicU64::new(0),
            began_at_ns: AtomicU64::new(0),
            recorder: Mutex::new(Recorder::new(job.schedule, keeps_samples)),
            failure: Mutex::new(None),
            oldest_ns: (0..job.threads).map(|_| AtomicU64::new(0)).collect(),
            content_ns: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    /// Stops the job: no further frame is begun.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Begins the job: the first frame has its turn at this time.
    pub fn begin(&self, at_ns: u64) {
        self.began_at_ns.store(at_ns, Ordering::Release);
    }

    pub fn began_at_ns(&self) -> u64 {
        self.began_at_ns.load(Ordering::Acquire)
    }

    /// Ends the job: nothing more will come.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    pub fn take_position(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub fn recorder(&self) -> MutexGuard<'_, Recorder> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the work because a frame failed; the first failure is kept.
    pub fn fail(&self, failure: FramesFailure) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
        self.stop();
    }

    pub fn failure(&self) -> Option<FramesFailure> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_oldest(&self, worker: usize, begun_ns: Option<u64>) {
        self.oldest_ns[worker].store(begun_ns.unwrap_or(0), Ordering::Relaxed);
    }

    /// For how long the oldest frame has been in work.
    pub fn oldest_ns(&self) -> Option<u64> {
        let begun =
            self.oldest_ns.iter().map(|begun| begun.load(Ordering::Relaxed)).filter(|begun| *begun > 0).min()?;
        Some(monotonic_ns().saturating_sub(begun))
    }

    pub fn add_content_ns(&self, time_ns: u64) {
        self.content_ns.fetch_add(time_ns, Ordering::Relaxed);
    }

    pub fn content_ns(&self) -> u64 {
        self.content_ns.load(Ordering::Relaxed)
    }

    pub fn stats(&self) -> FramesStats {
        let began = self.began_at_ns();
        let running = began > 0 && !self.is_over.load(Ordering::Relaxed);
        let elapsed_ns = (began > 0).then(|| monotonic_ns().checked_sub(began)).flatten();
        FramesStats { running, elapsed_ns, oldest_ns: self.oldest_ns(), ..self.recorder().stats() }
    }

    /// Sleeps until this time, or until the job is stopped.
    pub fn sleep_until(&self, time_ns: u64) {
        while !self.is_stopped() {
            match Duration::from_nanos(time_ns.saturating_sub(monotonic_ns())) {
                Duration::ZERO => return,
                left => std::thread::sleep(left.min(LOOK_UP)),
            }
        }
    }
}
