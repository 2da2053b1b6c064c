//! `nicbench-packets measure analyse`: what the receiver's work costs, without ports, packets in the cache; `measure
//! receive`: the same for the receiver in the kernel; `measure loops`: the hot loops, for a counter of instructions. JSON
//! on stdout.
//!
//! A row is the median of many short stretches, which an interruption does not move; core cycles follow from the core's
//! clock, probed around each row.

#[cfg(feature = "xdp")]
mod generate;
pub mod loops;
#[cfg(feature = "xdp")]
mod receive;
mod work;

use std::hint::black_box;

use nicbench_protocol::{MAXIMUM_FLOW_GROUPS, StreamRequest, Timestamps};
use serde::Serialize;
use work::{Analysis, HistogramRecording, Recording, Work};

use crate::analyser::Analyser;
use crate::clock::TscClock;
use crate::error::{EngineError, ErrorKind};
use crate::health::core_clock_hz;
use crate::port::Clock;
use crate::stamps::{CALIBRATION_READINGS, Reading, StampFacts, Stamper};
use crate::sys::tsc;

const STRETCHES: usize = 401;
const PACKETS: usize = 512;
const BURST: usize = 32;

/// What the program prints.
#[derive(Debug, Serialize)]
pub struct Report {
    pub tsc_hz: f64,
    pub rows: Vec<Row>,
}

/// The cost of one kind of work.
#[derive(Debug, Serialize)]
pub struct Row {
    pub name: String,
    pub flows: u32,
    pub frame_bytes: u32,
    /// Packets in each of the stretches.
    pub packets: usize,
    pub stretches: usize,
    /// Medians; a packet or, where the name says so, a recorded latency.
    pub tsc_cycles_each: f64,
    pub core_cycles_each: f64,
    pub ns_each: f64,
    /// Cycles in the fastest and the slowest tenth of the stretches.
    pub tsc_cycles_each_spread: (f64, f64),
    pub core_clock_hz: (f64, f64),
}

/// Measures what `what` names.
pub fn run(what: &str) -> Result<Report, EngineError> {
    match what {
        "analyse" => all_analysed(),
        #[cfg(feature = "xdp")]
        "receive" => receive::run(),
        #[cfg(feature = "xdp")]
        "generate" => generate::run(),
        #[cfg(not(feature = "xdp"))]
        "receive" | "generate" => Err(EngineError::new(
            ErrorKind::BadRequest,
            "this engine is built without the kernel's tester",
            "build it with the feature `xdp`",
        )),
        _ => {
            let message = format!("there is no measurement {what:?}");
            Err(EngineError::new(
                ErrorKind::BadRequest,
                message,
                "use: measure analyse, measure receive, measure generate, or measure loops",
            ))
        }
    }
}

fn all_analysed() -> Result<Report, EngineError> {
    let clock = TscClock::calibrated();
    let analyse = |name: &str, flows, frame_bytes, flow_groups| analyse(&clock, name, flows, frame_bytes, flow_groups);
    let mut rows = vec![
        analyse("analyse, one flow", 1, 64, 1)?,
        analyse("analyse, 8192 flows", 8192, 64, 1)?,
        analyse("analyse, 8192 flows in 64 groups", 8192, 64, MAXIMUM_FLOW_GROUPS)?,
        analyse("analyse, a million flows", 1_000_000, 64, 1)?,
        analyse("analyse, 8192 flows of 1518 bytes", 8192, 1518, 1)?,
    ];
    rows.extend(record(&clock)?);
    rows.push(place(&clock));
    Ok(Report { tsc_hz: clock.hz(), rows })
}

fn analyse(clock: &TscClock, name: &str, flows: u32, frame_bytes: u32, flow_groups: u32) -> Result<Row, EngineError> {
    let mut analysis = Analysis::new(flows, frame_bytes, flow_groups)?;
    let row = time_work(clock, name, &mut analysis);
    analysis.expect_all(name)?;
    Ok(Row { flows, frame_bytes, ..row })
}

/// What was measured must have been judged right.
fn expect_one_stream(name: &str, analyser: &Analyser, received: u64, late: u64) -> Result<(), EngineError> {
    let tally = &analyser.streams()[0];
    if (tally.received, tally.late) == (received, late) && tally.reordered + tally.duplicated + tally.corrupted == 0 {
        return Ok(());
    }
    let made = received + late;
    let message = format!("{name}: {made} packets were made, and {} judged right", tally.received + tally.late);
    Err(EngineError::new(ErrorKind::SelfCheck, message, "report this as a fault of nicbench-packets"))
}

/// One latency: ours with exact minimum, maximum and sum, and the crate's with nothing beside it.
fn record(clock: &TscClock) -> Result<Vec<Row>, EngineError> {
    let ours = time_work(clock, "record one latency", &mut Recording::new());
    let theirs = time_work(clock, "record one latency, hdrhistogram crate", &mut HistogramRecording::new()?);
    Ok(vec![ours, theirs])
}

