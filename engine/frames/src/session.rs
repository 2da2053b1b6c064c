//! The conversation: one thread handles requests, one reads stdin, one does the job.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nicbench_protocol::{
    ErrorKind, ErrorReport, FramesCommand, FramesConfigure, FramesConfigureReply, FramesEvent, FramesHello,
    FramesInterval, FramesReply, FramesResult, Lease, PROTOCOL_VERSION, Refusal, major, next_line, parse_frames,
};

use crate::control::Control;
use crate::job::Job;
use crate::output::{Output, OutputClosed};
use crate::requests::Uring;
use crate::run::Ready;
use crate::sys::signal;

/// How often signals and the lease are looked at.
const LOOK_UP: Duration = Duration::from_millis(100);
/// What is in flight may take so long after the end was asked for; a mount that hangs takes for ever.
const GRACE: Duration = Duration::from_secs(5);

enum Message {
    Line(Result<String, Refusal>),
    InputEnded,
    /// To `start`: when it begins.
    Began(Result<u64, ErrorReport>),
    Interval(FramesInterval),
    Ended(Box<FramesResult>),
}

/// Serves until it is told to end; returns the exit status.
pub fn run() -> i32 {
    let (sender, receiver) = channel();
    let lease = Arc::new(Mutex::new(Lease::from_now()));
    watch(Arc::clone(&lease));
    let input = sender.clone();
    thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        while let Some(line) = next_line(&mut stdin) {
            if input.send(Message::Line(line)).is_err() {
                return;
            }
        }
        let _ = input.send(Message::InputEnded);
    });
    let mut session = Session { output: Output::default(), lease, sender, receiver, job: None };
    // Nobody reads any more: there is nobody to tell.
    let status = session.serve().unwrap_or(Lease::EXPIRED);
    session.stop_and_wait();
    status
}

/// Ends the process where the lease is over and nobody notices: the thread that answers waits for a reader that hangs.
fn watch(lease: Arc<Mutex<Lease>>) {
    thread::spawn(move || {
        loop {
            // Taken apart from the sleep, which must not hold the lease.
            let left = lock_lease(&lease).left();
            if left.is_zero() {
                break;
            }
            thread::sleep(left);
        }
        thread::sleep(2 * GRACE);
        std::process::exit(Lease::EXPIRED);
    });
}

fn lock_lease(lease: &Mutex<Lease>) -> MutexGuard<'_, Lease> {
    lease.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A job that was configured, and perhaps started.
struct RunningJob {
    control: Arc<Control>,
    /// Says when to begin; `None` once it was said.
    start: Option<Sender<Option<u64>>>,
    /// The id of the `start` that is to be answered.
    start_request: Option<i64>,
    is_over: bool,
}

struct Session {
    output: Output,
    lease: Arc<Mutex<Lease>>,
    sender: Sender<Message>,
    receiver: Receiver<Message>,
    job: Option<RunningJob>,
}

impl Session {
    fn serve(&mut self) -> Result<i32, OutputClosed> {
        self.output.event(FramesEvent::Ready { protocol: PROTOCOL_VERSION.into() })?;
        loop {
            match self.receiver.recv_timeout(LOOK_UP) {
                Ok(Message::InputEnded) => return Ok(0),
                Ok(Message::Line(line)) => {
                    if self.handle_line(line)? {
                        return Ok(0);
                    }
                }
                Ok(message) => self.forward_message(message)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(1),
            }
            if let Some(signal) = signal::received() {
                return Ok(128 + signal);
            }
            if lock_lease(&self.lease).left().is_zero() {
                eprintln!("nicbench-frames: the controller has asked for nothing for too long; this ends");
                return Ok(Lease::EXPIRED);
            }
        }
    }

    /// Passes a message of the job on to the controller.
    fn forward_message(&mut self, message: Message) -> Result<(), OutputClosed> {
        match message {
            Message::Interval(interval) => self.output.event(FramesEvent::Interval(interval)),
            Message::Ended(result) => {
                if let Some(job) = &mut self.job {
                    job.is_over = true;
                }
                self.output.event(FramesEvent::Ended { result })
            }
            Message::Began(began) => {
                let id = self.job.as_mut().and_then(|job| job.start_request.take());
                match began {
                    Ok(begins_at_ns) => self.output.reply(id.unwrap_or(0), &FramesReply::Start { begins_at_ns }),
                    Err(error) => {
                        self.job = None;
                        self.output.refuse(id, &error)
                    }
                }
            }
            Message::Line(_) | Message::InputEnded => Ok(()),
        }
    }

    /// Answers one line; returns whether it was the last.
    fn handle_line(&mut self, line: Result<String, Refusal>) -> Result<bool, OutputClosed> {
        let request = match line.and_then(|line| parse_frames(&line)) {
            Ok(request) => request,
            Err(refusal) => {
                lock_lease(&self.lease).renew(0.0);
                return self.output.refuse(refusal.id, &refusal.error).map(|()| false);
            }
        };
        match request.command {
            FramesCommand::Renew { duration_s } => lock_lease(&self.lease).renew(duration_s),
            _ => lock_lease(&self.lease).allow_work(),
        }
        let is_last = request.command == FramesCommand::Close;
        match self.execute(request.id, request.command) {
            Ok(Some(reply)) => self.output.reply(request.id, &reply)?,
            Ok(None) => {}
            Err(error) => self.output.refuse(Some(request.id), &error)?,
        }
        Ok(is_last)
    }

