//! Threads in which the kernel runs a program over and over. The kernel's scheduler spreads them over the CPUs.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use nicbench_bpf::{LiveFrames, end_call, install_interruption, this_thread};

use crate::clock::thread_cpu_ns;

/// Runs between which nothing leaves: more overrun the ring of a veth.
pub const BATCH: u32 = 64;
/// Runs of one call: more than a run has, so that a signal ends it.
const RUNS: u32 = 1 << 30;
/// The content of a buffer before the program makes its frame.
pub const BLANK: [u8; 128] = [0; 128];

/// All threads that send; they end when this is dropped.
#[derive(Debug)]
pub struct Senders(Vec<Sender>);

impl Senders {
    /// Starts so many.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(program: RawFd, number: usize) -> io::Result<Self> {
        install_interruption();
        (0..number).map(|number| Sender::start(program, number)).collect::<io::Result<_>>().map(Self)
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
    fn start(program: RawFd, number: usize) -> io::Result<Self> {
        let state = Arc::new(SenderState::default());
        let own = Arc::clone(&state);
        let thread = std::thread::Builder::new().name(format!("sender {number}")).spawn(move || {
            own.number.store(this_thread(), Ordering::Release);
            let done = own.send(program, number);
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
    fn send(&self, program: RawFd, number: usize) -> io::Result<()> {
        let frames = LiveFrames { runs: RUNS, batch: BATCH };
        let blank = vec![0; BLANK.len() + number]; // whose length is the sender's number
        while !self.ends.load(Ordering::Acquire) {
            match frames.run(program, &blank) {
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
