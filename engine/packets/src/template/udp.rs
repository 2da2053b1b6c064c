//! The frames of an ordinary stream: Ethernet, IPv4 or IPv6, UDP, signature, and a fixed pattern, all of one size.
//!
//! Addresses and ports are swept over the flows as the digits of the flow's number: source address first, then
//! destination address, source port and destination port, so that flows differ as long as the counts allow it.

use nicbench_protocol::{IpVersion, StreamRequest};

use crate::addresses::{parse_ip, parse_mac};
use crate::checksum;
use crate::error::EngineError;
use crate::signature::SIGNATURE_BYTES;

use super::{ETHERNET_BYTES, FCS_BYTES, UDP_BYTES, UDP_PROTOCOL};

/// A stream's frame, and how those of its flows differ from it.
#[derive(Debug, Clone)]
pub struct UdpTemplate {
    bytes: Vec<u8>,
    version: IpVersion,
    /// Where the UDP header begins.
    udp: usize,
    source_address: Swept,
    destination_address: Swept,
    source_port: Swept,
    destination_port: Swept,
    /// Sum of the IPv4 header without checksum and addresses.
    header_sum: u64,
    /// Sum of the IPv6 pseudo header, UDP header and pattern without addresses, ports and signature.
    udp_sum: u64,
}

/// A value that counts through the flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Swept {
    first: u128,
    count: u32,
}

impl Swept {
    fn contains(self, value: u128) -> bool {
        value.wrapping_sub(self.first) < u128::from(self.count)
    }
}

impl UdpTemplate {
    /// Builds the frame; `request.frame_bytes` must be at least [`minimum_frame_bytes`].
    pub fn new(request: &StreamRequest) -> Result<Self, EngineError> {
        let place = format!("stream {}", request.name);
        let length = (request.frame_bytes - FCS_BYTES) as usize;
        let udp = ETHERNET_BYTES + ip_header_bytes(request.ip);
        let mut bytes = vec![0; length];
        bytes[..6].copy_from_slice(&parse_mac(&request.destination_mac, &place)?);
        bytes[6..12].copy_from_slice(&parse_mac(&request.source_mac, &place)?);
        let udp_length = (length - udp) as u16;
        match request.ip {
            IpVersion::V4 => fill_ipv4(&mut bytes, request.hop_limit),
            IpVersion::V6 => fill_ipv6(&mut bytes, request.hop_limit, udp_length),
        }
        bytes[udp + 4..udp + 6].copy_from_slice(&udp_length.to_be_bytes());
        let pattern = udp + UDP_BYTES + SIGNATURE_BYTES;
        for (index, byte) in bytes[pattern..].iter_mut().enumerate() {
            *byte = (index as u8).wrapping_mul(131).wrapping_add(89);
        }
        let header_sum = checksum::add(0, &bytes[ETHERNET_BYTES..udp]);
        // RFC 8200 8.1: the pseudo header holds the upper-layer length and the next header.
        let udp_sum = checksum::add(u64::from(udp_length) + u64::from(UDP_PROTOCOL), &bytes[udp..]);
        let address = |text: &str, count| parse_ip(text, request.ip, &place).map(|first| Swept { first, count });
        let mut template = Self {
            version: request.ip,
            udp,
            source_address: address(&request.source_address, request.source_address_count)?,
            destination_address: address(&request.destination_address, request.destination_address_count)?,
            source_port: Swept { first: request.source_port.into(), count: request.source_port_count },
            destination_port: Swept { first: request.destination_port.into(), count: request.destination_port_count },
            header_sum,
            udp_sum,
            bytes,
        };
        let mut constant = template.bytes.clone();
        template.compose(0, &mut constant);
        template.bytes = constant;
        Ok(template)
    }

    /// Bytes of a frame without FCS.
    pub fn length(&self) -> usize {
        self.bytes.len()
    }

    /// Where the signature begins.
    pub fn signature_offset(&self) -> usize {
        self.udp + UDP_BYTES
    }

    /// A whole frame of the first flow, without signature: what no frame of the stream differs in, and more.
    pub fn constant(&self) -> &[u8] {
        &self.bytes
    }

    /// Writes everything that never differs between the frames of the stream.
    pub fn write_constant(&self, frame: &mut [u8]) {
        frame.copy_from_slice(&self.bytes);
    }

    /// Writes what makes a frame one of `flow` (from 0 within the stream) into one that holds the constant bytes.
    pub fn compose(&self, flow: u32, frame: &mut [u8]) {
        let [source, destination, source_port, destination_port] = self.digits(flow);
        let source_port = (self.source_port.first as u16).wrapping_add(source_port as u16);
        let destination_port = (self.destination_port.first as u16).wrapping_add(destination_port as u16);
        frame[self.udp..self.udp + 2].copy_from_slice(&source_port.to_be_bytes());
        frame[self.udp + 2..self.udp + 4].copy_from_slice(&destination_port.to_be_bytes());
        match self.version {
            IpVersion::V4 => {
                let source = (self.source_address.first as u32).wrapping_add(source);
                let destination = (self.destination_address.first as u32).wrapping_add(destination);
                frame[26..30].copy_from_slice(&source.to_be_bytes());
                frame[30..34].copy_from_slice(&destination.to_be_bytes());
                let halves = |address: u32| u64::from(address >> 16) + u64::from(address & 0xFFFF);
                let sum = checksum::finish(self.header_sum + halves(source) + halves(destination));
                frame[24..26].copy_from_slice(&sum.to_be_bytes());
            }
            IpVersion::V6 => {
                let source = self.source_address.first.wrapping_add(source.into());
                let destination = self.destination_address.first.wrapping_add(destination.into());
                frame[22..38].copy_from_slice(&source.to_be_bytes());
                frame[38..54].copy_from_slice(&destination.to_be_bytes());
            }
        }
    }

