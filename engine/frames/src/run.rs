//! A job from its first frame to its result: workers at work, a look at them every second.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use nicbench_protocol::{
    ErrorKind, ErrorReport, FailureKind, FramesEndedBy, FramesFailure, FramesInterval, FramesResult, SyncPolicy,
};

use crate::control::Control;
use crate::job::Job;
use crate::recorder::INTERVAL_NS;
use crate::sample::SampleFiles;
use crate::sys::clock::monotonic_ns;
use crate::sys::file::sync_file_system;
use crate::sys::process::{bind_to, cpu_ns};
use crate::worker::Worker;

/// An interval is told so long after its end, when its last frames are recorded.
const SETTLE_NS: u64 = 20_000_000;
/// The time from the request to the first frame's turn, for which all workers wait.
const LEAD_NS: u64 = 5_000_000;

/// A job for which everything was done that can be done before the first frame's turn.
pub struct Ready<'a> {
    job: &'a Job,
    control: &'a Control,
    workers: Vec<Worker<'a>>,
}

impl<'a> Ready<'a> {
    /// Takes memory, makes queues, opens the file that holds all frames.
    pub fn new(job: &'a Job, control: &'a Control) -> Result<Self, ErrorReport> {
        if !job.cpus.is_empty() {
            bind_to(&job.cpus).map_err(|error| {
                let message = format!("cannot run on the CPUs {:?}: {error}", job.cpus);
                ErrorReport::new(ErrorKind::BadRequest, message, "name CPUs that are on and that this process may use")
            })?;
        }
        let mut workers = (0..job.threads as usize)
            .map(|number| Worker::new(number, job, control))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| {
                let message = format!("no memory, threads or queues for {} workers: {error}", job.threads);
                ErrorReport::new(ErrorKind::Space, message, "ask for fewer threads, less depth or smaller requests")
            })?;
        for worker in &mut workers {
            worker.open_stream().map_err(|failure| ErrorReport::new(ErrorKind::Io, failure.message, failure.next))?;
        }
        Ok(Self { job, control, workers })
    }

    /// Makes the files of samples and settles when the first frame has its turn.
    pub fn begin(&self, at_ns: Option<u64>) -> Result<(u64, SampleFiles), ErrorReport> {
        let at_ns = at_ns.unwrap_or(0).max(monotonic_ns() + LEAD_NS);
        let files = SampleFiles::create(self.job.samples.as_deref(), self.job.csv.as_deref(), at_ns);
        let files = files.map_err(|message| {
            ErrorReport::new(
                ErrorKind::Io,
                message,
                "give `samples` and `csv` in a directory that is there and writable",
            )
        })?;
        self.control.begin(at_ns);
        Ok((at_ns, files))
    }

    /// Does the work. `tell` is called with each second that has passed; where it says false the work ends.
    pub fn run(self, mut files: SampleFiles, mut tell: impl FnMut(FramesInterval) -> bool) -> FramesResult {
        let Self { job, control, workers } = self;
        let began = control.began_at_ns();
        let cpu_before = cpu_ns();
        let mut told = 0;
        thread::scope(|scope| {
            let (done, all_done) = channel::<()>();
            for worker in workers {
                let done = done.clone();
                scope.spawn(move || {
                    worker.run();
                    drop(done);
                });
            }
            drop(done);
            loop {
                let due = began + (told + 1) * INTERVAL_NS + SETTLE_NS;
                match all_done.recv_timeout(Duration::from_nanos(due.saturating_sub(monotonic_ns()))) {
                    Err(RecvTimeoutError::Disconnected) => break,
                    Ok(()) | Err(RecvTimeoutError::Timeout) => {
                        keep_samples(job, control, &mut files);
                        if !tell(interval(control, told)) {
                            control.stop();
                        }
                        told += 1;
                    }
                }
            }
        });
        keep_samples(job, control, &mut files);
        let cpu_after = cpu_ns();
        let sync_at_end_ns = sync_at_end(job, control);
        control.end();
        let mut result = result(job, control, sync_at_end_ns);
        result.cpu_user_ns = cpu_after.0 - cpu_before.0;
        result.cpu_system_ns = cpu_after.1 - cpu_before.1;
        for interval in result.intervals.iter().skip(told as usize) {
            tell(*interval);
        }
        result
    }
}