/// What a frame that bears a stamp of its port's own clock costs more: the stamp's place in the worker's time.
fn place(clock: &TscClock) -> Row {
    let facts =
        StampFacts { source: Timestamps::Card, clock: "none", bits: 64, resolution_ns: None, transmit_samples: false };
    let mut stamper = Stamper::new(facts, clock.hz());
    let (begin, step) = (clock.now(), (clock.hz() / 1000.0) as u64);
    let readings: Vec<Reading> = (0..CALIBRATION_READINGS as u64)
        .map(|number| begin + number * step)
        .map(|tick| Reading { before: tick, stamp: clock.nanoseconds(tick), after: tick + 50 })
        .collect();
    stamper.calibrate(&readings);
    let stamps: Vec<u64> = (0..PACKETS as u64).map(|number| clock.nanoseconds(begin) + number * 100).collect();
    let mut times_ns = [0; BURST];
    time_stretches(clock, "place one time stamp", PACKETS, STRETCHES, || {
        let before = tsc::ticks();
        for burst in black_box(&stamps).chunks(BURST) {
            stamper.place(burst, begin + step, begin, clock, &mut times_ns);
            black_box(&times_ns);
        }
        tsc::ticks().saturating_sub(before)
    })
}

/// Times `work` alone, on stretch after stretch.
fn time_work(clock: &TscClock, name: &str, work: &mut impl Work) -> Row {
    time_stretches(clock, name, PACKETS, STRETCHES, || {
        work.prepare();
        let before = tsc::ticks();
        work.work();
        tsc::ticks().saturating_sub(before)
    })
}

/// Times so many stretches of `packets` packets; `stretch` gives the ticks of its timed part.
fn time_stretches(
    clock: &TscClock,
    name: &str,
    packets: usize,
    stretches: usize,
    mut stretch: impl FnMut() -> u64,
) -> Row {
    (0..stretches / 4).for_each(|_| {
        stretch();
    });
    let before_hz = core_clock_hz(clock);
    let mut ticks: Vec<u64> = (0..stretches).map(|_| stretch()).collect();
    let after_hz = core_clock_hz(clock);
    ticks.sort_unstable();
    let each = |index: usize| ticks.get(index).copied().unwrap_or(0) as f64 / packets as f64;
    let median = each(stretches / 2);
    Row {
        name: name.into(),
        flows: 0,
        frame_bytes: 0,
        packets,
        stretches,
        tsc_cycles_each: median,
        core_cycles_each: median * (before_hz + after_hz) / 2.0 / clock.hz(),
        ns_each: median * 1e9 / clock.hz(),
        tsc_cycles_each_spread: (each(stretches / 10), each(stretches - 1 - stretches / 10)),
        core_clock_hz: (before_hz, after_hz),
    }
}

/// Times so many calls of so many runs of a program in the kernel; `run` makes a call, and gives the mean time of a run as
/// the kernel says it: in whole nanoseconds, what is beyond cut off.
#[cfg(feature = "xdp")]
fn time_kernel_runs(
    clock: &TscClock,
    name: &str,
    runs: u32,
    calls: usize,
    mut run: impl FnMut() -> Result<u32, EngineError>,
) -> Result<Row, EngineError> {
    const CUT_OFF_NS: f64 = 0.5;
    let mut failure = None;
    let row = time_stretches(clock, name, runs as usize, calls, || {
        let each_ns = run().map(|ns| f64::from(ns) + CUT_OFF_NS);
        let ticks = each_ns.as_ref().map_or(0.0, |ns| ns * f64::from(runs) * clock.hz() / 1e9);
        failure = failure.take().or(each_ns.err());
        ticks as u64
    });
    failure.map_or(Ok(row), Err)
}

fn request(frame_bytes: u32, flows: u32) -> Result<StreamRequest, EngineError> {
    let request = serde_json::json!({
        "name": "measure", "transmit_port": 0, "receive_port": 0, "frame_bytes": frame_bytes, "rate_frames_per_s": 0,
        "flows": flows, "source_mac": "02:00:00:00:00:01", "destination_mac": "02:00:00:00:00:02", "ip": 4,
        "source_address": "198.18.0.2", "destination_address": "198.19.0.2",
    });
    serde_json::from_value(request).map_err(|error| {
        EngineError::new(ErrorKind::SelfCheck, error.to_string(), "report this as a fault of nicbench-packets")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_counts_each_packet_once() {
        let clock = TscClock::calibrated();
        let row = analyse(&clock, "a", 100, 64, 1).unwrap();
        assert!((row.flows, row.stretches) == (100, STRETCHES) && row.tsc_cycles_each > 0.0);
    }

    #[test]
    fn an_unknown_measurement_is_refused() {
        assert!(run("dance").is_err());
    }
}
