//! A worker: takes the next frame when its turn has come, and keeps as many requests in flight as it may.
//!
//! A frame is opened, its bytes are moved, it is synced where that is asked for, and closed; each step is a request.
//! While the last bytes of a frame are on their way the next one is begun, so that the queue does not run empty between
//! frames.

use std::fs::File;
use std::io;
use std::sync::Arc;

use nicbench_protocol::{FramesEngine, FramesFailure, FramesTask, SyncPolicy};

use crate::control::Control;
use crate::failure::{Doing, Place};
use crate::frame_in_progress::{FrameInProgress, Step};
use crate::job::Job;
use crate::requests::{Answer, Completion, Mode, OneByOne, Request, Requests, Threads, Transfer, Uring};
use crate::sys::buffer::{ALIGNMENT, Buffer};
use crate::sys::clock::monotonic_ns;

/// A worker, and the frames that it has begun.
pub struct Worker<'a> {
    number: usize,
    job: &'a Job,
    control: &'a Control,
    requests: Box<dyn Requests>,
    free: Vec<Buffer>,
    /// The frames that were begun and are not done, the oldest first.
    in_progress: Vec<FrameInProgress>,
    /// The position that was taken and whose turn has not come.
    taken: Option<u64>,
    /// The file that holds all frames, where one does.
    stream: Option<Arc<File>>,
    next_token: u64,
}

/// Whether a frame may be begun.
enum NextFrame {
    Begun,
    /// At this time, or when something is done.
    NotBefore(u64),
    /// When something is done.
    NotNow,
    Never,
}

type WorkResult<T> = Result<T, FramesFailure>;

impl<'a> Worker<'a> {
    /// Takes memory and makes the queue. Nothing is opened yet.
    pub fn new(number: usize, job: &'a Job, control: &'a Control) -> io::Result<Self> {
        let depth = job.depth as usize;
        let requests: Box<dyn Requests> = match job.engine {
            FramesEngine::IoUring => Box::new(Uring::new(job.depth)?),
            FramesEngine::Threads => Box::new(Threads::new(depth)?),
            FramesEngine::Sync | FramesEngine::Auto => Box::new(OneByOne::default()),
        };
        let free = Buffer::several(depth, job.request_bytes as usize)?;
        let in_progress = Vec::with_capacity(depth);
        Ok(Self { number, job, control, requests, free, in_progress, taken: None, stream: None, next_token: 0 })
    }

    /// Opens the file that holds all frames, where one does.
    pub fn open_stream(&mut self) -> WorkResult<()> {
        let Some(path) = self.job.frames.stream() else { return Ok(()) };
        let place = Place { frame: self.job.frames.location(0).number, path, direct: self.job.direct };
        let request = Request::Open { path: path.to_owned(), mode: Mode { new: false, ..self.mode() } };
        let done = self.requests.submit(0, request).and_then(|()| self.requests.next(None));
        let opened = done.and_then(|done| match done {
            Some(Completion { answer: Answer::Opened(file), .. }) => file,
            other => Err(io::Error::other(format!("an unexpected answer: {other:?}"))),
        });
        self.stream = Some(Arc::new(opened.map_err(|error| place.refusal(Doing::Opening, &error))?));
        Ok(())
    }

    /// Works until there is no further frame, or one fails.
    pub fn run(mut self) {
        if let Err(failure) = self.run_until_done() {
            self.control.fail(failure);
        }
        // Frames that were begun: their requests end with the queue, which is dropped first.
        drop(self.requests);
        self.control.set_oldest(self.number, None);
    }

    fn run_until_done(&mut self) -> WorkResult<()> {
        loop {
            let wait = self.submit_requests()?;
            let until = match wait {
                NextFrame::NotBefore(turn) if self.in_progress.is_empty() => {
                    self.control.sleep_until(turn);
                    continue;
                }
                NextFrame::NotBefore(turn) => Some(turn),
                NextFrame::Never if self.in_progress.is_empty() => return Ok(()),
                NextFrame::Never | NextFrame::NotNow | NextFrame::Begun => None,
            };
            match self.requests.next(until) {
                Ok(Some(done)) => self.handle_completion(done)?,
                Ok(None) => {}
                Err(error) => return Err(self.queue_failure(&error)),
            }
        }
    }

    /// Submits requests until there is no buffer left, or nothing to do.
    fn submit_requests(&mut self) -> WorkResult<NextFrame> {
        loop {
            if let Some(index) = self.in_progress.iter().position(|frame| frame.unrequested_bytes() > 0) {
                let Some(buffer) = self.free.pop() else { return Ok(NextFrame::NotNow) };
                self.submit_transfer(index, buffer)?;
                continue;
            }
            let is_opening = self.in_progress.iter().any(|frame| frame.step == Step::Opening);
            if is_opening || self.in_progress.len() >= self.job.depth as usize {
                return Ok(NextFrame::NotNow);
            }
            match self.begin_next()? {
                NextFrame::Begun => {}
                wait => return Ok(wait),
            }
        }
    }

