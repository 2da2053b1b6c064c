//! The command line for people: seconds on stderr while it runs, the result on stdout, errors with what to do next.

use std::path::Path;

use clap::Parser;
use nicbench_protocol::{ErrorKind, ErrorReport, FramesConfigure, FramesEndedBy, FramesResult, FramesTask};

use crate::control::Control;
use crate::job::Job;
use crate::manifest;
use crate::options::{Options, Task, Work};
use crate::run::Ready;
use crate::summary;
use crate::sys::clock::monotonic_ns;
use crate::sys::signal;

/// Exit statuses, as of nicbench.
const USAGE: i32 = 2;
const NOT_READY: i32 = 3;
const FAILED: i32 = 4;
const NOTHING_MEASURED: i32 = 5;

/// Does what the arguments say; returns the exit status.
pub fn run() -> i32 {
    let options = match Options::try_parse() {
        Ok(options) => options,
        Err(error) => {
            // Help goes to stdout, and is no error.
            let _ = error.print();
            return if error.use_stderr() { USAGE } else { 0 };
        }
    };
    match options.task {
        Task::Prepare(work) => done(work, FramesTask::Prepare),
        Task::Write(work) => done(work, FramesTask::Write),
        Task::Read(work) => done(work, FramesTask::Read),
        Task::Clean { directory } => clean(&directory),
    }
}

fn done(work: Work, task: FramesTask) -> i32 {
    let (json, after) = (work.json, work.after);
    match perform(work.configure(task), after, json) {
        Ok(result) => finish(&result, json),
        Err(error) => {
            complain(&error.message, &error.next);
            if error.kind == ErrorKind::BadRequest { USAGE } else { NOT_READY }
        }
    }
}

fn perform(asked: FramesConfigure, after_s: f64, json: bool) -> Result<FramesResult, ErrorReport> {
    let (job, plan) = Job::new(asked)?;
    if !json {
        eprintln!("{}", summary::plan(&job, &plan));
    }
    let control = Control::new(&job);
    let ready = Ready::new(&job, &control)?;
    let (_, files) = ready.begin(Some(monotonic_ns() + (after_s * 1e9) as u64))?;
    std::thread::scope(|scope| {
        // A signal is looked for beside the work, for a frame may take long.
        let watcher = scope.spawn(|| {
            while control.stats().running {
                if signal::received().is_some() {
                    control.stop();
                }
                std::thread::park_timeout(std::time::Duration::from_millis(50));
            }
        });
        let result = ready.run(files, |interval| {
            if !json {
                eprintln!("{}", summary::interval(&interval));
            }
            true
        });
        watcher.thread().unpark();
        Ok(result)
    })
}

fn finish(result: &FramesResult, json: bool) -> i32 {
    if json {
        // Plain structs with text keys always serialise.
        println!("{}", serde_json::to_string(result).unwrap_or_default());
    } else {
        print!("{}", summary::result(result));
    }
    if let Some(failure) = &result.failure {
        complain(&failure.message, &failure.next);
        return FAILED;
    }
    match (result.ended_by, signal::received()) {
        (FramesEndedBy::Stopped, Some(signal)) => 128 + signal,
        // Where frames were due, none of them in time is what was measured.
        _ if result.frames == 0 && result.due.unwrap_or(0) == 0 => NOTHING_MEASURED,
        _ => 0,
    }
}

fn clean(directory: &str) -> i32 {
    match manifest::clean(Path::new(directory)) {
        Ok(cleaned) => {
            println!("{} files of {} bytes removed", cleaned.removed, cleaned.removed_bytes);
            for path in &cleaned.kept {
                println!("kept {}: it is listed, and holds nothing that nicbench writes", path.display());
            }
            0
        }
        Err(message) => {
            complain(&message, "look at the directory; what is left there can be removed by hand");
            NOT_READY
        }
    }
}

fn complain(message: &str, next: &str) {
    eprintln!("nicbench-frames: {message}\n  next: {next}");
}
