//! The conversation with `nicbench-frames` (`protocol/frames.md`): what is asked, what it answers, what it tells
//! meanwhile.

use serde::{Deserialize, Serialize};

use crate::frames_result::{FramesInterval, FramesResult};
use crate::reply::reply_line;
use crate::request::{Head, HelloFields, RenewFields, fields, head, mistyped, refusal};
use crate::{ErrorKind, Refusal};

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub struct FramesRequest {
    /// Chosen by the controller; its reply repeats it.
    pub id: i64,
    /// What is asked.
    pub command: FramesCommand,
}

/// The commands.
#[derive(Debug, Clone, PartialEq)]
pub enum FramesCommand {
    /// Who are you?
    Hello {
        /// The controller's version of the protocol.
        protocol: String,
    },
    /// What is to be done: once per process.
    Configure(Box<FramesConfigure>),
    /// Do it.
    Start {
        /// When, on this host's monotonic clock; `None`: at once.
        begins_at_ns: Option<u64>,
    },
    /// How far it is.
    Stats,
    /// Begin no further frame.
    Stop,
    /// Renew the lease, nothing else.
    Renew {
        /// Seconds for which the controller will be silent, beyond the lease.
        duration_s: f64,
    },
    /// Stop, and exit.
    Close,
}

/// What is to be done with frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FramesTask {
    /// Write frames to be read later, without a schedule.
    Prepare,
    /// Write frames.
    Write,
    /// Read frames.
    #[default]
    Read,
}

/// In which order frames are taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrameOrder {
    /// From the first to the last.
    #[default]
    Forward,
    /// From the last to the first.
    Reverse,
    /// Each once, shuffled by the seed.
    Random,
}

/// How requests are made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FramesEngine {
    /// One request at a time where the depth is 1; else `io_uring`, and `threads` where the kernel has none.
    #[default]
    Auto,
    /// One request at a time: read(2), write(2).
    Sync,
    /// The kernel's own queue (`io_uring(7)`).
    IoUring,
    /// A thread for each request in flight.
    Threads,
}

/// When written data must be on the disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncPolicy {
    /// Whenever the system likes.
    #[default]
    None,
    /// Before a frame is complete: fsync(2).
    Frame,
    /// Before the work is complete: every file, after the last frame.
    End,
}

/// What is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FramesContent {
    /// No eight bytes are predictable from others: nothing compresses, nothing occurs twice.
    #[default]
    Unique,
    /// Each block of 4096 bytes has a stamp of its own and is otherwise that of 1 MiB before: cheap; it compresses
    /// where a compressor looks back so far.
    Stamped,
    /// The same, and only the first block of a frame has a stamp of its own: nothing is done for the others. It
    /// deduplicates.
    Same,
}

/// What is compared of what was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verify {
    /// Nothing.
    None,
    /// The stamp of every block of 4096 bytes: what is missing, displaced or of another writing is found.
    #[default]
    Blocks,
    /// Every byte.
    Full,
}

