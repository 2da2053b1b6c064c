//! A worker: takes the next frame when its turn has come, and keeps as many requests in flight as it may.
//!
//! A frame is opened, its bytes are moved, it is synced where that is asked for, and closed; each step is a request. While the last
//! bytes of a frame are on their way the next one is begun, so that the queue does not run empty between frames.

use std::fs::File;
use std::io;
use std::sync::Arc;

use nicbench_protocol::{FramesEngine, FramesFailure, FramesTask, SyncPolicy};

use crate::control::Control;
use crate::failure::{Doing, Place};
use crate::flight::{Flight, Step};
use crate::job::Job;
use crate::requests::{Answer, Done, Mode, OneByOne, Request, Requests, Threads, Transfer, Uring};
use crate::sys::buffer::{ALIGNMENT, Buffer};
use crate::sys::clock::monotonic_ns;

/// See the module.
pub struct Worker<'a> {
    number: usize,
    job: &'a Job,
    control: &'a Control,
    requests: Box<dyn Requests>,
    free: Vec<Buffer>,
    /// The oldest first.
    flights: Vec<Flight>,
    /// Taken, and its turn has not come.
    taken: Option<u64>,
    /// Of all frames, where one file holds them.
    stream: Option<Arc<File>>,
    next_token: u64,
}

/// Whether a frame may be begun.
enum Next {
    Begun,
    /// At this time, or when something is done.
    NotBefore(u64),
    /// When something is done.
    NotNow,
    Never,
}

