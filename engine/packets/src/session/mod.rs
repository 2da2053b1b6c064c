//! The command loop: requests in, replies and events out, one trial after another.

mod generating;
mod input;
mod lease;
mod mailbox;
pub mod open;

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use nicbench_protocol::{
    Command, Configure, EventKind, HelloReply, LateReply, PROTOCOL_VERSION, Reply, Request, Start, StartReply, major,
};

use crate::clock::TscClock;
use crate::error::{EngineError, ErrorKind};
use crate::generator::Generator;
use crate::orders::Order;
use crate::output::Output;
use crate::plan;
use crate::signature::SIGNATURE_BYTES;
use crate::snapshot::Snapshot;
use crate::sys::tsc::monotonic_ns;
use crate::tester::Tester;
use crate::trial::Trial;
use mailbox::{Mailbox, Message};

/// After a transmission the worker goes on without sleeping for so long: the drain is about to be asked for.
const EAGER: Duration = Duration::from_secs(1);
/// And after a drain for so long: the settle time is about to be asked for. Behind learning frames it never is, and
/// whoever reads counters before the trial needs the CPU.
const EAGER_AFTER_DRAIN: Duration = Duration::from_millis(20);
const MAXIMUM_WAIT_S: f64 = 3_600.0;

/// How far the one trial is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Transmitted,
    Drained,
}

struct Running {
    trial: Trial,
    stage: Stage,
    eager_until: Instant,
}

/// A conversation with the controller.
pub struct Session {
    output: Arc<Output>,
    snapshot: Arc<Snapshot>,
    mailbox: Mailbox,
    /// The clock that tells the engine's time, once it is configured; the thread that reads requests has it too.
    counter: Arc<OnceLock<TscClock>>,
    run_key: u64,
    tester: Option<Box<dyn Tester>>,
    /// EAL starts once per process, even if that failed.
    configured: bool,
    used_trials: HashSet<u32>,
    running: Option<Running>,
    /// `None` until flows are loaded, and in a process that does trials.
    generator: Option<Generator>,
}

/// Serves requests until the end; returns the exit status.
pub fn run() -> i32 {
    let output = Arc::new(Output::default());
    let snapshot = Arc::new(Snapshot::default());
    output.event(EventKind::Ready { protocol: PROTOCOL_VERSION.into() });
    let counter = Arc::new(OnceLock::new());
    let mailbox = Mailbox::open(Arc::clone(&output), Arc::clone(&snapshot), Arc::clone(&counter));
    let mut session = Session {
        output,
        snapshot,
        mailbox,
        counter,
        run_key: 0,
        tester: None,
        configured: false,
        used_trials: HashSet::new(),
        running: None,
        generator: None,
    };
    session.serve()
}

impl Session {
    fn serve(&mut self) -> i32 {
        while self.mailbox.exit_status().is_none() && !self.output.is_broken() {
            match self.next_message() {
                Some(Message::Request(request)) => self.handle(request),
                Some(Message::End(status)) => self.mailbox.request_exit(status),
                None => {}
            }
        }
        self.finish_generating();
        self.mailbox.refuse_pending();
        // Ports are freed before the reply to `close` says so.
        self.tester = None;
        self.mailbox.confirm_close();
        self.mailbox.exit_status().unwrap_or(0)
    }

    /// Waits for a message; meanwhile receive rings are kept empty.
    fn next_message(&mut self) -> Option<Message> {
        if self.generate() {
            return self.mailbox.next(Duration::ZERO);
        }
        let eager = self.running.as_ref().is_some_and(|running| Instant::now() < running.eager_until);
        let wait = match &self.tester {
            Some(tester) if tester.is_virtual() => Duration::from_millis(20),
            Some(tester) if eager && !tester.receives_by_itself() => Duration::ZERO,
            Some(_) => Duration::from_millis(1),
            None => Duration::from_millis(20),
        };
        let message = self.mailbox.next(wait);
        if self.generator.is_some() {
            return message;
        }
        if let (None, Some(tester)) = (&message, &mut self.tester) {
            tester.idle(self.running.as_mut().map(|running| &mut running.trial));
        }
        message
    }

