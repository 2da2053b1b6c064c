//! What the generator replies: the counts of its flows and ports, and the files of its captures.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::HealthReading;

/// The reply to `load`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadReply {
    /// How many flows there are.
    pub loaded: u32,
}

/// The reply to `control`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlReply {
    /// When it happened: the monotonic time of the engine's host.
    pub at_ns: u64,
    /// To how many flows: those in another state were left alone.
    pub changed: u32,
}

/// The reply to `tally`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TallyReply {
    /// When it was counted: the monotonic time of the engine's host.
    pub at_ns: u64,
    /// In the order of the request; empty where columns were asked for.
    pub flows: Vec<FlowTally>,
    /// The same flows by columns, where they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<FlowColumns>,
    /// In their order.
    pub ports: Vec<PortCounts>,
    /// How the loop fared since a flow was started while none transmitted; `None` before that. The machine's state is
    /// known when all flows have ended.
    pub health: Option<HealthReading>,
}

/// How far a flow is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowState {
    /// It does not transmit.
    #[default]
    Stopped,
    /// It transmits.
    Started,
    /// It holds on.
    Paused,
}

/// The counts of one flow since it was started. What only a signature tells is `None` without one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowTally {
    /// Its number.
    pub flow: u32,
    /// How far it is.
    pub state: FlowState,
    /// Frames that the port has taken.
    pub sent: u64,
    /// With FCS.
    pub sent_bytes: u64,
    /// Frames in all; `None` where the flow goes on until it is stopped.
    pub intended: Option<u64>,
    /// Frames that were given up because they were late; 0 where all are sent, however late.
    pub unsent_tester: u64,
    /// Of those that were given up: frames that a port marked `lossless` refused.
    pub unsent_backpressure: u64,
    /// The longest time from when a frame was due until the port took it.
    pub late_maximum_ns: u64,
    /// Distinct intact frames; `None` where nobody receives.
    pub received: Option<u64>,
    /// With FCS.
    pub received_bytes: Option<u64>,
    /// Frames that are missing. While the flow transmits, only those that others overtook.
    pub lost: Option<u64>,
    /// While the flow transmits: frames that were sent and are neither received nor known to be lost.
    pub in_flight: Option<u64>,
    /// Frames that came again.
    pub duplicated: Option<u64>,
    /// Frames that came after a later one (RFC 4737).
    pub reordered: Option<u64>,
    /// Frames with an intact signature whose filler or length is not as sent.
    pub corrupted: Option<u64>,
    /// Frames that came in by a port that is none of its `receive_ports`.
    pub misdirected: Option<u64>,
    /// `None` where nothing was received, or there is no signature.
    pub latency: Option<FlowLatency>,
    /// UNIX time.
    pub first_sent_ns: Option<u64>,
    /// UNIX time.
    pub last_sent_ns: Option<u64>,
    /// UNIX time.
    pub first_received_ns: Option<u64>,
    /// UNIX time.
    pub last_received_ns: Option<u64>,
    /// What each of its `receive_ports` received, in their order.
    pub by_port: Vec<FlowAtPort>,
    /// What was received by the values of its `tags`; empty where it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tagged: Vec<FlowTagged>,
}

/// Frames of a flow with the same values in its tags.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowTagged {
    /// The value of each tag, in hexadecimal; `None`: of all frames that came when 4096 values were known.
    pub values: Option<Vec<String>>,
    /// Frames that were received.
    pub frames: u64,
    /// With FCS.
    pub bytes: u64,
    /// UNIX time.
    pub first_ns: u64,
    /// UNIX time.
    pub last_ns: u64,
}

