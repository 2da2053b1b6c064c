//! What others say to hosts, and what hosts say: ARP (RFC 826, 5227), neighbour discovery (RFC 4861), echo (RFC 792,
//! 4443). Pure: bytes in, bytes out.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::checksum;
use crate::traffic::neighbours::{arp_message, icmpv6_message, link_to, neighbour_message};
use crate::wire::ethernet::{self, BROADCAST, Mac};
use crate::wire::ndp::{self, NeighbourMessage};
use crate::wire::{Arp, Echo, Ethernet, Header, Headers, Ipv4, Ipv6, arp, ethertype, icmp, ip_protocol, ipv4, ipv6};

/// The hop limit of echo requests and their answers.
const HOP_LIMIT: u8 = 64;
/// The data of an echo request, as `ping` has it.
const PING_BYTES: u8 = 56;

/// An address, and the MAC address that a frame claims for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Station {
    pub address: IpAddr,
    pub mac: Mac,
}

/// What the answer to an echo request repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echoed {
    pub identifier: u16,
    pub sequence: u16,
}

/// What a frame says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// Somebody asks for `target`. Without an address `asker` wants to have it itself (RFC 5227 2.1, RFC 4862 5.4).
    Question { target: IpAddr, asker: Station },
    /// Somebody says to `to` which MAC address belongs to `address`; `None`: an advertisement that leaves it out.
    Answer { address: IpAddr, mac: Option<Mac>, to: IpAddr },
    /// An echo request to `to`; the message is at these bytes of the frame.
    Echo { to: IpAddr, from: IpAddr, message_at: usize, end: usize },
    /// An answer to an echo request of `to`.
    EchoReply { to: IpAddr, from: IpAddr, echoed: Echoed },
    /// A message that its RFC calls invalid.
    Malformed,
}

/// Whether a frame may say anything to a host: cheap, for every frame that is no flow's.
#[inline]
pub fn may_concern(frame: &[u8]) -> bool {
    let Some(link) = Ethernet::at(frame, 0) else { return false };
    match link.get(ethernet::TYPE) {
        ethertype::IPV4 => {
            Ipv4::at(frame, Ethernet::BYTES).is_some_and(|ip| ip.get(ipv4::PROTOCOL) == ip_protocol::ICMP)
        }
        ethertype::IPV6 => {
            Ipv6::at(frame, Ethernet::BYTES).is_some_and(|ip| ip.get(ipv6::NEXT_HEADER) == ip_protocol::ICMPV6)
        }
        // A tag, behind which anything may be, or ARP.
        _ => true,
    }
}

/// Reads a frame; `None` where it says nothing that is meant for hosts.
pub fn read(frame: &[u8], headers: &Headers) -> Option<Heard> {
    let at = headers.network;
    match headers.ethertype {
        ethertype::ARP => Some(read_arp(frame, at)),
        ethertype::IPV4 => read_echo(frame, headers),
        ethertype::IPV6 => read_icmpv6(frame, at),
        _ => None,
    }
}

fn is_station(mac: Mac) -> bool {
    mac[0] & 1 == 0 && mac != [0; 6]
}

/// RFC 826, "Packet Reception". An announcement is a request for one's own address (RFC 5227 1.1).
fn read_arp(frame: &[u8], at: usize) -> Heard {
    let Some(message) = Arp::at(frame, at) else { return Heard::Malformed };
    let mac = message.get(arp::SENDER_MAC);
    let address = IpAddr::from(message.get(arp::SENDER_IP));
    let target = IpAddr::from(message.get(arp::TARGET_IP));
    if !is_station(mac) || address.is_multicast() || address == IpAddr::V4(Ipv4Addr::BROADCAST) {
        return Heard::Malformed;
    }
    if message.is_request() {
        return Heard::Question { target, asker: Station { address, mac } };
    }
    if message.is_reply() && !address.is_unspecified() {
        return Heard::Answer { address, mac: Some(mac), to: target };
    }
    Heard::Malformed
}

/// RFC 792. A fragment is not answered, as it holds a part of a message.
fn read_echo(frame: &[u8], headers: &Headers) -> Option<Heard> {
    let ip = headers.ip.filter(|ip| ip.protocol == ip_protocol::ICMP)?;
    let header = Ipv4::at(frame, ip.at)?;
    let (message_at, end) = (headers.payload, headers.end);
    let echo = Echo::at(frame.get(..end)?, message_at)?;
    let is_echo = matches!(echo.get(icmp::TYPE), icmp::REQUEST | icmp::REPLY);
    if !is_echo || header.get(ipv4::MORE_FRAGMENTS) != 0 {
        return None;
    }
    let whole = ip.at + usize::from(header.get(ipv4::TOTAL_LENGTH)) == end;
    let sum = |from: usize, to: usize| checksum::finish(checksum::add(0, &frame[from..to]));
    if !whole || echo.get(icmp::CODE) != 0 || sum(ip.at, message_at) != 0 || sum(message_at, end) != 0 {
        return Some(Heard::Malformed);
    }
    let address = |number: u32| IpAddr::from(Ipv4Addr::from(number));
    let (from, to) = (address(header.get(ipv4::SOURCE)), address(header.get(ipv4::DESTINATION)));
    if echo.get(icmp::TYPE) == icmp::REPLY {
        return Some(Heard::EchoReply { to, from, echoed: Echoed::of(&frame[message_at..end])? });
    }
    Some(Heard::Echo { to, from, message_at, end })
}

