//! The frames of a stream, whatever they are made of. Lengths here are without FCS.
//!
//! Most streams send Ethernet, IP and UDP in one size; every other one has layers, sizes or the frames of a file.

use std::sync::Arc;

use nicbench_protocol::StreamRequest;

use crate::error::EngineError;
use crate::signature::SIGNATURE_BYTES;
use crate::traffic::signature_search::payload_offset;
use crate::traffic::{Captured, Choice, Layered, Shape, SignatureSearch, layered};

mod intact;
mod udp;

pub use intact::{AddressBits, AddressCheck, AddressRange, Intactness};
pub use udp::{UdpTemplate, minimum_frame_bytes as minimum_udp_frame_bytes};

/// What the frames of a stream are made of.
#[derive(Debug, Clone)]
pub enum Template {
    Udp(UdpTemplate),
    Layered(Arc<Layered>),
    Captured(Arc<Captured>),
}

/// The sizes of a request's frames, and the smallest that its headers allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The size that headers and signature need, with FCS.
    pub least: u32,
    /// The smallest and the largest frame asked for, with FCS.
    pub smallest: u32,
    pub largest: u32,
    /// How much larger frames come back than they are sent; negative where a tunnel ends on the way.
    pub grows: i32,
    /// Whether a VLAN tag stands behind the addresses of the frames as they are sent, and as they come back.
    pub tagged: [bool; 2],
}

impl Template {
    /// Builds the frames; their sizes must have been checked against [`Bounds::least`].
    pub fn new(request: &StreamRequest) -> Result<Self, EngineError> {
        Ok(match Kind::of(request) {
            Kind::Udp => Self::Udp(UdpTemplate::new(request)?),
            Kind::Layered => Self::Layered(Arc::new(Layered::new(request)?)),
            Kind::Captured if request.pcap.is_none() => Self::Captured(Arc::new(Captured::raw(request)?)),
            Kind::Captured => Self::Captured(Arc::new(Captured::read(request)?)),
        })
    }

    /// The frames as they come back, where they have other headers than those sent.
    pub fn received(request: &StreamRequest) -> Result<Option<Self>, EngineError> {
        let received = Layered::received(request)?;
        Ok(received.map(|layered| Self::Layered(Arc::new(layered))))
    }

    /// The frames of a file or without a signature; `None` for all others.
    pub fn captured(&self) -> Option<&Captured> {
        match self {
            Self::Captured(captured) => Some(captured),
            _ => None,
        }
    }

    /// How many flows there are, where `request` alone does not say so.
    pub fn flows(&self, request: &StreamRequest) -> u32 {
        match self {
            Self::Udp(_) | Self::Layered(_) => request.flows,
            Self::Captured(captured) => captured.flows(),
        }
    }

    /// The length of the largest frame, without FCS.
    pub fn length(&self) -> usize {
        self.constant().len()
    }

    /// Where the signature begins in every frame; meaningless where frames are varied.
    pub fn signature_offset(&self) -> usize {
        match self {
            Self::Udp(udp) => udp.signature_offset(),
            Self::Layered(layered) => layered.signature_offset(),
            Self::Captured(_) => 0,
        }
    }

    /// The largest frame of the first flow, without signature: what no frame of the stream differs in, and more.
    pub fn constant(&self) -> &[u8] {
        match self {
            Self::Udp(udp) => udp.constant(),
            Self::Layered(layered) => layered.constant(),
            Self::Captured(captured) => captured.blank(),
        }
    }

    /// Writes everything that never differs between the frames of the stream into one of the largest size.
    pub fn write_constant(&self, frame: &mut [u8]) {
        frame.copy_from_slice(self.constant());
    }

    /// Writes what makes a frame one of `flow` (from 0 within the stream) into one that holds the constant bytes.
    #[inline(always)]
    pub fn compose(&self, flow: u32, frame: &mut [u8]) {
        match self {
            Self::Udp(udp) => udp.compose(flow, frame),
            Self::Layered(layered) => layered.compose(flow, frame),
            Self::Captured(_) => {}
        }
    }

    /// Where the checksum lies that covers the signature, if there is one; a result of zero is sent as 0xFFFF.
    pub fn payload_checksum(&self) -> Option<usize> {
        match self {
            Self::Udp(udp) => udp.payload_checksum(),
            Self::Layered(layered) => layered.payload_checksum(),
            Self::Captured(_) => None,
        }
    }

    /// The folded sum of all that the checksum at [`Self::payload_checksum`] covers but the signature.
    pub fn sum_without_signature(&self, frame: &[u8]) -> u16 {
        match self {
            Self::Udp(udp) => udp.sum_without_signature(frame),
            Self::Layered(layered) => layered.sum_without_signature(frame),
            Self::Captured(_) => 0,
        }
    }

