//! Any bytes as a frame: no parser of headers reaches beyond them, and what is written to a field is read back from it.

use std::ops::Range;

use nicbench_packets::hosts::PortHosts;
use nicbench_packets::signature::SIGNATURE_BYTES;
use nicbench_packets::template::signature_offset;
use nicbench_packets::traffic::SignatureSearch;
use nicbench_packets::traffic::address_match::FlowKey;
use nicbench_packets::traffic::neighbours::{Addresses, answer, may_ask};
use nicbench_packets::wire::ethernet::{self, FCS_BYTES, SHORTEST_FRAME_BYTES};
use nicbench_packets::wire::ndp::{self, LinkLayerAddress, NeighbourMessage};
use nicbench_packets::wire::{
    Arp, Ethernet, Geneve, Gre, GreKey, Gtp, Header, Headers, Ipv4, Ipv6, Mpls, Named, Pppoe, SegmentRouting,
    SessionContainer, Tcp, Udp, Vlan, Vxlan, arp, geneve, gre, gtp, ipv4, ipv6, mpls, pppoe, segment_routing, tcp, udp,
    vlan, vxlan,
};
use nicbench_protocol::{AddressRange, HostAddress, HostRequest};

const OUR_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x0A];

/// Tries `input`, whose first byte says where the headers begin.
pub fn judge(input: &[u8]) {
    let Some((first, frame)) = input.split_first() else { return };
    let start = usize::from(*first);
    for start in [0, start] {
        if let Some(headers) = Headers::find(frame, start) {
            check_headers(frame, start, &headers);
        }
    }
    let searches =
        [SignatureSearch::Payload, SignatureSearch::Carried, SignatureSearch::End, SignatureSearch::At(start)];
    // Whoever asks this one looks whether the frame is so long.
    signature_offset(frame);
    let offsets = searches.iter().filter_map(|search| search.offset(frame));
    offsets.for_each(|offset| assert!(offset + SIGNATURE_BYTES <= frame.len(), "{offset} of {}", frame.len()));
    ndp::source_link_layer_address(frame);
    check_fields(frame, start);
    check_answer(frame);
    check_hosts(frame);
}

/// A host takes any frame, again and again, and no more than one is for it at a time.
fn check_hosts(frame: &[u8]) {
    let address = |text: &str, gateway: &str| HostAddress {
        address: text.parse().expect("an address"),
        gateway: Some(gateway.parse().expect("an address")),
    };
    let addresses = vec![address("198.18.0.2", "198.18.0.1"), address("2001:2::1", "2001:2::9")];
    let host = HostRequest {
        port: 0,
        further_ports: Vec::new(),
        mac: "02:00:00:00:00:0a".into(),
        tags: Vec::new(),
        addresses,
        tap: None,
    };
    let mut hosts = PortHosts::default().replaced(&[(0, &host)], 0).expect("a host");
    let taken = (0..3).filter(|turn| hosts.receive(frame, turn * 1_000_000_000)).count() as u64;
    assert_eq!(hosts.counts.received, taken);
    assert!(hosts.neighbours().count() <= 3 && hosts.duplicates().count() <= 2);
}

fn check_headers(frame: &[u8], start: usize, headers: &Headers) {
    assert!(start + Ethernet::BYTES <= headers.network && headers.network <= headers.payload, "{headers:?}");
    assert!(headers.network <= frame.len() && headers.end <= frame.len(), "{headers:?} of {}", frame.len());
    if let Some(ip) = headers.ip {
        assert!(ip.at == headers.network && ip.addresses().end <= frame.len(), "{headers:?}");
    }
    if let Some(transport) = headers.transport {
        let ip = headers.ip.expect("only IP carries a transport");
        assert!(
            ip.at < transport.at && transport.at < headers.payload && headers.payload <= headers.end,
            "{headers:?}"
        );
    }
    FlowKey::of(frame, headers);
}

/// An answer is a whole frame to the one who asked, and no question: two of ours would answer each other for ever.
fn check_answer(frame: &[u8]) {
    let every = ["0.0.0.0", "::", "128.0.0.0"].map(|first| AddressRange { first: first.into(), count: 1 << 31 });
    let ours = Addresses::new("t0", Some(OUR_MAC), &every).expect("addresses");
    let Some((_, reply)) = answer(frame, &ours) else { return };
    assert!(may_ask(frame), "a question that is not looked at");
    assert!(reply.len() >= (SHORTEST_FRAME_BYTES - FCS_BYTES) as usize && reply.len() <= frame.len().max(200));
    let link = Ethernet::at(&reply, 0).expect("a whole frame");
    assert_eq!(link.get(ethernet::SOURCE), OUR_MAC);
    assert_eq!(answer(&reply, &ours), None);
}

