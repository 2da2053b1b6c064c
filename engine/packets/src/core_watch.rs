//! Watches each of the DUT's cores for what no counter of a virtual machine says. Two hundred and fifty times a second
//! a thread looks for a microsecond how much of the physical core there is (a neighbour on the other hyperthread takes
//! up to half of it) and how high the core's clock is; and it reads whether the CPU stood still in the meantime.
//!
//! What limits the rate is the interrupt that wakes the thread, not the look: on a virtual machine one takes up to
//! 20 microseconds of the core. So looks come when interrupts come anyway: at multiples of their period by the
//! monotonic clock, which are those of the kernel's own tick, and the stall detector's timer beats in step with them.

mod clocks;
mod series;
mod speeds;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use nicbench_protocol::CpuTimes;

use crate::port::Clock;
use crate::stall_detector::{self, StallDetector};
use crate::sys::core_speed::SHORT_PROBE;
use crate::sys::{self, core_speed, tsc};
use crate::task_times::CORE_WATCH_THREAD;
use clocks::{ChainLength, Clocks, ClocksBySpeed};
use series::Series;
pub use speeds::{Speed, Speeds};

/// Between two looks: two beats of the timer that finds pauses, so that they come with it.
pub const PERIOD_NS: u64 = 2 * stall_detector::PERIOD_NS;
/// Looks that find the best speed before the first trial.
const FIRST_LOOKS: u32 = 50;
/// Slower than so many hundredths of the best: somebody else is on the core. Two hyperthreads at work leave each half
/// to two thirds.
pub const SLOW_HUNDREDTHS: u8 = 80;
/// A sleeper wakes up later than it asked for, by less than this where nothing holds it up.
const WAKE_UP_NS: u64 = 60_000;

