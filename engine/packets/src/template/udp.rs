//! The frames of an ordinary stream: Ethernet, IPv4 or IPv6, UDP, signature, and a fixed pattern, all of one size.
//!
//! Addresses and ports are swept over the flows as the digits of the flow's number: source address first, then
//! destination address, source port and destination port, so that flows differ as long as the counts allow it.

use nicbench_protocol::{IpVersion, StreamRequest};

use crate::addresses::{parse_ip, parse_mac};
use crate::checksum;
use crate::error::EngineError;
use crate::signature::SIGNATURE_BYTES;
use crate::template::{AddressBits, AddressRange, Intactness};
use crate::traffic::SignatureSearch;
use crate::wire::ethernet::FCS_BYTES;
use crate::wire::{Ethernet, Header, Ipv4, Ipv6, Udp, ethernet, ethertype, ip_protocol, ipv4, ipv6, udp};

/// A stream's frame, and how those of its flows differ from it.
#[derive(Debug, Clone)]
pub struct UdpTemplate {
    bytes: Vec<u8>,
    version: IpVersion,
    /// Where the UDP header begins.
    udp: usize,
    /// The length that UDP's header says.
    udp_length: u16,
    source_address: Swept,
    destination_address: Swept,
    source_port: Swept,
    destination_port: Swept,
    /// Sum of the IPv4 header without checksum and addresses.
    header_sum: u64,
    /// Sum of the IPv6 pseudo header, UDP header and pattern without addresses, ports and signature.
    udp_sum: u64,
}

