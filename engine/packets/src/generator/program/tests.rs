//! Whole frames against bytes that were computed by hand, and checksums against a computation of their own.

use nicbench_protocol::FlowRequest;
use serde_json::{Value, json};

use super::*;

/// Ethernet, IPv4 and UDP, lengths and checksums left open.
const UDP_OVER_IPV4: &str = "0200000000020200000000010800450000000000000040110000c6120002c6130002c020000700000000";

pub(in crate::generator) fn port() -> PortFacts {
    PortFacts {
        name: "p1".into(),
        driver: "simulated".into(),
        mac: None,
        link_bits_per_s: None,
        link_up: None,
        minimum_frame_bytes: 64,
        maximum_frame_bytes: 1518,
        tag_bytes: 0,
        maximum_burst: crate::port::MAXIMUM_BURST,
        transmit_descriptors: 64,
        receive_descriptors: 64,
        send_buffer_bytes: None,
        transmit_budget_frames: None,
        numa_node: None,
        lossless: false,
        stamps: None,
    }
}

fn udp_fixups() -> Value {
    json!([
        {"kind": "length", "at": 16, "counted_from": 14},
        {"kind": "checksum", "at": 24, "from": 14, "to": 34},
        {"kind": "length", "at": 38, "counted_from": 34},
        {"kind": "checksum", "at": 40, "from": 34, "zero_as_ffff": true,
            "pseudo": {"addresses_at": 26, "address_bytes": 8, "protocol": 17}},
    ])
}

fn program(change: Value) -> Result<Program, EngineError> {
    let mut flow = json!({"name": "f", "transmit_port": 0, "template": UDP_OVER_IPV4,
        "fixups": udp_fixups(), "sizes": {"fixed": 64}, "rate_frames_per_s": 1, "signature": false});
    change.as_object().unwrap().iter().for_each(|(key, value)| flow[key] = value.clone());
    Program::of(&serde_json::from_value::<FlowRequest>(flow).unwrap(), &port())
}

fn frame(program: &Program, number: u64, signature: [u64; 2]) -> Vec<u8> {
    let mut frame = vec![0xEE; program.length(number)];
    program.write(number, &mut frame);
    program.finish(&mut frame, signature);
    frame
}

/// RFC 1071, straight from its words: the sum of 16-bit words with the carry added at each step.
fn sum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u16;
    for word in parts.iter().flat_map(|part| part.chunks(2)) {
        let word = u16::from(word[0]) << 8 | u16::from(*word.get(1).unwrap_or(&0));
        let (more, carry) = sum.overflowing_add(word);
        sum = more + u16::from(carry);
    }
    sum
}

#[test]
fn a_frame_is_the_bytes_that_were_asked_for() {
    let frame = frame(&program(json!({"filler": {"kind": "incrementing_byte"}})).unwrap(), 0, [0; 2]);
    let text: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
    let expected = "02000000000202000000000108004500002e000000004011ee95c6120002c6130002c0200007001a6b17\
        000102030405060708090a0b0c0d0e0f1011";
    assert_eq!(text, expected);
    assert_eq!(sum(&[&frame[14..34]]), 0xFFFF);
    assert_eq!(sum(&[&frame[26..34], &[0, 17, 0, 26], &frame[34..]]), 0xFFFF);
}

#[test]
fn fields_advance_together_each_with_its_own_modulus() {
    let fields = json!([
        {"bit_offset": 34 * 8, "bits": 16, "values": {"first": 5000, "step": 1, "count": 251}},
        {"bit_offset": 36 * 8, "bits": 16, "values": {"first": 6000, "step": 2, "count": 241}},
        {"bit_offset": 29 * 8, "bits": 8, "values": {"first": 9}},
    ]);
    let program = program(json!({"fields": fields})).unwrap();
    for number in [0u64, 1, 240, 241, 250, 251, 60_490, 60_491, 1 << 40] {
        let frame = frame(&program, number, [0; 2]);
        let port = |at: usize| u64::from(u16::from_be_bytes([frame[at], frame[at + 1]]));
        assert_eq!((port(34), port(36)), (5000 + number % 251, 6000 + 2 * (number % 241)), "{number}");
        assert_eq!(frame[29], 9);
        assert_eq!(sum(&[&frame[14..34]]), 0xFFFF);
        assert_eq!(sum(&[&frame[26..34], &[0, 17, 0, 26], &frame[34..]]), 0xFFFF);
    }
}

#[test]
fn the_signature_is_the_frames_end_and_checksums_cover_it() {
    let program = program(json!({"signature": true, "sizes": {"from": 64, "to": 67}})).unwrap();
    for number in 0..8 {
        let frame = frame(&program, number, [0x0807_0605_0403_0201, 0x100F_0E0D_0C0B_0A09]);
        assert_eq!(frame.len() as u64, 60 + number % 4);
        assert_eq!(frame[frame.len() - 16..], (1..=16).collect::<Vec<u8>>());
        let length = (frame.len() - 34) as u16;
        assert_eq!(frame[38..40], length.to_be_bytes());
        assert_eq!(sum(&[&frame[26..34], &[0, 17], &length.to_be_bytes(), &frame[34..]]), 0xFFFF, "{number}");
        assert!(program.is_intact(number, &frame));
    }
}