    /// Whether frames differ in more than flow, signature and one checksum: then [`Self::choose`] says in what.
    pub fn is_varied(&self) -> bool {
        match self {
            Self::Udp(_) => false,
            Self::Layered(layered) => layered.is_varied(),
            Self::Captured(_) => true,
        }
    }

    /// Which frame is sent at `flow` and `sequence` of a stream of so many flows.
    pub fn choose(&self, flow: u32, sequence: u64, flows: u32) -> Choice {
        let position = sequence.wrapping_mul(flows.into()).wrapping_add(flow.into());
        match self {
            Self::Udp(_) => Choice { shape: 0, flow, sequence: sequence as u32 },
            Self::Layered(layered) => layered.choose(flow, sequence, position),
            Self::Captured(captured) => captured.choose(position),
        }
    }

    /// The shape of a varied frame; `None` where no frame is varied.
    pub fn shape(&self, choice: Choice) -> Option<&Shape> {
        match self {
            Self::Udp(_) => None,
            Self::Layered(layered) => Some(layered.shape(choice.shape)),
            Self::Captured(captured) => Some(captured.shape(choice.shape)),
        }
    }

    /// Writes all of a varied frame but the signature and the checksums, into one that holds the constant bytes.
    pub fn write_varied(&self, choice: Choice, frame: &mut [u8]) {
        match self {
            Self::Udp(udp) => udp.compose(choice.flow, frame),
            Self::Layered(layered) => {
                layered.write_flow(choice.flow, frame);
                layered.shape(choice.shape).write_lengths(frame);
            }
            Self::Captured(captured) => {
                frame.copy_from_slice(captured.frame(choice.shape));
                captured.shape(choice.shape).write_lengths(frame);
            }
        }
    }

    /// Whether length and payload are as sent in this flow (from 0 within the stream) and sequence. MAC addresses,
    /// tags, hop limit and checksums may change on the way.
    #[inline]
    pub fn is_intact(&self, frame: &[u8], flow: u32, sequence: u32) -> bool {
        match self {
            Self::Udp(udp) => udp.is_intact(frame),
            // The signature may have been found where headers that are broken would not lead.
            Self::Layered(layered) => layered.is_intact(frame, flow) && layered.search().offset(frame).is_some(),
            Self::Captured(captured) => {
                captured.is_intact(frame, flow, sequence)
                    && (captured.is_unsigned() || captured.search().offset(frame).is_some())
            }
        }
    }

    /// Whether addresses and ports are those of a flow of ours, whatever the signature says.
    pub fn is_addressed_as_ours(&self, frame: &[u8]) -> bool {
        match self {
            Self::Udp(udp) => udp.is_addressed_as_ours(frame),
            Self::Layered(layered) => layered.is_addressed_as_ours(frame),
            Self::Captured(captured) => captured.is_addressed_as_ours(frame),
        }
    }

    /// Where the receiver finds the signature.
    pub fn search(&self) -> SignatureSearch {
        match self {
            Self::Udp(_) => SignatureSearch::Payload,
            Self::Layered(layered) => layered.search(),
            Self::Captured(captured) => captured.search(),
        }
    }
}

impl Bounds {
    /// Of what `request` asks for, without building it; a file's frames are bounded once they are read.
    pub fn of(request: &StreamRequest) -> Result<Option<Self>, EngineError> {
        match Kind::of(request) {
            Kind::Udp => {
                let least = minimum_udp_frame_bytes(request.ip);
                Ok(Some(Self {
                    least,
                    smallest: request.frame_bytes,
                    largest: request.frame_bytes,
                    grows: 0,
                    tagged: [false; 2],
                }))
            }
            Kind::Layered => layered::bounds(request).map(Some),
            Kind::Captured => Ok(None),
        }
    }
}

/// The kinds of template.
enum Kind {
    Udp,
    Layered,
    Captured,
}

impl Kind {
    fn of(request: &StreamRequest) -> Self {
        if request.pcap.is_some() || request.unsigned {
            return Self::Captured;
        }
        let has_layers = !request.layers.is_empty() || !request.received_layers.is_empty();
        let is_plain = !has_layers && request.sizes.is_empty() && request.size_sweep.is_none();
        if is_plain { Self::Udp } else { Self::Layered }
    }
}

/// Where the signature of a frame is, if the frame is one of UDP or TCP: the first bytes of the payload, behind any
/// tags.
#[inline]
pub fn signature_offset(frame: &[u8]) -> Option<usize> {
    udp::signature_offset(frame).or_else(|| unusual_offset(frame))
}

#[cold]
fn unusual_offset(frame: &[u8]) -> Option<usize> {
    payload_offset(frame).filter(|offset| offset + SIGNATURE_BYTES <= frame.len())
}

#[cfg(test)]
pub mod tests;
