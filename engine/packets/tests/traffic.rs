//! Every kind of traffic over simulated ports: what is sent arrives, is recognised, and is counted exactly.

mod conversation;

use conversation::{Engine, count, counter, port, start};
use serde_json::{Value, json};

/// A stream like that of `start`, changed by `change`.
fn changed(rate_frames_per_s: f64, change: Value) -> Value {
    let mut start = start(1, rate_frames_per_s, 128);
    let stream = start["streams"][0].as_object_mut().unwrap();
    stream.extend(change.as_object().unwrap().clone());
    start
}

fn reading(dut: Value, start: Value) -> Value {
    let mut engine = Engine::with_ports("virtual", json!([port("t0", 1, dut), port("t1", 0, json!({}))]));
    let (reading, _) = engine.trial(start);
    assert_eq!(engine.finish(), Some(0));
    reading
}

/// Without faults everything arrives whole and in order, and nothing is foreign.
fn assert_clean(kind: &str, reading: &Value) {
    assert_eq!(count(reading, "intended"), count(reading, "received"), "{kind}: {reading}");
    let faults = ["lost", "duplicated", "reordered", "corrupted", "unsent_tester", "late"];
    faults.iter().for_each(|fault| assert_eq!(count(reading, fault), 0, "{kind}: {fault}: {reading}"));
    assert_eq!(
        (&reading["ports"][1]["foreign"], &reading["ports"][1]["corrupted_unattributed"]),
        (&json!(0), &json!(0))
    );
}

fn ethernet() -> Value {
    json!({"layer": "ethernet", "source": "02:00:00:00:00:00", "destination": "02:00:00:00:00:01"})
}

fn ipv4() -> Value {
    json!({"layer": "ipv4", "source": {"first": "198.18.0.2", "count": 5}, "destination": "198.19.0.2"})
}

fn ipv6() -> Value {
    json!({"layer": "ipv6", "source": "2001:2::1", "destination": {"first": "2001:2:0:8000::1", "count": 9, "seed": 3}})
}

fn udp() -> Value {
    json!({"layer": "udp", "source": {"first": 1024, "count": 64512, "seed": 9}, "destination": 7, "checksum": true})
}

fn tcp() -> Value {
    json!({"layer": "tcp", "source": 40000, "destination": {"first": 80, "count": 3, "step": 100}, "flags": 2})
}

/// Every kind of headers, with the smallest size they allow.
fn kinds() -> Vec<(&'static str, Value, u32)> {
    let vlan = json!({"layer": "vlan", "id": {"first": 100, "count": 4}, "priority": 3});
    let outer = json!({"layer": "vlan", "tpid": 34984, "id": 7});
    let vxlan = json!({"layer": "vxlan", "vni": {"first": 5000, "count": 3}});
    let raw = json!({"layer": "raw", "hex": "0001 02 03aabbcc"});
    let outer_udp = json!({"layer": "udp", "source": 49152, "destination": 4789});
    vec![
        ("vlan", json!([ethernet(), vlan, ipv4(), udp()]), 66),
        ("qinq", json!([ethernet(), outer, vlan, ipv4(), udp()]), 70),
        ("tcp", json!([ethernet(), ipv4(), tcp()]), 74),
        ("tcp over ipv6", json!([ethernet(), vlan, ipv6(), tcp()]), 98),
        ("udp over ipv6", json!([ethernet(), ipv6(), udp()]), 82),
        ("vxlan", json!([ethernet(), ipv4(), outer_udp, vxlan, ethernet(), ipv4(), udp()]), 112),
        ("vxlan over ipv6", json!([ethernet(), ipv6(), outer_udp, vxlan, ethernet(), vlan, ipv4(), tcp()]), 148),
        ("raw over udp", json!([ethernet(), ipv4(), udp(), raw]), 69),
        ("raw over ipv4", json!([ethernet(), ipv4(), raw]), 64),
        ("raw alone", json!([{"layer": "raw", "hex": "020000000001 020000000000 88b5 0102"}]), 64),
    ]
}

