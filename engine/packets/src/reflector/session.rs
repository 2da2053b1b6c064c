//! `nicbench-packets reflect`: from the configuration line to the final report.

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::rc::Rc;

use nicbench_protocol::{
    EndedBy, FateLogReport, FateLogRequest, PROTOCOL_VERSION, ReflectCommand, ReflectEvent, ReflectStats,
};

use super::configuration;
use super::control::{Control, Told};
use super::forwarder::Reflector;
use crate::clock::TscClock;
use crate::error::{EngineError, ErrorKind};
use crate::health::core_clock_hz;
use crate::output::Output;
use crate::session::open;
use crate::tester::clock_reply;

const DONE: u8 = 0;
const REFUSED: u8 = 1;
const NOT_READY: u8 = 3;

/// Forwards until it is told to end; returns the exit status.
pub fn run(file: Option<&str>) -> u8 {
    let output = Output::default();
    output.event(ReflectEvent::Ready { protocol: PROTOCOL_VERSION.into() });
    match forward(file, &output) {
        Ok(()) => DONE,
        Err(error) => {
            let status = if error.kind == ErrorKind::BadRequest { REFUSED } else { NOT_READY };
            output.event(ReflectEvent::Failed { error: error.into() });
            status
        }
    }
}

fn forward(file: Option<&str>, output: &Output) -> Result<(), EngineError> {
    let mut input = BufReader::new(io::stdin());
    let (configure, setup, log) = configuration::check(&line(file, &mut input)?)?;
    let (ports, eal_arguments) = open::real_ports(&configure)?;
    let clock = Rc::new(TscClock::calibrated());
    let forwarding = ReflectEvent::Forwarding {
        ports: ports.iter().map(|port| open::port_reply(&**port)).collect(),
        clock: clock_reply(&*clock),
        eal_arguments,
    };
    let core_clock_hz = Some(core_clock_hz(&*clock));
    let reflector = Reflector::new(Rc::clone(&clock), ports, &setup);
    let mut session = Session { clock, reflector, control: Control::read(input), output, core_clock_hz };
    output.event(forwarding);
    let ended_by = session.serve();
    output.event(session.report(ended_by, log.as_ref())?);
    Ok(())
}

fn line(file: Option<&str>, input: &mut impl BufRead) -> Result<String, EngineError> {
    let mut text = String::new();
    let read = match file {
        Some(file) => std::fs::read_to_string(file).map(|content| text = content),
        None => input.read_line(&mut text).map(|_| ()),
    };
    read.map(|()| text).map_err(|error| {
        let place = file.unwrap_or("stdin");
        let next = "give the configuration as the first line of stdin, or name a file that holds it";
        EngineError::new(ErrorKind::BadRequest, format!("{place}: {error}"), next)
    })
}

struct Session<'a> {
    clock: Rc<TscClock>,
    reflector: Reflector<TscClock>,
    control: Control,
    output: &'a Output,
    /// When it was last timed.
    core_clock_hz: Option<f64>,
}

impl Session<'_> {
    fn serve(&mut self) -> EndedBy {
        self.reflector.resume();
        loop {
            self.reflector.turn();
            if !self.control.is_waiting() {
                continue;
            }
            while let Some(told) = self.control.next() {
                match told {
                    Told::Do(command) => self.obey(command),
                    Told::Refuse(error) => self.output.event(ReflectEvent::Failed { error: error.into() }),
                    Told::End(ended_by) => return ended_by,
                }
            }
            // Answering is not forwarding.
            self.reflector.resume();
            if self.output.is_broken() {
                return EndedBy::Stdin;
            }
        }
    }

    fn obey(&mut self, command: ReflectCommand) {
        match command {
            ReflectCommand::Stats { probe_core_clock: true } => self.core_clock_hz = Some(core_clock_hz(&*self.clock)),
            ReflectCommand::Trial { trial } => self.reflector.begin_trial(trial),
            // The reading thread makes an end of `close`.
            ReflectCommand::Stats { .. } | ReflectCommand::Close => {}
        }
        self.output.event(ReflectEvent::Stats(Box::new(self.stats())));
    }

    fn stats(&self) -> ReflectStats {
        self.reflector.stats(self.core_clock_hz)
    }

    /// Stops forwarding, writes the log, and says what was done.
    fn report(&mut self, ended_by: EndedBy, log: Option<&FateLogRequest>) -> Result<ReflectEvent, EngineError> {
        self.reflector.finish();
        self.core_clock_hz = Some(core_clock_hz(&*self.clock));
        let stats = Box::new(self.stats());
        let log = match (log, self.reflector.log()) {
            (Some(asked), Some(log)) => {
                log.write(Path::new(&asked.file)).map_err(|error| {
                    let next = "name a file in a folder that this process may write";
                    EngineError::new(ErrorKind::Port, format!("the log {}: {error}", asked.file), next)
                })?;
                let (records, left_out) = (log.records().len() as u64, log.left_out());
                Some(FateLogReport { file: asked.file.clone(), records, left_out })
            }
            _ => None,
        };
        Ok(ReflectEvent::Report { ended_by, stats, log })
    }
}