/// The fields of `configure`. What is left out has the default of [`FramesConfigure::default`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FramesConfigure {
    /// What is done.
    pub task: FramesTask,
    /// Where. It must be there.
    pub directory: String,
    /// Size of a frame by name: see protocol/frames.md.
    pub profile: String,
    /// Size of a frame without its header, in place of the profile's.
    pub frame_bytes: Option<u64>,
    /// Size of the header, in place of the profile's.
    pub header_bytes: Option<u64>,
    /// How many frames; `None`: those that are there (read), or those of the schedule (write).
    pub frames: Option<u64>,
    /// End after so many seconds of measurement; `None`: with the last frame.
    pub duration_s: Option<f64>,
    /// Seconds at the beginning that are not part of the measurement.
    pub warm_up_s: f64,
    /// The limit; `None`: as fast as it goes.
    pub frames_per_s: Option<f64>,
    /// A frame is due so many frame times after its turn.
    pub read_ahead_frames: u32,
    /// The frames' order.
    pub order: FrameOrder,
    /// Of content, sizes and random order; when reading, of the order alone.
    pub seed: u64,
    /// Workers, each with requests of its own.
    pub threads: u32,
    /// How requests are made.
    pub engine: FramesEngine,
    /// Requests in flight, of each worker.
    pub depth: u32,
    /// Size of one request; 0: a whole frame.
    pub request_bytes: u64,
    /// Past the page cache (`O_DIRECT`).
    pub direct: bool,
    /// When written data must be on the disk.
    pub sync: SyncPolicy,
    /// One file holds all frames.
    pub streamed: bool,
    /// File names, with one `%d` or `%06d`; `None`: `frame_%06d.dpx`, of a streamed file `frames.stream`.
    pub pattern: Option<String>,
    /// Number of the first frame.
    pub first: u64,
    /// Read frames that somebody else wrote: whatever sizes there are, nothing is compared.
    pub existing: bool,
    /// What is written.
    pub content: FramesContent,
    /// What is compared of what was read.
    pub verify: Verify,
    /// After the last frame comes the first again, until the time is over.
    pub repeat: bool,
    /// Write even where it does not fit.
    pub ignore_space: bool,
    /// File for every frame's times, as binary records; `None`: none is written.
    pub samples: Option<String>,
    /// File for every frame's times, as text; `None`: none is written.
    pub csv: Option<String>,
    /// CPUs to run on; empty: wherever the system puts it.
    pub cpus: Vec<u32>,
}

impl Default for FramesConfigure {
    fn default() -> Self {
        Self {
            task: FramesTask::Read,
            directory: String::new(),
            profile: "4k".into(),
            frame_bytes: None,
            header_bytes: None,
            frames: None,
            duration_s: None,
            warm_up_s: 0.0,
            frames_per_s: None,
            read_ahead_frames: 1,
            order: FrameOrder::Forward,
            seed: 1,
            threads: 1,
            engine: FramesEngine::Auto,
            depth: 4,
            request_bytes: 1 << 20,
            direct: false,
            sync: SyncPolicy::None,
            streamed: false,
            pattern: None,
            first: 0,
            existing: false,
            content: FramesContent::Unique,
            verify: Verify::Blocks,
            repeat: false,
            ignore_space: false,
            samples: None,
            csv: None,
            cpus: Vec::new(),
        }
    }
}

#[derive(Deserialize)]
struct StartFields {
    #[serde(default)]
    begins_at_ns: Option<u64>,
}

/// Reads one line.
pub fn parse_frames(line: &str) -> Result<FramesRequest, Refusal> {
    let Head { id, name, value } = head(line)?;
    let command = match name.as_str() {
        "hello" => fields::<HelloFields>(value).map(|fields| FramesCommand::Hello { protocol: fields.protocol }),
        "configure" => fields(value).map(FramesCommand::Configure),
        "start" => {
            fields::<StartFields>(value).map(|fields| FramesCommand::Start { begins_at_ns: fields.begins_at_ns })
        }
        "stats" => Ok(FramesCommand::Stats),
        "stop" => Ok(FramesCommand::Stop),
        "renew" => fields::<RenewFields>(value).map(|fields| FramesCommand::Renew { duration_s: fields.duration_s }),
        "close" => Ok(FramesCommand::Close),
        _ => {
            let next = "use hello, configure, start, stats, stop, renew or close";
            return Err(refusal(Some(id), ErrorKind::UnknownCommand, format!("unknown command {name:?}"), next));
        }
    };
    command.map(|command| FramesRequest { id, command }).map_err(|error| mistyped(id, &name, &error))
}

/// The content of a reply that is not an error.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum FramesReply {
    /// To `hello`.
    Hello(FramesHello),
    /// To `configure`.
    Configure(FramesConfigureReply),
    /// To `start`.
    Start {
        /// When the first frame has its turn, on this host's monotonic clock.
        begins_at_ns: u64,
    },
    /// To `stats`.
    Stats(FramesStats),
    /// To `stop`, `renew` and `close`.
    Done {},
}

