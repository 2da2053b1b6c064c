//! `start`: one transmission, of one or more streams at once.

use serde::{Deserialize, Serialize};

use crate::detail::{CaptureRequest, FlowReport, MINIMUM_REORDERING_N};
use crate::traffic::{Layer, SizeSweep, WeightedSize};

/// The fields of `start`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// 1 and up; with the run key it keys the signature.
    pub trial: u32,
    /// The streams that are sent at once.
    pub streams: Vec<StreamRequest>,
    /// Length of the transmission.
    pub duration_s: f64,
    /// When the first frame is due, by the engine's time (`clock`); `None`: at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ns: Option<u64>,
    /// After a gap at most this much traffic is caught up.
    #[serde(default = "default_catch_up_s")]
    pub catch_up_s: f64,
    /// Largest transmit burst in frames.
    #[serde(default = "default_burst")]
    pub burst: u32,
    /// Where a latency begins.
    #[serde(default)]
    pub latency_from: LatencyFrom,
    /// A fault of the tester's own, for tests only.
    #[serde(default)]
    pub fault: Option<Fault>,
    /// Groups of flows with a histogram of their own, over all streams.
    #[serde(default = "one")]
    pub flow_groups: u32,
    /// n-reordering (RFC 4737 5.3) is counted for n from 1 to this.
    #[serde(default = "default_reordering_n")]
    pub reordering_n: u32,
    /// Whether the traffic class of each received frame is counted.
    #[serde(default)]
    pub traffic_classes: bool,
    /// The file with a line for each flow.
    #[serde(default)]
    pub flow_report: Option<FlowReport>,
    /// The file with received frames, as pcapng.
    #[serde(default)]
    pub capture: Option<CaptureRequest>,
}

fn default_catch_up_s() -> f64 {
    0.001
}

fn default_reordering_n() -> u32 {
    MINIMUM_REORDERING_N
}

fn default_burst() -> u32 {
    32
}

/// Where a latency begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LatencyFrom {
    /// From the time at which the frame's burst was handed to the port.
    #[default]
    Software,
    /// From the time at which the frame was due.
    Scheduled,
}

/// A fault of the tester's own, for tests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// Seconds from the beginning of the transmission.
    pub pause_receive_after_s: f64,
    /// Seconds without receiving.
    pub pause_receive_s: f64,
}

/// The version of the internet protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum IpVersion {
    /// IPv4.
    #[default]
    V4,
    /// IPv6.
    V6,
}

impl TryFrom<u8> for IpVersion {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        match number {
            4 => Ok(Self::V4),
            6 => Ok(Self::V6),
            other => Err(format!("`ip` is 4 or 6, not {other}")),
        }
    }
}

impl From<IpVersion> for u8 {
    fn from(version: IpVersion) -> u8 {
        match version {
            IpVersion::V4 => 4,
            IpVersion::V6 => 6,
        }
    }
}

/// One stream and its template.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamRequest {
    /// The name that replies and errors use.
    pub name: String,
    /// Number of the sending port.
    pub transmit_port: usize,
    /// Number of the port where the frames come back.
    pub receive_port: usize,
    /// The size with FCS; ignored where `sizes`, `size_sweep` or `pcap` gives sizes.
    #[serde(default)]
    pub frame_bytes: u32,
    /// 0: as fast as the port takes them.
    pub rate_frames_per_s: f64,
    /// Flows in turn, frame by frame.
    #[serde(default = "one")]
    pub flows: u32,
    /// As in `02:00:00:00:00:01`. From here to `hop_limit`: Ethernet, IP, UDP, where `layers` and `pcap` are not given.
    #[serde(default)]
    pub source_mac: String,
    /// As in `02:00:00:00:00:02`.
    #[serde(default)]
    pub destination_mac: String,
    /// 4 or 6.
    #[serde(default)]
    pub ip: IpVersion,
    /// The first of the swept addresses.
    #[serde(default)]
    pub source_address: String,
    /// The first of the swept addresses.
    #[serde(default)]
    pub destination_address: String,
    /// Addresses in turn over the flows.
    #[serde(default = "one")]
    pub source_address_count: u32,
    /// Addresses in turn over the flows.
    #[serde(default = "one")]
    pub destination_address_count: u32,
    /// The first of the swept ports.
    #[serde(default = "default_source_port")]
    pub source_port: u16,
    /// The first of the swept ports.
    #[serde(default = "default_destination_port")]
    pub destination_port: u16,
    /// Ports in turn over the flows.
    #[serde(default = "one")]
    pub source_port_count: u32,
    /// Ports in turn over the flows.
    #[serde(default = "one")]
    pub destination_port_count: u32,
    /// IPv4 time to live, IPv6 hop limit.
    #[serde(default = "default_hop_limit")]
    pub hop_limit: u8,
    /// The headers, in place of the fields above.
    #[serde(default)]
    pub layers: Vec<Layer>,
    /// The headers with which the frames come back, where they are not those with which they were sent: a tunnel begins
    /// or ends on the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub received_layers: Vec<Layer>,
    /// A mix of sizes in exact proportions.
    #[serde(default)]
    pub sizes: Vec<WeightedSize>,
    /// The seed of the order of the sizes in a mix.
    #[serde(default = "one_seed")]
    pub size_seed: u64,
    /// Sizes in turn.
    #[serde(default)]
    pub size_sweep: Option<SizeSweep>,
    /// This many frames back to back, then a pause, so that the mean rate holds.
    #[serde(default)]
    pub burst_frames: Option<u32>,
    /// Exactly this many frames; the transmission ends with them.
    #[serde(default)]
    pub frames: Option<u64>,
    /// The first frame is due this long after the transmission began.
    #[serde(default)]
    pub begins_s: f64,
    /// A file on the engine's host whose frames are sent one after another.
    #[serde(default)]
    pub pcap: Option<String>,
    /// Sends each frame of `pcap` once, when it was captured, in place of a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<Timing>,
    /// The frames of `pcap`, or of `layers` that are `raw` alone, are sent as they are, without a signature, and
    /// recognised by their bytes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsigned: bool,
    /// Of `unsigned` frames of one kind: what a frame must hold to be counted, in place of all its bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filter: Vec<FilterBytes>,
    /// Where the signature begins in each frame of `pcap`; at the end of the payload where it is left out.
    #[serde(default)]
    pub signature_offset: Option<u32>,
    /// The number of an earlier stream whose frames arrive at this one's `receive_port` too; this one sends nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_of: Option<usize>,
    /// The clock of the engine that sends this stream gains such a share on this engine's; 0 where it is the same.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sender_drift: f64,
}

