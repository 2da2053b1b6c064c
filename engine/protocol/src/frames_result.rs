//! What `nicbench-frames` measured: the interval that has passed, and the whole.

use serde::{Deserialize, Serialize};

use crate::frames::{FramesEngine, FramesTask};

/// A second of work. Frames belong to the interval in which they were complete.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct FramesInterval {
    /// From the first frame's turn to the beginning of the interval.
    pub from_ns: u64,
    /// Its length: a second; the last one may be shorter.
    pub interval_ns: u64,
    /// Completed in it.
    pub frames: u64,
    /// Of these frames.
    pub bytes: u64,
    /// Of these frames, those completed after they were due; `None` without a limit.
    pub dropped: Option<u64>,
    /// The longest time that one of them took; `None` where there were none.
    pub maximum_completion_ns: Option<u64>,
    /// How long the oldest frame in flight has been in work at its end; `None` where there is none.
    pub oldest_ns: Option<u64>,
}

/// Why it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FramesEndedBy {
    /// Every frame was done.
    Frames,
    /// The time was over.
    Duration,
    /// Somebody said so: `stop`, a signal, the lease.
    Stopped,
    /// A frame could not be read or written: see `failure`.
    Failure,
}

/// What went wrong, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// No room, or no quota.
    DiskFull,
    /// The directory, the mount or the file is gone.
    Vanished,
    /// The file is shorter than its frame.
    ShortRead,
    /// What was read is not what was written.
    WrongContent,
    /// The user may not.
    Permission,
    /// The file system does not do what was asked: direct I/O, for instance.
    Unsupported,
    /// Anything else that the system said.
    Io,
}

/// The frame at which it ended, why, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FramesFailure {
    /// For programs.
    pub kind: FailureKind,
    /// The frame's number; `None` where no frame is to blame.
    pub frame: Option<u64>,
    /// The file.
    pub file: String,
    /// What failed.
    pub message: String,
    /// What to do about it.
    pub next: String,
}

/// Times of all measured frames.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// How many.
    pub count: u64,
    /// Exact.
    pub minimum_ns: u64,
    /// Exact.
    pub mean_ns: f64,
    /// Exact.
    pub maximum_ns: u64,
    /// HdrHistogram V2, compressed, base64, of nanoseconds, 3 digits, 1 ns to an hour.
    pub histogram: String,
}

/// What came of it. Rates and times are of the measurement alone, without warm-up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FramesResult {
    /// What was done.
    pub task: FramesTask,
    /// The engine that was used.
    pub engine: FramesEngine,
    /// Why it ended.
    pub ended_by: FramesEndedBy,
    /// Where it failed; `None` where it did not.
    pub failure: Option<FramesFailure>,
    /// When the first frame had its turn, on this host's monotonic clock.
    pub began_at_ns: u64,
    /// Length of the warm-up, of which nothing is counted below.
    pub warm_up_ns: u64,
    /// Length of the measurement.
    pub measured_ns: u64,
    /// Completed during the measurement.
    pub frames: u64,
    /// Of these frames.
    pub bytes: u64,
    /// frames / measured; `None` where nothing was measured.
    pub frames_per_s: Option<f64>,
    /// bytes / measured.
    pub bytes_per_s: Option<f64>,
    /// Of these frames, those completed after they were due; `None` without a limit.
    pub dropped: Option<u64>,
    /// How many were due within the measurement; `None` without a limit, and where it ended before its time.
    pub due: Option<u64>,
    /// Of those that were due, all that were not complete by then: later, or never.
    pub missed: Option<u64>,
    /// Completed before or after the measurement.
    pub unmeasured_frames: u64,
    /// From the beginning of a frame to its open file; `None` for a streamed file.
    pub open: Option<Times>,
    /// From the open file to the last byte.
    pub io: Option<Times>,
    /// fsync(2) of a frame; `None` without it.
    pub sync: Option<Times>,
    /// Closing the file; `None` for a streamed file.
    pub close: Option<Times>,
    /// From the beginning of a frame to its end: all of these.
    pub completion: Option<Times>,
    /// From when a frame was due to when it was complete, 0 for those in time; `None` without a limit.
    pub lateness: Option<Times>,
    /// Syncing all files at the end; `None` where that was not asked for. Not part of the measurement.
    pub sync_at_end_ns: Option<u64>,
    /// Making or comparing content, all threads together: part of the I/O times above.
    pub content_ns: u64,
    /// CPU time of this process in user mode, the kernel's workers for it included; warm-up included.
    pub cpu_user_ns: u64,
    /// The same in the kernel.
    pub cpu_system_ns: u64,
    /// Completed frames with the warm-up, to which CPU and content times belong.
    pub all_frames: u64,
    /// All intervals of a second, warm-up included.
    pub intervals: Vec<FramesInterval>,
}
