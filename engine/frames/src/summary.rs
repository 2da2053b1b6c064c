//! What a person reads of it.

use std::fmt::Write;

use nicbench_protocol::{
    FramesConfigureReply, FramesEndedBy, FramesEngine, FramesInterval, FramesResult, FramesTask, Times,
};

use crate::job::Job;

/// Before it begins.
pub fn plan(job: &Job, plan: &FramesConfigureReply) -> String {
    let size = if plan.least_frame_bytes == plan.most_frame_bytes {
        format!("{} bytes", plan.most_frame_bytes)
    } else {
        format!("{} to {} bytes", plan.least_frame_bytes, plan.most_frame_bytes)
    };
    let mut text = format!(
        "{} {} frames of {size} in {}: {}, {} thread{}, {} requests of {} bytes in flight each, {} of buffers",
        describe_task(job.task),
        plan.frames,
        job.directory.display(),
        engine(plan.engine),
        job.threads,
        if job.threads == 1 { "" } else { "s" },
        job.depth,
        plan.request_bytes,
        mebibytes(plan.buffer_bytes),
    );
    for note in plan.engine_because.iter().chain(&plan.notes) {
        let _ = write!(text, "\n  {note}");
    }
    text
}

/// A second of it.
pub fn interval(interval: &FramesInterval) -> String {
    let seconds = interval.interval_ns as f64 * 1e-9;
    let mut text = format!(
        "{:6.0} s  {:9.2} frames/s  {:9.1} MB/s",
        (interval.from_ns + interval.interval_ns) as f64 * 1e-9,
        interval.frames as f64 / seconds,
        interval.bytes as f64 * 1e-6 / seconds,
    );
    if let Some(dropped) = interval.dropped {
        let _ = write!(text, "  {dropped} dropped");
    }
    if interval.frames == 0 {
        let oldest = interval.oldest_ns.map(|age| format!("; one has been in work for {}", duration(age)));
        let _ = write!(text, "  nothing was completed{}", oldest.unwrap_or_default());
    }
    text
}

/// The whole of it.
pub fn result(result: &FramesResult) -> String {
    let mut text = String::new();
    let number =
        |value: Option<f64>, digits: usize| value.map_or("unknown".into(), |value| format!("{value:.digits$}"));
    let megabytes_per_s = result.bytes_per_s.map(|rate| rate * 1e-6);
    // Writing to text does not fail.
    let _ = writeln!(
        text,
        "{} {} frames in {}: {} frames/s, {} MB/s (10^6 bytes), by {}; {}",
        if result.task == FramesTask::Read { "read" } else { "wrote" },
        result.frames,
        duration(result.measured_ns),
        number(result.frames_per_s, 3),
        number(megabytes_per_s, 1),
        engine(result.engine),
        describe_end(result.ended_by),
    );
    if let Some(dropped) = result.dropped {
        let _ = writeln!(text, "dropped (complete after they were due): {dropped}");
    }
    if let (Some(due), Some(missed)) = (result.due, result.missed) {
        let _ = writeln!(text, "not complete in time, of {due} that were due: {missed}");
    }
    let _ = writeln!(text, "{:<12}{:>12}{:>12}{:>12}", "", "minimum", "mean", "maximum");
    for (name, times) in [
        ("open", &result.open),
        ("I/O", &result.io),
        ("sync", &result.sync),
        ("close", &result.close),
        ("completion", &result.completion),
        ("lateness", &result.lateness),
    ] {
        if let Some(Times { minimum_ns, mean_ns, maximum_ns, .. }) = times {
            let [minimum, mean, maximum] = [*minimum_ns, mean_ns.round() as u64, *maximum_ns].map(duration);
            let _ = writeln!(text, "{name:<12}{minimum:>12}{mean:>12}{maximum:>12}");
        }
    }
    if let Some(time) = result.sync_at_end_ns {
        let _ = writeln!(text, "sync of all frames at the end: {}", duration(time));
    }
    if result.all_frames > 0 {
        let of_each = |time: u64| duration(time / result.all_frames);
        let _ = writeln!(
            text,
            "CPU time of each frame: {} in user mode, {} in the kernel; content: {} of it",
            of_each(result.cpu_user_ns),
            of_each(result.cpu_system_ns),
            of_each(result.content_ns),
        );
    }
    text
}

fn describe_task(task: FramesTask) -> &'static str {
    match task {
        FramesTask::Prepare => "preparing",
        FramesTask::Write => "writing",
        FramesTask::Read => "reading",
    }
}

fn describe_end(by: FramesEndedBy) -> &'static str {
    match by {
        FramesEndedBy::Frames => "every frame was done",
        FramesEndedBy::Duration => "the time was over",
        FramesEndedBy::Stopped => "it was stopped",
        FramesEndedBy::Failure => "it failed",
    }
}

fn engine(engine: FramesEngine) -> &'static str {
    match engine {
        FramesEngine::Auto => "auto",
        FramesEngine::Sync => "one request at a time",
        FramesEngine::IoUring => "io_uring",
        FramesEngine::Threads => "a thread for each request",
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

fn duration(time_ns: u64) -> String {
    let time = time_ns as f64;
    match time_ns {
        0..1_000 => format!("{time_ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", time * 1e-3),
        1_000_000..1_000_000_000 => format!("{:.2} ms", time * 1e-6),
        _ => format!("{:.3} s", time * 1e-9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit_that_fits() {
        let shown = [7, 1_500, 2_340_000, 61_000_000_000].map(duration);
        assert_eq!(shown, ["7 ns", "1.5 us", "2.34 ms", "61.000 s"]);
    }

    #[test]
    fn a_second_in_which_nothing_came_says_for_how_long() {
        let interval = FramesInterval { interval_ns: 1_000_000_000, oldest_ns: Some(2_340_000), ..Default::default() };
        assert!(super::interval(&interval).contains("one has been in work for 2.34 ms"));
    }
}
