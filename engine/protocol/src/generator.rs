//! The generator's requests: flows that begin, pause and end on their own while others go on (README, "Generator").

use serde::{Deserialize, Serialize};

use crate::frame_program::{Filler, Fixup, FrameField, FrameMatch, FrameSizes};

/// The fields of `load`: replaces all flows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// In order: the index is the flow's number in all other requests.
    pub flows: Vec<FlowRequest>,
}

/// One flow: what its frames are, when they are sent, and where they are received.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowRequest {
    /// Used by errors.
    pub name: String,
    /// Number of the port that sends.
    pub transmit_port: usize,
    /// Numbers of the ports that receive; empty: nobody does.
    #[serde(default)]
    pub receive_ports: Vec<usize>,
    /// The frame's first bytes in hexadecimal: headers and fixed payload.
    pub template: String,
    /// What differs from frame to frame.
    #[serde(default)]
    pub fields: Vec<FrameField>,
    /// Lengths and checksums, computed in this order.
    #[serde(default)]
    pub fixups: Vec<Fixup>,
    /// With FCS.
    pub sizes: FrameSizes,
    /// What follows the template.
    #[serde(default)]
    pub filler: Filler,
    /// Frames per second; inside a burst, where there are bursts.
    pub rate_frames_per_s: f64,
    /// Frames in bursts, with gaps between them.
    #[serde(default)]
    pub burst: Option<Burst>,
    /// Exactly this many frames.
    #[serde(default)]
    pub frames: Option<u64>,
    /// Exactly this many bursts.
    #[serde(default)]
    pub bursts: Option<u64>,
    /// Frames for so long.
    #[serde(default)]
    pub duration_s: Option<f64>,
    /// From the start until the first frame.
    #[serde(default)]
    pub delay_s: f64,
    /// Whether frames that are late are sent all the same, however late.
    #[serde(default = "yes")]
    pub exact: bool,
    /// Whether the last 16 bytes before the FCS are a signature.
    #[serde(default = "yes")]
    pub signature: bool,
    /// Without a signature: which received frames are of this flow.
    #[serde(default, rename = "match")]
    pub matches: Option<FrameMatch>,
    /// Fields of received frames, by whose values they are counted as well.
    #[serde(default)]
    pub tags: Vec<FlowTag>,
}

/// A field of received frames, of at most 128 bits together with the others of its flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowTag {
    /// Where it begins, in bits of the frame.
    pub offset_bits: u32,
    /// How long it is.
    pub bits: u32,
}

fn yes() -> bool {
    true
}

/// Frames in bursts. Gaps come on top of the time that a frame takes, which is 1 / rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Burst {
    /// Frames of a burst.
    pub packets: u64,
    /// Between two frames of a burst.
    #[serde(default)]
    pub gap_between_packets_s: f64,
    /// Between two bursts.
    #[serde(default)]
    pub gap_between_bursts_s: f64,
}

/// The fields of `control`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Control {
    /// What is to happen.
    pub action: FlowAction,
    /// To which flows; `None`: to all.
    #[serde(default)]
    pub flows: Option<Vec<u32>>,
}

/// What may happen to flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowAction {
    /// Flows that do not transmit begin anew.
    Start,
    /// Flows that transmit or pause end.
    Stop,
    /// Flows that transmit hold on.
    Pause,
    /// Flows that pause go on.
    Resume,
}

/// The fields of `tally`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Of which flows; `None`: of all.
    #[serde(default)]
    pub flows: Option<Vec<u32>>,
    /// Whether their latency histograms are wanted.
    #[serde(default)]
    pub histograms: bool,
    /// Whether flows are told by columns, and only what changes all the time.
    #[serde(default)]
    pub columns: bool,
}

/// The fields of `capture`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PortCapture {
    /// Whether captures begin or end.
    pub action: CaptureAction,
    /// At which ports.
    pub ports: Vec<usize>,
    /// Of `start`: the files are this, the port's name and the extension of their format.
    #[serde(default)]
    pub path_prefix: String,
    /// What the files are written as.
    #[serde(default)]
    pub format: CaptureFormat,
    /// A frame is kept if all of them hold.
    #[serde(default)]
    pub filters: Vec<CaptureFilter>,
    /// The longest that a file may become.
    #[serde(default = "default_capture_bytes")]
    pub at_most_bytes: u64,
    /// Whether the last frames are kept, rather than the first, where not all find room.
    #[serde(default)]
    pub overwrite: bool,
    /// So many bytes of each frame are kept; `None`: all.
    #[serde(default)]
    pub snap_bytes: Option<u32>,
}

/// The format of a capture's file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CaptureFormat {
    /// Classic pcap.
    #[default]
    Pcap,
    /// The newer one, which says how long the FCS is.
    PcapNg,
}

impl CaptureFormat {
    /// Of a file's name, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Pcap => "pcap",
            Self::PcapNg => "pcapng",
        }
    }
}

fn default_capture_bytes() -> u64 {
    256 << 20
}

/// Whether captures begin or end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureAction {
    /// They begin.
    Start,
    /// They end, and the files are complete.
    Stop,
}

/// A condition on a frame's bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureFilter {
    /// Where they begin.
    pub offset: usize,
    /// What they are, in hexadecimal.
    pub bytes: String,
    /// Which bits count, in hexadecimal; `None`: all.
    #[serde(default)]
    pub mask: Option<String>,
    /// Whether they must differ.
    #[serde(default)]
    pub negate: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame_program::Values;

    const FLOW: &str = r#"{"name":"f1","transmit_port":0,"receive_ports":[1],"template":"00","sizes":{"fixed":64},
        "fields":[{"bit_offset":176,"bits":16,"values":{"first":5000,"step":-1,"count":251}},
            {"bit_offset":0,"bits":128,"values":{"list":["20010db8000000000000000000000001", 7]}},
            {"bit_offset":0,"bits":8,"values":{"random":{"first":1,"count":3,"seed":5}}}],
        "fixups":[{"kind":"length","at":16,"counted_from":14},{"kind":"checksum","at":24,"from":14,"to":34}],
        "rate_frames_per_s":10.5,"signature":false,"match":{"fields":[],"bytes":[64]}}"#;

    #[test]
    fn a_flow_survives_a_round_trip_with_its_defaults() {
        let flow: FlowRequest = serde_json::from_str(FLOW).unwrap();
        let again: FlowRequest = serde_json::from_str(&serde_json::to_string(&flow).unwrap()).unwrap();
        assert_eq!(flow, again);
        assert!(flow.exact && !flow.signature && flow.filler == Filler::Zeros && flow.matches.is_some());
        let Values::Range(range) = &flow.fields[0].values else { panic!("{flow:?}") };
        assert_eq!((range.step.0 as u16, range.count), (0xFFFF, 251));
        let Values::List { list } = &flow.fields[1].values else { panic!("{flow:?}") };
        assert_eq!(list[0].0, 0x2001_0db8_0000_0000_0000_0000_0000_0001);
    }

    #[test]
    fn a_number_that_is_none_is_refused() {
        assert!(serde_json::from_str::<FlowRequest>(&FLOW.replace("5000", "\"5 thousand\"")).is_err());
    }
}
