//! The sender in the kernel makes the frames that the user-space sender makes, byte for byte and in the same order. The
//! program runs by BPF_PROG_TEST_RUN, so no interface is touched; it needs root, and says so where it did nothing.
#![cfg(feature = "xdp")]

use std::io::Write;

use nicbench_packets::clock::MonotonicClock;
use nicbench_packets::frame_writer::Cursor;
use nicbench_packets::pace::Pace;
use nicbench_packets::port::{Clock, Frame, PortFacts};
use nicbench_packets::signature::Signer;
use nicbench_packets::sys::pool::FramePool;
use nicbench_packets::trial::Trial;
use nicbench_packets::trial_part::Roles;
use nicbench_packets::xdp::Generator;
use serde_json::{Value, json};

const RUN_KEY: u64 = 77;
const TRIAL: u32 = 1000;

fn facts(name: &str) -> PortFacts {
    PortFacts {
        name: name.into(),
        driver: "none".into(),
        mac: None,
        link_bits_per_s: None,
        link_up: None,
        minimum_frame_bytes: 64,
        maximum_frame_bytes: 3396,
        tag_bytes: 0,
        maximum_burst: nicbench_packets::port::MAXIMUM_BURST,
        transmit_descriptors: 64,
        receive_descriptors: 64,
        send_buffer_bytes: None,
        transmit_budget_frames: None,
        numa_node: None,
        lossless: false,
        stamps: None,
    }
}

fn generator() -> Option<Generator> {
    match Generator::detached(0) {
        Ok(generator) => Some(generator),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "nothing was tested: {error}");
            None
        }
    }
}

/// A trial of one stream, changed by `change`, that so many workers send.
fn trial(change: &Value, workers: usize) -> Trial {
    let mut stream = json!({
        "name": "up", "transmit_port": 0, "receive_port": 1, "frame_bytes": 128, "rate_frames_per_s": 1e6,
        "source_mac": "02:00:00:00:00:01", "destination_mac": "02:00:00:00:00:02", "ip": 4,
        "source_address": "198.18.0.2", "destination_address": "198.19.0.2"});
    stream.as_object_mut().expect("an object").extend(change.as_object().expect("an object").clone());
    let start = json!({"trial": TRIAL, "duration_s": 9, "catch_up_s": 10, "latency_from": "scheduled", "burst": 7,
        "streams": [stream]});
    let start = serde_json::from_value(start).expect("a start");
    let facts = [facts("t0"), facts("t1")];
    Trial::new(&start, RUN_KEY, &facts, &vec![Roles::all(2); workers], &MonotonicClock).expect("a trial")
}

/// Compares the first frames of every worker; returns how many sizes they had.
fn compare(generator: &mut Generator, name: &str, trial: &Trial, frames: usize) -> usize {
    let signer = Signer::new(RUN_KEY, TRIAL);
    let mut pool = FramePool::default();
    let mut sizes = std::collections::BTreeSet::new();
    for (worker, part) in trial.parts.iter().enumerate() {
        generator.prepare(part, &signer, true).expect("frames that the kernel makes");
        generator.begin(MonotonicClock.now() - 1_000_000_000);
        let (Pace::Even(pacer), writer) = part.senders[0].plan() else { panic!("an even pace") };
        let mut expected: Vec<Frame> = (0..frames).map(|_| pool.take(writer.length())).collect();
        let mut ticks = pacer.ticks();
        writer.write(&mut expected, 0, Cursor::default(), || ticks.next().expect("a schedule"));
        for (number, expected) in expected.iter().enumerate() {
            let made = generator.run_once().expect("a run").expect("a frame that is due");
            assert_eq!(made, expected.bytes(), "{name}: worker {worker}, frame {number}");
            sizes.insert(made.len());
        }
        expected.iter().for_each(|frame| pool.give(frame));
    }
    sizes.len()
}

