//! Threads in which the kernel runs a program over and over, or when something is due. The kernel's scheduler spreads
//! them over the CPUs.

use std::io;
use std::num::NonZero;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use nicbench_bpf::{LiveFrames, end_call, install_interruption, this_thread};

use rustix::thread::set_current_timer_slack;

use super::now_ns;
use super::rings::Next;
use crate::clock::thread_cpu_ns;

/// Runs between which nothing leaves: more overrun the ring of a veth.
pub const BATCH: u32 = 64;
/// Runs of one call: more than a run has, so that a signal ends it.
const RUNS: u32 = 1 << 30;
/// A sender sleeps until something is due where at most this is due to it in a second. Each run is then a call of some
/// 12 us: at a higher rate, runs would be late where others use the CPU, too.
pub const SLEEPING_RATE: f64 = 3000.0;
/// How long before it is due the thread is to be awake.
const AWAKE_NS: u64 = 30_000;
/// From the beginning of a call to the program's.
const CALL_NS: u64 = 5000;
/// The longest sleep of a thread, and so the longest wait of what is to be sent at once.
const SLEEP_NS: u64 = 500_000;
/// The content of a buffer before the program makes its frame.
pub const BLANK: [u8; 128] = [0; 128];

/// All threads that send; they end when this is dropped.
#[derive(Debug)]
pub struct Senders(Vec<Sender>);

impl Senders {
    /// Starts one for each entry: what it has to do next, if it sleeps until then.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(program: RawFd, next: Vec<Option<Next>>) -> io::Result<Self> {
        install_interruption();
        let started = next.into_iter().enumerate().map(|(number, next)| Sender::start(program, number, next));
        started.collect::<io::Result<_>>().map(Self)
    }

    /// Whether all of them still send.
    pub fn are_running(&self) -> bool {
        self.0.iter().all(Sender::is_running)
    }

    /// Ends them: the CPU time that they took, in nanoseconds.
    ///
    /// # Errors
    /// The kernel did not run the program.
    pub fn end(self) -> io::Result<u64> {
        self.0.into_iter().map(Sender::end).sum()
    }
}

#[derive(Debug)]
struct Sender {
    state: Arc<SenderState>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

#[derive(Debug, Default)]
struct SenderState {
    ends: AtomicBool,
    number: AtomicU32,
    cpu_ns: AtomicU64,
}

impl Sender {
    fn start(program: RawFd, number: usize, next: Option<Next>) -> io::Result<Self> {
        let state = Arc::new(SenderState::default());
        let own = Arc::clone(&state);
        let thread = std::thread::Builder::new().name(format!("sender {number}")).spawn(move || {
            own.number.store(this_thread(), Ordering::Release);
            let blank = vec![0; BLANK.len() + number]; // whose length is the sender's number
            let done = match next {
                Some(next) => own.send_when_due(program, &blank, &next),
                None => own.send(program, &blank),
            };
            own.cpu_ns.store(thread_cpu_ns(), Ordering::Release);
            done
        })?;
        Ok(Self { state, thread: Some(thread) })
    }

    fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    fn end(mut self) -> io::Result<u64> {
        self.stop().unwrap_or(Ok(()))?;
        Ok(self.state.cpu_ns.load(Ordering::Acquire))
    }

    fn stop(&mut self) -> Option<io::Result<()>> {
        let thread = self.thread.take()?;
        self.state.ends.store(true, Ordering::Release);
        while !thread.is_finished() {
            // A signal that comes before the call is lost: another follows.
            end_call(self.state.number.load(Ordering::Acquire));
            std::thread::sleep(Duration::from_millis(1));
        }
        Some(thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that sends died"))))
    }
}

impl SenderState {
    /// Sleeps until something is due, and has the program run once.
    fn send_when_due(&self, program: RawFd, blank: &[u8], next: &Next) -> io::Result<()> {
        let _ = set_current_timer_slack(NonZero::new(1)); // without it what is due is later, no more
        // More runs, and the kernel would wait for all CPUs (bpf_prog_change_xdp).
        let frames = LiveFrames { runs: 1, batch: 1 };
        while !self.ends.load(Ordering::Acquire) {
            let wait_ns = next.due_ns().map_or(u64::MAX, |due_ns| due_ns.saturating_sub(now_ns() + CALL_NS));
            match wait_ns {
                0 => frames.run(program, blank)?,
                1..AWAKE_NS => std::hint::spin_loop(),
                _ => std::thread::sleep(Duration::from_nanos((wait_ns - AWAKE_NS).min(SLEEP_NS))),
            }
        }
        Ok(())
    }

    fn send(&self, program: RawFd, blank: &[u8]) -> io::Result<()> {
        let frames = LiveFrames { runs: RUNS, batch: BATCH };
        while !self.ends.load(Ordering::Acquire) {
            match frames.run(program, blank) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => other?,
            }
        }
        Ok(())
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.stop();
    }
}