    /// Executes a command; `None` where the reply comes later.
    fn execute(&mut self, id: i64, command: FramesCommand) -> Result<Option<FramesReply>, ErrorReport> {
        match command {
            FramesCommand::Hello { protocol } => hello(&protocol).map(Some),
            FramesCommand::Configure(asked) => self.configure(*asked).map(|reply| Some(FramesReply::Configure(reply))),
            FramesCommand::Start { begins_at_ns } => self.start(id, begins_at_ns).map(|()| None),
            FramesCommand::Stats => {
                let job = self.job.as_ref().ok_or_else(not_configured)?;
                Ok(Some(FramesReply::Stats(job.control.stats())))
            }
            FramesCommand::Stop => {
                self.job.as_ref().ok_or_else(not_configured)?.control.stop();
                Ok(Some(FramesReply::Done {}))
            }
            FramesCommand::Close => {
                self.stop_and_wait();
                Ok(Some(FramesReply::Done {}))
            }
            FramesCommand::Renew { .. } => Ok(Some(FramesReply::Done {})),
        }
    }

    fn configure(&mut self, asked: FramesConfigure) -> Result<FramesConfigureReply, ErrorReport> {
        if self.job.is_some() {
            return Err(bad_state("`configure` was already asked for", "start another process"));
        }
        let (job, reply) = Job::new(asked)?;
        let control = Arc::new(Control::new(&job));
        let (start, start_signal) = channel();
        let (is_ready, ready) = channel();
        let (sender, of_job) = (self.sender.clone(), Arc::clone(&control));
        thread::spawn(move || run_job(&job, &of_job, &is_ready, &start_signal, &sender));
        ready.recv().unwrap_or_else(|_| Err(bad_state("the job's thread ended", "report this as a fault")))?;
        self.job = Some(RunningJob { control, start: Some(start), start_request: None, is_over: false });
        Ok(reply)
    }

    fn start(&mut self, id: i64, begins_at_ns: Option<u64>) -> Result<(), ErrorReport> {
        let job = self.job.as_mut().ok_or_else(not_configured)?;
        let Some(start) = job.start.take() else {
            return Err(bad_state("the work was started already", "start another process for more"));
        };
        job.start_request = Some(id);
        start.send(begins_at_ns).map_err(|_| bad_state("the job's thread ended", "report this as a fault"))
    }

    /// Stops the job, and waits a little for its result.
    fn stop_and_wait(&mut self) {
        let until = Instant::now() + GRACE;
        loop {
            match &self.job {
                Some(job) if job.start.is_none() && !job.is_over => job.control.stop(),
                _ => return,
            }
            let message = self.receiver.recv_timeout(until.saturating_duration_since(Instant::now()));
            let Ok(message) = message else { return };
            if self.forward_message(message).is_err() {
                return;
            }
        }
    }
}

/// The job's thread.
fn run_job(
    job: &Job,
    control: &Control,
    is_ready: &Sender<Result<(), ErrorReport>>,
    start_signal: &Receiver<Option<u64>>,
    sender: &Sender<Message>,
) {
    let ready = match Ready::new(job, control) {
        Ok(ready) => ready,
        Err(error) => {
            let _ = is_ready.send(Err(error));
            return;
        }
    };
    let _ = is_ready.send(Ok(()));
    // The session ended before it said so.
    let Ok(begins_at_ns) = start_signal.recv() else { return };
    match ready.begin(begins_at_ns) {
        Ok((at_ns, files)) => {
            let _ = sender.send(Message::Began(Ok(at_ns)));
            let result = ready.run(files, |interval| sender.send(Message::Interval(interval)).is_ok());
            let _ = sender.send(Message::Ended(Box::new(result)));
        }
        Err(error) => {
            let _ = sender.send(Message::Began(Err(error)));
        }
    }
}

fn hello(protocol: &str) -> Result<FramesReply, ErrorReport> {
    if major(protocol) != major(PROTOCOL_VERSION) {
        let message = format!("the controller speaks protocol {protocol}, this engine {PROTOCOL_VERSION}");
        return Err(ErrorReport::new(ErrorKind::Version, message, "use controller and engine of one release"));
    }
    let io_uring_missing = Uring::new(4).err().map(|error| error.to_string());
    let mut features = vec!["sync".to_owned(), "threads".to_owned()];
    features.extend(io_uring_missing.is_none().then(|| "io_uring".to_owned()));
    Ok(FramesReply::Hello(FramesHello {
        engine: env!("CARGO_PKG_NAME").into(),
        version: env!("CARGO_PKG_VERSION").into(),
        protocol: PROTOCOL_VERSION.into(),
        features,
        io_uring_missing,
        cpu_baseline: std::env::consts::ARCH.replace('_', "-"),
        is_static: cfg!(target_feature = "crt-static"),
    }))
}

fn not_configured() -> ErrorReport {
    bad_state("nothing is configured", "ask for `configure` first")
}

fn bad_state(message: &str, next: &str) -> ErrorReport {
    ErrorReport::new(ErrorKind::BadState, message, next)
}
