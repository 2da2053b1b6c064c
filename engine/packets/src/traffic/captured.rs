//! The frames of a file as a stream: one after another, over and over, each with our signature in its payload; or once,
//! when they were captured; or as they are, without a signature.
//!
//! Frames between the same addresses and ports are one flow. The lengths and checksums of the outermost headers are
//! made right; everything else is sent as it was captured. Frames without a signature are one flow, in the file's order.

use std::collections::{HashMap, HashSet};

use nicbench_protocol::{Layer, StreamRequest};

use super::Choice;
use super::address_match::{AddressMatch, FlowKey};
use super::capture_file::{self, FileFrame};
use super::header_stack::{ComputedHeader, build};
use super::recognition::{Filter, Recognition, SMALLEST_FRAME_BYTES};
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
    /// How frames without a signature are recognised.
    recognition: Option<Recognition>,
    times: Times,
}

/// When frames are due.
#[derive(Debug, Clone)]
enum Times {
    /// At a rate.
    Even,
    /// When they were captured: each since the trial began, and when the file's first one was, since 1970.
    Recorded { due_ns: Vec<u64>, first_ns: u64, speed: f64 },
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
        let read = capture_file::read(path).map_err(|what| refuse(what, next))?;
        let times = Times::of(request, &read).map_err(|what| {
            refuse(
                what,
                "capture it with time stamps (tcpdump and Wireshark do), or send it at a rate, without `timing`",
            )
        })?;
        let mut frames: Vec<Vec<u8>> = read.into_iter().map(|frame| frame.bytes).collect();
        for frame in &mut frames {
            set_macs(request, frame)?;
        }
        if request.unsigned {
            // As the card that captured it did (IEEE 802.3 3.2.8).
            frames.iter_mut().for_each(|frame| frame.resize(frame.len().max(SMALLEST_FRAME_BYTES), 0));
            let recognition = Recognition::by_bytes(&frames);
            return Ok(Self::unsigned(&frames, recognition, times));
        }
        let mut found = Vec::new();
        for (index, frame) in frames.iter().enumerate() {
            let next = "leave such frames out of the file, give another `signature_offset`, or send it `unsigned`";
            let place = signature_place(frame, request.signature_offset)
                .map_err(|what| refuse(format!("frame {} of {} bytes {what}", index + 1, frame.len()), next))?;
            found.push(place);
        }
        Ok(Self::new(&frames, &found, request.signature_offset, times))
    }

    /// The one frame of a request of raw bytes without a signature: what is missing of its size is zeros.
    pub fn raw(request: &StreamRequest) -> Result<Self, EngineError> {
        let refuse = |what: &str, next: &str| {
            EngineError::new(ErrorKind::BadRequest, format!("stream {}: {what}", request.name), next)
        };
        let has_sizes = !request.sizes.is_empty() || request.size_sweep.is_some();
        let ([Layer::Raw { .. }], false) = (request.layers.as_slice(), has_sizes) else {
            let next = "give one layer `raw` and one size, or remove `unsigned`";
            return Err(refuse("unsigned frames are raw bytes of one size, or those of a file", next));
        };
        let mut frame = build(&request.name, &request.layers)?.header;
        let length = (request.frame_bytes as usize).saturating_sub(FCS_BYTES as usize);
        if frame.len() > length {
            let what = format!("frame_bytes is {}, and the raw bytes need {}", request.frame_bytes, frame.len() + 4);
            return Err(EngineError::new(
                ErrorKind::FrameSize,
                format!("stream {}: {what}", request.name),
                "choose a larger size",
            ));
        }
        frame.resize(length, 0);
        let filters = request.filter.iter().map(Filter::of).collect::<Result<Vec<_>, _>>();
        let filters = filters.map_err(|what| refuse(&format!("filter: {what}"), "write pairs of digits 0 to f"))?;
        let frames = [frame];
        let recognition =
            if filters.is_empty() { Recognition::by_bytes(&frames) } else { Recognition::Filter(filters) };
        Ok(Self::unsigned(&frames, recognition, Times::Even))
    }

    fn unsigned(frames: &[Vec<u8>], recognition: Recognition, times: Times) -> Self {
        let mut bytes = Vec::new();
        let mut all = Vec::new();
        for (turn, frame) in (0..).zip(frames) {
            all.push(CapturedFrame { at: bytes.len(), shape: Shape::as_it_is(frame.len()), flow: 0, turn });
            bytes.extend(frame);
        }
        let keys = frames.iter().filter_map(|frame| Some(FlowKey::of(frame, &Headers::find(frame, 0)?)));
        Self {
            bytes,
            flows: vec![(0..frames.len() as u32).collect()],
            frames: all,
            blank: vec![0; frames.iter().map(Vec::len).max().unwrap_or(0)],
            shortest: frames.iter().map(Vec::len).min().unwrap_or(0),
            search: SignatureSearch::Payload,
            addressed: AddressMatch::OneOf(keys.collect()),
            recognition: Some(recognition),
            times,
        }
    }

    fn new(frames: &[Vec<u8>], found: &[(Headers, usize)], offset: Option<u32>, times: Times) -> Self {
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
            recognition: None,
            times,
        }
    }

    /// Whether a frame says, or the file, when it was sent.
    pub fn has_times(&self) -> bool {
        !self.is_unsigned() || self.due_ns().is_some()
    }

    /// Whether frames are sent as they are.
    pub fn is_unsigned(&self) -> bool {
        self.recognition.is_some()
    }

    /// When each frame is due, since the trial began; `None` where they are sent at a rate.
    pub fn due_ns(&self) -> Option<&[u64]> {
        match &self.times {
            Times::Even => None,
            Times::Recorded { due_ns, .. } => Some(due_ns),
        }
    }

    /// When the first frame was captured, since 1970; `None` where frames are sent at a rate.
    pub fn first_ns(&self) -> Option<u64> {
        match self.times {
            Times::Even => None,
            Times::Recorded { first_ns, .. } => Some(first_ns),
        }
    }

    /// Times count from `origin_ns`, since 1970, which no frame is before.
    pub fn begin_at(&mut self, origin_ns: u64) {
        if let Times::Recorded { due_ns, first_ns, speed } = &mut self.times {
            let later_ns = ((first_ns.saturating_sub(origin_ns)) as f64 / *speed) as u64;
            due_ns.iter_mut().for_each(|due| *due += later_ns);
        }
    }

    /// The position of a frame without a signature, and when it was due if it had a time of its own; `None` where it is none of the file's.
    pub fn recognise(&self, frame: &[u8], expected: u64) -> Option<(u64, Option<u64>)> {
        let count = self.frames.len() as u64;
        let position =
            self.recognition.as_ref()?.position(frame, expected, count, |index| self.frame(index as usize))?;
        match &self.times {
            Times::Recorded { due_ns, .. } => {
                // A file with its own timing is sent once.
                let position = position % count;
                Some((position, Some(due_ns[position as usize])))
            }
            Times::Even => Some((position, None)),
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
        if self.is_unsigned() {
            return Choice { shape: (position % count) as usize, flow: 0, sequence: position as u32 };
        }
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
        if self.is_unsigned() {
            return true; // It was recognised by its bytes.
        }
        let Some(of_flow) = self.flows.get(flow as usize) else { return false };
        let index = of_flow[sequence as usize % of_flow.len()] as usize;
        self.frames[index].shape.is_intact(frame, self.frame(index))
    }

    pub fn is_addressed_as_ours(&self, frame: &[u8]) -> bool {
        self.addressed.matches(frame)
    }
}

