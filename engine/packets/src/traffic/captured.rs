//! The frames of a file as a stream: one after another, over and over, each with our signature in its payload.
//!
//! Frames between the same addresses and ports are one flow. The lengths and checksums of the outermost headers are
//! made right; everything else is sent as it was captured.

use std::collections::{HashMap, HashSet};

use nicbench_protocol::StreamRequest;

use super::Choice;
use super::address_match::{AddressMatch, FlowKey};
use super::capture_file;
use super::header_stack::ComputedHeader;
use super::shape::Shape;
use super::signature_search::SignatureSearch;
use crate::addresses::parse_mac;
use crate::error::{EngineError, ErrorKind};
use crate::signature::SIGNATURE_BYTES;
use crate::wire::ethernet::{self, FCS_BYTES};
use crate::wire::{Ethernet, Header, Headers, Udp, ip_protocol, udp};

/// The frames of a file as a stream.
#[derive(Debug, Clone)]
pub struct Captured {
    bytes: Vec<u8>,
    frames: Vec<CapturedFrame>,
    /// Per flow: its frames, in the order of the file.
    flows: Vec<Vec<u32>>,
    /// Zeros, as many as the longest frame has bytes.
    blank: Vec<u8>,
    shortest: usize,
    search: SignatureSearch,
    addressed: AddressMatch,
}

#[derive(Debug, Clone)]
struct CapturedFrame {
    /// The frame's first byte in `bytes`.
    at: usize,
    shape: Shape,
    flow: u32,
    /// The frame's number within its flow.
    turn: u32,
}

impl Captured {
    /// Reads and checks the file of `request`.
    pub fn read(request: &StreamRequest) -> Result<Self, EngineError> {
        let path = request.pcap.as_deref().unwrap_or_default();
        let refuse = |what: String, next: &str| {
            EngineError::new(ErrorKind::BadRequest, format!("stream {}: {path}: {what}", request.name), next)
        };
        if !request.layers.is_empty() || !request.sizes.is_empty() || request.size_sweep.is_some() {
            let next = "remove `layers`, `sizes` and `size_sweep`, or `pcap`";
            return Err(refuse("its frames have layers and sizes of their own".into(), next));
        }
        let next = "give a capture of whole Ethernet frames, pcap or pcapng, on the engine's host";
        let mut frames = capture_file::read(path).map_err(|what| refuse(what, next))?;
        for frame in &mut frames {
            set_macs(request, frame)?;
        }
        let mut found = Vec::new();
        for (index, frame) in frames.iter().enumerate() {
            let next = "leave such frames out of the file, or give another `signature_offset`";
            let place = signature_place(frame, request.signature_offset)
                .map_err(|what| refuse(format!("frame {} of {} bytes {what}", index + 1, frame.len()), next))?;
            found.push(place);
        }
        Ok(Self::new(&frames, &found, request.signature_offset))
    }

    fn new(frames: &[Vec<u8>], found: &[(Headers, usize)], offset: Option<u32>) -> Self {
        let mut flow_of: HashMap<FlowKey, u32> = HashMap::new();
        let mut flows: Vec<Vec<u32>> = Vec::new();
        let mut bytes = Vec::new();
        let mut all = Vec::new();
        for (index, (frame, (headers, signature))) in frames.iter().zip(found).enumerate() {
            let key = FlowKey::of(frame, headers);
            let flow = *flow_of.entry(key).or_insert(flows.len() as u32);
            if flow as usize == flows.len() {
                flows.push(Vec::new());
            }
            let turn = flows[flow as usize].len() as u32;
            flows[flow as usize].push(index as u32);
            let parts = parts(frame, headers);
            let shape = Shape::new(frame, &parts, (*signature, headers.end), &[], headers.payload);
            all.push(CapturedFrame { at: bytes.len(), shape, flow, turn });
            bytes.extend(frame);
        }
        let search = offset.map_or(SignatureSearch::End, |offset| SignatureSearch::At(offset as usize));
        let lengths = || frames.iter().map(Vec::len);
        Self {
            bytes,
            frames: all,
            flows,
            blank: vec![0; lengths().max().unwrap_or(0)],
            shortest: lengths().min().unwrap_or(0),
            search,
            addressed: AddressMatch::OneOf(flow_of.into_keys().collect::<HashSet<_>>()),
        }
    }

    pub fn flows(&self) -> u32 {
        self.flows.len() as u32
    }

    pub fn blank(&self) -> &[u8] {
        &self.blank
    }

    pub fn search(&self) -> SignatureSearch {
        self.search
    }