#[test]
fn a_frame_whose_filler_or_length_changed_is_not_intact_and_one_with_other_headers_is() {
    let program = program(json!({"signature": true, "sizes": {"fixed": 100}, "filler": {"kind": "random"}})).unwrap();
    let sent = frame(&program, 3, [1, 2]);
    let mut routed = sent.clone();
    (routed[0], routed[22], routed[25]) = (9, 1, 7);
    assert!(program.is_intact(3, &routed));
    let mut tagged = sent.clone();
    tagged.splice(12..12, [0x81, 0, 0, 5]);
    assert!(program.is_intact(3, &tagged));
    let mut broken = sent.clone();
    broken[60] ^= 4;
    assert!(!program.is_intact(3, &broken));
    assert!(!program.is_intact(3, &sent[80..]) && !program.is_intact(3, &[]));
}

#[test]
fn sizes_are_in_turn_random_or_in_proportion() {
    let lengths = |sizes: Value, count: u64| {
        let program = program(json!({"sizes": sizes})).unwrap();
        (0..count).map(|number| program.length(number) + 4).collect::<Vec<_>>()
    };
    assert_eq!(lengths(json!({"from": 64, "to": 70, "step": 3}), 4), [64, 67, 70, 64]);
    let random = lengths(json!({"random": {"from": 64, "to": 66, "seed": 1}}), 300);
    assert!(random.iter().all(|size| (64..=66).contains(size)) && (64..=66).all(|size| random.contains(&size)));
    let mix = json!({"weighted": [{"frame_bytes": 64, "weight": 7}, {"frame_bytes": 570, "weight": 4},
        {"frame_bytes": 1518, "weight": 1}]});
    let mix = lengths(mix, 12);
    let count = |bytes: usize| mix.iter().filter(|size| **size == bytes).count();
    assert_eq!((count(64), count(570), count(1518)), (7, 4, 1));
}

#[test]
fn fillers_repeat_their_pattern() {
    let filled =
        |filler: Value| frame(&program(json!({"filler": filler, "fixups": []})).unwrap(), 0, [0; 2])[42..].to_vec();
    assert_eq!(filled(json!({"kind": "zeros"})), [0; 18]);
    assert_eq!(filled(json!({"kind": "hex", "hex": "a1b2c3"}))[..5], [0xA1, 0xB2, 0xC3, 0xA1, 0xB2]);
    assert_ne!(filled(json!({"kind": "random", "seed": 1})), filled(json!({"kind": "random", "seed": 2})));
}

#[test]
fn what_cannot_be_is_refused_and_the_smallest_frame_named() {
    let tcp = "00".repeat(54);
    let error = program(json!({"template": tcp, "signature": true, "fixups": []})).unwrap_err();
    assert_eq!(error.kind, ErrorKind::FrameSize);
    assert!(error.message.contains("74 bytes"), "{error}");
    for (change, kind) in [
        (json!({"sizes": {"fixed": 1519}}), ErrorKind::FrameSize),
        (json!({"sizes": {"fixed": 63}}), ErrorKind::FrameSize),
        (json!({"sizes": {"from": 70, "to": 64}}), ErrorKind::BadRequest),
        (json!({"sizes": {"random": {"from": 70, "to": 64}}}), ErrorKind::BadRequest),
        (json!({"template": "0g"}), ErrorKind::BadRequest),
        (json!({"template": "000"}), ErrorKind::BadRequest),
        (json!({"filler": {"kind": "hex", "hex": ""}}), ErrorKind::BadRequest),
        (json!({"fields": [{"bit_offset": 330, "bits": 8, "values": {"first": 1}}]}), ErrorKind::BadRequest),
    ] {
        assert_eq!(program(change.clone()).unwrap_err().kind, kind, "{change}");
    }
}

#[test]
fn a_tag_of_802_1q_does_not_count_and_another_does() {
    let port = PortFacts { tag_bytes: 4, ..port() };
    let of = |tag: &str, bytes: u32| {
        let template = format!("0200000000020200000000{tag}006488b5");
        let flow = json!({"name": "f", "transmit_port": 0, "template": template, "sizes": {"fixed": bytes},
            "rate_frames_per_s": 1, "signature": false});
        Program::of(&serde_json::from_value::<FlowRequest>(flow).unwrap(), &port).is_ok()
    };
    assert_eq!([1518, 1522, 1523].map(|bytes| of("018100", bytes)), [true, true, false]);
    assert_eq!([1518, 1522].map(|bytes| of("0188a8", bytes)), [true, false]);
}