/// A value that is counted up through the flows.
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
        let udp = Ethernet::BYTES + ip_header_bytes(request.ip);
        let mut bytes = Vec::with_capacity(length);
        let mut header = Ethernet::append(&mut bytes);
        header.set(ethernet::DESTINATION, parse_mac(&request.destination_mac, &place)?);
        header.set(ethernet::SOURCE, parse_mac(&request.source_mac, &place)?);
        let udp_length = (length - udp) as u16;
        match request.ip {
            IpVersion::V4 => {
                header.set(ethernet::TYPE, ethertype::IPV4);
                append_ipv4(&mut bytes, request.hop_limit, udp_length);
            }
            IpVersion::V6 => {
                header.set(ethernet::TYPE, ethertype::IPV6);
                append_ipv6(&mut bytes, request.hop_limit, udp_length);
            }
        }
        Udp::append(&mut bytes).set(udp::LENGTH, udp_length);
        bytes.resize(bytes.len() + SIGNATURE_BYTES, 0);
        let pattern = (0..length - bytes.len()).map(|index| (index as u8).wrapping_mul(131).wrapping_add(89));
        bytes.extend(pattern);
        let header_sum = checksum::add(0, &bytes[Ethernet::BYTES..udp]);
        // RFC 8200 8.1: the pseudo header holds the upper-layer length and the next header.
        let udp_sum = checksum::add(u64::from(udp_length) + u64::from(ip_protocol::UDP), &bytes[udp..]);
        let address = |text: &str, count| parse_ip(text, request.ip, &place).map(|first| Swept { first, count });
        let mut template = Self {
            version: request.ip,
            udp,
            udp_length,
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
        self.udp + Udp::BYTES
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
        if let Some(mut header) = Udp::at_mut(frame, self.udp) {
            header.set(udp::SOURCE_PORT, source_port);
            header.set(udp::DESTINATION_PORT, destination_port);
        }
        match self.version {
            IpVersion::V4 => {
                let Some(mut header) = Ipv4::at_mut(frame, Ethernet::BYTES) else { return };
                let source = (self.source_address.first as u32).wrapping_add(source);
                let destination = (self.destination_address.first as u32).wrapping_add(destination);
                header.set(ipv4::SOURCE, source);
                header.set(ipv4::DESTINATION, destination);
                let halves = |address: u32| u64::from(address >> 16) + u64::from(address & 0xFFFF);
                header.set(ipv4::CHECKSUM, checksum::finish(self.header_sum + halves(source) + halves(destination)));
            }
            IpVersion::V6 => {
                let Some(mut header) = Ipv6::at_mut(frame, Ethernet::BYTES) else { return };
                header.set(ipv6::SOURCE, self.source_address.first.wrapping_add(source.into()));
                header.set(ipv6::DESTINATION, self.destination_address.first.wrapping_add(destination.into()));
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
        (self.version == IpVersion::V6).then_some(udp::CHECKSUM.offset(self.udp))
    }

    /// The folded sum of all that the checksum at [`Self::payload_checksum`] covers but the signature.
    pub fn sum_without_signature(&self, frame: &[u8]) -> u16 {
        let ip = Ipv6::at(frame, Ethernet::BYTES).map_or([0; 32], |header| header.get(ipv6::ADDRESSES));
        let ports = Udp::at(frame, self.udp).map_or([0; 4], |header| header.get(udp::PORTS));
        !checksum::finish(checksum::add(checksum::add(self.udp_sum, &ip), &ports))
    }

    /// Whether length and pattern are as sent. MAC addresses, hop limit and checksums may change on the way.
    pub fn is_intact(&self, frame: &[u8]) -> bool {
        frame.len() == self.bytes.len() && self.has_our_headers(frame) && {
            let pattern = self.signature_offset() + SIGNATURE_BYTES;
            is_same(&frame[pattern..], &self.bytes[pattern..])
        }
    }

    /// Whether the headers are those of UDP without options, with the lengths that were sent. The last header is looked
    /// at first: where it is within the frame, the others are.
    #[inline(always)]
    fn has_our_headers(&self, frame: &[u8]) -> bool {
        const IP: usize = Ethernet::BYTES;
        match self.version {
            IpVersion::V4 => {
                let Some(udp) = Udp::at(frame, IP + Ipv4::BYTES) else { return false };
                let (Some(ip), Some(ethernet)) = (Ipv4::at(frame, IP), Ethernet::at(frame, 0)) else { return false };
                ethernet.get(ethernet::TYPE) == ethertype::IPV4
                    && ip.is_without_options()
                    && ip.get(ipv4::PROTOCOL) == ip_protocol::UDP
                    && ip.get(ipv4::TOTAL_LENGTH) == self.udp_length.wrapping_add(Ipv4::BYTES as u16)
                    && udp.get(udp::LENGTH) == self.udp_length
            }
            IpVersion::V6 => {
                let Some(udp) = Udp::at(frame, IP + Ipv6::BYTES) else { return false };
                let (Some(ip), Some(ethernet)) = (Ipv6::at(frame, IP), Ethernet::at(frame, 0)) else { return false };
                ethernet.get(ethernet::TYPE) == ethertype::IPV6
                    && ip.get(ipv6::NEXT_HEADER) == ip_protocol::UDP
                    && ip.get(ipv6::PAYLOAD_LENGTH) == self.udp_length
                    && udp.get(udp::LENGTH) == self.udp_length
            }
        }
    }

    /// See [`Intactness`].
    pub fn intactness(&self) -> Intactness {
        const IP: usize = Ethernet::BYTES;
        let signature = self.signature_offset();
        let mut mask = vec![0; signature];
        mask[ethernet::TYPE.range(0)].fill(0xFF);
        let length_of_ip = match self.version {
            IpVersion::V4 => {
                mask[IP] = 0xFF; // version and length
                mask[ipv4::PROTOCOL.offset(IP)] = 0xFF;
                (ipv4::TOTAL_LENGTH.offset(IP), IP)
            }
            IpVersion::V6 => {
                mask[ipv6::NEXT_HEADER.offset(IP)] = 0xFF;
                (ipv6::PAYLOAD_LENGTH.offset(IP), self.udp)
            }
        };
        Intactness {
            lengths: vec![self.bytes.len()],
            length_fields: vec![length_of_ip, (udp::LENGTH.offset(self.udp), self.udp)],
            value: self.bytes[..signature].to_vec(),
            mask,
            leading: vec![0; signature],
            search: SignatureSearch::At(signature),
            fields: Vec::new(),
            checksums: Vec::new(),
        }
    }

    /// See [`AddressBits`].
    pub fn address_bits(&self) -> AddressBits {
        const IP: usize = Ethernet::BYTES;
        let mut bits = AddressBits { length: self.udp + Udp::BYTES, ..AddressBits::default() };
        bits.require(ethernet::TYPE.offset(0), &self.bytes[ethernet::TYPE.range(0)], &[0xFF; 2]);
        let (source, destination) = match self.version {
            IpVersion::V4 => {
                // Ports lie further back where there are options.
                bits.length = IP + Ipv4::BYTES;
                bits.require(IP, &[0x40], &[0xF0]);
                bits.require(ipv4::PROTOCOL.offset(IP), &[ip_protocol::UDP], &[0xFF]);
                (ipv4::SOURCE.range(IP), ipv4::DESTINATION.range(IP))
            }
            IpVersion::V6 => {
                bits.require(ipv6::NEXT_HEADER.offset(IP), &[ip_protocol::UDP], &[0xFF]);
                (ipv6::SOURCE.range(IP), ipv6::DESTINATION.range(IP))
            }
        };
        for (place, swept, is_port) in [
            (source, self.source_address, false),
            (destination, self.destination_address, false),
            (udp::SOURCE_PORT.range(self.udp), self.source_port, true),
            (udp::DESTINATION_PORT.range(self.udp), self.destination_port, true),
        ] {
            bits.ranges.push(AddressRange {
                at: place.start,
                bytes: place.len(),
                shift: 0,
                mask: u128::MAX,
                first: swept.first,
                span: u128::from(swept.count - 1),
                is_behind_options: is_port && self.version == IpVersion::V4,
            });
        }
        bits
    }

    /// Whether addresses and ports are those of a flow of ours, whatever the signature says.
    pub fn is_addressed_as_ours(&self, frame: &[u8]) -> bool {
        let Some(Addresses { version, source, destination, udp }) = addresses(frame) else { return false };
        let Some(header) = Udp::at(frame, udp) else { return false };
        version == self.version
            && self.source_address.contains(source)
            && self.destination_address.contains(destination)
            && self.source_port.contains(header.get(udp::SOURCE_PORT).into())
            && self.destination_port.contains(header.get(udp::DESTINATION_PORT).into())
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
    (Ethernet::BYTES + ip_header_bytes(version) + Udp::BYTES + SIGNATURE_BYTES) as u32 + FCS_BYTES
}

/// Where the signature of such a frame would be; `None` where the frame is no UDP, or tagged.
#[inline]
pub fn signature_offset(frame: &[u8]) -> Option<usize> {
    let at = Ethernet::BYTES;
    match Ethernet::at(frame, 0)?.get(ethernet::TYPE) {
        ethertype::IPV4 => {
            let ip = Ipv4::at(frame, at)?;
            let is_udp = ip.get(ipv4::PROTOCOL) == ip_protocol::UDP && ip.get(ipv4::VERSION) == 4;
            is_udp.then(|| at + ip.header_bytes() + Udp::BYTES)
        }
        ethertype::IPV6 => {
            let is_udp = Ipv6::at(frame, at)?.get(ipv6::NEXT_HEADER) == ip_protocol::UDP;
            is_udp.then_some(at + Ipv6::BYTES + Udp::BYTES)
        }
        _ => None,
    }
}

/// The addresses of a frame, and where its UDP header is.
struct Addresses {
    version: IpVersion,
    source: u128,
    destination: u128,
    /// Where the UDP header begins.
    udp: usize,
}

fn addresses(frame: &[u8]) -> Option<Addresses> {
    let udp = signature_offset(frame)? - Udp::BYTES;
    let (version, source, destination) = match Ethernet::at(frame, 0)?.get(ethernet::TYPE) {
        ethertype::IPV4 => {
            let ip = Ipv4::at(frame, Ethernet::BYTES)?;
            (IpVersion::V4, ip.get(ipv4::SOURCE).into(), ip.get(ipv4::DESTINATION).into())
        }
        _ => {
            let ip = Ipv6::at(frame, Ethernet::BYTES)?;
            (IpVersion::V6, ip.get(ipv6::SOURCE), ip.get(ipv6::DESTINATION))
        }
    };
    Some(Addresses { version, source, destination, udp })
}

fn ip_header_bytes(version: IpVersion) -> usize {
    match version {
        IpVersion::V4 => Ipv4::BYTES,
        IpVersion::V6 => Ipv6::BYTES,
    }
}

/// IPv4's header, without addresses and checksum.
fn append_ipv4(bytes: &mut Vec<u8>, hop_limit: u8, udp_length: u16) {
    let mut header = Ipv4::append(bytes);
    header.begin(ip_protocol::UDP);
    header.set(ipv4::TOTAL_LENGTH, (Ipv4::BYTES + usize::from(udp_length)) as u16);
    header.set(ipv4::HOP_LIMIT, hop_limit);
}

/// IPv6's header, without addresses.
fn append_ipv6(bytes: &mut Vec<u8>, hop_limit: u8, udp_length: u16) {
    let mut header = Ipv6::append(bytes);
    header.begin(ip_protocol::UDP);
    header.set(ipv6::PAYLOAD_LENGTH, udp_length);
    header.set(ipv6::HOP_LIMIT, hop_limit);
}