#[test]
fn every_kind_of_headers_arrives_whole_at_its_smallest_size_and_at_larger_ones() {
    for (kind, layers, least) in kinds() {
        for frame_bytes in [least, least + 1, 1518] {
            let stream = json!({"layers": layers, "frame_bytes": frame_bytes, "flows": 40});
            assert_clean(kind, &reading(json!({"delay_ns": 5000}), changed(20_000.0, stream)));
        }
    }
}

#[test]
fn a_size_too_small_for_its_headers_is_refused_with_the_smallest_one() {
    for (kind, layers, least) in kinds().into_iter().filter(|(_, _, least)| *least > 64) {
        let mut engine = Engine::with_ports("virtual", json!([port("t0", 1, json!({})), port("t1", 0, json!({}))]));
        let reply = engine.ask(changed(1000.0, json!({"layers": layers, "frame_bytes": least - 1})));
        assert_eq!(reply["error"]["kind"], "frame_size", "{kind}: {reply}");
        let message = reply["error"]["message"].as_str().unwrap();
        assert!(message.contains(&format!("the smallest frame is {least} bytes")), "{kind}: {message}");
    }
}

#[test]
fn faults_are_counted_exactly_whatever_the_frames_are_made_of() {
    let dut = json!({"seed": 4, "loss": 0.02, "corrupt": 0.02, "duplicate": 0.02});
    for (kind, layers, _) in kinds().into_iter().filter(|(kind, _, _)| !kind.contains("raw") && !kind.contains("vxlan"))
    {
        let stream = json!({"layers": layers, "frame_bytes": 256, "flows": 7});
        let reading = reading(dut.clone(), changed(50_000.0, stream));
        for fault in ["lost", "corrupted", "duplicated"] {
            let made = counter(&reading, 0, &format!("simulated_{fault}"));
            assert_eq!(count(&reading, fault), made, "{kind}: {fault}: {reading}");
            assert!(made > 40, "{kind}: {fault} was tried");
        }
    }
}

#[test]
fn a_mix_of_sizes_is_sent_in_its_proportions_and_judged_frame_by_frame() {
    let sizes = json!([{"frame_bytes": 64, "weight": 7}, {"frame_bytes": 570, "weight": 4}, {"frame_bytes": 1518, "weight": 1}]);
    assert_clean("imix", &reading(json!({}), changed(120_000.0, json!({"sizes": sizes, "flows": 256}))));
    let dut = json!({"seed": 4, "loss": 0.02, "corrupt": 0.02, "duplicate": 0.02});
    // 64 bytes have a payload of 2 behind the signature: a flipped bit is always in what is compared.
    let reading = reading(dut, changed(120_000.0, json!({"sizes": sizes})));
    for fault in ["lost", "corrupted", "duplicated"] {
        assert_eq!(count(&reading, fault), counter(&reading, 0, &format!("simulated_{fault}")), "{fault}");
    }
}

#[test]
fn the_rate_of_a_mix_is_bounded_by_its_mean_size() {
    // 12 frames take 12 x 20 + 7 x 64 + 4 x 570 + 1518 = 4486 bytes of the wire.
    let sizes = json!([{"frame_bytes": 64, "weight": 7}, {"frame_bytes": 570, "weight": 4}, {"frame_bytes": 1518, "weight": 1}]);
    let reading = reading(json!({}), changed(0.0, json!({"sizes": sizes})));
    let rate = count(&reading, "received") as f64 * 1e9 / reading["transmit_ns"].as_f64().unwrap();
    let line_rate = 10e9 / 8.0 * 12.0 / 4486.0;
    assert!((rate / line_rate - 1.0).abs() < 0.01, "{rate} of {line_rate}");
}

#[test]
fn what_left_while_frames_were_sent_is_the_rate_of_the_wire_without_what_filled_the_ring() {
    let reading = reading(json!({}), changed(0.0, json!({})));
    let number = |name: &str| reading[name].as_f64().unwrap();
    let line_rate = 10e9 / 8.0 / (128.0 + 20.0);
    let rate = number("sent_while_sending") * 1e9 / number("sending_ns");
    assert!((rate / line_rate - 1.0).abs() < 1e-4, "{rate} of {line_rate}");
    assert!(number("sent_while_sending") < count(&reading, "sent") as f64, "the ring was full at the end: {reading}");
    assert!(number("sending_ns") < number("transmit_ns"), "until it was empty: {reading}");
}