    /// The number, from 1, and the size with FCS of the first frame outside of `sizes`.
    pub fn outside(&self, sizes: std::ops::RangeInclusive<u32>) -> Option<(usize, u32)> {
        let size = |one: &CapturedFrame| one.shape.length as u32 + FCS_BYTES;
        let index = self.frames.iter().position(|one| !sizes.contains(&size(one)))?;
        Some((index + 1, size(&self.frames[index])))
    }

    /// How many frames the file has.
    pub fn count(&self) -> usize {
        self.frames.len()
    }

    /// How many frames of the file are of this flow.
    pub fn frames_of(&self, flow: u32) -> usize {
        self.flows.get(flow as usize).map_or(0, Vec::len)
    }

    /// The smallest and the largest frame, with FCS.
    pub fn sizes(&self) -> (u32, u32) {
        (self.shortest as u32 + FCS_BYTES, self.blank.len() as u32 + FCS_BYTES)
    }

    /// The frame at `position` of the stream. Laps begin anew where 32 bits of a flow's sequence end, so that the
    /// sequence says which frame it is for ever.
    pub fn choose(&self, position: u64) -> Choice {
        let count = self.frames.len() as u64;
        let (lap, index) = (position / count, (position % count) as usize);
        let one = &self.frames[index];
        let of_flow = self.flows[one.flow as usize].len() as u64;
        let laps = (1 << 32) / of_flow;
        let sequence = (lap % laps * of_flow) as u32 + one.turn;
        Choice { shape: index, flow: one.flow, sequence }
    }

    pub fn shape(&self, index: usize) -> &Shape {
        &self.frames[index].shape
    }

    /// The frame as it was captured, with its addresses replaced where that was asked for.
    pub fn frame(&self, index: usize) -> &[u8] {
        let one = &self.frames[index];
        &self.bytes[one.at..one.at + one.shape.length]
    }

    pub fn is_intact(&self, frame: &[u8], flow: u32, sequence: u32) -> bool {
        let Some(of_flow) = self.flows.get(flow as usize) else { return false };
        let index = of_flow[sequence as usize % of_flow.len()] as usize;
        self.frames[index].shape.is_intact(frame, self.frame(index))
    }

    pub fn is_addressed_as_ours(&self, frame: &[u8]) -> bool {
        self.addressed.matches(frame)
    }
}

/// Sets the MAC addresses of `request`; those of the file are kept where none are given.
fn set_macs(request: &StreamRequest, frame: &mut [u8]) -> Result<(), EngineError> {
    let place = format!("stream {}", request.name);
    let Some(mut header) = Ethernet::at_mut(frame, 0) else { return Ok(()) };
    for (text, field) in [(&request.destination_mac, ethernet::DESTINATION), (&request.source_mac, ethernet::SOURCE)] {
        if !text.is_empty() {
            header.set(field, parse_mac(text, &place)?);
        }
    }
    Ok(())
}

/// Finds the headers and the place of the signature; otherwise says why there is none.
fn signature_place(frame: &[u8], offset: Option<u32>) -> Result<(Headers, usize), String> {
    let headers = Headers::find(frame, 0).ok_or("has no room for Ethernet's header")?;
    let room = headers.end.saturating_sub(headers.payload);
    let signature = match offset {
        Some(offset) => offset as usize,
        None => headers.end.saturating_sub(SIGNATURE_BYTES),
    };
    if signature < headers.payload || signature + SIGNATURE_BYTES > headers.end {
        let place = offset.map_or(String::new(), |offset| format!(" at byte {offset}"));
        return Err(format!(
            "has {room} bytes of payload from byte {}, and a signature needs {SIGNATURE_BYTES}{place}",
            headers.payload
        ));
    }
    Ok((headers, signature))
}

fn parts(frame: &[u8], headers: &Headers) -> Vec<ComputedHeader> {
    let Some(ip) = headers.ip else { return Vec::new() };
    let mut parts =
        vec![if ip.is_v6 { ComputedHeader::Ipv6 { at: ip.at } } else { ComputedHeader::Ipv4 { at: ip.at } }];
    match headers.transport {
        Some(transport) if transport.protocol == ip_protocol::UDP => {
            let at = transport.at;
            let checksum = ip.is_v6 || Udp::at(frame, at).is_none_or(|header| header.get(udp::CHECKSUM) != 0);
            parts.push(ComputedHeader::Udp { at, ip, checksum });
        }
        Some(transport) if transport.protocol == ip_protocol::TCP => {
            parts.push(ComputedHeader::Tcp { at: transport.at, ip });
        }
        _ => {}
    }
    parts
}