fn interval(control: &Control, number: u64) -> FramesInterval {
    let oldest_ns = control.oldest_ns();
    let mut recorder = control.recorder();
    let interval = recorder.interval(number);
    interval.oldest_ns = oldest_ns;
    *interval
}

/// Samples that cannot be kept end the work: it was asked for them.
fn keep_samples(job: &Job, control: &Control, files: &mut SampleFiles) {
    let samples = control.recorder().take_samples();
    if let Err(error) = files.add(&samples) {
        let file = job.samples.clone().or_else(|| job.csv.clone()).unwrap_or_default();
        control.fail(FramesFailure {
            kind: if error.raw_os_error() == Some(libc::ENOSPC) { FailureKind::DiskFull } else { FailureKind::Io },
            frame: None,
            message: format!("the samples cannot be written to {file}: {error}"),
            next: "make room there, or write samples elsewhere".into(),
            file,
        });
    }
}

fn sync_at_end(job: &Job, control: &Control) -> Option<u64> {
    if job.sync != SyncPolicy::End {
        return None;
    }
    let begun = monotonic_ns();
    if let Err(error) = sync_file_system(&job.opened_directory) {
        let file = job.directory.display().to_string();
        control.fail(FramesFailure {
            kind: if error.raw_os_error() == Some(libc::ENOSPC) { FailureKind::DiskFull } else { FailureKind::Io },
            frame: None,
            message: format!("what was written to {file} cannot be synced: {error}"),
            next: "do not use these frames; look at the kernel's messages (dmesg)".into(),
            file,
        });
    }
    Some(monotonic_ns() - begun)
}

fn result(job: &Job, control: &Control, sync_at_end_ns: Option<u64>) -> FramesResult {
    let failure = control.failure();
    let mut recorder = control.recorder();
    let (all, last_ns) = (recorder.stats(), recorder.last_ns);
    let ended_by = if failure.is_some() {
        FramesEndedBy::Failure
    } else if control.is_stopped() {
        FramesEndedBy::Stopped
    } else if job.repeat || all.frames < job.frames.count() {
        FramesEndedBy::Duration
    } else {
        FramesEndedBy::Frames
    };
    let measured_ns = job.schedule.measured_ns(recorder.positions, last_ns, ended_by == FramesEndedBy::Duration);
    if all.frames > 0 {
        // The last second may not be a whole one; its last frame's own time belongs to it.
        let begun_ns = last_ns / INTERVAL_NS * INTERVAL_NS;
        let until_ns = (job.schedule.warm_up_ns + measured_ns).max(last_ns);
        recorder.interval(last_ns / INTERVAL_NS).interval_ns = until_ns.saturating_sub(begun_ns).clamp(1, INTERVAL_NS);
    }
    let (frames, bytes) = (recorder.measured_frames, recorder.measured_bytes);
    let per_s = |count: u64| (measured_ns > 0 && frames > 0).then(|| count as f64 * 1e9 / measured_ns as f64);
    let times = recorder.times();
    let is_whole = matches!(ended_by, FramesEndedBy::Duration | FramesEndedBy::Frames);
    let positions = if job.repeat { u64::MAX } else { job.frames.count() };
    let due = if is_whole { job.schedule.due_within(positions) } else { None };
    FramesResult {
        task: job.task,
        engine: job.engine,
        ended_by,
        failure,
        began_at_ns: control.began_at_ns(),
        warm_up_ns: job.schedule.warm_up_ns,
        measured_ns,
        frames,
        bytes,
        frames_per_s: per_s(frames),
        bytes_per_s: per_s(bytes),
        dropped: recorder.count_measured_dropped(),
        due,
        missed: due.map(|due| recorder.count_missed(due)),
        unmeasured_frames: all.frames - frames,
        open: times.open,
        io: times.io,
        sync: times.sync,
        close: times.close,
        completion: times.completion,
        lateness: times.lateness,
        sync_at_end_ns,
        content_ns: control.content_ns(),
        cpu_user_ns: 0,
        cpu_system_ns: 0,
        all_frames: all.frames,
        intervals: recorder.intervals.clone(),
    }
}