#[test]
fn frames_at_a_pace_have_all_left_when_the_sending_ends() {
    let reading = reading(json!({}), changed(10_000.0, json!({})));
    assert_eq!(reading["sent_while_sending"], reading["streams"][0]["sent"], "{reading}");
}

#[test]
fn a_sweep_of_sizes_arrives_whole_over_every_layer() {
    for (kind, layers, least) in kinds() {
        let stream = json!({"layers": layers, "size_sweep": {"from": least, "to": 1518, "step": 7}, "flows": 3});
        assert_clean(kind, &reading(json!({}), changed(10_000.0, stream)));
    }
}

#[test]
fn streams_of_one_port_keep_their_own_rates_and_counts() {
    let mut start = changed(30_000.0, json!({"name": "tagged", "layers": kinds()[0].1, "frame_bytes": 128}));
    let mut others = [
        changed(10_000.0, json!({"name": "plain"})),
        changed(
            5_000.0,
            json!({"name": "carried",
        "layers": kinds()[5].1, "size_sweep": {"from": 112, "to": 200}, "flows": 6}),
        ),
    ];
    let streams = start["streams"].as_array_mut().unwrap();
    others.iter_mut().for_each(|other| streams.push(other["streams"][0].take()));
    let reading = reading(json!({"foreign_frames_per_s": 1000}), start);
    let counts: Vec<_> = (0..3).map(|index| reading["streams"][index]["received"].as_u64().unwrap()).collect();
    assert_eq!(counts, [3000, 1000, 500], "{reading}");
    assert_eq!(reading["ports"][1]["foreign"], 150);
}

#[test]
fn a_fixed_number_of_frames_ends_the_transmission_at_any_rate() {
    for (rate, frames, longest_ns) in [(0.0, 1234, 1_000_000), (100_000.0, 500, 6_000_000)] {
        let reading = reading(json!({}), changed(rate, json!({"frames": frames, "flows": 10})));
        assert_clean("frames", &reading);
        assert_eq!(count(&reading, "sent"), frames);
        assert!(reading["transmit_ns"].as_u64().unwrap() < longest_ns, "{reading}");
    }
}

#[test]
fn more_frames_than_rate_and_duration_give_are_refused_with_the_time_they_need() {
    let mut engine = Engine::with_ports("virtual", json!([port("t0", 1, json!({})), port("t1", 0, json!({}))]));
    for (rate, change, words) in [
        (1000.0, json!({"frames": 500}), ["frames", "0.5 s", "0.1 s"]),
        (1000.0, json!({"frames": 0}), ["frames is 0", "forward", "forward"]),
        (0.0, json!({"burst_frames": 8}), ["burst_frames", "rate", "forward"]),
        (1000.0, json!({"burst_frames": 0}), ["burst_frames", "0", "forward"]),
    ] {
        let reply = engine.ask(changed(rate, change));
        let message = reply["error"]["message"].as_str().unwrap();
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    }
}

#[test]
fn bursts_fill_a_queue_that_the_same_rate_without_bursts_does_not() {
    let dut = json!({"capacity_frames_per_s": 200_000, "queue_frames": 50});
    let evenly = reading(dut.clone(), changed(100_000.0, json!({})));
    assert_clean("evenly", &evenly);
    let small = reading(dut.clone(), changed(100_000.0, json!({"burst_frames": 40})));
    assert_clean("small bursts", &small);
    let large = reading(dut, changed(100_000.0, json!({"burst_frames": 200})));
    assert_eq!(count(&large, "sent"), count(&evenly, "sent"), "the mean rate holds");
    assert_eq!(count(&large, "lost"), counter(&large, 0, "simulated_queue_dropped"));
    // Each of 50 bursts of 200 frames finds room for about 51, and for those that leave while the burst arrives.
    assert!((6_500..7_500).contains(&count(&large, "lost")), "{large}");
}

