//! Finds the headers of any frame: Ethernet, tags, IP, transport. It trusts no length that it reads.

use std::ops::Range;

use super::view::Header;
use super::{Ethernet, Ipv4, Ipv6, Tcp, Udp, ethernet, ethertype, ip_protocol, ipv4, ipv6, vlan};
use super::{Vlan, vlan::is_tag};

const MOST_TAGS: usize = 4;

/// What was found. Offsets count from the first byte of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headers {
    /// Of what Ethernet carries, behind any tags.
    pub ethertype: u16,
    /// The first byte of what Ethernet carries.
    pub network: usize,
    pub ip: Option<Ip>,
    pub transport: Option<Transport>,
    /// The first byte after the last header that is known.
    pub payload: usize,
    /// The first byte after what IP counts as its own; the frame's end without IP.
    pub end: usize,
}

/// Where an IP header is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ip {
    pub at: usize,
    pub is_v6: bool,
    /// What it carries; 0 for a fragment but the first, which has no transport header.
    pub protocol: u8,
}

impl Ip {
    /// Where source and destination are, one after the other.
    pub fn addresses(self) -> Range<usize> {
        if self.is_v6 { ipv6::ADDRESSES.range(self.at) } else { ipv4::ADDRESSES.range(self.at) }
    }
}

/// Where a header of UDP or TCP is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transport {
    pub at: usize,
    pub protocol: u8,
}

impl Headers {
    /// The headers of the Ethernet frame that begins at `start` (not 0 for one that VXLAN carries); `None` where it is
    /// too short for Ethernet's header and its tags.
    pub fn find(frame: &[u8], start: usize) -> Option<Self> {
        let mut ethertype = Ethernet::at(frame, start)?.get(ethernet::TYPE);
        let mut network = start + Ethernet::BYTES;
        for _ in 0..MOST_TAGS {
            if !is_tag(ethertype) {
                break;
            }
            ethertype = Vlan::at(frame, network)?.get(vlan::TYPE);
            network += Vlan::BYTES;
        }
        let found = match ethertype {
            ethertype::IPV4 => find_ipv4(frame, network),
            ethertype::IPV6 => find_ipv6(frame, network),
            _ => None,
        };
        let Some((ip, payload, end)) = found else {
            let end = frame.len();
            return Some(Self { ethertype, network, ip: None, transport: None, payload: network, end });
        };
        let transport = find_transport(frame, ip.protocol, payload, end);
        let payload = transport.map_or(payload, |(_, payload)| payload);
        let transport = transport.map(|(transport, _)| transport);
        Some(Self { ethertype, network, ip: Some(ip), transport, payload, end })
    }
}

/// The header, its payload's first byte and the first byte behind it (RFC 791 3.1).
fn find_ipv4(frame: &[u8], at: usize) -> Option<(Ip, usize, usize)> {
    let header = Ipv4::at(frame, at)?;
    let header_bytes = header.header_bytes();
    if header.get(ipv4::VERSION) != 4 || header_bytes < Ipv4::BYTES {
        return None;
    }
    let total = usize::from(header.get(ipv4::TOTAL_LENGTH));
    let is_later_fragment = header.get(ipv4::FRAGMENT_OFFSET) != 0;
    let protocol = if is_later_fragment { 0 } else { header.get(ipv4::PROTOCOL) };
    let end = frame.len().min(at + total.max(header_bytes));
    Some((Ip { at, is_v6: false, protocol }, at + header_bytes, end))
}

/// As [`find_ipv4`] (RFC 8200 3); extension headers are payload here.
fn find_ipv6(frame: &[u8], at: usize) -> Option<(Ip, usize, usize)> {
    let header = Ipv6::at(frame, at)?;
    if header.get(ipv6::VERSION) != 6 {
        return None;
    }
    let payload = at + Ipv6::BYTES;
    let end = frame.len().min(payload + usize::from(header.get(ipv6::PAYLOAD_LENGTH)));
    Some((Ip { at, is_v6: true, protocol: header.get(ipv6::NEXT_HEADER) }, payload, end))
}

/// The header and its payload's first byte, where all of the header is before `end`.
fn find_transport(frame: &[u8], protocol: u8, at: usize, end: usize) -> Option<(Transport, usize)> {
    let header_bytes = match protocol {
        ip_protocol::UDP => Udp::BYTES,
        ip_protocol::TCP => Tcp::at(frame, at)?.header_bytes(),
        _ => return None,
    };
    (at + header_bytes <= end).then_some((Transport { at, protocol }, at + header_bytes))
}

#[cfg(test)]
mod tests {
    use super::ip_protocol::{TCP, UDP};
    use super::*;

    fn frame(ethertype: &[u8], rest: &[u8]) -> Vec<u8> {
        [&[0u8; 12][..], ethertype, rest].concat()
    }

    fn ipv4(protocol: u8, total: u16, payload: &[u8]) -> Vec<u8> {
        let mut header = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2];
        header[2..4].copy_from_slice(&total.to_be_bytes());
        [header, payload.to_vec()].concat()
    }

    #[test]
    fn tags_are_passed_over_and_padding_is_not_payload() {
        let packet = ipv4(UDP, 32, &[0; 30]);
        let headers = Headers::find(&frame(&[0x88, 0xA8, 0, 1, 0x81, 0, 0, 2, 8, 0], &packet), 0).unwrap();
        assert_eq!((headers.network, headers.payload, headers.end), (22, 50, 54));
        assert_eq!(headers.transport, Some(Transport { at: 42, protocol: UDP }));
    }

    #[test]
    fn options_of_ip_and_tcp_are_counted() {
        let mut tcp = [0; 40];
        tcp[12] = 0x80;
        let mut packet = ipv4(TCP, 60, &tcp);
        assert_eq!(Headers::find(&frame(&[8, 0], &packet), 0).unwrap().payload, 14 + 20 + 32);
        packet[0] = 0x46;
        assert_eq!(Headers::find(&frame(&[8, 0], &packet), 0).unwrap().transport.unwrap().at, 14 + 24);
    }

    #[test]
    fn a_later_fragment_has_no_ports() {
        let mut packet = ipv4(UDP, 40, &[0; 20]);
        packet[7] = 1;
        assert_eq!(Headers::find(&frame(&[8, 0], &packet), 0).unwrap().transport, None);
    }

    #[test]
    fn no_frame_however_short_or_false_is_too_much() {
        let tagged = frame(&[0x81, 0, 0, 1, 0x81, 0, 0, 1, 0x86, 0xDD], &[0x6F; 60]);
        for length in 0..tagged.len() {
            let _ = Headers::find(&tagged[..length], 0);
            let _ = Headers::find(&tagged[..length], 50);
        }
        let mut packet = ipv4(UDP, 65_535, &[0; 4]);
        assert_eq!(Headers::find(&frame(&[8, 0], &packet), 0).unwrap().transport, None);
        packet[2..4].fill(0);
        assert_eq!(Headers::find(&frame(&[8, 0], &packet), 0).unwrap().end, 34);
        packet[0] = 0x41;
        assert_eq!(Headers::find(&frame(&[8, 0], &packet), 0).unwrap().ip, None);
    }
}