type Failing<T> = Result<T, FramesFailure>;

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
        let flights = Vec::with_capacity(depth);
        Ok(Self { number, job, control, requests, free, flights, taken: None, stream: None, next_token: 0 })
    }

    /// Opens the file that holds all frames, where one does.
    pub fn open_stream(&mut self) -> Failing<()> {
        let Some(path) = self.job.frames.stream() else { return Ok(()) };
        let place = Place { frame: self.job.frames.spot(0).number, path, direct: self.job.direct };
        let request = Request::Open { path: path.to_owned(), mode: Mode { new: false, ..self.mode(0) } };
        let done = self.requests.ask(0, request).and_then(|()| self.requests.next(None));
        let opened = done.and_then(|done| match done {
            Some(Done { answer: Answer::Opened(file), .. }) => file,
            other => Err(io::Error::other(format!("an unexpected answer: {other:?}"))),
        });
        self.stream = Some(Arc::new(opened.map_err(|error| place.refused(Doing::Opening, &error))?));
        Ok(())
    }

    /// Until there is no further frame, or one fails.
    pub fn work(mut self) {
        if let Err(failure) = self.work_or_fail() {
            self.control.fail(failure);
        }
        // Frames that were begun: their requests end with the queue, which is dropped first.
        drop(self.requests);
        self.control.set_oldest(self.number, None);
    }

    fn work_or_fail(&mut self) -> Failing<()> {
        loop {
            let wait = self.ask_what_may_be_asked()?;
            let until = match wait {
                Next::NotBefore(turn) if self.flights.is_empty() => {
                    self.control.sleep_until(turn);
                    continue;
                }
                Next::NotBefore(turn) => Some(turn),
                Next::Never if self.flights.is_empty() => return Ok(()),
                Next::Never | Next::NotNow | Next::Begun => None,
            };
            match self.requests.next(until) {
                Ok(Some(done)) => self.hear(done)?,
                Ok(None) => {}
                Err(error) => return Err(self.broken(&error)),
            }
        }
    }

    /// Makes requests until there is no buffer, or nothing to do.
    fn ask_what_may_be_asked(&mut self) -> Failing<Next> {
        loop {
            if let Some(index) = self.flights.iter().position(|flight| flight.unasked() > 0) {
                let Some(buffer) = self.free.pop() else { return Ok(Next::NotNow) };
                self.move_some(index, buffer)?;
                continue;
            }
            let is_opening = self.flights.iter().any(|flight| flight.step == Step::Opening);
            if is_opening || self.flights.len() >= self.job.depth as usize {
                return Ok(Next::NotNow);
            }
            match self.begin_next()? {
                Next::Begun => {}
                wait => return Ok(wait),
            }
        }
    }

    fn begin_next(&mut self) -> Failing<Next> {
        if self.control.is_stopped() {
            return Ok(Next::Never);
        }
        let position = match self.taken.take() {
            Some(position) => position,
            None => self.control.take_position(),
        };
        let count = self.job.frames.count();
        if position >= count && !self.job.repeat {
            return Ok(Next::Never);
        }
        let (now, began) = (monotonic_ns(), self.control.began_at_ns());
        let turn = self.job.schedule.turn_ns(position).map_or(now.max(began), |turn| began + turn);
        // Its turn, or where it is late the time that it would begin: what has not begun by the end never does.
        if self.job.schedule.is_over(turn.max(now).saturating_sub(began)) {
            return Ok(Next::Never);
        }
        if turn > now {
            self.taken = Some(position);
            return Ok(Next::NotBefore(turn));
        }
        let spot = self.job.frames.spot(self.job.order.frame(position % count));
        self.next_token += 1;
        let mut flight = Flight::new(self.next_token, position, spot, turn, now);
        match &self.stream {
            Some(file) => flight.opened(Arc::clone(file), None),
            None => {
                let request = Request::Open { path: flight.spot.path.clone(), mode: self.mode(position) };
                self.requests.ask(flight.token, request).map_err(|error| self.broken(&error))?;
            }
        }
        self.flights.push(flight);
        self.control.set_oldest(self.number, self.flights.first().map(|flight| flight.begun_ns));
        Ok(Next::Begun)
    }

    /// Frames that are written for the first time must not be there: they would be somebody else's.
    fn mode(&self, position: u64) -> Mode {
        let write = self.job.task != FramesTask::Read;
        Mode { write, new: write && position < self.job.frames.count(), direct: self.job.direct }
    }

    /// The next request of a frame.
    fn move_some(&mut self, index: usize, mut buffer: Buffer) -> Failing<()> {
        let flight = &mut self.flights[index];
        let Some(file) = flight.file.clone() else { return Ok(()) };
        let at = flight.next_offset;
        let wanted = flight.unasked().min(self.job.request_bytes);
        flight.next_offset += wanted;
        flight.requests += 1;
        let offset = flight.spot.offset + at;
        let request = if self.job.task == FramesTask::Read {
            // Direct I/O asks for whole blocks, and gets less at the end of the file.
            let length = if self.job.direct { wanted.next_multiple_of(ALIGNMENT as u64) } else { wanted } as usize;
            Request::Read(Transfer { file, buffer, from: 0, length, offset })
        } else {
            let length = wanted as usize;
            if let Some(content) = &self.job.content {
                let begun_ns = monotonic_ns();
                let mut holds = buffer.holds;
                content.fill_again(flight.spot.number, at, &mut buffer.as_mut_slice()[..length], &mut holds);
                buffer.holds = holds;
                self.control.add_content_ns(monotonic_ns() - begun_ns);
            }
            Request::Write(Transfer { file, buffer, from: 0, length, offset })
        };
        let token = flight.token;
        self.requests.ask(token, request).map_err(|error| self.broken(&error))
    }

    /// A step is done.
    fn hear(&mut self, done: Done) -> Failing<()> {
        let Some(index) = self.flights.iter().position(|flight| flight.token == done.token) else { return Ok(()) };
        match done.answer {
            Answer::Opened(opened) => {
                let file = self.accepted(index, Doing::Opening, opened)?;
                self.flights[index].opened(Arc::new(file), Some(done.at_ns));
            }
            Answer::Moved(moved, transfer) => self.hear_moved(index, moved, transfer)?,
            Answer::Synced(synced) => {
                self.accepted(index, Doing::Syncing, synced)?;
                self.flights[index].synced(done.at_ns);
                return self.close(index);
            }
            Answer::Closed(closed) => {
                self.accepted(index, Doing::Closing, closed)?;
                self.complete(index, done.at_ns, true);
                return Ok(());
            }
        }
        if self.flights[index].is_moved() {
            return self.end_moving(index);
        }
        Ok(())
    }

    fn hear_moved(&mut self, index: usize, moved: io::Result<usize>, mut transfer: Transfer) -> Failing<()> {
        let is_read = self.job.task == FramesTask::Read;
        let doing = if is_read { Doing::Reading } else { Doing::Writing };
        let moved = match moved {
            // The kernel's queue passes these on.
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => 0,
            other => match self.accepted(index, doing, other)? {
                0 => return Err(self.ended_early(index, &transfer)),
                moved => moved,
            },
        };
        let flight = &self.flights[index];
        // Of this piece of the frame: where it begins, how long it is, and how much of it is there now.
        let begin = transfer.offset - flight.spot.offset - transfer.from as u64;
        let wanted = (flight.spot.bytes - begin).min(self.job.request_bytes) as usize;
        let has = transfer.from + moved;
        if has < wanted {
            if self.job.direct && has % ALIGNMENT != 0 {
                return Err(self.ended_early(index, &transfer));
            }
            transfer.from = has;
            transfer.offset += moved as u64;
            transfer.length -= moved;
            let (token, transfer) =
                (flight.token, if is_read { Request::Read(transfer) } else { Request::Write(transfer) });
            return self.requests.ask(token, transfer).map_err(|error| self.broken(&error));
        }
        if let (true, Some(content)) = (is_read, &self.job.content) {
            let begun_ns = monotonic_ns();
            let checked =
                content.check(self.job.verify, flight.spot.number, begin, &transfer.buffer.as_slice()[..wanted]);
            self.control.add_content_ns(monotonic_ns() - begun_ns);
            checked.map_err(|mismatch| self.place(index).wrong(mismatch))?;
        }
        self.free.push(transfer.buffer);
        self.flights[index].requests -= 1;
        Ok(())
    }

    /// All bytes of the frame are there.
    fn end_moving(&mut self, index: usize) -> Failing<()> {
        let flight = &mut self.flights[index];
        flight.moved(monotonic_ns());
        if self.job.sync != SyncPolicy::Frame {
            return self.close(index);
        }
        flight.step = Step::Syncing;
        let Some(file) = flight.file.clone() else { return Ok(()) };
        let token = flight.token;
        self.requests.ask(token, Request::Sync { file }).map_err(|error| self.broken(&error))
    }

    fn close(&mut self, index: usize) -> Failing<()> {
        let flight = &mut self.flights[index];
        flight.step = Step::Closing;
        // The file of all frames stays open.
        match flight.file.take().and_then(Arc::into_inner) {
            Some(file) => {
                let token = flight.token;
                self.requests.ask(token, Request::Close { file }).map_err(|error| self.broken(&error))
            }
            None => {
                self.complete(index, monotonic_ns(), false);
                Ok(())
            }
        }
    }

    fn complete(&mut self, index: usize, now_ns: u64, is_closed: bool) {
        let flight = self.flights.remove(index);
        let thread = u16::try_from(self.number).unwrap_or(u16::MAX);
        let sample = flight.sample(self.control.began_at_ns(), now_ns, is_closed, thread, &self.job.schedule);
        self.control.recorder().record(&sample);
        self.control.set_oldest(self.number, self.flights.first().map(|flight| flight.begun_ns));
    }

    fn place(&self, index: usize) -> Place<'_> {
        let spot = &self.flights[index].spot;
        Place { frame: spot.number, path: &spot.path, direct: self.job.direct }
    }

    fn accepted<T>(&self, index: usize, doing: Doing, answer: io::Result<T>) -> Failing<T> {
        answer.map_err(|error| self.place(index).refused(doing, &error))
    }

    /// A read that gives nothing, or a write that takes nothing.
    fn ended_early(&self, index: usize, transfer: &Transfer) -> FramesFailure {
        if self.job.task != FramesTask::Read {
            return self.place(index).refused(Doing::Writing, &io::Error::from(io::ErrorKind::WriteZero));
        }
        let spot = &self.flights[index].spot;
        // Another request may have met the end before this one.
        let end = transfer.file.metadata().map_or(transfer.offset, |details| details.len());
        self.place(index).too_short(end.saturating_sub(spot.offset), spot.bytes)
    }

    /// The queue itself failed.
    fn broken(&self, error: &io::Error) -> FramesFailure {
        let spot = self.flights.first().map_or_else(|| self.job.frames.spot(0), |flight| flight.spot.clone());
        let place = Place { frame: spot.number, path: &spot.path, direct: self.job.direct };
        let doing = if self.job.task == FramesTask::Read { Doing::Reading } else { Doing::Writing };
        place.refused(doing, error)
    }
}

#[cfg(test)]
mod tests;