/// For what is left out of the text when it is zero.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

/// When the frames of a capture are sent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// 1 is as captured, 2 twice as fast.
    pub speed: f64,
    /// Times count from the first frame of all captures of the trial that are `together`, not from this file's own.
    #[serde(default)]
    pub together: bool,
}

/// Bytes at a place of a frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterBytes {
    /// The first byte, from 0.
    pub at: u32,
    /// Pairs of hexadecimal digits.
    pub hex: String,
    /// The bits that count, as many bytes; all where it is left out.
    #[serde(default)]
    pub mask: Option<String>,
}

fn one_seed() -> u64 {
    1
}

fn one() -> u32 {
    1
}

/// RFC 2544 appendix C.2.6.4: a UDP echo request, from port C020 (hexadecimal) to port 7.
fn default_source_port() -> u16 {
    49_184
}

fn default_destination_port() -> u16 {
    7
}

fn default_hop_limit() -> u8 {
    64
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = r#"{"name":"forward","transmit_port":0,"receive_port":1,"frame_bytes":64,
        "rate_frames_per_s":1000,"source_mac":"02:00:00:00:00:01","destination_mac":"02:00:00:00:00:02","ip":4,
        "source_address":"198.18.0.2","destination_address":"198.19.0.2"}"#;

    #[test]
    fn a_stream_survives_a_round_trip() {
        let stream: StreamRequest = serde_json::from_str(STREAM).unwrap();
        let again: StreamRequest = serde_json::from_str(&serde_json::to_string(&stream).unwrap()).unwrap();
        assert_eq!(stream, again);
        assert_eq!((stream.flows, stream.ip, stream.hop_limit), (1, IpVersion::V4, 64));
    }

    #[test]
    fn a_start_survives_a_round_trip_with_its_defaults() {
        let text = format!(r#"{{"trial":1,"streams":[{STREAM}],"duration_s":1}}"#);
        let start: Start = serde_json::from_str(&text).unwrap();
        assert_eq!((start.catch_up_s, start.burst, start.latency_from), (0.001, 32, LatencyFrom::Software));
        let again: Start = serde_json::from_str(&serde_json::to_string(&start).unwrap()).unwrap();
        assert_eq!(start, again);
    }

    #[test]
    fn a_stream_of_layers_and_mixed_sizes_survives_a_round_trip() {
        let text = r#"{"name":"x","transmit_port":0,"receive_port":1,"rate_frames_per_s":1e3,"flows":4,"layers":[
            {"layer":"ethernet","source":"02:00:00:00:00:01","destination":"02:00:00:00:00:02"},
            {"layer":"raw","hex":"00"}],"sizes":[{"frame_bytes":64,"weight":7}],"burst_frames":8,"frames":100}"#;
        let stream: StreamRequest = serde_json::from_str(text).unwrap();
        let again: StreamRequest = serde_json::from_str(&serde_json::to_string(&stream).unwrap()).unwrap();
        assert_eq!(stream, again);
        assert_eq!((stream.layers.len(), stream.frame_bytes, stream.size_seed, stream.pcap), (2, 0, 1, None));
    }

    #[test]
    fn another_version_of_ip_is_refused() {
        assert!(serde_json::from_str::<StreamRequest>(&STREAM.replace(r#""ip":4"#, r#""ip":5"#)).is_err());
    }
}
