//! `nicbench-packets measure loops`: each hot loop once, for a counter of instructions (valgrind's callgrind). Nothing
//! here looks at a clock, so two counts of one binary are alike whatever else the machine does.
//!
//! A loop goes round in [`counted_loop`]: the counter begins where it is called and ends where it returns, once for each
//! entry of the report, in its order.

use std::hint::black_box;

use nicbench_protocol::{Configure, Start};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::work::{Analysis, Recording, Work, Writing};
use super::{PACKETS, request};
use crate::error::{EngineError, ErrorKind};
use crate::orders::{Order, Orders};
use crate::session::open;
use crate::snapshot::Snapshot;
use crate::tester::Tester;
use crate::trial::Trial;

/// Fewer than a stretch has frames: in the second one no flow is new.
const FLOWS: u32 = 256;
const SIMULATED_FRAMES: usize = 4096;
const SIMULATED_RATE: f64 = 1e6;

/// What the program prints.
#[derive(Debug, Serialize)]
pub struct Report {
    pub loops: Vec<Loop>,
}

/// A loop, and how often it went round.
#[derive(Debug, Serialize)]
pub struct Loop {
    pub name: &'static str,
    pub rounds: usize,
}

/// Goes through all loops.
pub fn run() -> Result<Report, EngineError> {
    let ipv4 = request(64, FLOWS)?;
    let ipv6 = json!({"ip": 6, "frame_bytes": 82, "source_address": "2001:2::1", "destination_address": "2001:2::2"});
    let ipv6 = changed(&ipv4, &ipv6)?;
    let mut analysis = Analysis::new(FLOWS, 64, 1)?;
    let loops = vec![
        count("stamp a frame", PACKETS, &mut Writing::new(&ipv4, true)?),
        count("stamp a frame, IPv6 with checksum", PACKETS, &mut Writing::new(&ipv6, true)?),
        count("fill and stamp a frame", PACKETS, &mut Writing::new(&ipv4, false)?),
        count("analyse a frame", PACKETS, &mut analysis),
        count("analyse a frame of 1518 bytes", PACKETS, &mut Analysis::new(FLOWS, 1518, 1)?),
        count("record a latency", PACKETS, &mut Recording::new()),
        count("a frame through simulated ports", SIMULATED_FRAMES, &mut Simulation::new()?),
    ];
    analysis.expect_all("analyse a frame")?;
    Ok(Report { loops })
}

/// The second stretch is counted: tables are at their size by then.
fn count(name: &'static str, rounds: usize, work: &mut dyn Work) -> Loop {
    work.prepare();
    work.work();
    work.prepare();
    counted_loop(work);
    Loop { name, rounds }
}

/// The counter finds it by its name.
#[inline(never)]
fn counted_loop(work: &mut dyn Work) {
    work.work();
    black_box(());
}

/// A transmission of the one worker over simulated ports, under the virtual clock.
struct Simulation {
    tester: Box<dyn Tester>,
    start: Start,
    trial: Option<Trial>,
    snapshot: Snapshot,
}

impl Simulation {
    fn new() -> Result<Self, EngineError> {
        let port = |name: &str, sends_to: usize| json!({"name": name, "kind": "simulated", "link_bits_per_s": 1e10, "sends_to": sends_to, "dut": {}});
        let configure =
            json!({"run_key": "0000000000000001", "clock": "virtual", "ports": [port("a", 1), port("b", 0)]});
        let configure: Configure = parsed(configure)?;
        let snapshot = Snapshot::default();
        let (tester, _) = open::open(&configure, &snapshot)?;
        let stream = changed(&request(64, FLOWS)?, &json!({"receive_port": 1, "rate_frames_per_s": SIMULATED_RATE}))?;
        let duration_s = SIMULATED_FRAMES as f64 / SIMULATED_RATE;
        let start = parsed(json!({"trial": 1, "duration_s": duration_s, "streams": [stream]}))?;
        Ok(Self { tester, start, trial: None, snapshot })
    }
}

impl Work for Simulation {
    fn prepare(&mut self) {
        self.trial = self.tester.new_trial(&self.start, 1).ok();
    }

    fn work(&mut self) {
        if let Some(trial) = &mut self.trial {
            self.tester.transmit(trial, 0, &self.snapshot, &mut NoOrders);
        }
    }
}

struct NoOrders;

impl Orders for NoOrders {
    fn is_waiting(&self) -> bool {
        false
    }

    fn take(&mut self) -> Order {
        Order::Continue
    }
}

/// A request with other fields.
fn changed<T: Serialize + DeserializeOwned>(request: &T, fields: &Value) -> Result<T, EngineError> {
    let mut value = serde_json::to_value(request).unwrap_or_default();
    fields.as_object().into_iter().flatten().for_each(|(key, field)| value[key] = field.clone());
    parsed(value)
}

fn parsed<T: DeserializeOwned>(value: Value) -> Result<T, EngineError> {
    serde_json::from_value(value).map_err(|error| {
        EngineError::new(ErrorKind::SelfCheck, error.to_string(), "report this as a fault of nicbench-packets")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_of_the_simulation_is_sent_and_analysed() {
        let mut simulation = Simulation::new().unwrap();
        simulation.prepare();
        simulation.work();
        let trial = simulation.trial.as_mut().unwrap();
        let received = trial.lead().analyser.streams()[0].received as usize;
        assert_eq!((trial.accepted()[0] as usize, received), (SIMULATED_FRAMES, SIMULATED_FRAMES));
    }
}
