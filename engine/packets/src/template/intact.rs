//! What makes a frame intact, and addressed as ours, as values and masks: for a receiver that cannot run this code.

use crate::error::{EngineError, ErrorKind};
use crate::signature::SIGNATURE_BYTES;
use crate::template::Template;
use crate::traffic::{FrameChecksum, SignatureSearch, VariedField};

/// What [`Template::is_intact`] looks at.
#[derive(Debug, Clone)]
pub struct Intactness {
    /// The lengths that frames may have, ascending.
    pub lengths: Vec<usize>,
    /// Fields of 16 bits that hold the length of the frame less a constant: place and constant.
    pub length_fields: Vec<(usize, usize)>,
    /// The bytes before the signature, and which of their bits must be these.
    pub value: Vec<u8>,
    pub mask: Vec<u8>,
    /// Bits that lead to the signature: where one is another, the search must be made.
    pub leading: Vec<u8>,
    pub search: SignatureSearch,
    /// Fields in what is carried, which must have the value of the flow.
    pub fields: Vec<VariedField>,
    /// Checksums in what is carried.
    pub checksums: Vec<FrameChecksum>,
}

/// What [`Template::is_addressed_as_ours`] looks at; what it accepts agrees with this.
#[derive(Debug, Clone, Default)]
pub struct AddressBits {
    /// Frames are at least so long.
    pub length: usize,
    pub value: Vec<u8>,
    pub mask: Vec<u8>,
    pub ranges: Vec<AddressRange>,
}

/// A field that has one of the values from `first` to `first + span`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    pub at: usize,
    pub bytes: usize,
    pub shift: u32,
    pub mask: u128,
    pub first: u128,
    pub span: u128,
    /// It moves with the options of IPv4.
    pub is_behind_options: bool,
}

impl Template {
    /// What makes a frame intact; an error where it takes more than values and masks.
    pub fn intactness(&self) -> Result<Intactness, EngineError> {
        match self {
            Self::Udp(udp) => Ok(udp.intactness()),
            Self::Layered(layered) => layered.intactness(),
            Self::Captured(_) => Err(EngineError::new(
                ErrorKind::BadRequest,
                "frames of a capture file are not received in the kernel",
                "give the stream layers, or use another driver",
            )),
        }
    }

    /// What addresses a frame as ours; `None` for frames of a file.
    pub fn address_bits(&self) -> Option<AddressBits> {
        match self {
            Self::Udp(udp) => Some(udp.address_bits()),
            Self::Layered(layered) => layered.address_bits(),
            Self::Captured(_) => None,
        }
    }
}

impl Intactness {
    /// Bits of `header`, the front of an intact frame, without which `search` leads somewhere else.
    pub fn leading_bits(search: SignatureSearch, frame: &[u8], header: usize) -> Vec<u8> {
        let mut damaged = frame.to_vec();
        let found = search.offset(frame);
        let mut bits = vec![0; header];
        for (at, bits) in bits.iter_mut().enumerate() {
            for bit in (0..8).map(|bit| 1 << bit) {
                damaged[at] ^= bit;
                *bits |= if search.offset(&damaged) == found { 0 } else { bit };
                damaged[at] ^= bit;
            }
        }
        bits
    }

    /// Whether a frame of `flow` is intact: what the program in the kernel computes.
    pub fn agrees(&self, frame: &[u8], flow: u32) -> bool {
        let signature = self.value.len();
        let masked = |mask: &[u8]| (0..signature).all(|at| (frame[at] ^ self.value[at]) & mask[at] == 0);
        let is_length = |(at, minus): &(usize, usize)| crate::wire::is_u16_at(frame, *at, (frame.len() - minus) as u16);
        let pattern = (0..).map(|index: usize| (index as u8).wrapping_mul(131).wrapping_add(89));
        self.lengths.binary_search(&frame.len()).is_ok()
            && self.length_fields.iter().all(is_length)
            && masked(&self.mask)
            && frame[signature + SIGNATURE_BYTES..].iter().zip(pattern).all(|(byte, sent)| *byte == sent)
            && self.fields.iter().all(|field| field.read(frame) == Some(field.values.of(flow) & field.mask))
            && self.checksums.iter().all(|check| crate::wire::is_u16_at(frame, check.at, check.of(frame)))
            && (masked(&self.leading) || self.search.offset(frame).is_some())
    }
}

impl AddressBits {
    /// Asks for these bits at `at`.
    pub fn require(&mut self, at: usize, value: &[u8], mask: &[u8]) {
        let end = (at + value.len()).max(self.value.len());
        self.value.resize(end, 0);
        self.mask.resize(end, 0);
        self.value[at..at + value.len()].copy_from_slice(value);
        self.mask[at..at + mask.len()].copy_from_slice(mask);
    }
}
