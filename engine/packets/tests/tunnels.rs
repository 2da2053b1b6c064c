//! Frames that come back with other headers than those sent: a tunnel begins or ends on the way.

use nicbench_packets::analyser::{Analyser, Expected};
use nicbench_packets::frame_writer::FrameWriter;
use nicbench_packets::signature::{Signature, Signer};
use nicbench_packets::template::{Bounds, Template};
use nicbench_protocol::StreamRequest;
use serde_json::{Value, json};

const FLOWS: u32 = 24;

fn request(layers: &Value, received_layers: &Value, frame_bytes: u32) -> StreamRequest {
    serde_json::from_value(json!({
        "name": "up", "transmit_port": 0, "receive_port": 1, "rate_frames_per_s": 1, "flows": FLOWS,
        "frame_bytes": frame_bytes, "layers": layers, "received_layers": received_layers,
    }))
    .unwrap()
}

fn link() -> Value {
    json!({"layer": "ethernet", "source": "02:00:00:00:00:01", "destination": "02:00:00:00:00:02"})
}

fn carried() -> [Value; 2] {
    let address = json!({"first": "198.18.0.2", "count": 4});
    let port = json!({"first": 1000, "count": 6, "seed": 5});
    [
        json!({"layer": "ipv4", "source": address, "destination": "198.19.0.2"}),
        json!({"layer": "udp", "source": port, "destination": 2, "checksum": true}),
    ]
}

/// The headers around the carried packet, without Ethernet.
fn tunnels() -> Vec<Vec<Value>> {
    let outer = json!({"layer": "ipv4", "source": "10.0.0.1", "destination": "10.0.0.2"});
    let outer6 = json!({"layer": "ipv6", "source": "2001:db8::1", "destination": "2001:db8::2"});
    let udp = |port: u16| json!({"layer": "udp", "source": {"first": 49152, "count": 16384}, "destination": port});
    vec![
        vec![outer.clone(), json!({"layer": "gre", "key": 7})],
        vec![outer.clone(), udp(4789), json!({"layer": "vxlan", "vni": 7}), link()],
        vec![outer.clone(), udp(6081), json!({"layer": "geneve", "vni": 7}), link()],
        vec![outer.clone(), udp(2152), json!({"layer": "gtp", "teid": 7, "qos_flow": 3})],
        vec![outer6, json!({"layer": "segment_routing", "segments": ["2001:db8::2"]})],
        vec![json!({"layer": "mpls", "label": 17})],
        vec![json!({"layer": "pppoe", "session": 9})],
        vec![outer],
    ]
}

fn stack(middle: &[Value]) -> Value {
    Value::Array([vec![link()], middle.to_vec(), carried().to_vec()].concat())
}

/// The frame of a flow, with its signature and checksums.
fn frame(template: &Template, signer: Signer, flow: u32) -> Vec<u8> {
    let mut bytes = template.constant().to_vec();
    let signature = Signature { flow, sequence: 0, time_ns: 1000 };
    FrameWriter::new(template.clone(), signer, 0, FLOWS, 1).patch(&mut bytes, flow, signature);
    bytes
}

/// What the analyser counts of these frames: received and corrupted.
fn counts(request: &StreamRequest, frames: &[Vec<u8>]) -> (u64, u64) {
    let template = Template::received(request).unwrap().unwrap();
    let sent = Some(Template::new(request).unwrap());
    let expected = vec![Expected { template, sent, receive_port: 1, first_flow: 0, flows: FLOWS, copy_of: None }];
    let mut analyser = Analyser::new(Signer::new(1, 1), expected, 2).unwrap();
    frames.iter().for_each(|frame| analyser.analyse(1, frame, 2000));
    assert_eq!(analyser.ports()[1].foreign, 0);
    (analyser.streams()[0].received, analyser.streams()[0].corrupted)
}

#[test]
fn what_leaves_a_tunnel_is_recognised_in_every_flow_and_a_damaged_byte_is_seen() {
    for tunnel in tunnels() {
        let request = request(&stack(&tunnel), &stack(&[]), 256);
        let sent = Template::new(&request).unwrap();
        let outer = sent.signature_offset() - 14 - 28;
        let mut frames: Vec<Vec<u8>> = (0..FLOWS)
            .map(|flow| {
                let whole = frame(&sent, Signer::new(1, 1), flow);
                [&whole[..12], &[0x08, 0x00], &whole[14 + outer..]].concat()
            })
            .collect();
        assert_eq!(counts(&request, &frames), (u64::from(FLOWS), 0), "{tunnel:?}");
        let last = frames[3].len() - 1;
        frames[3][last] ^= 1;
        frames[5].truncate(last);
        assert_eq!(counts(&request, &frames), (u64::from(FLOWS) - 2, 2), "{tunnel:?}");
    }
}

#[test]
fn what_enters_a_tunnel_is_recognised_whatever_port_its_entry_chose_and_what_it_carries_is_compared() {
    for tunnel in tunnels() {
        let request = request(&stack(&[]), &stack(&tunnel), 256);
        let sent = Template::new(&request).unwrap();
        let received = Template::received(&request).unwrap().unwrap();
        let outer = received.signature_offset() - 14 - 28;
        let mut frames: Vec<Vec<u8>> = (0..FLOWS)
            .map(|flow| {
                let (packet, around) = (frame(&sent, Signer::new(1, 1), flow), received.constant());
                let mut outer = around[..14 + outer].to_vec();
                if tunnel.len() > 2 {
                    outer[35] ^= flow as u8;
                }
                [&outer, &packet[14..]].concat()
            })
            .collect();
        assert_eq!(counts(&request, &frames), (u64::from(FLOWS), 0), "{tunnel:?}");
        // Routed before it entered: another hop limit, and the checksum that goes with it.
        frames[7][14 + outer + 8] -= 1;
        let checksum = u16::from_be_bytes([frames[7][14 + outer + 10], frames[7][14 + outer + 11]]) + 0x0100;
        frames[7][14 + outer + 10..14 + outer + 12].copy_from_slice(&checksum.to_be_bytes());
        assert_eq!(counts(&request, &frames), (u64::from(FLOWS), 0), "{tunnel:?}");
        // The carried destination address: not the router's to change.
        frames[2][14 + outer + 19] ^= 1;
        assert_eq!(counts(&request, &frames), (u64::from(FLOWS) - 1, 1), "{tunnel:?}");
    }
}

#[test]
fn a_frame_that_would_be_too_small_behind_the_tunnel_is_known_before_it_is_sent() {
    let tunnel = &tunnels()[0];
    let bounds = |request: &StreamRequest| Bounds::of(request).unwrap().unwrap();
    assert_eq!(bounds(&request(&stack(tunnel), &stack(&[]), 256)).grows, -28);
    assert_eq!(bounds(&request(&stack(&[]), &stack(tunnel), 256)).grows, 28);
}