fn layers() -> [(&'static str, Value); 11] {
    let ethernet = json!({"layer": "ethernet", "source": "02:00:00:00:00:00", "destination": "02:00:00:00:00:01"});
    let vlan = json!({"layer": "vlan", "id": {"first": 100, "count": 4}, "priority": 3});
    let ipv4 = json!({"layer": "ipv4", "source": {"first": "198.18.0.2", "count": 5}, "destination": "198.19.0.2"});
    let ipv6 = json!({"layer": "ipv6", "source": "2001:2::1",
        "destination": {"first": "2001:2:0:8000::1", "count": 9, "seed": 3}});
    let udp = json!({"layer": "udp", "source": {"first": 1024, "count": 64512, "seed": 9}, "destination": 7,
        "checksum": true});
    let tcp = json!({"layer": "tcp", "source": 40000, "destination": {"first": 80, "count": 3, "step": 100}});
    let outer_udp = json!({"layer": "udp", "source": 49152, "destination": 4789});
    let vxlan = json!({"layer": "vxlan", "vni": {"first": 5000, "count": 3}});
    let raw = json!({"layer": "raw", "hex": "0001 02"});
    [
        ("UDP with checksum", json!([ethernet, ipv4, udp])),
        ("VLAN and TCP", json!([ethernet, vlan, ipv4, tcp])),
        ("IPv6", json!([ethernet, ipv6, udp])),
        ("VXLAN", json!([ethernet, ipv4, outer_udp, vxlan, ethernet, ipv6, tcp])),
        ("a signature at an odd place", json!([ethernet, ipv4, udp, raw])),
        ("GRE", json!([ethernet, ipv4, {"layer": "gre", "key": {"first": 1, "count": 4}}, ipv4, udp])),
        ("MPLS", json!([ethernet, {"layer": "mpls", "label": {"first": 16, "count": 7}}, ipv4, tcp])),
        ("GTP-U", json!([ethernet, ipv4, outer_udp, {"layer": "gtp", "teid": 7, "qos_flow": 3}, ipv4, udp])),
        ("PPPoE", json!([ethernet, {"layer": "pppoe", "session": {"first": 1, "count": 9}}, ipv6, udp])),
        ("SRv6", json!([ethernet, ipv6, {"layer": "segment_routing", "segments": ["2001:2::9"]}, ipv4, udp])),
        ("no transport", json!([ethernet, ipv4, raw])),
    ]
}

#[test]
fn the_kernel_makes_the_frames_that_the_user_space_sender_makes() {
    let Some(mut generator) = generator() else { return };
    let mix = json!([{"frame_bytes": 200, "weight": 7}, {"frame_bytes": 570, "weight": 4},
        {"frame_bytes": 1518, "weight": 1}]);
    let joined = |one: &Value, other: Value| {
        let mut joined = one.clone();
        joined.as_object_mut().expect("an object").extend(other.as_object().expect("an object").clone());
        joined
    };
    let mut all = vec![("plain".to_owned(), json!({"flows": 30, "source_port_count": 30}))];
    all.push(("64 bytes".into(), json!({"frame_bytes": 64, "flows": 6, "source_address_count": 6})));
    all.extend(layers().map(|(name, layers)| (name.to_owned(), json!({"layers": layers, "flows": 30}))));
    for (name, change) in &all {
        for (kind, sizes, workers) in [
            ("one size", json!({"frame_bytes": 200}), 1),
            ("a mix", json!({"sizes": mix, "size_seed": 5}), 1),
            ("a mix of two workers", json!({"sizes": mix}), 2),
            ("a sweep", json!({"size_sweep": {"from": 150, "to": 3396, "step": 11}}), 1),
        ] {
            let trial = trial(&joined(change, sizes), workers);
            compare(&mut generator, &format!("{name}, {kind}"), &trial, 120);
        }
    }
    let sweep = trial(&json!({"size_sweep": {"from": 64, "to": 400}}), 1);
    assert_eq!(compare(&mut generator, "every size", &sweep, 700), 337);
    // One that needs no call to be copied, and one that does.
    compare(&mut generator, "64 bytes", &trial(&json!({"frame_bytes": 64}), 1), 20);
    compare(&mut generator, "65 bytes", &trial(&json!({"frame_bytes": 65}), 1), 20);
    // More flows than the user-space sender computes before.
    let many = json!({"flows": 1_100_000, "source_address_count": 1100, "source_port_count": 1000});
    compare(&mut generator, "many flows", &trial(&many, 1), 20);
}

#[test]
fn frames_of_a_file_are_made_in_its_order_over_and_over() {
    let Some(mut generator) = generator() else { return };
    for file in ["flows.pcap", "flows.pcapng"] {
        let path = format!("{}/tests/golden/{file}", env!("CARGO_MANIFEST_DIR"));
        let change = json!({"pcap": path, "source_mac": "", "destination_mac": ""});
        compare(&mut generator, file, &trial(&change, 1), 100);
    }
}
