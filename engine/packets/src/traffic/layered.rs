//! The frames of a stream of layers: one header for all flows, one shape for each size.

use nicbench_protocol::{Field, First, IpVersion, Layer, StreamRequest, Varied};

use super::Choice;
use super::address_match::AddressMatch;
use super::checksums::FrameChecksum;
use super::header_stack::{ComputedHeader, HeaderStack, build};
use super::shape::Shape;
use super::signature_search::SignatureSearch;
use super::sizes::Sizes;
use super::varied_field::VariedField;
use crate::error::{EngineError, ErrorKind};
use crate::port::TAG_TYPE;
use crate::signature::SIGNATURE_BYTES;
use crate::template::{AddressBits, Bounds, Intactness};
use crate::wire::ethernet::FCS_BYTES;
use crate::wire::{tcp, udp};

/// The frames of a stream of layers.
#[derive(Debug, Clone)]
pub struct Layered {
    stack: HeaderStack,
    /// The largest frame; smaller ones are its beginning.
    bytes: Vec<u8>,
    sizes: Sizes,
    /// A shape for each of `sizes`, ascending.
    shapes: Vec<Shape>,
    addressed: AddressMatch,
}

impl Layered {
    /// The frames of `request`; its sizes must be at least [`Bounds::least`].
    pub fn new(request: &StreamRequest) -> Result<Self, EngineError> {
        Ok(Self::of(build(&request.name, &layers(request))?, Sizes::of(request)?))
    }

    /// The frames of `request` as they come back; `None` where that is as they were sent.
    pub fn received(request: &StreamRequest) -> Result<Option<Self>, EngineError> {
        let Some((stack, grows)) = received_stack(request)? else { return Ok(None) };
        Ok(Some(Self::of(stack, Sizes::of(request)?.grown(grows))))
    }

    fn of(stack: HeaderStack, sizes: Sizes) -> Self {
        let pattern_from = stack.header.len() + SIGNATURE_BYTES;
        let mut bytes = stack.header.clone();
        bytes.resize(pattern_from, 0);
        let pattern = (0..).map(|index: usize| (index as u8).wrapping_mul(131).wrapping_add(89));
        bytes.extend(pattern.take((sizes.largest() - FCS_BYTES) as usize - pattern_from));
        let varied: Vec<_> = stack.places.iter().map(|place| place.bytes.clone()).chain(stack.free.clone()).collect();
        let shape = |frame_bytes: &u32| {
            let length = (frame_bytes - FCS_BYTES) as usize;
            let signature = stack.header.len();
            Shape::new(&bytes[..length], &stack.parts, (signature, length), &varied, stack.untouched_from)
        };
        let shapes: Vec<Shape> = sizes.frame_bytes.iter().map(shape).collect();
        let addressed = AddressMatch::like(&stack);
        let mut layered = Self { stack, bytes, sizes, shapes, addressed };
        let mut constant = layered.bytes.clone();
        layered.compose(0, &mut constant);
        layered.bytes = constant;
        layered
    }

    /// The largest frame of the first flow, without signature and without the checksum that covers it.
    pub fn constant(&self) -> &[u8] {
        &self.bytes
    }

    /// The largest frame's flow and lengths and checksums, into one that holds the constant bytes.
    pub fn compose(&self, flow: u32, frame: &mut [u8]) {
        let shape = &self.shapes[self.shapes.len() - 1];
        self.write_flow(flow, frame);
        shape.write_lengths(frame);
        shape.write_checksums(frame);
    }

    pub fn write_flow(&self, flow: u32, frame: &mut [u8]) {
        self.stack.places.iter().for_each(|place| place.write(frame, flow));
    }

    pub fn signature_offset(&self) -> usize {
        self.stack.header.len()
    }

    pub fn search(&self) -> SignatureSearch {
        self.stack.search
    }

    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// The shape of the frame at `position` of the stream.
    pub fn choose(&self, flow: u32, sequence: u64, position: u64) -> Choice {
        Choice { shape: self.sizes.index(position), flow, sequence: sequence as u32 }
    }

    pub fn shape(&self, index: usize) -> &Shape {
        &self.shapes[index]
    }

    /// Whether all bytes that nobody on the way may change are as sent in this flow.
    pub fn is_intact(&self, frame: &[u8], flow: u32) -> bool {
        let Ok(index) = self.shapes.binary_search_by_key(&frame.len(), |shape| shape.length) else { return false };
        let untouched = self.stack.places.iter().filter(|place| place.bytes.start >= self.stack.untouched_from);
        self.shapes[index].is_intact(frame, &self.bytes)
            && untouched.into_iter().all(|place| place.read(frame) == Some(place.values.of(flow) & place.mask))
    }

