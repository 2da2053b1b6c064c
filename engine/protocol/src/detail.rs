//! What a trial may record beyond its counts, and what the reading says of it.

use serde::{Deserialize, Serialize};

/// Groups of flows with a histogram of their own, at most, over all streams.
pub const MAXIMUM_FLOW_GROUPS: u32 = 64;
/// n-reordering (RFC 4737 5.3) is counted up to this n at least: three are what makes TCP send again.
pub const MINIMUM_REORDERING_N: u32 = 3;
/// And up to this one at most.
pub const MAXIMUM_REORDERING_N: u32 = 64;

/// A line for each flow, in a file on the engine's host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowReport {
    /// Of the file, which is overwritten.
    pub path: String,
    /// With a histogram of each flow's latencies.
    #[serde(default)]
    pub histograms: bool,
}

/// Received frames, kept as pcapng: either the first ones, or those around losses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureRequest {
    /// Of the file, which is overwritten.
    pub path: String,
    /// The first so many.
    #[serde(default)]
    pub frames: Option<u32>,
    /// So many before each jump in a flow's sequence, and as many after it.
    #[serde(default)]
    pub around_loss: Option<u32>,
}

/// What was captured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureReading {
    /// Of the file.
    pub path: String,
    /// In the file.
    pub frames: u64,
    /// Jumps in sequences that were captured around.
    pub jumps: u64,
    /// Frames or jumps beyond the limits were left out.
    pub truncated: bool,
    /// Why there is no file.
    pub error: Option<String>,
}

/// The file with a line for each flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowReportReading {
    /// Of the file.
    pub path: String,
    /// Lines in it.
    pub flows: u64,
    /// Why there is no file.
    pub error: Option<String>,
}

/// RFC 4737 of one stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReorderingReading {
    /// Section 4.2: arrivals since the first frame with a greater sequence.
    pub maximum_extent: u64,
    /// Over the frames whose extent is known.
    pub mean_extent: Option<f64>,
    /// Frames whose extent is known.
    pub measured: u64,
    /// Section 5.3, n = 3: right behind three or more frames with greater sequences.
    pub by_three_or_more: u64,
    /// The same for every n from 1 on.
    #[serde(default)]
    pub n_reordered: Vec<u64>,
}

/// RFC 5481 4.1, between frames of a flow that follow one another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct VariationReading {
    /// Pairs of frames.
    pub pairs: u64,
    /// Of the absolute differences.
    pub mean_ns: f64,
    /// Of the absolute differences.
    pub maximum_ns: u64,
}

/// A stream over time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntervalsReading {
    /// Width of one.
    pub interval_ns: u64,
    /// Distinct, intact frames in each.
    pub received: Vec<u64>,
    /// Sequences that were passed over in each; negative where frames came late that were missed before.
    pub missing: Vec<i64>,
}

/// When a stream's frames arrived, from when the first frame of the transmission was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrivalsReading {
    /// The first.
    pub first_ns: u64,
    /// The last.
    pub last_ns: u64,
    /// The longest time in which none arrived, between two that did; `None` where it is not known.
    pub silence: Option<SilenceReading>,
}

/// A time in which nothing arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SilenceReading {
    /// The last arrival before it.
    pub from_ns: u64,
    /// The first arrival after it.
    pub to_ns: u64,
}

/// Flows that share a histogram.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupReading {
    /// Within the stream.
    pub first_flow: u32,
    /// From the first on.
    pub flows: u32,
    /// Distinct, intact.
    pub received: u64,
    /// Exact; `None` where nothing was received, as for the rest.
    pub minimum_ns: Option<u64>,
    /// Exact.
    pub mean_ns: Option<f64>,
    /// Exact.
    pub maximum_ns: Option<u64>,
    /// As of the stream.
    pub histogram: Option<String>,
}

/// How the flows of a stream fared, in counts of flows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowsReading {
    /// All.
    pub flows: u64,
    /// Of which nothing came though something was sent.
    pub silent: u64,
    /// That miss frames.
    pub with_loss: u64,
    /// With frames out of order.
    pub with_reordering: u64,
    /// With copies.
    pub with_duplicates: u64,
    /// With broken frames.
    pub with_corruption: u64,
    /// Number and loss of the flow that misses most.
    pub most_lost: Option<(u32, u64)>,
    /// Number and mean latency of the slowest flow.
    pub slowest: Option<(u32, f64)>,
}

/// Traffic classes (DSCP and ECN) of the frames that a stream received.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficClassesReading {
    /// Each value of the field that came, and its frames.
    pub received: Vec<(u8, u64)>,
    /// By flow: frames with CE (RFC 3168 5); empty where there are more than 1024.
    pub marked_flows: Vec<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_survive_a_round_trip_with_their_defaults() {
        let capture: CaptureRequest = serde_json::from_str(r#"{"path":"a","around_loss":64}"#).unwrap();
        assert_eq!((capture.frames, capture.around_loss), (None, Some(64)));
        assert_eq!(serde_json::from_str::<CaptureRequest>(&serde_json::to_string(&capture).unwrap()).unwrap(), capture);
        let report: FlowReport = serde_json::from_str(r#"{"path":"b"}"#).unwrap();
        assert!(!report.histograms);
        assert_eq!(serde_json::from_str::<FlowReport>(&serde_json::to_string(&report).unwrap()).unwrap(), report);
    }
}
