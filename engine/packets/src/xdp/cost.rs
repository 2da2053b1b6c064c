//! `nicbench-packets measure generate`: what a frame costs in the program that makes it, without driver and interface.
//! JSON on stdout.
//!
//! Each step is the program with all later steps left out, so the difference of two rows is what a step costs. Times
//! are the kernel's own of many runs of BPF_PROG_TEST_RUN (whole nanoseconds), the mean of the faster half of the
//! stretches.

use serde::Serialize;
use serde_json::{Value, json};

use super::Generator;
use crate::clock::{MonotonicClock, TscClock};
use crate::error::{EngineError, ErrorKind};
use crate::port::{Clock, PortFacts};
use crate::signature::Signer;
use crate::trial::Trial;
use crate::trial_part::Roles;

const RUNS: u32 = 20_000;
const STRETCHES: usize = 24;
/// By `enum step` of `bpf/generate.bpf.c`; the last is the whole program.
const STEPS: [(u32, &str); 9] = [
    (1, "batch"),
    (2, "and time"),
    (3, "and what is due"),
    (4, "and template"),
    (5, "and addresses of a flow"),
    (6, "and signature"),
    (7, "and checksum"),
    (8, "and counts"),
    (0, "and redirection"),
];

/// What the program prints.
#[derive(Debug, Serialize)]
pub struct Report {
    pub tsc_hz: f64,
    pub rows: Vec<Row>,
}

/// The cost of one run of the program.
#[derive(Debug, Serialize)]
pub struct Row {
    pub name: String,
    pub runs: u32,
    pub stretches: usize,
    pub ns_each: f64,
    pub tsc_cycles_each: f64,
}

/// Measures every step for 64 bytes, and whole frames of other kinds.
pub fn run() -> Result<Report, EngineError> {
    let clock = TscClock::calibrated();
    let usual = json!({"flows": 256, "source_port_count": 256});
    let steps = STEPS.into_iter().map(|(step, name)| (step, name.to_owned(), usual.clone()));
    let sizes = json!([{"frame_bytes": 64, "weight": 7}, {"frame_bytes": 570, "weight": 4},
        {"frame_bytes": 1518, "weight": 1}]);
    let wholes = [
        ("whole, one flow", json!({})),
        (
            "whole, a million flows",
            json!({"flows": 1_000_000, "source_address_count": 1000, "source_port_count": 1000}),
        ),
        ("whole, 10 million frames per second", json!({"rate_frames_per_s": 1e7})),
        (
            "whole, IPv6 of 82 bytes",
            json!({"ip": 6, "frame_bytes": 82, "source_address": "2001:2::1", "destination_address": "2001:2::2"}),
        ),
        ("whole, 1518 bytes", json!({"frame_bytes": 1518})),
        ("whole, a mix of 64, 570 and 1518 bytes", json!({"sizes": sizes})),
    ];
    let wholes = wholes.into_iter().map(|(name, change)| (0, name.to_owned(), change));
    let rows = steps.chain(wholes).map(|(step, name, change)| row(&clock, step, name, &change));
    Ok(Report { tsc_hz: clock.hz(), rows: rows.collect::<Result<_, _>>()? })
}

fn row(clock: &TscClock, last_step: u32, name: String, change: &Value) -> Result<Row, EngineError> {
    let mut generator = Generator::detached(last_step)?;
    let trial = trial(change)?;
    generator.prepare(&trial.parts[0], &Signer::new(1, 1), false)?;
    generator.begin(MonotonicClock.now());
    let mut stretches = (0..STRETCHES).map(|_| generator.run_often(RUNS)).collect::<Result<Vec<u32>, _>>()?;
    stretches.sort_unstable();
    let faster = &stretches[..STRETCHES / 2];
    let ns_each = faster.iter().map(|ns| f64::from(*ns)).sum::<f64>() / faster.len() as f64;
    Ok(Row { name, runs: RUNS, stretches: STRETCHES, ns_each, tsc_cycles_each: ns_each * clock.hz() / 1e9 })
}

/// A trial of one stream of 64 bytes without a pace, changed by `change`.
fn trial(change: &Value) -> Result<Trial, EngineError> {
    let mut stream = json!({
        "name": "measure", "transmit_port": 0, "receive_port": 0, "frame_bytes": 64, "rate_frames_per_s": 0, "ip": 4,
        "source_mac": "02:00:00:00:00:01", "destination_mac": "02:00:00:00:00:02",
        "source_address": "198.18.0.2", "destination_address": "198.19.0.2"});
    change.as_object().into_iter().flatten().for_each(|(key, value)| stream[key] = value.clone());
    let start = json!({"trial": 1, "duration_s": 1000, "catch_up_s": 10, "burst": 32, "streams": [stream]});
    let start = serde_json::from_value(start).map_err(|error| {
        EngineError::new(ErrorKind::SelfCheck, error.to_string(), "report this as a fault of nicbench-packets")
    })?;
    let facts = PortFacts {
        name: "none".into(),
        driver: "none".into(),
        mac: None,
        link_bits_per_s: None,
        link_up: None,
        minimum_frame_bytes: 64,
        maximum_frame_bytes: 1518,
        transmit_descriptors: 64,
        receive_descriptors: 64,
        send_buffer_bytes: None,
        transmit_budget_frames: None,
        numa_node: None,
        lossless: false,
        stamps: None,
    };
    Trial::new(&start, 1, &[facts], &[Roles::all(1)], &MonotonicClock)
}
