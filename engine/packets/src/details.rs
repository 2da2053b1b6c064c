//! What `start` asks for beyond counts, checked; and the files that come of it.

use std::fs::File;
use std::io::{BufWriter, Error, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nicbench_protocol::{
    CaptureReading, CaptureRequest, FlowReport, FlowReportReading, MAXIMUM_FLOW_GROUPS, MAXIMUM_REORDERING_N,
    MINIMUM_REORDERING_N, Start,
};
use serde::Serialize;

use crate::analyser::{Analyser, Detail};
use crate::capture::{self, Capture, Interface, MAXIMUM_AROUND, MAXIMUM_FRAMES};
use crate::error::{EngineError, ErrorKind};
use crate::latency;

/// The files that a trial writes beyond its counts.
#[derive(Debug, Clone, Default)]
pub struct Details {
    pub detail: Detail,
    capture: Option<CaptureRequest>,
    flow_report: Option<FlowReport>,
}

impl Details {
    /// Refuses what cannot be recorded before the transmission, also files that cannot be made.
    pub fn check(start: &Start) -> Result<Self, EngineError> {
        if !(1..=MAXIMUM_FLOW_GROUPS).contains(&start.flow_groups) {
            let message = format!("flow_groups is {}", start.flow_groups);
            return Err(bad_request(message, format!("give a value from 1 to {MAXIMUM_FLOW_GROUPS}")));
        }
        if !(MINIMUM_REORDERING_N..=MAXIMUM_REORDERING_N).contains(&start.reordering_n) {
            let next = format!("give a value from {MINIMUM_REORDERING_N} to {MAXIMUM_REORDERING_N}");
            return Err(bad_request(format!("reordering_n is {}", start.reordering_n), next));
        }
        if let Some(request) = &start.capture {
            check_capture(request)?;
        }
        let paths = start.capture.iter().map(|request| &request.path);
        for path in paths.chain(start.flow_report.iter().map(|report| &report.path)) {
            File::create(path).map_err(|error| {
                bad_request(format!("{path}: {error}"), "name a file in a folder that the engine may write to")
            })?;
        }
        let flow_histograms = start.flow_report.as_ref().is_some_and(|report| report.histograms);
        Ok(Self {
            detail: Detail {
                flow_groups: start.flow_groups,
                flow_histograms,
                reordering_n: start.reordering_n,
                traffic_classes: start.traffic_classes,
            },
            capture: start.capture.clone(),
            flow_report: start.flow_report.clone(),
        })
    }

    /// A new capture, one for each receiver.
    pub fn new_capture(&self) -> Option<Capture> {
        self.capture.as_ref().map(Capture::new)
    }

    /// Writes the capture; `elapsed` has passed since the trial began, `None` where time is computed.
    pub fn write_capture(
        &self,
        analyser: &Analyser,
        interfaces: &[Interface],
        elapsed: Option<Duration>,
    ) -> Option<CaptureReading> {
        let (request, capture) = (self.capture.as_ref()?, analyser.capture()?);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // Computed time begins at no moment of a day.
        let began = elapsed.map_or(Duration::ZERO, |elapsed| now.saturating_sub(elapsed));
        let written = capture::write(&request.path, interfaces, capture.frames(), began);
        Some(CaptureReading {
            path: request.path.clone(),
            frames: if written.is_ok() { capture.frames().len() as u64 } else { 0 },
            jumps: capture.jumps(),
            truncated: capture.is_truncated(),
            error: written.err().map(|error| error.to_string()),
        })
    }

    /// Writes a line for each flow; `streams` are names and frames sent.
    pub fn write_flows(&self, analyser: &Analyser, streams: &[(String, u64)]) -> Option<FlowReportReading> {
        let report = self.flow_report.as_ref()?;
        let written = write_flows(report, analyser, streams);
        Some(FlowReportReading {
            path: report.path.clone(),
            flows: *written.as_ref().unwrap_or(&0),
            error: written.err().map(|error| error.to_string()),
        })
    }
}

fn check_capture(request: &CaptureRequest) -> Result<(), EngineError> {
    match (request.frames, request.around_loss) {
        (Some(1..=MAXIMUM_FRAMES), None) | (None, Some(1..=MAXIMUM_AROUND)) => Ok(()),
        (Some(frames), None) => {
            let next = format!("give a value from 1 to {MAXIMUM_FRAMES}");
            Err(bad_request(format!("capture.frames is {frames}"), next))
        }
        (None, Some(around)) => {
            let next = format!("give a value from 1 to {MAXIMUM_AROUND}");
            Err(bad_request(format!("capture.around_loss is {around}"), next))
        }
        _ => Err(bad_request("capture names not one of frames and around_loss", "give one of the two")),
    }
}

/// One flow's line of the file, as JSON.
#[derive(Serialize)]
struct FlowLineReport<'a> {
    stream: &'a str,
    flow: u32,
    received: u64,
    lost: u64,
    duplicated: u32,
    reordered: u32,
    corrupted: u32,
    latency_minimum_ns: Option<u32>,
    latency_mean_ns: Option<f64>,
    latency_maximum_ns: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    histogram: Option<String>,
}

fn write_flows(report: &FlowReport, analyser: &Analyser, streams: &[(String, u64)]) -> Result<u64, Error> {
    let mut file = BufWriter::new(File::create(&report.path)?);
    let mut lines = 0;
    for (index, (name, sent)) in streams.iter().enumerate() {
        let mut histograms = report.histograms.then(|| analyser.groups(index));
        for flow in analyser.flows_of(index, *sent) {
            let group = histograms.as_mut().and_then(Iterator::next).filter(|group| group.latency.count > 0);
            let histogram =
                group.map(|group| latency::encode_histogram(group.counts)).transpose().map_err(Error::other)?;
            let line = flow.line;
            let known = line.received > 0;
            let row = FlowLineReport {
                stream: name,
                flow: flow.flow,
                received: line.received,
                lost: flow.lost,
                duplicated: line.duplicated,
                reordered: line.reordered,
                corrupted: line.corrupted,
                latency_minimum_ns: known.then_some(line.latency_minimum_ns),
                latency_mean_ns: known.then(|| line.latency_sum_ns as f64 / line.received as f64),
                latency_maximum_ns: known.then_some(line.latency_maximum_ns),
                histogram,
            };
            serde_json::to_writer(&mut file, &row)?;
            file.write_all(b"\n")?;
            lines += 1;
        }
    }
    file.flush().map(|()| lines)
}

fn bad_request(message: impl Into<String>, next: impl Into<String>) -> EngineError {
    EngineError::new(ErrorKind::BadRequest, message, next)
}
