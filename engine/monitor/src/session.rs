//! The conversation, and the rhythm of the samples: one thread, which sleeps until a request comes or a sample is due.

use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::time::Duration;

use nicbench_protocol::{
    ErrorKind, ErrorReport, Lease, MonitorCommand, MonitorConfigure, MonitorConfigureReply, MonitorEvent, MonitorHello,
    MonitorReply, MonitorRequest, PROTOCOL_VERSION, Refusal, major, parse_monitor,
};

use crate::census::{CensusOptions, take_census};
use crate::changes::Watch;
use crate::input::Input;
use crate::output::{Output, OutputClosed};
use crate::sampler::Sampler;
use crate::sources::SourceOptions;
use crate::sys::clock::{monotonic_ns, tick_ns};
use crate::sys::poll::{Wait, has_input, readable};
use crate::sys::{scheduling, signal};

const LEAST_INTERVAL_MS: u32 = 100;
const MOST_INTERVAL_MS: u32 = 60_000;

/// Samples until it is told to end; returns the exit status.
pub fn run() -> i32 {
    let Ok(output) = Output::open() else { return 1 };
    let mut session = Session {
        output,
        lease: Lease::from_now(),
        sampler: None,
        census: None,
        watch: None,
        descriptors: vec![io::stdin().as_raw_fd()],
        interval_ns: 0,
        next: NextSample::Off,
    };
    // Nobody reads any more: there is nobody to tell.
    session.serve().unwrap_or(Lease::EXPIRED)
}

/// When the next sample is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextSample {
    /// Before `start`.
    Off,
    /// Between `pause` and `resume`.
    Paused,
    At(u64),
}

struct Session {
    output: Output,
    lease: Lease,
    sampler: Option<Sampler>,
    census: Option<CensusOptions>,
    watch: Option<Watch>,
    /// What may wake it.
    descriptors: Vec<i32>,
    interval_ns: u64,
    next: NextSample,
}

impl Session {
    fn serve(&mut self) -> Result<i32, OutputClosed> {
        let patience = self.lease.left();
        self.output.event(MonitorEvent::Ready { protocol: PROTOCOL_VERSION.into() }, patience)?;
        let mut input = Input::new(io::stdin());
        loop {
            while let Some(line) = input.line() {
                if let Some(status) = self.handle_line(line)? {
                    return Ok(status);
                }
            }
            if input.ended {
                return Ok(0);
            }
            if let Some(signal) = signal::received() {
                return Ok(128 + signal);
            }
            if self.lease.left().is_zero() {
                return Ok(Lease::EXPIRED);
            }
            self.sample_if_due()?;
            match readable(&self.descriptors, self.until_next()) {
                Ok(Wait::Ready) => {
                    self.watch.iter_mut().for_each(Watch::take);
                    if has_input(io::stdin().as_raw_fd()) {
                        input.take();
                    }
                }
                Ok(Wait::TimedOut | Wait::Interrupted) => {}
                Err(_) => return Ok(1),
            }
        }
    }

    /// The time until a sample is due or the lease ends.
    fn until_next(&self) -> Duration {
        let left = self.lease.left();
        match self.next {
            NextSample::At(due) => left.min(Duration::from_nanos(due.saturating_sub(monotonic_ns()))),
            NextSample::Off | NextSample::Paused => left,
        }
    }

    /// Takes the sample that is due. One that was missed is not made up for: the next one is longer.
    fn sample_if_due(&mut self) -> Result<(), OutputClosed> {
        let NextSample::At(due) = self.next else { return Ok(()) };
        let now = monotonic_ns();
        if now < due {
            return Ok(());
        }
        let missed = (now - due) / self.interval_ns;
        self.next = NextSample::At(due + (missed + 1) * self.interval_ns);
        self.sample()
    }

    fn sample(&mut self) -> Result<(), OutputClosed> {
        let patience = self.lease.left();
        let Some(sampler) = &mut self.sampler else { return Ok(()) };
        let (interval_ns, time_ns, broken) = sampler.sample();
        let series = sampler.record.take_new_series();
        if !series.is_empty() {
            self.output.event(MonitorEvent::Series { series }, patience)?;
        }
        for source in broken {
            self.output.event(MonitorEvent::Missing(source), patience)?;
        }
        self.output.sample(sampler.record.values(), interval_ns, time_ns, patience)
    }

    /// Answers one line; returns the exit status where it was the last.
    fn handle_line(&mut self, line: Result<String, Refusal>) -> Result<Option<i32>, OutputClosed> {
        let MonitorRequest { id, command } = match line.and_then(|line| parse_monitor(&line)) {
            Ok(request) => request,
            Err(refusal) => {
                self.lease.renew(0.0);
                return self.output.refuse(&refusal, self.lease.left()).map(|()| None);
            }
        };
        self.lease.renew(match command {
            MonitorCommand::Pause { duration_s, .. } | MonitorCommand::Renew { duration_s } => duration_s,
            _ => 0.0,
        });
        let is_last = command == MonitorCommand::Close;
        let patience = self.lease.left();
        match self.execute(command)? {
            Ok(reply) => self.output.reply(id, &reply, patience)?,
            Err(error) => self.output.refuse(&Refusal { id: Some(id), error }, patience)?,
        }
        Ok(is_last.then_some(0))
    }