/// Threads that watch CPUs, one for each CPU where that is possible.
#[derive(Debug, Default)]
pub struct CoreWatch {
    watchers: Vec<Watcher>,
    /// Of the time-stamp counter.
    ticks_per_s: f64,
    last_slow: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Watcher {
    observations: Arc<Observations>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Observations {
    cpu: u32,
    ended: AtomicBool,
    state: Mutex<State>,
    /// Tick of the last look at any of the CPUs that found it slow; 0 where there was none.
    last_slow: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct State {
    /// `None` where the kernel does not let this process watch a whole CPU.
    stalls: Option<StallDetector>,
    /// Of all looks since the start.
    speeds: Speeds,
    clocks: Clocks,
    /// `None` until it was measured, and where it cannot be.
    chain: Option<ChainLength>,
    /// `None` outside of a transmission.
    trial: Option<TrialLooks>,
}

/// What a trial's looks saw, beside what is known of the core since the start.
struct Seen {
    trial: Option<TrialLooks>,
    best: Speed,
    /// In cycles per tick.
    highest_clock: Option<f64>,
    longest_pause_ns: Option<u64>,
}

/// What was seen since a transmission began.
#[derive(Debug)]
struct TrialLooks {
    speeds: Speeds,
    clocks: ClocksBySpeed,
    series: Series,
    has_begun: bool,
}

impl Default for TrialLooks {
    fn default() -> Self {
        let series = Series::new(PERIOD_NS);
        Self { speeds: Speeds::default(), clocks: ClocksBySpeed::default(), series, has_begun: false }
    }
}

impl CoreWatch {
    /// Starts the threads. A CPU to which the calling thread is bound gets none: it would hold up the worker.
    pub fn start(cpus: &[u32], ticks_per_s: f64) -> Self {
        let last_slow = Arc::new(AtomicU64::new(0));
        let free = cpus.iter().filter(|cpu| !sys::thread::is_pinned_to(**cpu));
        let watchers = free.filter_map(|cpu| Watcher::new(*cpu, Arc::clone(&last_slow))).collect();
        Self { watchers, ticks_per_s, last_slow }
    }

    /// A watch for another worker's thread: it has no watchers, and its quiet times are those of this one.
    pub fn follow(&self) -> Self {
        Self { watchers: Vec::new(), ticks_per_s: self.ticks_per_s, last_slow: Arc::clone(&self.last_slow) }
    }

    /// Begins to watch: a transmission begins.
    pub fn begin(&self) {
        self.last_slow.store(0, Ordering::Relaxed);
        for watcher in &self.watchers {
            watcher.observations.lock().trial = Some(TrialLooks::default());
            watcher.wake();
        }
    }

    /// The tick of the last look of this transmission that found a CPU slow; `None` where none did.
    pub fn last_slow(&self) -> Option<u64> {
        Some(self.last_slow.load(Ordering::Relaxed)).filter(|tick| *tick != 0)
    }

    /// For how long, at tick `now`, the CPUs have had their cores to themselves: a look that finds one of them slow
    /// stands for the time until the next. Forever, where no look of this transmission did.
    #[inline]
    pub fn quiet_ns(&self, now: u64, clock: &impl Clock) -> u64 {
        match self.last_slow.load(Ordering::Relaxed) {
            0 => u64::MAX,
            tick => clock.nanoseconds(now.saturating_sub(tick)).saturating_sub(PERIOD_NS),
        }
    }

    /// Ends watching and adds what was seen to the CPUs' times; looks count from `epoch_ns` of the monotonic clock.
    /// Returns whether anybody could look.
    pub fn finish(&self, cpus: &mut [CpuTimes], epoch_ns: u64) -> bool {
        let mut any = false;
        for Watcher { observations, .. } in &self.watchers {
            let Seen { trial, best, highest_clock, longest_pause_ns } = observations.end_trial();
            let Some(trial) = trial.filter(|trial| trial.speeds.looks() > 0) else { continue };
            any = true;
            let hz = |cycles_per_tick: f64| (cycles_per_tick * self.ticks_per_s).round() as u64;
            if let Some(cpu) = cpus.iter_mut().find(|times| times.cpu == observations.cpu) {
                cpu.speed_samples = Some(trial.speeds.looks());
                cpu.slow_samples = Some(trial.speeds.slower_than(SLOW_HUNDREDTHS, best));
                cpu.clock_hz = trial.clocks.mean(best).map(hz);
                cpu.highest_clock_hz = highest_clock.map(hz);
                cpu.longest_pause_ns = longest_pause_ns;
                cpu.looks = trial.series.reading(epoch_ns, best);
            }
        }
        any
    }
}

impl Watcher {
    /// `None` where no thread can be bound to that CPU and run before others.
    fn new(cpu: u32, last_slow: Arc<AtomicU64>) -> Option<Self> {
        let state = State { stalls: StallDetector::open(cpu).ok(), ..State::default() };
        let observations =
            Arc::new(Observations { cpu, last_slow, state: Mutex::new(state), ..Observations::default() });
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
        let chain = ChainLength::measure(SHORT_PROBE);
        self.lock().chain = chain;
        let mut first_looks = FIRST_LOOKS;
        while !self.ended.load(Ordering::Acquire) {
            let (is_watching, begins) = self.lock().trial.as_ref().map_or((false, false), |it| (true, !it.has_begun));
            if begins {
                self.start_stall_detector();
            } else if is_watching || first_looks > 0 {
                first_looks = first_looks.saturating_sub(1);
                sys::thread::sleep_until(next_slot(tsc::monotonic_ns()));
                self.look();
            } else {
                thread::park();
            }
        }
    }

    /// Starts the detector at the beginning of a slot, so that one interrupt serves its timer and the next look.
    fn start_stall_detector(&self) {
        let slot_ns = next_slot(tsc::monotonic_ns() + WAKE_UP_NS);
        sys::thread::sleep_until(slot_ns - WAKE_UP_NS);
        let state = &mut *self.lock();
        if let Some(trial) = &mut state.trial {
            trial.has_begun = true;
            state.stalls.iter_mut().for_each(|stalls| stalls.start_before(slot_ns));
        }
    }

    fn look(&self) {
        let (now_ns, measured) = (tsc::monotonic_ns(), core_speed::measure(SHORT_PROBE));
        let (speed, chain_ticks) = (Speed::new(measured.parallel), measured.chain_ticks);
        let state = &mut *self.lock();
        state.speeds.remember(speed);
        state.clocks.remember(chain_ticks);
        let Some(trial) = &mut state.trial else { return };
        trial.speeds.remember(speed);
        trial.series.add(now_ns, speed);
        if let Some(chain) = state.chain {
            trial.clocks.add(speed, chain.clock(chain_ticks));
        }
        if speed.hundredths_of(state.speeds.best()) < SLOW_HUNDREDTHS {
            self.last_slow.store(tsc::ticks(), Ordering::Relaxed);
        }
        state.stalls.iter_mut().for_each(StallDetector::read);
    }

    fn end_trial(&self) -> Seen {
        let mut state = self.lock();
        let trial = state.trial.take();
        let began = trial.as_ref().is_some_and(|trial| trial.has_begun);
        let longest_pause_ns = state.stalls.as_mut().filter(|_| began).and_then(StallDetector::stop);
        let highest_clock = state.chain.and_then(|chain| state.clocks.highest(chain));
        Seen { trial, best: state.speeds.best(), highest_clock, longest_pause_ns }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A thread that panicked with the lock left counts that are whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The beginning of the slot after the one of this time.
pub fn next_slot(monotonic_ns: u64) -> u64 {
    (monotonic_ns / PERIOD_NS + 1) * PERIOD_NS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::VirtualClock;

    #[test]
    fn nobody_is_posted_where_the_worker_is_bound() {
        let cpu = 0;
        let posted = thread::spawn(move || {
            sys::thread::pin_to(cpu).ok()?;
            Some(CoreWatch::start(&[cpu], 1e9).watchers.len())
        });
        assert!(posted.join().unwrap().is_none_or(|watchers| watchers == 0));
    }

    #[test]
    fn a_look_comes_at_the_beginning_of_a_slot() {
        assert_eq!([0, 1, PERIOD_NS - 1, PERIOD_NS].map(next_slot), [1, 1, 1, 2].map(|slot| slot * PERIOD_NS));
    }

    #[test]
    fn what_was_seen_is_told_of_the_cpu_it_was_seen_on() {
        let chain = ChainLength { cycles: 600.0 };
        let mut state = State { trial: Some(TrialLooks::default()), chain: Some(chain), ..State::default() };
        let seen = [(0.5, 400), (0.5, 300), (0.3, 600), (0.5, 400), (0.3, 600)];
        for (look, (speed, chain_ticks)) in seen.into_iter().enumerate() {
            let speed = Speed::new(speed);
            state.clocks.remember(chain_ticks);
            state.speeds.remember(speed);
            let trial = state.trial.as_mut().unwrap();
            trial.speeds.remember(speed);
            trial.series.add((10 + look as u64) * PERIOD_NS, speed);
            trial.clocks.add(speed, chain.clock(chain_ticks));
        }
        let observations = Arc::new(Observations { cpu: 1, state: Mutex::new(state), ..Observations::default() });
        let watchers = vec![Watcher { observations, thread: None }];
        let core_watch = CoreWatch { watchers, ticks_per_s: 3e9, ..CoreWatch::default() };
        let mut cpus = crate::health::parse_stat("cpu0 1 1 1 1 1 1 1 1\ncpu1 1 1 1 1 1 1 1 1\n", &[0, 1], 1);
        assert!(core_watch.finish(&mut cpus, 11 * PERIOD_NS));
        assert_eq!(
            cpus.iter().map(|cpu| (cpu.speed_samples, cpu.slow_samples)).collect::<Vec<_>>(),
            [(None, None), (Some(5), Some(2))]
        );
        let clocks = cpus.iter().map(|cpu| (cpu.clock_hz, cpu.highest_clock_hz)).collect::<Vec<_>>();
        assert_eq!(clocks, [(None, None), (Some(5_000_000_000), Some(6_000_000_000))]);
        let looks = cpus[1].looks.as_ref().unwrap();
        assert_eq!((looks.begins_ns, looks.slot_ns), (-(PERIOD_NS as i64), PERIOD_NS));
        assert!(!core_watch.finish(&mut cpus, 0), "a trial is told once");
    }

    #[test]
    fn another_worker_knows_of_slow_looks_too() {
        let (core_watch, clock) = (CoreWatch::default(), VirtualClock::default());
        let follower = core_watch.follow();
        core_watch.last_slow.store(70, Ordering::Relaxed);
        assert_eq!(follower.quiet_ns(75 + PERIOD_NS, &clock), 5);
        assert!(!follower.finish(&mut [], 0), "what was seen is told once");
    }

    #[test]
    fn a_slow_look_stands_for_the_time_until_the_next() {
        let (core_watch, clock) = (CoreWatch::default(), VirtualClock::default());
        assert_eq!(core_watch.quiet_ns(100, &clock), u64::MAX);
        core_watch.last_slow.store(70, Ordering::Relaxed);
        let quiet_ns = [60, 71, 70 + PERIOD_NS, 75 + PERIOD_NS].map(|now| core_watch.quiet_ns(now, &clock));
        assert_eq!(quiet_ns, [0, 0, 0, 5]);
        core_watch.begin();
        assert_eq!(core_watch.quiet_ns(100, &clock), u64::MAX);
    }
}