    fn handle(&mut self, Request { id, command }: Request) {
        let result = match command {
            Command::Hello { protocol } => hello(&protocol),
            Command::Configure(configure) => self.configure(&configure),
            Command::Start(start) => return self.start(id, &start),
            Command::Sent => self.sent(),
            Command::Drain { duration_s, sent } => self.drain(duration_s, sent),
            Command::Settle { duration_s } => self.settle(duration_s),
            Command::Stop => Err(bad_state("no transmission is running", "ask for `start` first")),
            Command::Load(load) => return self.load(id, &load),
            Command::Control(control) => {
                return self.ask_generator(id, |generator, bench| generator.control(id, &control, bench));
            }
            Command::Tally(tally) => {
                return self.ask_generator(id, |generator, bench| generator.tally(id, &tally, bench));
            }
            Command::Capture(capture) => {
                return self.ask_generator(id, |generator, bench| generator.capture(id, &capture, bench));
            }
            Command::Hosts(hosts) => return self.host(id, &hosts),
            Command::Neighbours(neighbours) => {
                return self.ask_generator(id, |generator, bench| generator.neighbours(id, &neighbours, bench));
            }
            Command::Ping(ping) => {
                return self.ask_generator(id, |generator, bench| generator.ping(id, &ping, bench));
            }
            Command::Close => return self.mailbox.close(id),
            // The reading thread answers these at once, so that they never wait for the worker.
            Command::Stats | Command::Clock | Command::Renew { .. } => Ok(Some(Reply::Done {})),
        };
        match result {
            Ok(Some(reply)) => self.output.reply(id, &reply),
            Ok(None) => self.mailbox.reply_interrupted(id),
            Err(error) => self.output.fail(id, error),
        }
    }

    fn configure(&mut self, configure: &Configure) -> Result<Option<Reply>, EngineError> {
        if self.configured {
            return Err(bad_state("`configure` was already asked for", "start another process: ports are opened once"));
        }
        let run_key = open::check(configure)?;
        self.configured = true;
        let (tester, reply) = open::open(configure, &self.snapshot)?;
        self.run_key = run_key;
        if let Some(counter) = tester.counter() {
            // It is configured once.
            let _ = self.counter.set(counter);
        }
        self.tester = Some(tester);
        Ok(Some(Reply::Configure(reply)))
    }

    fn start(&mut self, id: i64, start: &Start) {
        if self.generator.is_some() {
            let error = bad_state("this process generates flows", "start another process for trials");
            return self.output.fail(id, error);
        }
        let (mut trial, tester) =
            match (new_trial(start, self.run_key, &self.used_trials, &mut self.tester), &mut self.tester) {
                (Ok(trial), Some(tester)) => (trial, tester),
                (Err(error), _) => return self.output.fail(id, error),
                (Ok(_), None) => return self.output.fail(id, not_configured()),
            };
        self.used_trials.insert(start.trial);
        // A start without settle ends the trial before it.
        self.running = None;
        self.snapshot.publish(trial.number, 0, trial.progress());
        self.output.reply(id, &Reply::Start(StartReply { started_ns: monotonic_ns() }));
        self.mailbox.set_transmitting(true);
        let order = tester.transmit(&mut trial, plan::load_number(start), &self.snapshot, &mut self.mailbox);
        self.mailbox.set_transmitting(false);
        if order == Order::Quit {
            return;
        }
        self.output.event(EventKind::Transmitted { trial: trial.number });
        self.running = Some(Running { trial, stage: Stage::Transmitted, eager_until: Instant::now() + EAGER });
    }

    fn sent(&mut self) -> Result<Option<Reply>, EngineError> {
        let tester = self.tester.as_mut().ok_or_else(not_configured)?;
        let running = self.running.as_ref().filter(|running| running.stage == Stage::Transmitted);
        let trial = &running.ok_or_else(|| bad_state("no transmission has ended", "ask for `start` first"))?.trial;
        let cannot = || bad_state("with such ports or workers another engine cannot share a trial", "use one engine");
        tester.sent(trial).map(|sent| Some(Reply::Sent(sent))).ok_or_else(cannot)
    }

