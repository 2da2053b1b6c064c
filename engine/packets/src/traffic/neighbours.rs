//! Answers to those who look for our addresses: ARP (RFC 826) and IPv6 neighbour discovery (RFC 4861). Pure: a frame in, a frame out.

use std::net::IpAddr;

use nicbench_protocol::AddressRange;

use super::headers::{ARP, ICMPV6, IPV6, walk, word};
use crate::checksum;
use crate::error::{EngineError, ErrorKind};

const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
const SMALLEST_FRAME_BYTES: usize = 60;
const ALL_NODES: [u8; 16] = [0xFF, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const ALL_NODES_MAC: [u8; 6] = [0x33, 0x33, 0, 0, 0, 1];

/// By which protocol somebody asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Arp,
    NeighbourDiscovery,
}

/// A port's own addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addresses {
    mac: [u8; 6],
    ranges: Vec<(IpAddr, u32)>,
}

impl Addresses {
    /// `port` is named in errors; `mac` is its address.
    pub fn new(port: &str, mac: Option<[u8; 6]>, ranges: &[AddressRange]) -> Result<Self, EngineError> {
        let refuse =
            |what: String, next: &str| EngineError::new(ErrorKind::BadRequest, format!("port {port}: {what}"), next);
        let mac = mac.ok_or_else(|| {
            refuse("it has addresses and no MAC address of its own".into(), "leave `addresses` out for such a port")
        })?;
        let range = |range: &AddressRange| match range.first.parse() {
            Ok(first) if range.count > 0 => Ok((first, range.count)),
            Ok(_) => Err(refuse(format!("addresses from {} are 0", range.first), "give a count of 1 or more")),
            Err(_) => Err(refuse(format!("{:?} is no IP address", range.first), "write it as 198.18.0.1 or 2001:2::1")),
        };
        Ok(Self { mac, ranges: ranges.iter().map(range).collect::<Result<_, _>>()? })
    }

    fn contains(&self, address: IpAddr) -> bool {
        self.ranges.iter().any(|(first, count)| match (first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => u32::from(address).wrapping_sub((*first).into()) < *count,
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                u128::from(address).wrapping_sub((*first).into()) < u128::from(*count)
            }
            _ => false,
        })
    }
}

/// Whether a frame may ask for a neighbour at all: cheap, for every frame that is received.
#[inline]
pub fn may_ask(frame: &[u8]) -> bool {
    // Behind a tag the same; the type of the tag is as rare here as ARP's.
    match frame.get(12..14) {
        Some([0x86, 0xDD]) => frame.get(20) == Some(&ICMPV6),
        Some([0x08, 0x00]) | None => false,
        Some(_) => true,
    }
}

/// The answer to `frame`, where it asks for one of `ours`.
pub fn answer(frame: &[u8], ours: &Addresses) -> Option<(Protocol, Vec<u8>)> {
    let headers = walk(frame, 0)?;
    match headers.ethertype {
        ARP => Some((Protocol::Arp, arp(frame, headers.type_at, ours)?)),
        IPV6 => Some((Protocol::NeighbourDiscovery, neighbour_discovery(frame, headers.type_at, ours)?)),
        _ => None,
    }
}

/// RFC 826, "Packet Reception".
fn arp(frame: &[u8], type_at: usize, ours: &Addresses) -> Option<Vec<u8>> {
    let at = type_at + 2;
    let request = frame.get(at..at + 28)?;
    // Ethernet, IPv4, lengths of their addresses, request.
    if request[..8] != [0, 1, 0x08, 0, 6, 4, 0, 1] {
        return None;
    }
    let (sender, target): ([u8; 10], [u8; 4]) = (*request[8..].first_chunk()?, *request[24..].first_chunk()?);
    if !ours.contains(IpAddr::from(target)) {
        return None;
    }
    let mut reply = link_header(frame, type_at, &sender[..6], ours);
    reply.extend([0, 1, 0x08, 0, 6, 4, 0, 2]);
    reply.extend(ours.mac);
    reply.extend(target);
    reply.extend(sender);
    reply.resize(reply.len().max(SMALLEST_FRAME_BYTES), 0);
    Some(reply)
}

/// RFC 4861 7.1.1 says which solicitations are valid, 7.2.4 how they are answered.
fn neighbour_discovery(frame: &[u8], type_at: usize, ours: &Addresses) -> Option<Vec<u8>> {
    let at = type_at + 2;
    let header = frame.get(at..at + 40)?;
    let length = usize::from(word(header, 4)?);
    let message = frame.get(at + 40..at + 40 + length)?;
    let is_valid = header[6] == ICMPV6
        && header[7] == 255
        && length >= 24
        && message[..2] == [SOLICITATION, 0]
        && icmp_checksum(&header[8..40], message) == 0;
    let target: [u8; 16] = *message.get(8..)?.first_chunk()?;
    if !is_valid || !ours.contains(IpAddr::from(target)) {
        return None;
    }
    let source: [u8; 16] = *header[8..].first_chunk()?;
    // Nobody's address: somebody asks whether he may take it (RFC 4862 5.4.3); he is told by all nodes' address.
    let is_probe = source == [0; 16];
    let (destination, mac, flags) = if is_probe {
        (ALL_NODES, ALL_NODES_MAC, 0x20)
    } else {
        (source, source_link_address(message).unwrap_or(*frame[6..].first_chunk()?), 0x60)
    };
    let mut reply = link_header(frame, type_at, &mac, ours);
    reply.extend([0x60, 0, 0, 0, 0, 32, ICMPV6, 255]);
    reply.extend(target);
    reply.extend(destination);
    let mut message = vec![ADVERTISEMENT, 0, 0, 0, flags, 0, 0, 0];
    message.extend(target);
    message.extend([2, 1]); // Target link-layer address, in units of 8 bytes (4.6.1).
    message.extend(ours.mac);
    let checksum = icmp_checksum(&[target, destination].concat(), &message);
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    reply.extend(message);
    Some(reply)
}

/// RFC 4443 2.3.
fn icmp_checksum(addresses: &[u8], message: &[u8]) -> u16 {
    let start = message.len() as u64 + u64::from(ICMPV6);
    checksum::finish(checksum::add(checksum::add(start, addresses), message))
}

/// RFC 4861 4.6.1: the option of type 1, if any.
fn source_link_address(message: &[u8]) -> Option<[u8; 6]> {
    let mut options = message.get(24..)?;
    loop {
        let (kind, length) = (*options.first()?, usize::from(*options.get(1)?) * 8);
        let option = options.get(..length).filter(|_| length > 0)?;
        if kind == 1 {
            return option.get(2..)?.first_chunk().copied();
        }
        options = &options[length..];
    }
}

/// Ethernet's header back to `destination`, with the tags that the question had.
fn link_header(frame: &[u8], type_at: usize, destination: &[u8], ours: &Addresses) -> Vec<u8> {
    [destination, &ours.mac, &frame[12..type_at + 2]].concat()
}

#[cfg(test)]
mod tests;
