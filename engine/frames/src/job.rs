//! What is to be done, checked and decided: nothing of it can turn out impossible for reasons that could be known
//! before.

use std::fs::File;
use std::path::{Path, PathBuf};

use nicbench_protocol::{
    ErrorKind, ErrorReport, FramesConfigure, FramesConfigureReply, FramesEngine, FramesTask, SyncPolicy, Verify,
};

use crate::content::Content;
use crate::frames::Frames;
use crate::limits;
use crate::manifest::{self, Files, Manifest, NAME, Picture};
use crate::names::{Pattern, is_plain};
use crate::order::Order;
use crate::profile;
use crate::requests::Uring;
use crate::schedule::Schedule;
use crate::sys::buffer::ALIGNMENT;
use crate::sys::file::{lock, room};

/// Frames that a shuffled order can hold.
const MOST_FRAMES: u64 = u32::MAX as u64;
const DEFAULT_PATTERN: &str = "frame_%06d.dpx";
const DEFAULT_STREAM: &str = "frames.stream";

/// A job that was checked: what is done, with which files, how.
#[derive(Debug)]
pub struct Job {
    pub task: FramesTask,
    pub directory: PathBuf,
    /// Open, and locked, for as long as the job is.
    pub opened_directory: File,
    pub frames: Frames,
    pub order: Order,
    pub schedule: Schedule,
    /// The content that is written or compared; `None` where nothing is.
    pub content: Option<Content>,
    pub verify: Verify,
    pub engine: FramesEngine,
    pub threads: u32,
    pub depth: u32,
    pub request_bytes: u64,
    pub direct: bool,
    pub sync: SyncPolicy,
    pub repeat: bool,
    pub samples: Option<String>,
    pub csv: Option<String>,
    pub cpus: Vec<u32>,
}

impl Job {
    /// Decides all of it, and, for a task that writes, removes what was written before and writes the manifest.
    pub fn new(asked: FramesConfigure) -> Result<(Self, FramesConfigureReply), ErrorReport> {
        limits::check(&asked)?;
        let directory = PathBuf::from(&asked.directory);
        let writes = asked.task != FramesTask::Read;
        let opened_directory = open(&directory, writes)?;
        // Preparing has no schedule: the sooner it is done, the better.
        let limit = asked.frames_per_s.filter(|_| asked.task != FramesTask::Prepare);
        let schedule = Schedule::new(limit, asked.read_ahead_frames, asked.warm_up_s, asked.duration_s);
        let mut notes = Vec::new();
        let (frames, content, manifest) = if writes {
            let manifest = plan_manifest(&asked, &schedule, &mut notes)?;
            let frames = Frames::from_manifest(&directory, &manifest, None).map_err(|message| bad_request(&message))?;
            (frames, Some(Content::new(asked.content, asked.seed)), Some(manifest))
        } else {
            let (frames, content) = to_read(&asked, &directory)?;
            (frames, content, None)
        };
        let Some((least, most, total)) = frames.sizes().filter(|_| frames.count() <= MOST_FRAMES) else {
            let message = format!("{} holds no frames that fit what is asked for", directory.display());
            return Err(ErrorReport::new(
                ErrorKind::Io,
                message,
                "prepare frames there, or name others by `pattern` and `first`",
            ));
        };
        let wants_content = writes || asked.verify != Verify::None;
        let content = content.filter(|_| wants_content);
        let verify = if writes || content.is_none() { Verify::None } else { asked.verify };
        if content.is_none() && wants_content {
            notes.push("nothing is compared: these frames are not of nicbench".into());
        }
        let (engine, engine_because) = choose(asked.engine, asked.depth)?;
        let depth = if engine == FramesEngine::Sync { 1 } else { asked.depth };
        let request_bytes = limits::request_bytes(asked.request_bytes, most);
        let buffer_bytes = limits::buffer_bytes(asked.threads, depth, request_bytes)?;
        // Here something is changed for the first time.
        let available_bytes = manifest.map(|manifest| make_room(&asked, &directory, &frames, &manifest)).transpose()?;
        let reply = FramesConfigureReply {
            engine,
            engine_because,
            frames: frames.count(),
            total_bytes: total,
            least_frame_bytes: least,
            most_frame_bytes: most,
            request_bytes,
            buffer_bytes,
            available_bytes,
            notes,
        };
        let job = Self {
            order: Order::new(asked.order, frames.count(), asked.seed),
            task: asked.task,
            directory,
            opened_directory,
            frames,
            schedule,
            content,
            verify,
            engine,
            threads: asked.threads,
            depth,
            request_bytes,
            direct: asked.direct,
            sync: if writes { asked.sync } else { SyncPolicy::None },
            repeat: asked.repeat,
            samples: asked.samples,
            csv: asked.csv,
            cpus: asked.cpus,
        };
        Ok((job, reply))
    }
}

