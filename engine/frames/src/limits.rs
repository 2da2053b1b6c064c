//! Refuses impossible requests before anything is touched.

use nicbench_protocol::{ErrorKind, ErrorReport, FramesConfigure, FramesTask};

use crate::sys::buffer::ALIGNMENT;

/// The greatest size or count: beyond it a number is a mistake.
const MOST_BYTES: u64 = 1 << 40;
const MOST_THREADS: u32 = 1024;
const MOST_DEPTH: u32 = 4096;
const LONGEST_S: f64 = 31_536_000.0;
/// The kernel moves less than 2 GiB in one request.
const MOST_REQUEST_BYTES: u64 = 1 << 30;

/// Checks the fields that can be judged by themselves.
pub fn check(asked: &FramesConfigure) -> Result<(), ErrorReport> {
    let bad = |message: String, next: &str| Err(ErrorReport::new(ErrorKind::BadRequest, message, next));
    if asked.directory.is_empty() {
        return bad("no directory is given".into(), "give the `directory` of the frames");
    }
    for (name, value, most) in [("threads", asked.threads, MOST_THREADS), ("depth", asked.depth, MOST_DEPTH)] {
        if !(1..=most).contains(&value) {
            return bad(format!("{name} is {value}"), &format!("ask for 1 to {most}"));
        }
    }
    let sizes = [asked.frame_bytes, asked.header_bytes, Some(asked.request_bytes)];
    if let Some(size) = sizes.into_iter().flatten().find(|size| *size > MOST_BYTES) {
        return bad(format!("a size is {size} bytes"), &format!("ask for {MOST_BYTES} bytes at most"));
    }
    for (name, seconds) in [("warm_up_s", Some(asked.warm_up_s)), ("duration_s", asked.duration_s)] {
        if seconds.is_some_and(|seconds| !(0.0..=LONGEST_S).contains(&seconds)) {
            return bad(format!("{name} is out of range"), "ask for 0 seconds to a year");
        }
    }
    if asked.frames_per_s.is_some_and(|rate| !(0.001..=1e6).contains(&rate)) {
        return bad("frames_per_s is out of range".into(), "ask for 0.001 to 1000000, or leave it out for no limit");
    }
    if asked.frames_per_s.is_some() && asked.read_ahead_frames == 0 {
        let message = "with no read-ahead a frame is due when it is asked for, and every one is late";
        return bad(message.into(), "ask for read_ahead_frames of 1 or more");
    }
    if asked.repeat && asked.duration_s.is_none() {
        return bad("with `repeat` there is no last frame".into(), "give `duration_s`");
    }
    if asked.existing && asked.task != FramesTask::Read {
        return bad("frames of somebody else are only ever read".into(), "leave `existing` out, or ask for `read`");
    }
    Ok(())
}

/// The size of one request: what was asked for (0: a whole frame), in whole blocks, and no more than a frame.
pub fn request_bytes(asked: u64, largest_frame: u64) -> u64 {
    let block = ALIGNMENT as u64;
    let whole = largest_frame.next_multiple_of(block).clamp(block, MOST_REQUEST_BYTES);
    if asked == 0 { whole } else { asked.next_multiple_of(block).min(whole) }
}

/// Memory for all requests; an error where the machine does not have that much.
pub fn buffer_bytes(threads: u32, depth: u32, request_bytes: u64) -> Result<u64, ErrorReport> {
    let bytes = u64::from(threads) * u64::from(depth) * request_bytes;
    let available = available_bytes().unwrap_or(u64::MAX);
    if bytes <= available / 4 * 3 {
        return Ok(bytes);
    }
    let message = format!(
        "{threads} threads with {depth} requests of {request_bytes} bytes each need {bytes} bytes of memory, and {available} \
         are available"
    );
    Err(ErrorReport::new(ErrorKind::Space, message, "ask for less depth, smaller requests or fewer threads"))
}

/// The memory available, as the kernel estimates it (proc(5), MemAvailable).
fn available_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemAvailable:"))?;
    line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> FramesConfigure {
        FramesConfigure { directory: "/d".into(), ..Default::default() }
    }

    #[test]
    fn a_request_is_whole_blocks_and_no_more_than_a_frame() {
        assert_eq!(
            (request_bytes(0, 5000), request_bytes(1 << 20, 5000), request_bytes(1, 1 << 30)),
            (8192, 8192, 4096)
        );
        assert_eq!((request_bytes(0, 1 << 40), request_bytes(1 << 20, 50_987_008)), (MOST_REQUEST_BYTES, 1 << 20));
        assert_eq!(request_bytes(0, 0), 4096);
    }

    #[test]
    fn more_memory_than_there_is_is_refused() {
        assert_eq!(buffer_bytes(1, 4, 1 << 20), Ok(4 << 20));
        assert_eq!(buffer_bytes(1024, 4096, 1 << 30).unwrap_err().kind, ErrorKind::Space);
    }

    #[test]
    fn what_contradicts_itself_is_refused_with_a_next_step() {
        assert_eq!(check(&asked()), Ok(()));
        let refused = [
            FramesConfigure::default(),
            FramesConfigure { threads: 0, ..asked() },
            FramesConfigure { depth: 1 << 20, ..asked() },
            FramesConfigure { frame_bytes: Some(u64::MAX), ..asked() },
            FramesConfigure { warm_up_s: f64::NAN, ..asked() },
            FramesConfigure { duration_s: Some(-1.0), ..asked() },
            FramesConfigure { frames_per_s: Some(0.0), ..asked() },
            FramesConfigure { frames_per_s: Some(24.0), read_ahead_frames: 0, ..asked() },
            FramesConfigure { repeat: true, ..asked() },
            FramesConfigure { existing: true, task: FramesTask::Write, ..asked() },
        ];
        for each in refused {
            let refusal = check(&each).unwrap_err();
            assert_eq!(refusal.kind, ErrorKind::BadRequest);
            assert!(!refusal.next.is_empty());
        }
    }
}