    fn drain(&mut self, duration_s: f64, sent: Vec<Option<u64>>) -> Result<Option<Reply>, EngineError> {
        plan::duration("duration_s", duration_s, MAXIMUM_WAIT_S)?;
        let tester = self.tester.as_mut().ok_or_else(not_configured)?;
        let running = self.running.as_mut().filter(|running| running.stage == Stage::Transmitted);
        let running = running.ok_or_else(|| bad_state("there is no transmission to drain", "ask for `start` first"))?;
        if tester.receive_for(&mut running.trial, duration_s, &mut self.mailbox) == Order::Quit {
            return Ok(None);
        }
        running.stage = Stage::Drained;
        running.trial.set_sent_elsewhere(sent);
        let reading = tester.end_drain(&mut running.trial)?;
        running.eager_until = Instant::now() + EAGER_AFTER_DRAIN;
        Ok(Some(Reply::Reading(Box::new(reading))))
    }

    fn settle(&mut self, duration_s: f64) -> Result<Option<Reply>, EngineError> {
        plan::duration("duration_s", duration_s, MAXIMUM_WAIT_S)?;
        let tester = self.tester.as_mut().ok_or_else(not_configured)?;
        let running = self.running.as_mut().filter(|running| running.stage == Stage::Drained);
        let running =
            running.ok_or_else(|| bad_state("there is no drained trial to settle", "ask for `drain` first"))?;
        if tester.receive_for(&mut running.trial, duration_s, &mut self.mailbox) == Order::Quit {
            return Ok(None);
        }
        let late = tester.end(&mut running.trial)?;
        let reply = LateReply { trial: running.trial.number, late };
        self.running = None;
        self.snapshot.publish(0, 0, std::iter::empty());
        Ok(Some(Reply::Late(reply)))
    }
}

fn new_trial(
    start: &Start,
    run_key: u64,
    used: &HashSet<u32>,
    tester: &mut Option<Box<dyn Tester>>,
) -> Result<Trial, EngineError> {
    let tester = tester.as_mut().ok_or_else(not_configured)?;
    if used.contains(&start.trial) {
        let message = format!("trial {} was already run in this process", start.trial);
        // Its late frames could not be told from new ones.
        return Err(EngineError::new(ErrorKind::BadRequest, message, "number trials upwards"));
    }
    if start.at_ns.is_some() && tester.counter().is_none() {
        return Err(bad_state("the engine has no clock by which a trial could begin at a time", "leave `at_ns` out"));
    }
    tester.new_trial(start, run_key)
}

fn hello(protocol: &str) -> Result<Option<Reply>, EngineError> {
    if major(protocol) != major(PROTOCOL_VERSION) {
        let message = format!("the controller speaks protocol {protocol}, this engine {PROTOCOL_VERSION}");
        return Err(EngineError::new(ErrorKind::Version, message, "use controller and engine of one release"));
    }
    let mut features = vec!["simulated".to_owned()];
    if open::dpdk_version().is_some() {
        features.push("dpdk".to_owned());
    }
    Ok(Some(Reply::Hello(HelloReply {
        engine: env!("CARGO_PKG_NAME").into(),
        version: env!("CARGO_PKG_VERSION").into(),
        protocol: PROTOCOL_VERSION.into(),
        dpdk: open::dpdk_version(),
        drivers: open::drivers(),
        features,
        cpu_baseline: std::env::consts::ARCH.replace('_', "-"),
        signature_bytes: SIGNATURE_BYTES as u32,
    })))
}

fn bad_state(message: &str, next: &str) -> EngineError {
    EngineError::new(ErrorKind::BadState, message, next)
}

fn not_configured() -> EngineError {
    bad_state("no ports are configured", "ask for `configure` first")
}
