//! Answers to those who look for our addresses: ARP (RFC 826) and IPv6 neighbour discovery (RFC 4861). Pure: a frame
//! in, a frame out.

use std::net::IpAddr;

use nicbench_protocol::AddressRange;

use crate::error::{EngineError, ErrorKind};
use crate::wire::ethernet::{self, Mac};
use crate::wire::ndp::{self, LinkLayerAddress, NeighbourMessage};
use crate::wire::{Arp, Ethernet, Header, Headers, Ipv6, arp, ethertype, ip_protocol, ipv6};

/// Ethernet's shortest frame without FCS: the port does not pad.
const SHORTEST_FRAME: usize = (ethernet::SHORTEST_FRAME_BYTES - ethernet::FCS_BYTES) as usize;

/// The protocol of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Arp,
    NeighbourDiscovery,
}

/// Addresses that are answered for.
pub trait Ours {
    /// Ethernet's header and tags of what is sent from `address`, as an answer to what begins with `question`; the
    /// destination is not set yet. `None` where the address is not among ours.
    fn link(&self, address: IpAddr, question: &[u8]) -> Option<Vec<u8>>;
}

/// A port's own addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addresses {
    mac: Mac,
    ranges: Vec<(IpAddr, u32)>,
}

impl Addresses {
    /// `port` is named in errors; `mac` is its address.
    pub fn new(port: &str, mac: Option<Mac>, ranges: &[AddressRange]) -> Result<Self, EngineError> {
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

impl Ours for Addresses {
    /// The answer has the tags of the question.
    fn link(&self, address: IpAddr, question: &[u8]) -> Option<Vec<u8>> {
        let mut link = self.contains(address).then(|| question.to_vec())?;
        Ethernet::at_mut(&mut link, 0)?.set(ethernet::SOURCE, self.mac);
        Some(link)
    }
}

/// Whether a frame may ask for a neighbour at all: cheap, for every frame that is received.
#[inline]
pub fn may_ask(frame: &[u8]) -> bool {
    let Some(ethernet) = Ethernet::at(frame, 0) else { return false };
    match ethernet.get(ethernet::TYPE) {
        ethertype::IPV6 => {
            Ipv6::at(frame, Ethernet::BYTES).is_some_and(|ip| ip.get(ipv6::NEXT_HEADER) == ip_protocol::ICMPV6)
        }
        ethertype::IPV4 => false,
        // A tag, behind which anything may be, is as rare here as ARP.
        _ => true,
    }
}

/// The answer to `frame`, where it asks for one of `ours`.
pub fn answer(frame: &[u8], ours: &impl Ours) -> Option<(Protocol, Vec<u8>)> {
    let headers = Headers::find(frame, 0)?;
    match headers.ethertype {
        ethertype::ARP => Some((Protocol::Arp, answer_arp(frame, headers.network, ours)?)),
        ethertype::IPV6 => Some((Protocol::NeighbourDiscovery, answer_solicitation(frame, headers.network, ours)?)),
        _ => None,
    }
}

/// RFC 826, "Packet Reception". The message begins at byte `at`.
fn answer_arp(frame: &[u8], at: usize, ours: &impl Ours) -> Option<Vec<u8>> {
    let request = Arp::at(frame, at)?;
    if !request.is_request() {
        return None;
    }
    let target = request.get(arp::TARGET_IP);
    let link = ours.link(IpAddr::from(target), &frame[..at])?;
    let asker = (request.get(arp::SENDER_MAC), request.get(arp::SENDER_IP));
    arp_message(link, asker.0, arp::REPLY, target, asker)
}

/// A message of ARP behind `link`, to `destination`, from the owner of `link`, who has `sender`.
pub fn arp_message(
    link: Vec<u8>,
    destination: Mac,
    operation: u16,
    sender: [u8; 4],
    target: (Mac, [u8; 4]),
) -> Option<Vec<u8>> {
    let (source, mut frame) = link_to(link, destination)?;
    let mut message = Arp::append(&mut frame);
    message.begin(operation);
    message.set(arp::SENDER_MAC, source);
    message.set(arp::SENDER_IP, sender);
    message.set(arp::TARGET_MAC, target.0);
    message.set(arp::TARGET_IP, target.1);
    frame.resize(frame.len().max(SHORTEST_FRAME), 0);
    Some(frame)
}

/// The message of ICMPv6 in a packet of IPv6 whose header begins at byte `at`, if it has the right checksum.
pub fn icmpv6_message(frame: &[u8], at: usize) -> Option<&[u8]> {
    let ip = Ipv6::at(frame, at)?;
    let message_at = at + Ipv6::BYTES;
    let message = frame.get(message_at..message_at + usize::from(ip.get(ipv6::PAYLOAD_LENGTH)))?;
    let is_valid = ip.get(ipv6::NEXT_HEADER) == ip_protocol::ICMPV6 && ndp::icmpv6_checksum(&ip, message) == 0;
    is_valid.then_some(message)
}

/// RFC 4861 7.1.1 says which solicitations are valid, 7.2.4 how they are answered. IPv6's header begins at byte `at`.
fn answer_solicitation(frame: &[u8], at: usize, ours: &impl Ours) -> Option<Vec<u8>> {
    let ip = Ipv6::at(frame, at)?;
    let message = icmpv6_message(frame, at)?;
    let solicitation = NeighbourMessage::at(message, 0)?;
    let is_valid = ip.get(ipv6::HOP_LIMIT) == ndp::HOP_LIMIT
        && (solicitation.get(ndp::TYPE), solicitation.get(ndp::CODE)) == (ndp::SOLICITATION, 0);
    if !is_valid {
        return None;
    }
    let target = solicitation.get(ndp::TARGET);
    let link = ours.link(IpAddr::from(target), &frame[..at])?;
    // Without a source address somebody asks whether the address is free (RFC 4862 5.4.3): the answer goes to all
    // nodes.
    let source = ip.get(ipv6::SOURCE);
    if source == 0 {
        return advertisement(link, ndp::ALL_NODES_MAC, ndp::ALL_NODES, ndp::OVERRIDE, target);
    }
    let mac = match ndp::source_link_layer_address(message) {
        Some(mac) => mac,
        None => Ethernet::at(frame, 0)?.get(ethernet::SOURCE),
    };
    advertisement(link, mac, source, ndp::SOLICITED | ndp::OVERRIDE, target)
}

/// RFC 4861 4.4: an advertisement behind `link`, to `mac` and `destination`.
pub fn advertisement(link: Vec<u8>, mac: Mac, destination: u128, flags: u8, target: [u8; 16]) -> Option<Vec<u8>> {
    let head = [ndp::ADVERTISEMENT, flags];
    let option = Some(ndp::TARGET_LINK_LAYER_ADDRESS);
    neighbour_message(link, mac, (u128::from_be_bytes(target), destination), head, target, option)
}

/// A message of neighbour discovery: `head` are its type and flags, `option` is the one that tells our MAC address.
pub fn neighbour_message(
    link: Vec<u8>,
    mac: Mac,
    (source, destination): (u128, u128),
    [message_type, flags]: [u8; 2],
    target: [u8; 16],
    option: Option<u8>,
) -> Option<Vec<u8>> {
    let (own_mac, mut frame) = link_to(link, mac)?;
    let mut message = Vec::new();
    let mut fields = NeighbourMessage::append(&mut message);
    fields.set(ndp::TYPE, message_type);
    fields.set(ndp::FLAGS, flags);
    fields.set(ndp::TARGET, target);
    if let Some(option) = option {
        LinkLayerAddress::append(&mut message).begin(option, own_mac);
    }
    let mut ip = Ipv6::append(&mut frame);
    ip.begin(ip_protocol::ICMPV6);
    ip.set(ipv6::PAYLOAD_LENGTH, message.len() as u16);
    ip.set(ipv6::HOP_LIMIT, ndp::HOP_LIMIT);
    ip.set(ipv6::SOURCE, source);
    ip.set(ipv6::DESTINATION, destination);
    let checksum = ndp::icmpv6_checksum(&ip, &message);
    NeighbourMessage::at_mut(&mut message, 0)?.set(ndp::CHECKSUM, checksum);
    frame.extend(message);
    Some(frame)
}

/// Ethernet's header and tags, to `destination`; and whose they are.
pub fn link_to(mut link: Vec<u8>, destination: Mac) -> Option<(Mac, Vec<u8>)> {
    let mut ethernet = Ethernet::at_mut(&mut link, 0)?;
    ethernet.set(ethernet::DESTINATION, destination);
    let source = Ethernet::at(&link, 0)?.get(ethernet::SOURCE);
    Some((source, link))
}

#[cfg(test)]
mod tests;