impl FramesReply {
    /// The line, without its end.
    pub fn line(&self, id: i64) -> String {
        reply_line(id, self)
    }
}

/// To `hello`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FramesHello {
    /// The binary's name.
    pub engine: String,
    /// The binary's version.
    pub version: String,
    /// See [`crate::PROTOCOL_VERSION`].
    pub protocol: String,
    /// The engines that work here: `sync`, `threads`, `io_uring`.
    pub features: Vec<String>,
    /// Why `io_uring` does not work here; `None` where it does.
    pub io_uring_missing: Option<String>,
    /// The least processor it runs on.
    pub cpu_baseline: String,
    /// Whether it needs nothing of its host but the kernel.
    pub is_static: bool,
}

/// To `configure`: what will be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FramesConfigureReply {
    /// The engine that will be used: `sync`, `threads` or `io_uring`.
    pub engine: FramesEngine,
    /// Why it is not the one that was asked for; `None` where it is.
    pub engine_because: Option<String>,
    /// How many frames there are; with `repeat` they are taken again and again.
    pub frames: u64,
    /// Of all of them together.
    pub total_bytes: u64,
    /// The smallest.
    pub least_frame_bytes: u64,
    /// The largest.
    pub most_frame_bytes: u64,
    /// The size of a request.
    pub request_bytes: u64,
    /// What the buffers take: threads x depth x request.
    pub buffer_bytes: u64,
    /// What the file system has left for this user; `None` where nothing is written.
    pub available_bytes: Option<u64>,
    /// What is done otherwise than asked for.
    pub notes: Vec<String>,
}

/// To `stats`: since the beginning, warm-up included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct FramesStats {
    /// Whether frames are being read or written.
    pub running: bool,
    /// Since the first frame's turn; `None` before it.
    pub elapsed_ns: Option<u64>,
    /// Completed.
    pub frames: u64,
    /// Of completed frames.
    pub bytes: u64,
    /// Completed after they were due; `None` without a limit.
    pub dropped: Option<u64>,
    /// How long the oldest frame in flight has been in work; `None` where there is none.
    pub oldest_ns: Option<u64>,
}

/// An event.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum FramesEvent {
    /// The first line of all.
    Ready {
        /// See [`crate::PROTOCOL_VERSION`].
        protocol: String,
    },
    /// A second has passed.
    Interval(FramesInterval),
    /// The work is over.
    Ended {
        /// What came of it.
        result: Box<FramesResult>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_configure_leaves_out_has_the_documented_default() {
        let request = parse_frames(r#"{"id":1,"command":"configure","directory":"/d","colour":"green"}"#).unwrap();
        let FramesCommand::Configure(configure) = request.command else { panic!("{request:?}") };
        assert_eq!(*configure, FramesConfigure { directory: "/d".into(), ..Default::default() });
    }

    #[test]
    fn words_are_those_of_the_protocol() {
        let text = r#"{"id":1,"command":"configure","task":"prepare","order":"random","engine":"io_uring",
            "sync":"end","verify":"full"}"#;
        let FramesCommand::Configure(configure) = parse_frames(text).unwrap().command else { panic!() };
        assert_eq!((configure.task, configure.order), (FramesTask::Prepare, FrameOrder::Random));
        assert_eq!((configure.engine, configure.sync), (FramesEngine::IoUring, SyncPolicy::End));
        assert_eq!(configure.verify, Verify::Full);
    }

    #[test]
    fn commands_of_the_other_binaries_are_unknown_to_this_one() {
        let refusal = parse_frames(r#"{"id":2,"command":"drain","duration_s":1}"#).unwrap_err();
        assert_eq!((refusal.id, refusal.error.kind), (Some(2), ErrorKind::UnknownCommand));
    }
}
