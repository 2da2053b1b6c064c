//! The worker over requests that come back in any order and in pieces, as the kernel is free to give them.

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;

use nicbench_protocol::{FailureKind, FramesConfigure, Verify};

use super::*;
use crate::content::mix;

/// Does any of the requests asked for, and of a transfer a part, or nothing for now; all by its seed.
struct Unruly {
    inner: OneByOne,
    waiting: VecDeque<(u64, Request)>,
    state: u64,
}

impl Unruly {
    fn draw(&mut self, below: usize) -> usize {
        self.state = mix(self.state);
        (self.state % below as u64) as usize
    }

    /// A part of it; or no part, with the error that means "again".
    fn cut(&mut self, mut transfer: Transfer) -> Result<Transfer, Answer> {
        match self.draw(4) {
            0 => Err(Answer::Moved(Err(io::Error::from_raw_os_error(libc::EAGAIN)), transfer)),
            1 => Ok(transfer),
            _ => {
                transfer.length = 1 + self.draw(transfer.length);
                Ok(transfer)
            }
        }
    }
}

impl Requests for Unruly {
    fn submit(&mut self, token: u64, request: Request) -> io::Result<()> {
        self.waiting.push_back((token, request));
        Ok(())
    }

    fn next(&mut self, _until_ns: Option<u64>) -> io::Result<Option<Completion>> {
        if self.waiting.is_empty() {
            return Ok(None);
        }
        let index = self.draw(self.waiting.len());
        let Some((token, request)) = self.waiting.remove(index) else { return Ok(None) };
        let (request, whole) = match request {
            Request::Read(transfer) => {
                let whole = transfer.length;
                match self.cut(transfer) {
                    Ok(transfer) => (Request::Read(transfer), whole),
                    Err(answer) => return Ok(Some(Completion { token, at_ns: monotonic_ns(), answer })),
                }
            }
            Request::Write(transfer) => {
                let whole = transfer.length;
                match self.cut(transfer) {
                    Ok(transfer) => (Request::Write(transfer), whole),
                    Err(answer) => return Ok(Some(Completion { token, at_ns: monotonic_ns(), answer })),
                }
            }
            other => (other, 0),
        };
        self.inner.submit(token, request)?;
        let mut done = self.inner.next(None)?;
        // As it was asked for, also where less was done.
        if let Some(Completion { answer: Answer::Moved(_, transfer), .. }) = &mut done {
            transfer.length = whole;
        }
        Ok(done)
    }
}

fn worked(asked: FramesConfigure, seed: u64) -> (u64, Option<FramesFailure>) {
    let (job, _) = Job::new(asked).unwrap();
    let control = Control::new(&job);
    let requests = Box::new(Unruly { inner: OneByOne::default(), waiting: VecDeque::new(), state: seed });
    let mut worker = Worker { requests, ..Worker::new(0, &job, &control).unwrap() };
    worker.open_stream().unwrap();
    control.begin(monotonic_ns());
    worker.run();
    let frames = control.recorder().stats().frames;
    (frames, control.failure())
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn folder(name: &str) -> Folder {
    let path = std::env::temp_dir().join(format!("nicbench-worker-{name}-{}", std::process::id()));
    fs::create_dir_all(&path).unwrap();
    Folder(path)
}

fn asked(folder: &Folder, task: FramesTask) -> FramesConfigure {
    FramesConfigure {
        task,
        directory: folder.0.display().to_string(),
        frame_bytes: Some(30_000),
        frames: Some(6),
        engine: FramesEngine::Threads,
        depth: 3,
        request_bytes: 8192,
        verify: Verify::Full,
        ..FramesConfigure::default()
    }
}

#[test]
fn every_byte_arrives_in_whatever_pieces_and_order_requests_are_done() {
    let folder = folder("pieces");
    for seed in 1..20 {
        for streamed in [false, true] {
            let sync = if seed % 2 == 0 { SyncPolicy::Frame } else { SyncPolicy::None };
            let written = worked(FramesConfigure { streamed, sync, ..asked(&folder, FramesTask::Write) }, seed);
            assert_eq!(written, (6, None), "seed {seed}");
            assert_eq!(worked(asked(&folder, FramesTask::Read), seed + 100), (6, None), "seed {seed}");
        }
    }
}

#[test]
fn a_frame_that_ends_early_is_told_with_its_true_length_whichever_request_meets_the_end() {
    let folder = folder("early");
    for seed in 1..20 {
        worked(asked(&folder, FramesTask::Write), seed);
        let path = folder.0.join("frame_000002.dpx");
        fs::OpenOptions::new().write(true).open(path).unwrap().set_len(10_000).unwrap();
        let (_, failure) = worked(asked(&folder, FramesTask::Read), seed + 100);
        let failure = failure.unwrap();
        assert_eq!((failure.kind, failure.frame), (FailureKind::ShortRead, Some(2)), "seed {seed}");
        assert!(failure.message.contains("10000 of 30000"), "{}", failure.message);
    }
}