    /// The flow's number as digits: which of the swept values each field has.
    fn digits(&self, flow: u32) -> [u32; 4] {
        let mut rest = flow;
        [self.source_address, self.destination_address, self.source_port, self.destination_port].map(|swept| {
            let digit = rest % swept.count;
            rest /= swept.count;
            digit
        })
    }

    /// Where the checksum lies that covers the signature, if there is one; a result of zero is sent as 0xFFFF.
    pub fn payload_checksum(&self) -> Option<usize> {
        (self.version == IpVersion::V6).then_some(self.udp + 6)
    }

    /// The folded sum of all that the checksum at [`Self::payload_checksum`] covers but the signature.
    pub fn sum_without_signature(&self, frame: &[u8]) -> u16 {
        let addresses = checksum::add(self.udp_sum, &frame[22..54]);
        !checksum::finish(checksum::add(addresses, &frame[self.udp..self.udp + 4]))
    }

    /// Whether length and pattern are as sent. MAC addresses, hop limit and checksums may change on the way.
    pub fn is_intact(&self, frame: &[u8]) -> bool {
        let pattern = self.udp + UDP_BYTES + SIGNATURE_BYTES;
        let lengths = match self.version {
            IpVersion::V4 => 16..18,
            IpVersion::V6 => 18..20,
        };
        frame.len() == self.bytes.len()
            && signature_offset(frame) == Some(self.signature_offset())
            && frame[lengths.clone()] == self.bytes[lengths]
            && frame[self.udp + 4..self.udp + 6] == self.bytes[self.udp + 4..self.udp + 6]
            && is_same(&frame[pattern..], &self.bytes[pattern..])
    }

    /// Whether addresses and ports are those of a flow of ours, whatever the signature says.
    pub fn is_addressed_as_ours(&self, frame: &[u8]) -> bool {
        let Some(Header { version, udp, source, destination }) = parse_header(frame) else { return false };
        let Some([a, b, c, d]) = frame.get(udp..).and_then(|rest| rest.first_chunk()) else { return false };
        version == self.version
            && self.source_address.contains(source)
            && self.destination_address.contains(destination)
            && self.source_port.contains(u16::from_be_bytes([*a, *b]).into())
            && self.destination_port.contains(u16::from_be_bytes([*c, *d]).into())
    }
}

/// Equality of as many bytes; without a call where they are two, as in a frame of 64 bytes.
#[inline(always)]
fn is_same(left: &[u8], right: &[u8]) -> bool {
    match (left, right) {
        ([a, b], [c, d]) => a == c && b == d,
        _ => left == right,
    }
}

/// The smallest such frame, with FCS, that holds headers and signature.
pub fn minimum_frame_bytes(version: IpVersion) -> u32 {
    (ETHERNET_BYTES + ip_header_bytes(version) + UDP_BYTES + SIGNATURE_BYTES) as u32 + FCS_BYTES
}

/// Where the signature of such a frame would be; `None` where the frame is no UDP, or tagged.
#[inline]
pub fn signature_offset(frame: &[u8]) -> Option<usize> {
    match (frame.get(12)?, frame.get(13)?) {
        (0x08, 0x00) if frame.get(23) == Some(&UDP_PROTOCOL) && frame[14] >> 4 == 4 => {
            Some(ETHERNET_BYTES + usize::from(frame[14] & 0x0F) * 4 + UDP_BYTES)
        }
        (0x86, 0xDD) if frame.get(20) == Some(&UDP_PROTOCOL) => Some(ETHERNET_BYTES + 40 + UDP_BYTES),
        _ => None,
    }
}

struct Header {
    version: IpVersion,
    udp: usize,
    source: u128,
    destination: u128,
}

fn parse_header(frame: &[u8]) -> Option<Header> {
    let udp = signature_offset(frame)? - UDP_BYTES;
    let number = |bytes: &[u8]| bytes.iter().fold(0, |number: u128, byte| number << 8 | u128::from(*byte));
    let (version, source, destination) = match frame[12] {
        0x08 => (IpVersion::V4, frame.get(26..30)?, frame.get(30..34)?),
        _ => (IpVersion::V6, frame.get(22..38)?, frame.get(38..54)?),
    };
    Some(Header { version, udp, source: number(source), destination: number(destination) })
}

fn ip_header_bytes(version: IpVersion) -> usize {
    match version {
        IpVersion::V4 => 20,
        IpVersion::V6 => 40,
    }
}

/// RFC 791 3.1, without addresses and checksum.
fn fill_ipv4(bytes: &mut [u8], hop_limit: u8) {
    let total_length = (bytes.len() - ETHERNET_BYTES) as u16;
    bytes[12..14].copy_from_slice(&[0x08, 0x00]);
    bytes[14] = 0x45;
    bytes[16..18].copy_from_slice(&total_length.to_be_bytes());
    bytes[20] = 0x40; // Do not fragment: a fragment would be neither ours nor lost.
    bytes[22] = hop_limit;
    bytes[23] = UDP_PROTOCOL;
}

/// RFC 8200 3, without addresses.
fn fill_ipv6(bytes: &mut [u8], hop_limit: u8, udp_length: u16) {
    bytes[12..14].copy_from_slice(&[0x86, 0xDD]);
    bytes[14] = 0x60;
    bytes[18..20].copy_from_slice(&udp_length.to_be_bytes());
    bytes[20] = UDP_PROTOCOL;
    bytes[21] = hop_limit;
}
