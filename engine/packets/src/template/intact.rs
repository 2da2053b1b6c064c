//! What makes a frame intact, and addressed as ours, as values and masks: for a receiver that cannot run this code.

use crate::error::{EngineError, ErrorKind};
use crate::signature::SIGNATURE_BYTES;
use crate::template::Template;
use crate::traffic::{FrameChecksum, SignatureSearch, VariedField};
use crate::wire::{Ethernet, Header};

/// Of a header of IPv4: version, and its length in words.
const FIRST_BYTE_WITHOUT_OPTIONS: u8 = 0x45;

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

/// Whether frames have a stream's addresses and ports, by what the program in the kernel can tell as well: a field that
/// is varied in steps may have a value between them, and ports behind options are not looked at.
#[derive(Debug, Clone)]
pub enum AddressCheck {
    Bits(AddressBits),
    /// Frames of a file, which no program in the kernel receives.
    Whole(Template),
}

impl AddressCheck {
    pub fn new(template: &Template) -> Self {
        template.address_bits().map_or_else(|| Self::Whole(template.clone()), Self::Bits)
    }

    pub fn agree(&self, frame: &[u8]) -> bool {
        match self {
            Self::Bits(bits) => bits.agree(frame),
            Self::Whole(template) => template.is_addressed_as_ours(frame),
        }
    }
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
    /// Whether a frame has them: `is_addressed_as_ours` of the program in the kernel.
    pub fn agree(&self, frame: &[u8]) -> bool {
        let byte = |at: usize| frame.get(at).copied().unwrap_or(0);
        let has_options = byte(Ethernet::BYTES) != FIRST_BYTE_WITHOUT_OPTIONS;
        let is_in = |range: &AddressRange| {
            let bytes = (range.at..range.at + range.bytes).map(byte);
            let whole = bytes.fold(0u128, |number, byte| number << 8 | u128::from(byte));
            (whole >> range.shift & range.mask).wrapping_sub(range.first) <= range.span
        };
        let masked = self.mask.iter().zip(&self.value).enumerate();
        frame.len() >= self.length
            && masked.clone().all(|(at, (mask, value))| (byte(at) ^ value) & mask == 0)
            && self.ranges.iter().all(|range| range.is_behind_options && has_options || is_in(range))
    }

    /// Asks for these bits at `at`.
    pub fn require(&mut self, at: usize, value: &[u8], mask: &[u8]) {
        let end = (at + value.len()).max(self.value.len());
        self.value.resize(end, 0);
        self.mask.resize(end, 0);
        self.value[at..at + value.len()].copy_from_slice(value);
        self.mask[at..at + mask.len()].copy_from_slice(mask);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::Random;
    use serde_json::{Value, json};

    fn templates() -> Vec<Template> {
        let macs = json!({"layer": "ethernet", "source": "02:00:00:00:00:01", "destination": "02:00:00:00:00:02"});
        let ipv4 = json!({"layer": "ipv4", "source": {"first": "10.0.0.1", "count": 9}, "destination": "10.1.0.2"});
        let ipv6 = json!({"layer": "ipv6", "source": "2001:2::1", "destination": "2001:2::2"});
        let udp = json!({"layer": "udp", "source": 1, "destination": 4789, "checksum": true});
        let tcp = json!({"layer": "tcp", "source": {"first": 1, "count": 9, "seed": 7}, "destination": 2});
        let (vlan, vxlan) = (json!({"layer": "vlan", "id": 5}), json!({"layer": "vxlan", "vni": 9}));
        let plain = |ip: u8, from: &str, to: &str| json!({"ip": ip, "source_address": from, "destination_address": to});
        let layers = |layers: Value| json!({"layers": layers});
        let requests = [
            plain(4, "198.18.0.2", "198.19.0.2"),
            plain(6, "2001:2::1", "2001:2::2"),
            layers(json!([macs, vlan, ipv4, tcp])),
            layers(json!([macs, ipv6, udp])),
            layers(json!([macs, ipv4, udp, vxlan, macs, ipv4, tcp])),
            layers(json!([macs, ipv4, {"layer": "raw", "hex": "00112233"}])),
            layers(json!([macs, ipv4, {"layer": "gre", "key": 7}, ipv4, tcp])),
            layers(json!([macs, vlan, {"layer": "mpls", "label": 17}, ipv4, tcp])),
            layers(json!([macs, ipv6, {"layer": "segment_routing", "segments": ["2001:2::2"]}, ipv4, udp])),
            layers(json!([macs, ipv4, udp, {"layer": "gtp", "teid": 9}, ipv4, udp])),
            layers(json!([macs, {"layer": "pppoe", "session": 9}, ipv6, udp])),
            layers(json!([macs, ipv4, ipv6, udp])),
        ];
        let template = |mut request: Value| {
            for (name, value) in [("name", json!("s")), ("transmit_port", json!(0)), ("receive_port", json!(1))] {
                request[name] = value;
            }
            (request["rate_frames_per_s"], request["frame_bytes"], request["flows"]) = (json!(1), json!(220), json!(9));
            (request["source_mac"], request["destination_mac"]) =
                (json!("02:00:00:00:00:01"), json!("02:00:00:00:00:02"));
            Template::new(&serde_json::from_value(request).unwrap()).unwrap()
        };
        requests.into_iter().map(template).collect()
    }

    #[test]
    fn values_and_masks_say_what_the_template_says_whatever_byte_is_damaged() {
        let mut random = Random::seeded(3, 1, 1);
        for (number, template) in templates().into_iter().enumerate() {
            let intactness = template.intactness().unwrap();
            let sent = template.constant().to_vec();
            assert!(template.is_intact(&sent, 0, 0) && intactness.agrees(&sent, 0), "{number}");
            for at in 0..sent.len() {
                for _ in 0..12 {
                    let (mut frame, flow) = (sent.clone(), random.below(9) as u32);
                    template.compose(flow, &mut frame);
                    frame[at] ^= random.bits() as u8;
                    if random.below(2) == 0 {
                        let other = random.below(60) as usize;
                        frame[other] ^= 1 << random.below(8);
                    }
                    let (ours, theirs) = (intactness.agrees(&frame, flow), template.is_intact(&frame, flow, 0));
                    assert_eq!(ours, theirs, "template {number}, byte {at}: {frame:02x?}");
                }
            }
        }
    }
}
