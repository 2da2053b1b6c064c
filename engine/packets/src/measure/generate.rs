//! `nicbench-packets measure generate`: what a frame costs in the program that makes it, without driver and interface.
//! JSON on stdout.
//!
//! Each step is the program with all later steps left out, so the difference of two rows is what a step costs. Times
//! are the kernel's own of many runs of BPF_PROG_TEST_RUN.

use serde_json::{Value, json};

use super::{Report, Row, time_kernel_runs};
use crate::clock::{MonotonicClock, TscClock};
use crate::error::{EngineError, ErrorKind};
use crate::port::{Clock, PortFacts};
use crate::signature::Signer;
use crate::trial::Trial;
use crate::trial_part::Roles;
use crate::xdp::Generator;

const RUNS: u32 = 20_000;
const STRETCHES: usize = 24;
/// By `enum step` of `bpf/generate.bpf.c`; the last is the whole program.
const STEPS: [(u32, &str); 9] = [
    (1, "generate, batch"),
    (2, "generate, and time"),
    (3, "generate, and what is due"),
    (4, "generate, and template"),
    (5, "generate, and addresses of a flow"),
    (6, "generate, and signature"),
    (7, "generate, and checksum"),
    (8, "generate, and counts"),
    (0, "generate, and redirection"),
];

/// Measures every step for 64 bytes, and whole frames of other kinds.
pub fn run() -> Result<Report, EngineError> {
    let clock = TscClock::calibrated();
    let usual = json!({"flows": 256, "source_port_count": 256});
    let steps = STEPS.into_iter().map(|(step, name)| (step, name.to_owned(), usual.clone()));
    let sizes = json!([{"frame_bytes": 64, "weight": 7}, {"frame_bytes": 570, "weight": 4},
        {"frame_bytes": 1518, "weight": 1}]);
    let wholes = [
        ("generate, one flow", json!({})),
        (
            "generate, a million flows",
            json!({"flows": 1_000_000, "source_address_count": 1000, "source_port_count": 1000}),
        ),
        ("generate, 10 million frames per second", json!({"rate_frames_per_s": 1e7})),
        (
            "generate, IPv6 of 82 bytes",
            json!({"ip": 6, "frame_bytes": 82, "source_address": "2001:2::1", "destination_address": "2001:2::2"}),
        ),
        ("generate, 1518 bytes", json!({"frame_bytes": 1518})),
        ("generate, a mix of 64, 570 and 1518 bytes", json!({"sizes": sizes})),
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
    let frame_bytes = change.get("frame_bytes").and_then(Value::as_u64).unwrap_or(64) as u32;
    let flows = change.get("flows").and_then(Value::as_u64).unwrap_or(1) as u32;
    let row = time_kernel_runs(clock, &name, RUNS, STRETCHES, || generator.run_often(RUNS))?;
    Ok(Row { flows, frame_bytes, ..row })
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
        tag_bytes: 0,
        maximum_burst: crate::port::MAXIMUM_BURST,
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
