//! How well the tester knows a latency: without a device on `net_ring`, and with 5 us that the reference forwarder
//! adds.
//!
//! `NICBENCH_LATENCY_RUNS` sets how many runs there are (40; `make soak` runs 400). Everything is judged by shares of
//! runs, for a machine that others use takes the CPU away now and then.
#![cfg(feature = "dpdk")]

mod rings;

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use nicbench_packets::reflector::Setup;
use nicbench_protocol::{Faults, LatencyReading, Reading, ReflectMode, Start, WhenFull};
use rings::{CABLE, Rings};
use serde_json::json;

const USUAL_RUNS: usize = 40;
const ADDED_NS: u64 = 5_000;
const LARGEST_UNCERTAINTY_NS: f64 = 2_000.0;
const TYPICAL: f64 = 0.1;
const SHARE_DETECTED: f64 = 0.95;

fn start(trial: u32, transmit_port: usize, receive_port: usize) -> Start {
    let start = json!({"trial": trial, "duration_s": 0.01, "burst": 32, "streams": [{
        "name": "probe", "transmit_port": transmit_port, "receive_port": receive_port, "frame_bytes": 64,
        "rate_frames_per_s": 20_000, "source_mac": "02:00:00:00:00:01", "destination_mac": "02:00:00:00:00:02", "ip": 4,
        "source_address": "198.18.0.1", "destination_address": "198.18.0.2"}]});
    serde_json::from_value(start).expect("a start request")
}

fn latency(reading: &Reading) -> &LatencyReading {
    reading.streams[0].latency.as_ref().expect("frames came")
}

/// What most frames took at least: a fixed delay moves all frames, and a neighbour on the CPU moves only the slower
/// ones.
fn typical_ns(reading: &Reading) -> f64 {
    let bytes = STANDARD.decode(&latency(reading).histogram).expect("base64");
    let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).expect("a histogram");
    histogram.value_at_quantile(TYPICAL) as f64
}

/// The latency through the forwarder, which adds `delay_ns`.
fn through_forwarder(rings: &mut Rings, delay_ns: u64) -> f64 {
    let trial = rings.next_trial();
    // The room for frames under way is none of a forwarder without faults, so that both go the same way.
    let faults = Faults { delay_ns, held_frames: 1000, ..Faults::default() };
    let setup = Setup {
        same_port: false,
        mode: ReflectMode::Forward,
        burst: 32,
        when_full: WhenFull::Wait,
        faults,
        log: None,
        trial,
    };
    typical_ns(&rings.trial(&start(trial, 0, 1), &setup, 0).reading)
}

#[derive(Debug)]
struct Run {
    /// As reported.
    uncertainty_ns: f64,
    /// What the tester itself adds.
    own_ns: f64,
    /// Between a forwarder with and one without the added delay.
    difference_ns: f64,
}

fn run(rings: &mut Rings) -> Run {
    let without_device = rings.trial_without_device(&start(rings.next_trial(), CABLE, CABLE));
    let (before, with) = (through_forwarder(rings, 0), through_forwarder(rings, ADDED_NS));
    Run {
        uncertainty_ns: latency(&without_device).uncertainty_ns,
        own_ns: typical_ns(&without_device),
        difference_ns: with - before,
    }
}

/// Minimum, quartiles, 95th percentile and maximum.
fn distribution(mut values: Vec<f64>) -> [f64; 6] {
    values.sort_by(f64::total_cmp);
    [0.0, 0.25, 0.5, 0.75, 0.95, 1.0].map(|share| values[((values.len() - 1) as f64 * share).round() as usize])
}

#[test]
fn the_testers_own_latency_is_short_and_five_microseconds_more_are_seen() {
    let runs = std::env::var("NICBENCH_LATENCY_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(USUAL_RUNS);
    let mut rings = Rings::open();
    let runs: Vec<Run> = (0..runs).map(|_| run(&mut rings)).collect();
    let uncertainty = distribution(runs.iter().map(|run| run.uncertainty_ns).collect());
    let own = distribution(runs.iter().map(|run| run.own_ns).collect());
    // A delay is seen where it stands out of everything the tester may be wrong by.
    let seen = |run: &&Run| (run.difference_ns - ADDED_NS as f64).abs() <= LARGEST_UNCERTAINTY_NS;
    let share = runs.iter().filter(seen).count() as f64 / runs.len() as f64;
    let report = format!(
        "ns, minimum, quartiles, 95 %, maximum over {} runs:\n  stated uncertainty  {uncertainty:?}\n  own latency         \
         {own:?}\n  5000 ns more        {:?}, seen in {:.1} %",
        runs.len(),
        distribution(runs.iter().map(|run| run.difference_ns).collect()),
        100.0 * share,
    );
    let _ = writeln!(std::io::stderr(), "{report}");
    assert!(uncertainty[1] <= LARGEST_UNCERTAINTY_NS && own[1] <= LARGEST_UNCERTAINTY_NS, "{report}");
    assert!(share >= SHARE_DETECTED, "{report}");
}