    /// See [`Intactness`].
    pub fn intactness(&self) -> Result<Intactness, EngineError> {
        let largest = &self.shapes[self.shapes.len() - 1];
        let signature = self.signature_offset();
        let checksums: Vec<FrameChecksum> = largest.untouched_checksums().cloned().collect();
        if self.shapes.len() > 1 && !checksums.is_empty() {
            return Err(EngineError::new(
                ErrorKind::BadRequest,
                "frames of several sizes with checksums in what a tunnel carries are not received in the kernel",
                "give the stream one size, or use another driver",
            ));
        }
        let mut mask = vec![0; signature];
        for range in largest.compared() {
            mask[range.start.min(signature)..range.end.min(signature)].fill(0xFF);
        }
        let mut frame = self.bytes.clone();
        largest.write_lengths(&mut frame);
        let is_untouched = |place: &&VariedField| place.bytes.start >= self.stack.untouched_from;
        Ok(Intactness {
            lengths: self.shapes.iter().map(|shape| shape.length).collect(),
            length_fields: largest.length_fields().collect(),
            value: frame[..signature].to_vec(),
            mask,
            leading: Intactness::leading_bits(self.search(), &frame, signature),
            search: self.search(),
            fields: self.stack.places.iter().filter(is_untouched).cloned().collect(),
            checksums,
        })
    }

    /// See [`AddressBits`].
    pub fn address_bits(&self) -> Option<AddressBits> {
        self.addressed.bits()
    }

    pub fn is_addressed_as_ours(&self, frame: &[u8]) -> bool {
        self.addressed.matches(frame)
    }

    /// Where the only checksum lies that covers the signature at an even place; `None` where there is none.
    pub fn payload_checksum(&self) -> Option<usize> {
        self.stack.parts.iter().rev().find_map(|part| match *part {
            ComputedHeader::Udp { at, checksum: true, .. } => Some(udp::CHECKSUM.offset(at)),
            ComputedHeader::Tcp { at, .. } => Some(tcp::CHECKSUM.offset(at)),
            _ => None,
        })
    }

    /// Whether a frame needs more than its flow's bytes, its signature and one checksum.
    pub fn is_varied(&self) -> bool {
        // Raw bytes under a checksum may shift the signature to an odd place of the sum.
        self.shapes.len() > 1 || (self.payload_checksum().is_some() && self.stack.header.len() % 2 == 1)
    }

    /// The folded sum of all that the checksum at [`Self::payload_checksum`] covers but the signature.
    pub fn sum_without_signature(&self, frame: &[u8]) -> u16 {
        let mut blank = frame.to_vec();
        blank[self.stack.header.len()..self.stack.header.len() + SIGNATURE_BYTES].fill(0);
        let shape = &self.shapes[self.shapes.len() - 1];
        self.payload_checksum().map_or(0, |at| !shape.checksum_at_place(at, &blank))
    }
}

/// The sizes of `request` and what its headers need.
pub fn bounds(request: &StreamRequest) -> Result<Bounds, EngineError> {
    let stack = build(&request.name, &layers(request))?;
    let sizes = Sizes::of(request)?;
    let least = (stack.header.len() + SIGNATURE_BYTES) as u32 + FCS_BYTES;
    let grows = received_stack(request)?.map_or(0, |(_, grows)| grows);
    let is_tagged = |layers: &[Layer]| matches!(layers.get(1), Some(Layer::Vlan { tpid: TAG_TYPE, .. }));
    let back = if request.received_layers.is_empty() { &request.layers } else { &request.received_layers };
    let tagged = [is_tagged(&request.layers), is_tagged(back)];
    Ok(Bounds { least, smallest: sizes.smallest(), largest: sizes.largest(), grows, tagged })
}

/// The headers with which frames come back, and how many more bytes they have than those sent; `None` where they are
/// the same.
fn received_stack(request: &StreamRequest) -> Result<Option<(HeaderStack, i32)>, EngineError> {
    if request.received_layers.is_empty() {
        return Ok(None);
    }
    if request.pcap.is_some() {
        let message = format!("stream {}: received_layers stand beside pcap", request.name);
        return Err(EngineError::new(ErrorKind::BadRequest, message, "remove `received_layers`, or `pcap`"));
    }
    let sent = build(&request.name, &layers(request))?;
    let mut received = build(&request.name, &request.received_layers)?;
    received.take_orders(&sent);
    received.free_hop_limit();
    let grows = received.header.len() as i32 - sent.header.len() as i32;
    Ok(Some((received, grows)))
}

/// The layers of a request; those that its flat fields stand for where it names none.
fn layers(request: &StreamRequest) -> Vec<Layer> {
    if !request.layers.is_empty() {
        return request.layers.clone();
    }
    let text = |text: &String| Field::Text(text.clone());
    let varied = |first: First, count: u32| {
        Field::Varied(Varied { first, count: count.into(), step: 1, seed: None, together: false })
    };
    let source = varied(First::Text(request.source_address.clone()), request.source_address_count);
    let destination = varied(First::Text(request.destination_address.clone()), request.destination_address_count);
    let hop_limit = Field::Number(request.hop_limit.into());
    let zero = Field::default;
    vec![
        Layer::Ethernet {
            source: text(&request.source_mac),
            destination: text(&request.destination_mac),
            ethertype: None,
        },
        match request.ip {
            IpVersion::V4 => Layer::Ipv4 {
                source,
                destination,
                hop_limit,
                traffic_class: zero(),
                identification: zero(),
                protocol: None,
            },
            IpVersion::V6 => Layer::Ipv6 {
                source,
                destination,
                hop_limit,
                traffic_class: zero(),
                flow_label: zero(),
                protocol: None,
            },
        },
        Layer::Udp {
            source: varied(First::Number(request.source_port.into()), request.source_port_count),
            destination: varied(First::Number(request.destination_port.into()), request.destination_port_count),
            checksum: false,
        },
    ]
}