fn error(kind: ErrorKind, message: String, next: impl Into<String>) -> ErrorReport {
    ErrorReport::new(kind, message, next)
}

fn open(directory: &Path, writes: bool) -> Result<File, ErrorReport> {
    let shown = directory.display();
    let opened = File::open(directory).and_then(|file| match file.metadata()?.is_dir() {
        true => Ok(file),
        false => Err(std::io::Error::from_raw_os_error(libc::ENOTDIR)),
    });
    let opened = opened.map_err(|cause| {
        let next = format!("make it (mkdir -p {shown}), or mount what it should be on");
        error(ErrorKind::Io, format!("{shown} cannot be used: {cause}"), next)
    })?;
    if lock(&opened, writes) {
        return Ok(opened);
    }
    let next = "wait for it, or give each instance a directory of its own";
    Err(error(ErrorKind::BadState, format!("another nicbench-frames is at work in {shown}"), next))
}

/// Removes what was written before, sees that there is room, and writes the manifest; the room that there was, in
/// bytes.
fn make_room(
    asked: &FramesConfigure,
    directory: &Path,
    frames: &Frames,
    manifest: &Manifest,
) -> Result<u64, ErrorReport> {
    let count = manifest.frames;
    let shown = directory.display();
    let cleaned = manifest::clean(directory).map_err(|message| {
        error(ErrorKind::Io, format!("what was written before cannot be removed: {message}"), "remove it by hand")
    })?;
    let in_the_way = match cleaned.kept.into_iter().next() {
        Some(kept) => Some(kept),
        None => frames.find_existing_file().map_err(|cause| {
            error(ErrorKind::Io, format!("{shown} cannot be listed: {cause}"), "give this user the right to read it")
        })?,
    };
    if let Some(path) = in_the_way {
        let message = format!("{} is there, and nicbench did not write it", path.display());
        return Err(error(ErrorKind::Io, message, "choose an empty directory, another `pattern` or another `first`"));
    }
    let room = room(directory).map_err(|cause| {
        error(ErrorKind::Io, format!("the room left in {shown} is not known: {cause}"), "look at the mount")
    })?;
    let wanted = frames.sizes().map_or(0, |(_, _, total)| total);
    let files = if asked.streamed { 1 } else { count };
    if !asked.ignore_space && (wanted > room.bytes || room.files.is_some_and(|left| files >= left)) {
        let left = room.files.map_or(String::new(), |files| format!(" and {files} files"));
        let message =
            format!("{count} frames need {wanted} bytes in {shown}, which has room for {} bytes{left}", room.bytes);
        return Err(error(ErrorKind::Space, message, "ask for fewer or smaller frames, or make room there"));
    }
    manifest.save(directory).map_err(|cause| {
        let next = "give this user the right to write there, or make room";
        error(ErrorKind::Io, format!("cannot write {}: {cause}", directory.join(NAME).display()), next)
    })?;
    Ok(room.bytes)
}

/// Plans what a task that writes will write.
fn plan_manifest(
    asked: &FramesConfigure,
    schedule: &Schedule,
    notes: &mut Vec<String>,
) -> Result<Manifest, ErrorReport> {
    let Some(count) = asked.frames.or_else(|| schedule.frames()) else {
        let next = "give `frames`, or `frames_per_s` with `duration_s`";
        return Err(error(ErrorKind::BadRequest, "it is not said how many frames are to be written".into(), next));
    };
    let profile = find_profile(asked)?;
    let picture = match asked.frame_bytes {
        Some(bytes) => Picture::Bytes(bytes),
        None if profile.is_compressed => Picture::CompressedFromBytes(profile.picture_bytes),
        None => Picture::Bytes(profile.picture_bytes),
    };
    // A size that was given is the whole frame unless a header was given too.
    let header_bytes = asked.header_bytes.unwrap_or(if asked.frame_bytes.is_some() { 0 } else { profile.header_bytes });
    let files = if asked.streamed { Files::Streamed(stream_name(asked)?) } else { Files::Pattern(pattern_text(asked)) };
    let mut manifest = Manifest::new(asked.seed, files, asked.first, count, header_bytes, picture);
    manifest.content = asked.content;
    manifest.check().map_err(|what| bad_request(&what))?;
    let as_asked_bytes = manifest.frame_bytes(asked.first);
    manifest.rounded_to_bytes = if asked.direct { ALIGNMENT as u64 } else { 1 };
    if manifest.frame_bytes(asked.first) != as_asked_bytes {
        notes.push(format!("frames are filled up to multiples of {ALIGNMENT} bytes, as direct I/O wants it"));
    }
    if manifest.frame_bytes(asked.first) == 0 || count == 0 {
        return Err(bad_request("there is nothing to write: no frames, or frames of no bytes"));
    }
    Ok(manifest)
}