impl Times {
    fn of(request: &StreamRequest, frames: &[FileFrame]) -> Result<Self, String> {
        let Some(timing) = request.timing else { return Ok(Self::Even) };
        let mut due_ns = Vec::with_capacity(frames.len());
        let (mut first_ns, mut latest_ns) = (None, 0);
        for (index, frame) in frames.iter().enumerate() {
            let time_ns = frame.time_ns.ok_or_else(|| format!("frame {} has no time stamp", index + 1))?;
            let first_ns = *first_ns.get_or_insert(time_ns);
            // Captures of several queues may be a little out of order: frames are sent in the order of the file.
            latest_ns = time_ns.max(first_ns).max(latest_ns);
            due_ns.push(((latest_ns - first_ns) as f64 / timing.speed) as u64);
        }
        Ok(Self::Recorded { due_ns, first_ns: first_ns.unwrap_or(0), speed: timing.speed })
    }
}

/// Sets the MAC addresses of `request`, where it has them. Multicast and broadcast destinations stay.
fn set_macs(request: &StreamRequest, frame: &mut [u8]) -> Result<(), EngineError> {
    let place = format!("stream {}", request.name);
    let is_to_group = frame.first().is_some_and(|byte| byte & 1 != 0);
    let Some(mut header) = Ethernet::at_mut(frame, 0) else { return Ok(()) };
    let destination = if is_to_group { "" } else { request.destination_mac.as_str() };
    for (text, field) in [(destination, ethernet::DESTINATION), (&request.source_mac, ethernet::SOURCE)] {
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

#[cfg(test)]
mod tests {
    use super::set_macs;

    #[test]
    fn frames_to_groups_keep_their_destination() {
        let request = serde_json::json!({"name": "s", "transmit_port": 0, "receive_port": 1, "rate_frames_per_s": 1,
            "source_mac": "02:00:00:00:00:01", "destination_mac": "02:00:00:00:00:02"});
        let request = serde_json::from_value(request).unwrap();
        for (destination, expected) in [([4; 6], [2, 0, 0, 0, 0, 2]), ([0xFF; 6], [0xFF; 6]), ([1; 6], [1; 6])] {
            let mut frame = [destination.as_slice(), &[9; 54]].concat();
            set_macs(&request, &mut frame).unwrap();
            assert_eq!((&frame[..6], &frame[6..12]), (expected.as_slice(), [2, 0, 0, 0, 0, 1].as_slice()));
        }
    }
}