    fn begin_next(&mut self) -> WorkResult<NextFrame> {
        if self.control.is_stopped() {
            return Ok(NextFrame::Never);
        }
        let position = match self.taken.take() {
            Some(position) => position,
            None => self.control.take_position(),
        };
        let count = self.job.frames.count();
        if position >= count && !self.job.repeat {
            return Ok(NextFrame::Never);
        }
        let (now, began) = (monotonic_ns(), self.control.began_at_ns());
        let turn = self.job.schedule.turn_ns(position).map_or(now.max(began), |turn| began + turn);
        // Its turn, or where it is late the time that it would begin: what has not begun by the end never does.
        if self.job.schedule.is_over(turn.max(now).saturating_sub(began)) {
            return Ok(NextFrame::Never);
        }
        if turn > now {
            self.taken = Some(position);
            return Ok(NextFrame::NotBefore(turn));
        }
        let location = self.job.frames.location(self.job.order.frame(position % count));
        self.next_token += 1;
        let mut frame = FrameInProgress::new(self.next_token, position, location, turn, now);
        match &self.stream {
            Some(file) => frame.begin_transfer(Arc::clone(file), None),
            None => {
                let request = Request::Open { path: frame.location.path.clone(), mode: self.mode() };
                self.requests.submit(frame.token, request).map_err(|error| self.queue_failure(&error))?;
            }
        }
        self.in_progress.push(frame);
        self.control.set_oldest(self.number, self.in_progress.first().map(|frame| frame.begun_ns));
        Ok(NextFrame::Begun)
    }

    /// Frames that are written must not be there: they would be somebody else's. In rotation another thread may have
    /// made one meanwhile; that none was there was seen before.
    fn mode(&self) -> Mode {
        let write = self.job.task != FramesTask::Read;
        Mode { write, new: write && !self.job.repeat, direct: self.job.direct }
    }

    /// Submits the next request of a frame.
    fn submit_transfer(&mut self, index: usize, mut buffer: Buffer) -> WorkResult<()> {
        let frame = &mut self.in_progress[index];
        let Some(file) = frame.file.clone() else { return Ok(()) };
        let at = frame.next_offset;
        let wanted = frame.unrequested_bytes().min(self.job.request_bytes);
        frame.next_offset += wanted;
        frame.requests += 1;
        let offset = frame.location.offset + at;
        let request = if self.job.task == FramesTask::Read {
            // Direct I/O asks for whole blocks, and gets less at the end of the file.
            let length = if self.job.direct { wanted.next_multiple_of(ALIGNMENT as u64) } else { wanted } as usize;
            Request::Read(Transfer { file, buffer, from: 0, length, offset })
        } else {
            let length = wanted as usize;
            if let Some(content) = &self.job.content {
                let begun_ns = monotonic_ns();
                let mut holds = buffer.holds;
                content.fill_again(frame.location.number, at, &mut buffer.as_mut_slice()[..length], &mut holds);
                buffer.holds = holds;
                self.control.add_content_ns(monotonic_ns() - begun_ns);
            }
            Request::Write(Transfer { file, buffer, from: 0, length, offset })
        };
        let token = frame.token;
        self.requests.submit(token, request).map_err(|error| self.queue_failure(&error))
    }

    /// Handles a request that is done.
    fn handle_completion(&mut self, done: Completion) -> WorkResult<()> {
        let Some(index) = self.in_progress.iter().position(|frame| frame.token == done.token) else { return Ok(()) };
        match done.answer {
            Answer::Opened(opened) => {
                let file = self.check_answer(index, Doing::Opening, opened)?;
                self.in_progress[index].begin_transfer(Arc::new(file), Some(done.at_ns));
            }
            Answer::Moved(moved, transfer) => self.handle_transfer(index, moved, transfer)?,
            Answer::Synced(synced) => {
                self.check_answer(index, Doing::Syncing, synced)?;
                self.in_progress[index].end_sync(done.at_ns);
                return self.close(index);
            }
            Answer::Closed(closed) => {
                self.check_answer(index, Doing::Closing, closed)?;
                self.complete(index, done.at_ns, true);
                return Ok(());
            }
        }
        if self.in_progress[index].is_transferred() {
            return self.finish_transfer(index);
        }
        Ok(())
    }