impl Echoed {
    fn of(message: &[u8]) -> Option<Self> {
        let echo = Echo::at(message, 0)?;
        Some(Self { identifier: echo.get(icmp::IDENTIFIER), sequence: echo.get(icmp::SEQUENCE) })
    }
}

/// RFC 4861 7.1.1, 7.1.2 and RFC 4443 4.1 say what is valid; other messages are not for hosts.
fn read_icmpv6(frame: &[u8], at: usize) -> Option<Heard> {
    let ip = Ipv6::at(frame, at)?;
    let message_at = at + Ipv6::BYTES;
    if ip.get(ipv6::NEXT_HEADER) != ip_protocol::ICMPV6 {
        return None;
    }
    let kind = *frame.get(message_at)?;
    if !matches!(kind, ndp::SOLICITATION | ndp::ADVERTISEMENT | icmp::V6_REQUEST | icmp::V6_REPLY) {
        return None;
    }
    Some(
        icmpv6_message(frame, at).and_then(|message| read_valid_icmpv6(frame, at, message)).unwrap_or(Heard::Malformed),
    )
}

fn read_valid_icmpv6(frame: &[u8], at: usize, message: &[u8]) -> Option<Heard> {
    let ip = Ipv6::at(frame, at)?;
    let address = |number: u128| IpAddr::from(Ipv6Addr::from(number));
    let (from, to) = (address(ip.get(ipv6::SOURCE)), address(ip.get(ipv6::DESTINATION)));
    let message_at = at + Ipv6::BYTES;
    match Echo::at(message, 0)?.get(icmp::TYPE) {
        icmp::V6_REQUEST => return Some(Heard::Echo { to, from, message_at, end: message_at + message.len() }),
        icmp::V6_REPLY => return Some(Heard::EchoReply { to, from, echoed: Echoed::of(message)? }),
        _ => {}
    }
    let fields = NeighbourMessage::at(message, 0)?;
    let target = IpAddr::from(fields.get(ndp::TARGET));
    let is_valid = ip.get(ipv6::HOP_LIMIT) == ndp::HOP_LIMIT
        && fields.get(ndp::CODE) == 0
        && ndp::has_valid_options(message)
        && !target.is_multicast()
        && !from.is_multicast();
    if !is_valid {
        return None;
    }
    if fields.get(ndp::TYPE) == ndp::SOLICITATION {
        let told = ndp::source_link_layer_address(message);
        // RFC 4861 7.1.1: whoever has no address yet asks many, and tells no MAC address.
        if from.is_unspecified() && (told.is_some() || !to.is_multicast()) {
            return None;
        }
        let mac = told.or(Some(Ethernet::at(frame, 0)?.get(ethernet::SOURCE))).filter(|mac| is_station(*mac))?;
        return Some(Heard::Question { target, asker: Station { address: from, mac } });
    }
    let mac = ndp::link_layer_address(message, ndp::TARGET_LINK_LAYER_ADDRESS);
    if to.is_multicast() && fields.get(ndp::FLAGS) & ndp::SOLICITED != 0 || mac.is_some_and(|mac| !is_station(mac)) {
        return None;
    }
    Some(Heard::Answer { address: target, mac, to })
}

/// Asks for `target` behind `link` from the address `own`: all, or the one whose MAC address is known.
pub fn question(link: &[u8], own: IpAddr, target: IpAddr, known: Option<Mac>) -> Option<Vec<u8>> {
    match (own, target) {
        (IpAddr::V4(own), IpAddr::V4(target)) => arp_message(
            with_type(link, ethertype::ARP),
            known.unwrap_or(BROADCAST),
            arp::REQUEST,
            own.octets(),
            ([0; 6], target.octets()),
        ),
        (IpAddr::V6(own), IpAddr::V6(target)) => {
            let (group, group_mac) = ndp::solicited_node(target.into());
            let (destination, mac) = known.map_or((group, group_mac), |mac| (target.into(), mac));
            let option = (!own.is_unspecified()).then_some(ndp::SOURCE_LINK_LAYER_ADDRESS);
            let link = with_type(link, ethertype::IPV6);
            neighbour_message(link, mac, (own.into(), destination), [ndp::SOLICITATION, 0], target.octets(), option)
        }
        _ => None,
    }
}