    fn execute(&mut self, command: MonitorCommand) -> Result<Result<MonitorReply, ErrorReport>, OutputClosed> {
        let needs_samples =
            matches!(command, MonitorCommand::Sample | MonitorCommand::Pause { .. } | MonitorCommand::Resume);
        if needs_samples && self.next == NextSample::Off {
            return Ok(Err(bad_state("no samples are taken", "ask for `configure`, then `start`")));
        }
        match command {
            MonitorCommand::Hello { protocol } => return Ok(hello(&protocol)),
            MonitorCommand::Configure(configure) => return Ok(self.configure(configure)),
            MonitorCommand::Census => return Ok(self.census()),
            MonitorCommand::Watch => return Ok(self.watch()),
            MonitorCommand::Changes => return Ok(self.changes()),
            MonitorCommand::Renew { .. } => return Ok(Ok(MonitorReply::Done {})),
            MonitorCommand::Start => match self.start() {
                Ok(()) => self.sample()?,
                Err(error) => return Ok(Err(error)),
            },
            MonitorCommand::Sample => self.sample()?,
            MonitorCommand::Pause { only_interrupting, .. } => {
                self.sample()?;
                if only_interrupting {
                    self.set_quiet(true);
                } else {
                    self.next = NextSample::Paused;
                }
            }
            MonitorCommand::Resume => {
                self.sample()?;
                self.set_quiet(false);
                self.next = NextSample::At(monotonic_ns() + self.interval_ns);
            }
            MonitorCommand::Close if self.next != NextSample::Off => self.sample()?,
            MonitorCommand::Stats | MonitorCommand::Close => {}
        }
        let cost = self.sampler.as_ref().map(|sampler| MonitorReply::Cost(sampler.cost()));
        Ok(Ok(cost.unwrap_or(MonitorReply::Done {})))
    }

    fn census(&self) -> Result<MonitorReply, ErrorReport> {
        let Some(asked) = &self.census else {
            return Err(not_configured());
        };
        take_census(asked).map(MonitorReply::Census).map_err(|error| {
            let message = format!("processes cannot be counted: {error}");
            ErrorReport::new(ErrorKind::Io, message, "mount /proc where the monitor runs")
        })
    }

    fn watch(&mut self) -> Result<MonitorReply, ErrorReport> {
        let watch = self.watch.as_mut().ok_or_else(not_configured)?;
        watch.begin();
        self.descriptors.truncate(1);
        self.descriptors.extend(watch.descriptors());
        Ok(MonitorReply::Done {})
    }

    fn changes(&mut self) -> Result<MonitorReply, ErrorReport> {
        let watch = self.watch.as_mut().ok_or_else(not_configured)?;
        self.descriptors.truncate(1);
        Ok(MonitorReply::Changes(watch.end()))
    }

    fn set_quiet(&mut self, quiet: bool) {
        if let Some(sampler) = &mut self.sampler {
            sampler.set_quiet(quiet);
        }
    }

    fn start(&mut self) -> Result<(), ErrorReport> {
        if self.sampler.is_none() {
            return Err(not_configured());
        }
        if self.next != NextSample::Off {
            return Err(bad_state("samples are taken already", "ask for `start` once"));
        }
        self.next = NextSample::At(monotonic_ns() + self.interval_ns);
        Ok(())
    }

    fn configure(&mut self, configure: MonitorConfigure) -> Result<MonitorReply, ErrorReport> {
        if self.sampler.is_some() {
            return Err(bad_state("`configure` was already asked for", "start another process"));
        }
        let interval_ms = configure.interval_ms;
        if !(LEAST_INTERVAL_MS..=MOST_INTERVAL_MS).contains(&interval_ms) {
            let message = format!("interval_ms is {interval_ms}: it must be {LEAST_INTERVAL_MS} to {MOST_INTERVAL_MS}");
            return Err(ErrorReport::new(ErrorKind::BadRequest, message, "ask for another interval"));
        }
        if !configure.cpus.is_empty() {
            scheduling::bind_to(&configure.cpus).map_err(|error| {
                let message = format!("cannot run on the CPUs {:?}: {error}", configure.cpus);
                ErrorReport::new(ErrorKind::BadRequest, message, "name CPUs that are on and that this process may use")
            })?;
        }
        self.interval_ns = u64::from(interval_ms) * 1_000_000;
        let (processes, namespaces) = (configure.processes, configure.namespaces);
        let (proc, sys) = (PathBuf::from("/proc"), PathBuf::from("/sys"));
        let asked = SourceOptions { proc, sys, processes, namespaces, tick_ns: tick_ns() };
        self.census = Some(CensusOptions {
            proc: asked.proc.clone(),
            sys: asked.sys.clone(),
            tick_ns: asked.tick_ns,
            mark: configure.mark.clone(),
        });
        let (sampler, sources) = Sampler::open(&asked);
        self.sampler = Some(sampler);
        let (cpus, tick_ns) = (configure.cpus, asked.tick_ns);
        let (watch, unwatched) = Watch::open(&configure.watched, asked.proc, configure.mark);
        self.watch = Some(watch);
        Ok(MonitorReply::Configure(MonitorConfigureReply { cpus, tick_ns, sources, unwatched }))
    }
}

fn hello(protocol: &str) -> Result<MonitorReply, ErrorReport> {
    if major(protocol) != major(PROTOCOL_VERSION) {
        let message = format!("the controller speaks protocol {protocol}, this engine {PROTOCOL_VERSION}");
        return Err(ErrorReport::new(ErrorKind::Version, message, "use controller and engine of one release"));
    }
    Ok(MonitorReply::Hello(MonitorHello {
        engine: env!("CARGO_PKG_NAME").into(),
        version: env!("CARGO_PKG_VERSION").into(),
        protocol: PROTOCOL_VERSION.into(),
        features: Sampler::source_names(),
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