/// The counts of many flows, as lists with one value for each of them: as text half of their tallies. The meanings are
/// those of [`FlowTally`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowColumns {
    /// Their numbers.
    pub flow: Vec<u32>,
    /// How far they are.
    pub state: Vec<FlowState>,
    /// Frames in all.
    pub intended: Vec<Option<u64>>,
    /// Frames that the port has taken.
    pub sent: Vec<u64>,
    /// With FCS.
    pub sent_bytes: Vec<u64>,
    /// Frames that were given up because they were late.
    pub unsent_tester: Vec<u64>,
    /// Frames that a port marked `lossless` refused.
    pub unsent_backpressure: Vec<u64>,
    /// The longest time from when a frame was due until the port took it.
    pub late_maximum_ns: Vec<u64>,
    /// Distinct intact frames.
    pub received: Vec<Option<u64>>,
    /// With FCS.
    pub received_bytes: Vec<Option<u64>>,
    /// Frames that are missing.
    pub lost: Vec<Option<u64>>,
    /// Frames that came again.
    pub duplicated: Vec<Option<u64>>,
    /// Frames that came after a later one.
    pub reordered: Vec<Option<u64>>,
    /// Frames that are not as they were sent.
    pub corrupted: Vec<Option<u64>>,
    /// Frames whose latency is known.
    pub latency_count: Vec<Option<u64>>,
    /// The least latency.
    pub latency_minimum_ns: Vec<Option<u64>>,
    /// Exact.
    pub latency_mean_ns: Vec<Option<f64>>,
    /// The greatest latency.
    pub latency_maximum_ns: Vec<Option<u64>>,
    /// UNIX time.
    pub first_sent_ns: Vec<Option<u64>>,
    /// UNIX time.
    pub last_sent_ns: Vec<Option<u64>>,
    /// UNIX time.
    pub first_received_ns: Vec<Option<u64>>,
    /// UNIX time.
    pub last_received_ns: Vec<Option<u64>>,
}

impl FlowColumns {
    /// Adds a flow.
    pub fn push(&mut self, flow: &FlowTally) {
        let latency = flow.latency.as_ref();
        self.flow.push(flow.flow);
        self.state.push(flow.state);
        self.intended.push(flow.intended);
        self.sent.push(flow.sent);
        self.sent_bytes.push(flow.sent_bytes);
        self.unsent_tester.push(flow.unsent_tester);
        self.unsent_backpressure.push(flow.unsent_backpressure);
        self.late_maximum_ns.push(flow.late_maximum_ns);
        self.received.push(flow.received);
        self.received_bytes.push(flow.received_bytes);
        self.lost.push(flow.lost);
        self.duplicated.push(flow.duplicated);
        self.reordered.push(flow.reordered);
        self.corrupted.push(flow.corrupted);
        self.latency_count.push(latency.map(|latency| latency.count));
        self.latency_minimum_ns.push(latency.map(|latency| latency.minimum_ns));
        self.latency_mean_ns.push(latency.map(|latency| latency.mean_ns));
        self.latency_maximum_ns.push(latency.map(|latency| latency.maximum_ns));
        self.first_sent_ns.push(flow.first_sent_ns);
        self.last_sent_ns.push(flow.last_sent_ns);
        self.first_received_ns.push(flow.first_received_ns);
        self.last_received_ns.push(flow.last_received_ns);
    }
}

/// The latency of a flow's frames, at all its ports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowLatency {
    /// Frames.
    pub count: u64,
    /// The least.
    pub minimum_ns: u64,
    /// Exact.
    pub mean_ns: f64,
    /// The greatest.
    pub maximum_ns: u64,
    /// HdrHistogram V2 in base64; `None` where it was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<String>,
}

/// What one port received of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowAtPort {
    /// Its number.
    pub port: usize,
    /// Distinct intact frames.
    pub received: u64,
    /// With FCS.
    pub received_bytes: u64,
    /// UNIX time.
    pub first_received_ns: Option<u64>,
    /// UNIX time.
    pub last_received_ns: Option<u64>,
}

/// The counts of one port since the flows were loaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PortCounts {
    /// The value of `configure`.
    pub name: String,
    /// Frames that it has taken.
    pub sent: u64,
    /// With FCS.
    pub sent_bytes: u64,
    /// All frames that arrived, whosever they are.
    pub received: u64,
    /// With FCS.
    pub received_bytes: u64,
    /// Frames of no flow.
    pub foreign: u64,
    /// Frames that a flow sent before it was started anew, or before the flows were loaded.
    pub stale: u64,
    /// `None` where it is unknown.
    pub link_up: Option<bool>,
    /// All other counters, since the port was configured.
    pub counters: BTreeMap<String, u64>,
}

/// The reply to `capture`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapturesReply {
    /// In the order of the request.
    pub captures: Vec<CapturedFile>,
}

/// One port's capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapturedFile {
    /// The port's number.
    pub port: usize,
    /// The file.
    pub path: String,
    /// Frames in it.
    pub frames: u64,
    /// Its length.
    pub bytes: u64,
    /// Frames that passed the filters and are not in it.
    pub dropped: u64,
    /// Why the file is not whole; `None` where it is.
    pub error: Option<String>,
}