/// Asks whether somebody else has `own` (RFC 5227 2.1.1, RFC 4862 5.4.2).
pub fn probe(link: &[u8], own: IpAddr) -> Option<Vec<u8>> {
    let nobody = if own.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
    question(link, nobody, own, None)
}

/// Says to all that `own` is ours (RFC 5227 2.3, RFC 4861 7.2.6).
pub fn announcement(link: &[u8], own: IpAddr) -> Option<Vec<u8>> {
    match own {
        IpAddr::V4(_) => question(link, own, own, None),
        IpAddr::V6(own) => {
            let head = [ndp::ADVERTISEMENT, ndp::OVERRIDE];
            let addresses = (own.into(), ndp::ALL_NODES);
            let link = with_type(link, ethertype::IPV6);
            let option = Some(ndp::TARGET_LINK_LAYER_ADDRESS);
            neighbour_message(link, ndp::ALL_NODES_MAC, addresses, head, own.octets(), option)
        }
    }
}

/// The answer to an echo request: its data, back to where it came from.
pub fn echo_reply(link: &[u8], asker: Mac, to: IpAddr, from: IpAddr, message: &[u8]) -> Option<Vec<u8>> {
    let mut message = message.to_vec();
    let kind = if to.is_ipv4() { icmp::REPLY } else { icmp::V6_REPLY };
    Echo::at_mut(&mut message, 0)?.set(icmp::TYPE, kind);
    echo(link, asker, to, from, message)
}

/// An echo request from `own` to `to`, by the station with this MAC address.
pub fn echo_request(link: &[u8], mac: Mac, own: IpAddr, to: IpAddr, echoed: Echoed) -> Option<Vec<u8>> {
    let mut message = Vec::new();
    let mut echo_header = Echo::append(&mut message);
    echo_header.set(icmp::TYPE, if own.is_ipv4() { icmp::REQUEST } else { icmp::V6_REQUEST });
    echo_header.set(icmp::IDENTIFIER, echoed.identifier);
    echo_header.set(icmp::SEQUENCE, echoed.sequence);
    message.extend(0..PING_BYTES);
    echo(link, mac, own, to, message)
}

/// A message of ICMP or ICMPv6, whose checksum is to be computed, in a frame (RFC 792, RFC 4443 4).
fn echo(link: &[u8], mac: Mac, source: IpAddr, destination: IpAddr, mut message: Vec<u8>) -> Option<Vec<u8>> {
    Echo::at_mut(&mut message, 0)?.set(icmp::CHECKSUM, 0);
    let ethertype = if source.is_ipv4() { ethertype::IPV4 } else { ethertype::IPV6 };
    let (_, mut frame) = link_to(with_type(link, ethertype), mac)?;
    let sum = match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut ip = Ipv4::append(&mut frame);
            ip.begin(ip_protocol::ICMP);
            ip.set(ipv4::TOTAL_LENGTH, u16::try_from(Ipv4::BYTES + message.len()).ok()?);
            ip.set(ipv4::HOP_LIMIT, HOP_LIMIT);
            ip.set(ipv4::SOURCE, source.into());
            ip.set(ipv4::DESTINATION, destination.into());
            let header_sum = checksum::finish(checksum::add(0, ip.bytes()));
            ip.set(ipv4::CHECKSUM, header_sum);
            checksum::finish(checksum::add(0, &message))
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let mut ip = Ipv6::append(&mut frame);
            ip.begin(ip_protocol::ICMPV6);
            ip.set(ipv6::PAYLOAD_LENGTH, u16::try_from(message.len()).ok()?);
            ip.set(ipv6::HOP_LIMIT, HOP_LIMIT);
            ip.set(ipv6::SOURCE, source.into());
            ip.set(ipv6::DESTINATION, destination.into());
            ndp::icmpv6_checksum(&ip, &message)
        }
        _ => return None,
    };
    Echo::at_mut(&mut message, 0)?.set(icmp::CHECKSUM, sum);
    frame.extend(message);
    let shortest = (ethernet::SHORTEST_FRAME_BYTES - ethernet::FCS_BYTES) as usize;
    frame.resize(frame.len().max(shortest), 0);
    Some(frame)
}

/// Ethernet's header and tags, which say that this follows.
pub fn with_type(link: &[u8], ethertype: u16) -> Vec<u8> {
    let mut link = link.to_vec();
    let range = ethernet::type_before(link.len());
    link[range].copy_from_slice(&ethertype.to_be_bytes());
    link
}
