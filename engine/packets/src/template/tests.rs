use std::collections::HashSet;

use nicbench_protocol::IpVersion;

use super::*;
use crate::checksum;
use crate::frame_writer::FrameWriter;
use crate::signature::{Signature, Signer};
use crate::wire::{Ethernet, Header, Ipv4, Ipv6, Udp, ethernet, ip_protocol, ipv4, ipv6, udp};

const IP: usize = Ethernet::BYTES;

const SIGNATURE: Signature = Signature { flow: 5, sequence: 77, time_ns: 123_456 };

pub fn request(version: u8, frame_bytes: u32) -> StreamRequest {
    let (source, destination) =
        if version == 4 { ("198.18.0.2", "198.19.0.2") } else { ("2001:2::1", "2001:2:0:1::1") };
    serde_json::from_value(serde_json::json!({
        "name": "s", "transmit_port": 0, "receive_port": 1, "frame_bytes": frame_bytes, "rate_frames_per_s": 1,
        "flows": 24, "source_mac": "02:00:00:00:00:01", "destination_mac": "02:00:00:00:00:02", "ip": version,
        "source_address": source, "destination_address": destination, "source_address_count": 2,
        "destination_address_count": 3, "source_port_count": 4, "destination_port_count": 1,
    }))
    .unwrap()
}

fn frames(version: u8, frame_bytes: u32, count: usize) -> (Template, Vec<Vec<u8>>) {
    let template = Template::new(&request(version, frame_bytes)).unwrap();
    let signer = Signer::new(1, 1);
    let writer = FrameWriter::new(template.clone(), signer, 0, 24, 1);
    let frames = (0..count).map(|index| {
        let mut frame = vec![0xEE; template.length()];
        template.write_constant(&mut frame);
        writer.patch(&mut frame, index as u32 % 24, SIGNATURE);
        frame
    });
    let frames = frames.collect();
    (template, frames)
}

#[test]
fn the_smallest_frames_are_62_bytes_for_ipv4_and_82_for_ipv6() {
    assert_eq!((minimum_udp_frame_bytes(IpVersion::V4), minimum_udp_frame_bytes(IpVersion::V6)), (62, 82));
    assert_eq!(frames(6, 82, 1).1[0].len(), 78);
}

#[test]
fn the_checksum_of_every_ipv4_header_is_right() {
    for frame in frames(4, 64, 24).1 {
        assert_eq!(checksum::finish(checksum::add(0, Ipv4::at(&frame, IP).unwrap().bytes())), 0);
        let udp = Udp::at(&frame, IP + Ipv4::BYTES).unwrap();
        assert_eq!(udp.get(udp::CHECKSUM), 0, "UDP over IPv4 goes without checksum (RFC 768)");
    }
}

#[test]
fn the_udp_checksum_of_every_ipv6_frame_is_right_for_odd_lengths_too() {
    for size in [82, 83, 128, 1518] {
        for frame in frames(6, size, 24).1 {
            let ip = Ipv6::at(&frame, IP).unwrap();
            let pseudo_header = u64::from(ip.get(ipv6::PAYLOAD_LENGTH)) + u64::from(ip_protocol::UDP);
            let addresses = checksum::add(pseudo_header, &ip.get(ipv6::ADDRESSES));
            let sum = checksum::add(addresses, &frame[IP + Ipv6::BYTES..]);
            assert_eq!(checksum::finish(sum), 0, "{size}");
        }
    }
}

#[test]
fn flows_differ_as_long_as_the_counts_allow_and_then_repeat() {
    let (_, frames) = frames(4, 64, 48);
    let flow = |frame: &Vec<u8>| {
        let (ip, udp) = (Ipv4::at(frame, IP).unwrap(), Udp::at(frame, IP + Ipv4::BYTES).unwrap());
        (ip.get(ipv4::ADDRESSES), udp.get(udp::PORTS))
    };
    let headers: HashSet<_> = frames.iter().map(flow).collect();
    assert_eq!(headers.len(), 24);
    assert_eq!(frames[0], frames[24]);
}

#[test]
fn what_a_router_changes_leaves_a_frame_intact() {
    let (template, mut frames) = frames(4, 128, 1);
    let frame = &mut frames[0];
    let mut ethernet = Ethernet::at_mut(frame, 0).unwrap();
    ethernet.set(ethernet::SOURCE, [0x11; 6]);
    ethernet.set(ethernet::DESTINATION, [0x11; 6]);
    let mut ip = Ipv4::at_mut(frame, IP).unwrap();
    ip.set(ipv4::HOP_LIMIT, 63);
    ip.set(ipv4::CHECKSUM, 0xBEEF);
    assert!(template.is_intact(frame, 0, 0));
}

#[test]
fn a_changed_pattern_or_length_is_not_intact() {
    for version in [4, 6] {
        let (template, frames) = frames(version, 128, 1);
        for position in [template.signature_offset() + 16, template.length() - 1, template.signature_offset() - 3] {
            let mut broken = frames[0].clone();
            broken[position] ^= 1;
            assert!(!template.is_intact(&broken, 0, 0), "byte {position}");
        }
        assert!(!template.is_intact(&frames[0][..123], 0, 0));
    }
}

#[test]
fn a_frame_between_our_addresses_and_ports_is_addressed_as_ours() {
    for version in [4, 6] {
        let (template, frames) = frames(version, 128, 24);
        assert!(frames.iter().all(|frame| template.is_addressed_as_ours(frame)));
        let mut other = frames[0].clone();
        other[template.signature_offset() - 5] ^= 1; // the destination port
        assert!(!template.is_addressed_as_ours(&other));
    }
}

#[test]
fn no_frame_however_short_is_too_short_to_look_at() {
    let (template, frames) = frames(4, 64, 1);
    for length in 0..frames[0].len() {
        let short = &frames[0][..length];
        let _ = signature_offset(short);
        template.is_addressed_as_ours(short);
        assert!(!template.is_intact(short, 0, 0));
    }
}
