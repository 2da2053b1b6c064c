//! The generator's requests: flows that begin, pause and end on their own while others go on (README, "Generator").

use serde::{Deserialize, Serialize};

use crate::traffic::WeightedSize;

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
}

fn yes() -> bool {
    true
}

/// Bits of a frame, big endian, and the values they take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrameField {
    /// From the first bit of the frame.
    pub bit_offset: u32,
    /// 1 to 128.
    pub bits: u32,
    /// Frame number n of a flow takes value n modulo their count.
    pub values: Values,
}

/// Values in their order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Values {
    /// In steps.
    Range(ValueRange),
    /// As written.
    List {
        /// At least one.
        list: Vec<Wide>,
    },
    /// At random.
    Random {
        /// Of these.
        random: RandomValues,
    },
}

/// first, first + step, ...: `count` values, modulo the field's width.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ValueRange {
    /// The first value.
    pub first: Wide,
    /// Added for each next one.
    #[serde(default = "one_wide")]
    pub step: Wide,
    /// At least 1.
    #[serde(default = "one")]
    pub count: u64,
}

/// Values of a range, in an order that follows from the seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RandomValues {
    /// Which values there are.
    #[serde(flatten)]
    pub range: ValueRange,
    /// Equal seeds give equal orders.
    #[serde(default = "one")]
    pub seed: u64,
    /// After so many frames the order begins anew; `None`: never.
    #[serde(default)]
    pub repeats_after: Option<u64>,
}

fn one() -> u64 {
    1
}

fn one_wide() -> Wide {
    Wide(1)
}

/// An integer of up to 128 bits: a number, or text of hexadecimal digits. Negative steps go backwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WrittenWide", into = "WrittenWide")]
pub struct Wide(pub u128);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum WrittenWide {
    Number(u64),
    Negative(i64),
    Hexadecimal(String),
}

impl TryFrom<WrittenWide> for Wide {
    type Error = String;

    fn try_from(written: WrittenWide) -> Result<Self, String> {
        match written {
            WrittenWide::Number(number) => Ok(Self(number.into())),
            WrittenWide::Negative(number) => Ok(Self(i128::from(number) as u128)),
            WrittenWide::Hexadecimal(text) => {
                let digits = text.strip_prefix("0x").unwrap_or(&text);
                u128::from_str_radix(digits, 16).map(Self).map_err(|_| format!("{text:?} is no hexadecimal number"))
            }
        }
    }
}

impl From<Wide> for WrittenWide {
    fn from(Wide(value): Wide) -> Self {
        u64::try_from(value).map_or_else(|_| Self::Hexadecimal(format!("{value:x}")), Self::Number)
    }
}

/// A value that follows from the rest of the frame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Fixup {
    /// Bytes of the frame without FCS, from `counted_from` on, less `minus`.
    Length {
        /// Where it stands.
        at: usize,
        /// Its own length: 1, 2 or 4.
        #[serde(default = "two")]
        bytes: usize,
        /// The first byte that counts.
        counted_from: usize,
        /// Bytes that do not count.
        #[serde(default)]
        minus: usize,
    },
    /// The internet checksum (RFC 1071) of some bytes, in which it stands as 0.
    Checksum {
        /// Where it stands.
        at: usize,
        /// The first byte that is summed.
        from: usize,
        /// The byte behind the last; `None`: the end of the frame.
        #[serde(default)]
        to: Option<usize>,
        /// Where `to` is left out: so many bytes at the frame's end are not summed.
        #[serde(default)]
        minus: usize,
        /// What is summed besides (RFC 9293 3.1, RFC 8200 8.1).
        #[serde(default)]
        pseudo: Option<PseudoHeader>,
        /// Whether 0 is sent as 0xFFFF (RFC 768).
        #[serde(default)]
        zero_as_ffff: bool,
        /// Whether its lowest bit is inverted: it is to be wrong.
        #[serde(default)]
        spoil: bool,
    },
}

fn two() -> usize {
    2
}

/// The pseudo-header of a checksum: addresses, protocol and the length of what is summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PseudoHeader {
    /// Where the addresses stand in the frame.
    pub addresses_at: usize,
    /// Of both together: 8 or 32.
    pub address_bytes: usize,
    /// The protocol's number.
    pub protocol: u8,
}

/// The sizes of a flow's frames, with FCS.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FrameSizes {
    /// All alike.
    Fixed {
        /// The size.
        fixed: u32,
    },
    /// One after another, over and over.
    Sweep {
        /// The smallest.
        from: u32,
        /// The largest.
        to: u32,
        /// Between two.
        #[serde(default = "one_byte")]
        step: u32,
    },
    /// Any of a range, each as often.
    Random {
        /// Of these.
        random: RandomSizes,
    },
    /// In exact proportions, in a seeded order.
    Weighted {
        /// Sizes with their weights.
        weighted: Vec<WeightedSize>,
        /// Of the order.
        #[serde(default = "one")]
        seed: u64,
    },
}

fn one_byte() -> u32 {
    1
}

/// Sizes drawn from a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RandomSizes {
    /// The smallest.
    pub from: u32,
    /// The largest.
    pub to: u32,
    /// Equal seeds give equal orders.
    #[serde(default = "one")]
    pub seed: u64,
}

/// What follows the template until the frame has its size.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Filler {
    /// Zeros.
    #[default]
    Zeros,
    /// These bytes, over and over.
    Hex {
        /// At least one byte.
        hex: String,
    },
    /// 0, 1, ... 255, 0, ...
    IncrementingByte,
    /// Random bytes, the same in all frames of the flow.
    Random {
        /// Equal seeds give equal bytes.
        #[serde(default = "one")]
        seed: u64,
    },
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

/// Which frames are of a flow that has no signature: all fields and the size must be as written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrameMatch {
    /// A frame's field holds one of its values.
    pub fields: Vec<FrameField>,
    /// Its size with FCS is one of these; `None`: any.
    #[serde(default)]
    pub bytes: Option<Vec<u32>>,
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
}

/// The fields of `capture`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PortCapture {
    /// Whether captures begin or end.
    pub action: CaptureAction,
    /// At which ports.
    pub ports: Vec<usize>,
    /// Of `start`: the files are this, the port's name and `.pcap`.
    #[serde(default)]
    pub path_prefix: String,
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