    fn handle_transfer(&mut self, index: usize, moved: io::Result<usize>, mut transfer: Transfer) -> WorkResult<()> {
        let is_read = self.job.task == FramesTask::Read;
        let doing = if is_read { Doing::Reading } else { Doing::Writing };
        let moved = match moved {
            // The kernel's queue passes these on.
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => 0,
            other => match self.check_answer(index, doing, other)? {
                0 => return Err(self.explain_truncation(index, &transfer)),
                moved => moved,
            },
        };
        let frame = &self.in_progress[index];
        // Of this piece of the frame: where it begins, how long it is, and how much of it is there now.
        let begin = transfer.offset - frame.location.offset - transfer.from as u64;
        let wanted = (frame.location.bytes - begin).min(self.job.request_bytes) as usize;
        let has = transfer.from + moved;
        if has < wanted {
            if self.job.direct && has % ALIGNMENT != 0 {
                return Err(self.explain_truncation(index, &transfer));
            }
            transfer.from = has;
            transfer.offset += moved as u64;
            transfer.length -= moved;
            let (token, transfer) =
                (frame.token, if is_read { Request::Read(transfer) } else { Request::Write(transfer) });
            return self.requests.submit(token, transfer).map_err(|error| self.queue_failure(&error));
        }
        if let (true, Some(content)) = (is_read, &self.job.content) {
            let begun_ns = monotonic_ns();
            let checked =
                content.check(self.job.verify, frame.location.number, begin, &transfer.buffer.as_slice()[..wanted]);
            self.control.add_content_ns(monotonic_ns() - begun_ns);
            checked.map_err(|mismatch| self.place(index).wrong(mismatch))?;
        }
        self.free.push(transfer.buffer);
        self.in_progress[index].requests -= 1;
        Ok(())
    }

    /// Handles that all bytes of the frame were written or read.
    fn finish_transfer(&mut self, index: usize) -> WorkResult<()> {
        let frame = &mut self.in_progress[index];
        frame.end_transfer(monotonic_ns());
        if self.job.sync != SyncPolicy::Frame {
            return self.close(index);
        }
        frame.step = Step::Syncing;
        let Some(file) = frame.file.clone() else { return Ok(()) };
        let token = frame.token;
        self.requests.submit(token, Request::Sync { file }).map_err(|error| self.queue_failure(&error))
    }

    fn close(&mut self, index: usize) -> WorkResult<()> {
        let frame = &mut self.in_progress[index];
        frame.step = Step::Closing;
        // The file of all frames stays open.
        match frame.file.take().and_then(Arc::into_inner) {
            Some(file) => {
                let token = frame.token;
                self.requests.submit(token, Request::Close { file }).map_err(|error| self.queue_failure(&error))
            }
            None => {
                self.complete(index, monotonic_ns(), false);
                Ok(())
            }
        }
    }

    fn complete(&mut self, index: usize, now_ns: u64, is_closed: bool) {
        let frame = self.in_progress.remove(index);
        let thread = u16::try_from(self.number).unwrap_or(u16::MAX);
        let sample = frame.sample(self.control.began_at_ns(), now_ns, is_closed, thread, &self.job.schedule);
        self.control.recorder().record(&sample);
        self.control.set_oldest(self.number, self.in_progress.first().map(|frame| frame.begun_ns));
    }

    fn place(&self, index: usize) -> Place<'_> {
        let location = &self.in_progress[index].location;
        Place { frame: location.number, path: &location.path, direct: self.job.direct }
    }

    fn check_answer<T>(&self, index: usize, doing: Doing, answer: io::Result<T>) -> WorkResult<T> {
        answer.map_err(|error| self.place(index).refusal(doing, &error))
    }

    /// The failure of a read that gives nothing, or of a write that takes nothing.
    fn explain_truncation(&self, index: usize, transfer: &Transfer) -> FramesFailure {
        if self.job.task != FramesTask::Read {
            return self.place(index).refusal(Doing::Writing, &io::Error::from(io::ErrorKind::WriteZero));
        }
        let location = &self.in_progress[index].location;
        // Another request may have met the end before this one.
        let end = transfer.file.metadata().map_or(transfer.offset, |details| details.len());
        self.place(index).too_short(end.saturating_sub(location.offset), location.bytes)
    }

    /// The failure of the queue itself.
    fn queue_failure(&self, error: &io::Error) -> FramesFailure {
        let location =
            self.in_progress.first().map_or_else(|| self.job.frames.location(0), |frame| frame.location.clone());
        let place = Place { frame: location.number, path: &location.path, direct: self.job.direct };
        let doing = if self.job.task == FramesTask::Read { Doing::Reading } else { Doing::Writing };
        place.refusal(doing, error)
    }
}

#[cfg(test)]
mod tests;
