//! Any lines as a controller's: each is refused with a reason or obeyed, over simulated ports, and what a trial counts
//! adds up. What would open real ports or files stays out.

use std::collections::HashSet;

use nicbench_packets::error::EngineError;
use nicbench_packets::generator::{Bench, Generator};
use nicbench_packets::orders::{Order, Orders};
use nicbench_packets::plan;
use nicbench_packets::port::PortFacts;
use nicbench_packets::reflector::configuration;
use nicbench_packets::session::open;
use nicbench_packets::snapshot::Snapshot;
use nicbench_packets::tester::Tester;
use nicbench_protocol::{
    ClockSource, Command, Configure, PortKind, Reading, ReflectCommand, Refusal, Reply, Start, next_line, parse,
    parse_frames, parse_monitor,
};

use crate::sending::check_streams;

const CAPTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../packets/tests/golden/flows.pcap");
/// Of one trial; what is longer is cut short.
const MOST_TURNS: u32 = 20_000;
const MOST_PORTS: usize = 4;
const MOST_STREAMS: usize = 4;
const MOST_FLOWS: usize = 16;
const MOST_STEPS: u32 = 2_000;

/// A tester over simulated ports, and where frames may go.
#[derive(Default)]
struct Lab {
    run_key: u64,
    tester: Option<Box<dyn Tester>>,
    snapshot: Snapshot,
    generator: Option<Generator>,
    /// A session refuses a number that it had: frames on their way would be those of the new trial.
    used_trials: HashSet<u32>,
}

/// Ends a loop after many turns.
struct Turns(std::cell::Cell<u32>);

impl Orders for Turns {
    fn is_waiting(&self) -> bool {
        self.0.set(self.0.get() + 1);
        self.0.get() > MOST_TURNS
    }

    fn take(&mut self) -> Order {
        Order::Quit
    }
}

/// Tries the lines of `input` one after another.
pub fn judge(mut input: &[u8]) {
    let mut lab = Lab::default();
    while let Some(line) = next_line(&mut input) {
        match line {
            Ok(line) => lab.answer(&line),
            Err(refusal) => check_refusal(&refusal),
        }
    }
}

impl Lab {
    fn answer(&mut self, line: &str) {
        parse_monitor(line).err().iter().for_each(check_refusal);
        parse_frames(line).err().iter().for_each(check_refusal);
        let _ = serde_json::from_str::<ReflectCommand>(line);
        configuration::check(line).err().iter().for_each(check_error);
        match parse(line).map(|request| request.command) {
            Err(refusal) => check_refusal(&refusal),
            Ok(Command::Configure(configure)) => self.configure(&configure).err().iter().for_each(check_error),
            Ok(Command::Start(start)) => self.start(*start).err().iter().for_each(check_error),
            Ok(Command::Load(load)) if load.flows.len() <= MOST_FLOWS => {
                self.generate(|generator, run_key, bench| generator.load(1, &load, run_key, bench));
            }
            Ok(Command::Control(control)) => {
                self.generate(|generator, _, bench| generator.control(1, &control, bench));
            }
            Ok(Command::Tally(tally)) => self.generate(|generator, _, bench| generator.tally(1, &tally, bench)),
            Ok(_) => {}
        }
    }

    /// Asks a generator over the ports, and lets it go on for a while.
    fn generate(&mut self, ask: impl FnOnce(&mut Generator, u64, &mut Bench<'_>)) {
        let Some(mut bench) = self.tester.as_mut().and_then(|tester| tester.bench()) else { return };
        let generator = self.generator.get_or_insert_with(|| Generator::new(None, &bench));
        ask(generator, self.run_key, &mut bench);
        (0..MOST_STEPS).for_each(|_| {
            generator.step(&mut bench);
        });
    }

    fn configure(&mut self, configure: &Configure) -> Result<(), EngineError> {
        let run_key = open::check(configure)?;
        let is_simulated = configure.ports.iter().all(|port| matches!(port.kind, PortKind::Simulated { .. }));
        let is_virtual = configure.clock == ClockSource::Virtual;
        if is_simulated && is_virtual && configure.watch_cpus.is_empty() && configure.ports.len() <= MOST_PORTS {
            self.run_key = run_key;
            self.tester = Some(open::open(configure, &self.snapshot)?.0);
            self.generator = None;
        }
        Ok(())
    }

    fn start(&mut self, mut start: Start) -> Result<(), EngineError> {
        (start.capture, start.flow_report) = (None, None);
        start.streams.iter_mut().filter_map(|stream| stream.pcap.as_mut()).for_each(|path| *path = CAPTURE.into());
        if start.streams.len() > MOST_STREAMS || start.streams.iter().any(|stream| stream.flows > 1 << 16) {
            return Ok(());
        }
        while !self.used_trials.insert(start.trial) {
            start.trial = start.trial.wrapping_add(1);
        }
        check_streams(&plan::check(&start, &ports())?);
        let Some(tester) = &mut self.tester else { return Ok(()) };
        let mut trial = tester.new_trial(&start, self.run_key)?;
        let mut turns = Turns(Default::default());
        let order = tester.transmit(&mut trial, plan::load_number(&start), &self.snapshot, &mut turns);
        if order == Order::Quit || tester.receive_for(&mut trial, 0.01, &mut turns) == Order::Quit {
            return Ok(());
        }
        check_reading(&tester.end_drain(&mut trial)?);
        tester.receive_for(&mut trial, 0.01, &mut turns);
        tester.end(&mut trial)?;
        Ok(())
    }
}

/// Two ports that take any frame.
pub fn ports() -> Vec<PortFacts> {
    let facts = |name: &str| PortFacts {
        name: name.into(),
        driver: "simulated".into(),
        mac: None,
        link_bits_per_s: None,
        link_up: None,
        minimum_frame_bytes: 64,
        maximum_frame_bytes: 9018,
        tag_bytes: 0,
        maximum_burst: nicbench_packets::port::MAXIMUM_BURST,
        transmit_descriptors: 64,
        receive_descriptors: 64,
        send_buffer_bytes: None,
        transmit_budget_frames: None,
        numa_node: None,
        lossless: false,
        stamps: None,
    };
    vec![facts("t0"), facts("t1")]
}

fn check_reading(reading: &Reading) {
    for stream in &reading.streams {
        assert_eq!(stream.intended, stream.sent + stream.unsent_tester + stream.unsent_backpressure, "{stream:?}");
        let fates = stream.received + stream.late + stream.corrupted + stream.unattributed + stream.lost;
        assert_eq!(stream.sent, fates, "{stream:?}");
        assert_eq!(stream.latency.as_ref().map_or(0, |latency| latency.count), stream.received, "{stream:?}");
    }
    serde_json::to_string(reading).expect("a reading is plain data");
}

fn check_error(error: &EngineError) {
    assert!(!error.message.is_empty() && !error.next.is_empty(), "{error:?}");
}

/// One line of JSON, with a message and the next step.
fn check_refusal(refusal: &Refusal) {
    assert!(!refusal.error.message.is_empty() && !refusal.error.next.is_empty(), "{refusal:?}");
    let line = Reply::error_line(refusal.id, &refusal.error);
    assert!(!line.contains('\n') && serde_json::from_str::<serde_json::Value>(&line).is_ok(), "{line}");
}