fn check_fields(frame: &[u8], at: usize) {
    macro_rules! fields {
        ($header:ty, $length:ident: $($field:expr),+) => {
            let $length = <$header>::BYTES;
            assert_eq!(<$header>::at(frame, at).is_some(), at + $length <= frame.len());
            $(check_field::<$header, _>(frame, at, || $field);)+
        };
    }
    fields!(Ethernet, bytes: ethernet::DESTINATION, ethernet::SOURCE, ethernet::ADDRESSES, ethernet::TYPE);
    fields!(Vlan, bytes: vlan::PRIORITY, vlan::DROP_ELIGIBLE, vlan::ID, vlan::TYPE);
    fields!(Arp, bytes: arp::ADDRESS_KINDS, arp::OPERATION, arp::SENDER_MAC, arp::SENDER_IP, arp::TARGET_MAC, arp::TARGET_IP);
    fields!(Ipv4, bytes: ipv4::VERSION, ipv4::WORDS, ipv4::TRAFFIC_CLASS, ipv4::TOTAL_LENGTH, ipv4::IDENTIFICATION);
    fields!(Ipv4, bytes: ipv4::DO_NOT_FRAGMENT, ipv4::FRAGMENT_OFFSET, ipv4::HOP_LIMIT, ipv4::PROTOCOL, ipv4::CHECKSUM);
    fields!(Ipv4, bytes: ipv4::SOURCE, ipv4::DESTINATION, ipv4::ADDRESSES);
    fields!(Ipv6, bytes: ipv6::VERSION, ipv6::TRAFFIC_CLASS, ipv6::FLOW_LABEL, ipv6::PAYLOAD_LENGTH, ipv6::NEXT_HEADER);
    fields!(Ipv6, bytes: ipv6::HOP_LIMIT, ipv6::SOURCE, ipv6::DESTINATION, ipv6::ADDRESSES);
    fields!(Tcp, bytes: tcp::SOURCE_PORT, tcp::DESTINATION_PORT, tcp::SEQUENCE, tcp::ACKNOWLEDGEMENT, tcp::WORDS);
    fields!(Tcp, bytes: tcp::FLAGS, tcp::WINDOW, tcp::CHECKSUM);
    fields!(Udp, bytes: udp::SOURCE_PORT, udp::DESTINATION_PORT, udp::PORTS, udp::LENGTH, udp::CHECKSUM);
    fields!(Vxlan, bytes: vxlan::FLAGS, vxlan::VNI);
    fields!(Geneve, bytes: geneve::PROTOCOL, geneve::VNI);
    fields!(Gre, bytes: gre::FLAGS, gre::PROTOCOL);
    fields!(GreKey, bytes: gre::KEY);
    fields!(Gtp, bytes: gtp::FLAGS, gtp::MESSAGE, gtp::LENGTH, gtp::TEID);
    fields!(SessionContainer, bytes: gtp::EXTENSION, gtp::EXTENSION_LENGTH, gtp::PDU_TYPE, gtp::QOS_FLOW);
    fields!(Mpls, bytes: mpls::LABEL, mpls::TRAFFIC_CLASS, mpls::BOTTOM, mpls::HOP_LIMIT);
    fields!(SegmentRouting, bytes: segment_routing::NEXT_HEADER, segment_routing::LENGTH, segment_routing::TYPE);
    fields!(SegmentRouting, bytes: segment_routing::SEGMENTS_LEFT, segment_routing::LAST_ENTRY);
    fields!(Pppoe, bytes: pppoe::VERSION_AND_TYPE, pppoe::SESSION, pppoe::LENGTH, pppoe::PROTOCOL);
    fields!(NeighbourMessage, bytes: ndp::TYPE, ndp::CODE, ndp::CHECKSUM, ndp::FLAGS, ndp::TARGET);
    fields!(LinkLayerAddress, bytes: ndp::OPTION_TYPE, ndp::OPTION_LENGTH, ndp::OPTION_MAC);
}

/// The field's value of one frame, written into another, is read back, and no byte outside of the field changes.
fn check_field<H: Header, F: Named<H>>(frame: &[u8], at: usize, field: impl Fn() -> F)
where
    F::Value: Copy + PartialEq + std::fmt::Debug,
{
    let Some(view) = H::at(frame, at) else { return };
    let value = view.get(field());
    let mut copy = frame.to_vec();
    let mut written = H::at_mut(&mut copy, at).expect("the same length");
    written.set(field(), value);
    assert_eq!(copy, frame);
    let mut other: Vec<u8> = frame.iter().map(|byte| !byte).collect();
    let before = other.clone();
    H::at_mut(&mut other, at).expect("the same length").set(field(), value);
    assert_eq!(H::at(&other, at).expect("the same length").get(field()), value);
    let span = field().span();
    let inside: Range<usize> = at + span.at..at + span.at + span.bytes;
    let is_outside = |index: usize| !inside.contains(&index);
    assert!((0..frame.len()).filter(|index| is_outside(*index)).all(|index| other[index] == before[index]));
}