fn find_profile(asked: &FramesConfigure) -> Result<profile::Profile, ErrorReport> {
    profile::find(&asked.profile).ok_or_else(|| {
        let next = format!("use one of {}, or give frame_bytes", profile::names());
        error(ErrorKind::BadRequest, format!("there is no profile {:?}", asked.profile), next)
    })
}

fn pattern_text(asked: &FramesConfigure) -> String {
    asked.pattern.clone().unwrap_or_else(|| DEFAULT_PATTERN.into())
}

fn stream_name(asked: &FramesConfigure) -> Result<String, ErrorReport> {
    let name = asked.pattern.clone().unwrap_or_else(|| DEFAULT_STREAM.into());
    if name == NAME {
        return Err(error(
            ErrorKind::BadRequest,
            format!("{NAME} is the list of what was written"),
            "give the stream another name",
        ));
    }
    if is_plain(&name) { Ok(name) } else { Err(bad_request(&format!("{name:?} is not a plain file name"))) }
}

/// The frames of a task that reads, and their content where it is known.
fn to_read(asked: &FramesConfigure, directory: &Path) -> Result<(Frames, Option<Content>), ErrorReport> {
    let unreadable =
        |message: String| error(ErrorKind::Io, message, "look at the directory, or prepare the frames again");
    if asked.existing {
        let frames = if asked.streamed {
            let profile = find_profile(asked)?;
            let bytes =
                asked.frame_bytes.unwrap_or(profile.picture_bytes + asked.header_bytes.unwrap_or(profile.header_bytes));
            Frames::from_stream(directory.join(stream_name(asked)?), bytes, asked.frames).map_err(unreadable)?
        } else {
            let pattern =
                asked.pattern.as_deref().map(Pattern::parse).transpose().map_err(|text| bad_request(&text))?;
            Frames::from_directory(directory, pattern.as_ref(), asked.first, asked.frames).map_err(unreadable)?
        };
        return Ok((frames, None));
    }
    let Some(manifest) = Manifest::load(directory).map_err(unreadable)? else {
        let message = format!("{} holds no {NAME}: no frames were prepared there", directory.display());
        return Err(error(
            ErrorKind::Io,
            message,
            "ask for `prepare` first, or for `existing` to read files of somebody else",
        ));
    };
    if let Some(wanted) = asked.frames.filter(|wanted| *wanted > manifest.frames && !asked.repeat) {
        let message = format!("{} holds {} frames, not {wanted}", directory.display(), manifest.frames);
        return Err(error(ErrorKind::Io, message, "prepare more of them, or ask for `repeat`"));
    }
    if asked.direct && matches!(manifest.files, Files::Streamed(_)) && manifest.rounded_to_bytes % ALIGNMENT as u64 != 0
    {
        let message = "frames of this stream do not begin where direct I/O can";
        return Err(error(ErrorKind::BadRequest, message.into(), "prepare it with `direct`, too"));
    }
    let frames = Frames::from_manifest(directory, &manifest, asked.frames).map_err(unreadable)?;
    Ok((frames, Some(Content::new(manifest.content, manifest.seed))))
}

/// The engine that works here, and why it is not the one that was asked for.
fn choose(asked: FramesEngine, depth: u32) -> Result<(FramesEngine, Option<String>), ErrorReport> {
    match asked {
        FramesEngine::Auto if depth == 1 => Ok((FramesEngine::Sync, None)),
        FramesEngine::Auto => Ok(match Uring::new(depth) {
            Ok(_) => (FramesEngine::IoUring, None),
            Err(cause) => (FramesEngine::Threads, Some(format!("this kernel gives no io_uring: {cause}"))),
        }),
        FramesEngine::IoUring => match Uring::new(depth) {
            Ok(_) => Ok((FramesEngine::IoUring, None)),
            Err(cause) => {
                let next =
                    "ask for the engine `auto` or `threads`, or allow it (sysctl kernel.io_uring_disabled; seccomp)";
                Err(error(ErrorKind::Io, format!("this kernel gives no io_uring: {cause}"), next))
            }
        },
        FramesEngine::Sync | FramesEngine::Threads => Ok((asked, None)),
    }
}

fn bad_request(message: &str) -> ErrorReport {
    error(ErrorKind::BadRequest, message.into(), "compare the request with protocol/frames.md")
}