/// ARP requests for `target`, each with a signature behind it, as a stream.
fn arp_requests(target: &str) -> Value {
    let hex =
        format!("ffffffffffff 020000000000 0806 0001 0800 06 04 0001 020000000000 c6120001 000000000000 {target}");
    changed(10_000.0, json!({"layers": [{"layer": "raw", "hex": hex}], "frame_bytes": 64}))
}

#[test]
fn a_port_with_addresses_answers_for_them_and_for_no_others() {
    let mut answering = port("t1", 0, json!({}));
    answering["addresses"] = json!([{"first": "198.18.0.2", "count": 2}]);
    let mut engine = Engine::with_ports("virtual", json!([port("t0", 1, json!({})), answering]));
    let (ours, _) = engine.trial(arp_requests("c6120003"));
    assert_eq!((counter(&ours, 1, "arp_answered"), &ours["ports"][1]["foreign"]), (1000, &json!(0)), "{ours}");
    assert_eq!(ours["ports"][0]["foreign"], 1000, "the answers arrive where nobody asked");
    assert_eq!(counter(&ours, 1, "completions"), 0, "answers are not among what was sent");
    let mut others = arp_requests("c6120004");
    others["trial"] = 2.into();
    let (others, _) = engine.trial(others);
    assert_eq!((counter(&others, 1, "arp_answered"), count(&others, "received")), (0, 1000), "{others}");
}

#[test]
fn traffic_and_questions_at_once_leave_the_counts_exact() {
    let mut asking = arp_requests("c6120002");
    asking["streams"].as_array_mut().unwrap().push(start(1, 50_000.0, 64)["streams"][0].take());
    asking["streams"][1]["name"] = "traffic".into();
    let mut back = asking["streams"][1].clone();
    (back["name"], back["transmit_port"], back["receive_port"]) = ("back".into(), 1.into(), 0.into());
    asking["streams"].as_array_mut().unwrap().push(back);
    let mut answering = port("t1", 0, json!({}));
    answering["addresses"] = json!([{"first": "198.18.0.2"}]);
    let mut engine = Engine::with_ports("virtual", json!([port("t0", 1, json!({})), answering]));
    let (reading, _) = engine.trial(asking);
    for stream in [1, 2] {
        let stream = &reading["streams"][stream];
        assert_eq!((&stream["sent"], &stream["received"]), (&json!(5000), &json!(5000)), "{stream}");
    }
    assert_eq!(counter(&reading, 1, "arp_answered"), 1000);
}

#[test]
fn the_frames_of_a_capture_arrive_one_after_another_and_are_judged_each_by_itself() {
    for file in ["flows.pcap", "flows.pcapng"] {
        let pcap = format!("{}/tests/golden/{file}", env!("CARGO_MANIFEST_DIR"));
        assert_clean(file, &reading(json!({"delay_ns": 500}), changed(20_000.0, json!({"pcap": pcap}))));
        let dut = json!({"seed": 4, "loss": 0.02, "duplicate": 0.02});
        let reading = reading(dut, changed(20_000.0, json!({"pcap": pcap, "frames": 1999})));
        assert_eq!(count(&reading, "lost"), counter(&reading, 0, "simulated_lost"));
        assert_eq!(count(&reading, "duplicated"), counter(&reading, 0, "simulated_duplicated"));
        assert_eq!((count(&reading, "sent"), count(&reading, "corrupted")), (1999, 0));
    }
}

#[test]
fn a_capture_with_a_frame_too_small_for_the_port_is_refused_with_its_size() {
    let mut engine = Engine::with_ports("virtual", json!([port("t0", 1, json!({})), port("t1", 0, json!({}))]));
    let reply = engine.ask(changed(1.0, json!({"pcap": "/nowhere.pcap"})));
    assert!(reply["error"]["message"].as_str().unwrap().contains("/nowhere.pcap"), "{reply}");
}
