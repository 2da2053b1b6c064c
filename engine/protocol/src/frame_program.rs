//! What the frames of a generator's flow are: fields, lengths, checksums, sizes and filler.

use serde::{Deserialize, Serialize};

use crate::traffic::WeightedSize;

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
    /// Where the destination stands instead, if a routing header has it (RFC 8200 8.1).
    #[serde(default)]
    pub destination_at: Option<usize>,
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

/// Which frames are of a flow that has no signature: all fields and the size must be as written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrameMatch {
    /// A frame's field holds one of its values.
    pub fields: Vec<FrameField>,
    /// Its size with FCS is one of these; `None`: any.
    #[serde(default)]
    pub bytes: Option<Vec<u32>>,
}
