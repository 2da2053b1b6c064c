//! The generator as a process, over simulated ports: counts, single flows, captures, thousands of flows.

mod conversation;

use conversation::{Engine, port};
use serde_json::{Value, json};

/// Ethernet, IPv4 and UDP; lengths and checksums are left to the fixups.
const TEMPLATE: &str = "02000000000202000000000108004500002e0000000040110000c6120002c6130002c0200007001a0000";

/// Two ports with a clean path between them.
fn engine(clock: &str, dut: Value) -> Engine {
    Engine::with_ports(clock, json!([port("p0", 1, dut), port("p1", 0, json!({}))]))
}

/// A port of DPDK that is looped to itself.
#[cfg(feature = "dpdk")]
fn looped() -> Engine {
    let mut engine = Engine::start();
    assert_eq!(engine.read()["event"], "ready");
    let reply = engine.ask(json!({"command": "configure", "run_key": "0123456789abcdef", "clock": "tsc",
        "memory_mib": 256, "ports": [{"name": "loop", "kind": "ring", "lossless": true}]}));
    assert_eq!(reply["ok"], true, "{reply}");
    engine
}

/// A flow from port 0 to port 1.
fn flow(change: Value) -> Value {
    let mut flow = json!({"name": "f", "transmit_port": 0, "receive_ports": [1], "template": TEMPLATE,
        "sizes": {"fixed": 64}, "rate_frames_per_s": 1000.0});
    change.as_object().unwrap().iter().for_each(|(key, value)| flow[key] = value.clone());
    flow
}

fn load(engine: &mut Engine, flows: Vec<Value>) {
    let count = flows.len();
    let reply = engine.ask(json!({"command": "load", "flows": flows}));
    assert_eq!((&reply["ok"], &reply["loaded"]), (&json!(true), &json!(count)), "{reply}");
}

fn control(engine: &mut Engine, action: &str, flows: Value) -> Value {
    let reply = engine.ask(json!({"command": "control", "action": action, "flows": flows}));
    assert_eq!(reply["ok"], true, "{reply}");
    reply
}

fn tally(engine: &mut Engine) -> Value {
    let reply = engine.ask(json!({"command": "tally", "histograms": true}));
    assert_eq!(reply["ok"], true, "{reply}");
    reply
}

/// Waits until these flows have ended.
fn wait_for_end(engine: &mut Engine, mut flows: Vec<u64>) {
    while !flows.is_empty() {
        let event = engine.read();
        assert_eq!(event["event"], "flows_ended", "{event}");
        let ended: Vec<u64> = event["flows"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
        flows.retain(|flow| !ended.contains(flow));
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn what_was_asked_is_sent_and_received_to_the_last_frame() {
    let mut engine = engine("virtual", json!({"delay_ns": 20_000}));
    load(&mut engine, vec![flow(json!({"frames": 100_000, "rate_frames_per_s": 1e6}))]);
    control(&mut engine, "start", Value::Null);
    wait_for_end(&mut engine, vec![0]);
    let tally = tally(&mut engine);
    let flow = &tally["flows"][0];
    assert_eq!(
        (&flow["state"], number(&flow["sent"]), number(&flow["received"])),
        (&json!("stopped"), 100_000, 100_000)
    );
    assert_eq!((number(&flow["sent_bytes"]), number(&flow["received_bytes"])), (6_400_000, 6_400_000));
    for name in ["lost", "in_flight", "duplicated", "reordered", "corrupted", "misdirected", "unsent_tester"] {
        assert_eq!(number(&flow[name]), 0, "{name}");
    }
    assert_eq!((number(&flow["intended"]), number(&tally["health"]["gaps"])), (100_000, 0));
    let latency = &flow["latency"];
    assert_eq!(number(&latency["count"]), 100_000);
    assert!(number(&latency["minimum_ns"]) >= 20_000 && number(&latency["maximum_ns"]) < 30_000, "{latency}");
    assert!(latency["histogram"].is_string());
    let elapsed_ns = number(&flow["last_sent_ns"]) - number(&flow["first_sent_ns"]);
    assert!((99_999_000 - 1000..99_999_000 + 1000).contains(&elapsed_ns), "{elapsed_ns}");
    let ports = &tally["ports"];
    assert_eq!(
        (number(&ports[0]["sent"]), number(&ports[1]["received"]), number(&ports[1]["foreign"])),
        (100_000, 100_000, 0)
    );
    assert_eq!(ports[1]["link_up"], true);
    assert_eq!(engine.finish(), Some(0));
}

#[test]
#[cfg(feature = "dpdk")]
fn a_loop_of_dpdk_carries_exactly_what_was_asked_for_however_fast() {
    let mut engine = looped();
    let fields = json!([{"bit_offset": 272, "bits": 16, "values": {"first": 1, "count": 251}}]);
    let one =
        |rate: f64| flow(json!({"receive_ports": [0], "fields": fields, "frames": 50_000, "rate_frames_per_s": rate}));
    load(&mut engine, vec![one(1e9), one(250_000.0), one(250_000.0)]);
    for _ in 0..2 {
        control(&mut engine, "start", Value::Null);
        wait_for_end(&mut engine, vec![0, 1, 2]);
        // The loop is emptied in the turn that filled it, or in the next.
        let tally = (0..2).map(|_| tally(&mut engine)).last().unwrap();
        for flow in tally["flows"].as_array().unwrap() {
            assert_eq!((number(&flow["sent"]), number(&flow["received"])), (50_000, 50_000), "{flow}");
            assert_eq!((number(&flow["lost"]), number(&flow["reordered"])), (0, 0));
        }
    }
    assert_eq!(engine.finish(), Some(0));
}

#[test]
fn losses_copies_and_broken_frames_are_told_apart() {
    let mut engine = engine("virtual", json!({"loss": 0.01, "duplicate": 0.02, "reorder": 0.03, "swap": 3}));
    load(&mut engine, vec![flow(json!({"frames": 20_000, "rate_frames_per_s": 1e5}))]);
    control(&mut engine, "start", Value::Null);
    wait_for_end(&mut engine, vec![0]);
    let tally = tally(&mut engine);
    let (flow, made) = (&tally["flows"][0], &tally["ports"][0]["counters"]);
    for (ours, theirs) in
        [("lost", "simulated_lost"), ("duplicated", "simulated_duplicated"), ("reordered", "simulated_reordered")]
    {
        assert_eq!(flow[ours], made[theirs], "{ours} of {tally}");
        assert!(number(&flow[ours]) > 100);
    }
    assert_eq!(number(&flow["received"]) + number(&flow["lost"]), 20_000);
}

#[test]
fn a_flow_without_receiver_has_no_loss_and_what_arrives_elsewhere_is_misdirected() {
    let mut engine = engine("virtual", json!({}));
    let flows = vec![
        flow(json!({"frames": 10, "receive_ports": []})),
        flow(json!({"frames": 10, "receive_ports": [0]})),
        flow(json!({"frames": 10, "receive_ports": [0, 1]})),
    ];
    load(&mut engine, flows);
    control(&mut engine, "start", Value::Null);
    wait_for_end(&mut engine, vec![0, 1, 2]);
    let tally = tally(&mut engine);
    let flows = &tally["flows"];
    for name in ["received", "received_bytes", "lost", "in_flight", "latency", "duplicated", "first_received_ns"] {
        assert_eq!(flows[0][name], Value::Null, "{name}");
    }
    assert_eq!(
        (number(&flows[1]["received"]), number(&flows[1]["lost"]), number(&flows[1]["misdirected"])),
        (0, 10, 10)
    );
    assert_eq!(
        (number(&flows[2]["received"]), number(&flows[2]["lost"]), number(&flows[2]["misdirected"])),
        (10, 0, 0)
    );
    let at: Vec<_> = flows[2]["by_port"].as_array().unwrap().iter().map(|at| number(&at["received"])).collect();
    assert_eq!(at, [0, 10]);
}

#[test]
fn single_flows_are_started_paused_resumed_and_stopped_while_another_sends() {
    let mut engine = engine("tsc", json!({}));
    load(&mut engine, vec![flow(json!({"rate_frames_per_s": 20_000})), flow(json!({"rate_frames_per_s": 10_000}))]);
    let sent = |engine: &mut Engine| {
        let tally = tally(engine);
        let flows = &tally["flows"];
        (number(&flows[0]["sent"]), number(&flows[1]["sent"]), flows[1]["state"].as_str().unwrap().to_owned())
    };
    let wait = |engine: &mut Engine, flow: usize, more: u64| {
        let of = |engine: &mut Engine| if flow == 0 { sent(engine).0 } else { sent(engine).1 };
        let until = of(engine) + more;
        while of(engine) < until {}
    };
    control(&mut engine, "start", json!([0]));
    wait(&mut engine, 0, 100);
    assert_eq!(sent(&mut engine).1, 0);
    control(&mut engine, "start", json!([1]));
    wait(&mut engine, 1, 100);
    control(&mut engine, "pause", json!([1]));
    // Frames in hand may still go.
    wait(&mut engine, 0, 100);
    let paused = sent(&mut engine);
    wait(&mut engine, 0, 400);
    assert_eq!((sent(&mut engine).1, paused.2.as_str()), (paused.1, "paused"));
    control(&mut engine, "resume", json!([1]));
    wait(&mut engine, 1, 100);
    let refused = engine.ask(json!({"command": "load", "flows": []}));
    assert_eq!(refused["error"]["kind"], "bad_state");
    assert_eq!(control(&mut engine, "stop", json!([1]))["changed"], 1);
    wait(&mut engine, 0, 100);
    let stopped = tally(&mut engine);
    let flow = &stopped["flows"][1];
    assert_eq!((&flow["state"], &flow["received"]), (&json!("stopped"), &flow["sent"]));
    assert_eq!(control(&mut engine, "start", json!([1]))["changed"], 1);
    wait(&mut engine, 1, 10);
    let anew = tally(&mut engine);
    assert!(number(&anew["flows"][1]["first_sent_ns"]) > number(&flow["last_sent_ns"]), "its counts begin anew");
    control(&mut engine, "stop", Value::Null);
    assert_eq!(engine.ask(json!({"command": "close"}))["ok"], true);
    assert_eq!(engine.finish(), Some(0));
}

#[test]
fn flows_of_one_rate_take_turns() {
    let mut engine = engine("virtual", json!({}));
    load(&mut engine, (0..60).map(|_| flow(json!({"rate_frames_per_s": 100, "frames": 1}))).collect());
    control(&mut engine, "start", Value::Null);
    wait_for_end(&mut engine, (0..60).collect());
    let tally = tally(&mut engine);
    let mut times: Vec<u64> =
        tally["flows"].as_array().unwrap().iter().map(|flow| number(&flow["first_sent_ns"])).collect();
    times.sort_unstable();
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|gap| (165_000..169_000).contains(gap)), "{gaps:?}");
}

#[test]
fn frames_without_signature_are_counted_by_their_headers() {
    let mut engine = engine("virtual", json!({}));
    let matching = |port: u32| {
        json!({"frames": 50, "signature": false,
            "fields": [{"bit_offset": 272, "bits": 16, "values": {"first": port}},
                {"bit_offset": 288, "bits": 16, "values": {"first": 1, "count": 7}}],
            "match": {"fields": [{"bit_offset": 272, "bits": 16, "values": {"first": port}},
                {"bit_offset": 288, "bits": 16, "values": {"first": 1, "count": 7}}], "bytes": [64]}})
    };
    load(&mut engine, (0..20).map(|number| flow(matching(4000 + number))).collect());
    control(&mut engine, "start", Value::Null);
    wait_for_end(&mut engine, (0..20).collect());
    let tally = tally(&mut engine);
    for flow in tally["flows"].as_array().unwrap() {
        assert_eq!((number(&flow["received"]), number(&flow["lost"])), (50, 0));
        assert_eq!((&flow["latency"], &flow["duplicated"]), (&Value::Null, &Value::Null));
    }
    assert_eq!(number(&tally["ports"][1]["foreign"]), 0);
}

/// A flow that is known by its source port, whose values these are.
fn matched(name: &str, ports: Value, change: Value) -> Value {
    let field = json!([{"bit_offset": 272, "bits": 16, "values": ports}]);
    let mut flow = flow(json!({"name": name, "signature": false, "fields": field, "match": {"fields": field}}));
    change.as_object().unwrap().iter().for_each(|(key, value)| flow[key] = value.clone());
    flow
}

#[test]
fn flows_that_would_get_frames_of_others_are_refused_by_their_names() {
    let (counted, uncounted) = (json!({}), json!({"match": null}));
    for (of_a, of_b, change) in [
        (json!({"first": 4000}), json!({"first": 4000}), &counted),
        (json!({"first": 4000}), json!({"first": 3000, "count": 2000}), &counted),
        (json!({"first": 3000, "count": 2000}), json!({"first": 4999, "count": 60_000}), &counted),
        (json!({"first": 3000, "count": 2000}), json!({"first": 4000}), &uncounted),
        (json!({"first": 4000}), json!({"list": [1, 2, 4000]}), &uncounted),
    ] {
        let flows = [matched("a", of_a, json!({})), matched("b", of_b, change.clone())];
        for flows in [flows.to_vec(), flows.iter().rev().cloned().collect()] {
            let reply = engine("virtual", json!({})).ask(json!({"command": "load", "flows": flows}));
            let message = reply["error"]["message"].as_str().unwrap_or_else(|| panic!("{reply}"));
            assert!(message.contains("flow a") && message.contains("flow b"), "{message}");
        }
    }
}

#[test]
fn flows_whose_frames_differ_are_loaded_however_they_differ() {
    let first = matched("a", json!({"first": 4000}), json!({"frames": 20}));
    for other in [
        matched("b", json!({"first": 4001, "count": 900}), json!({})),
        matched("b", json!({"first": 4000}), json!({"receive_ports": [0], "transmit_port": 1})),
        // It ends before it comes to the other's value.
        matched("b", json!({"first": 3000, "count": 2000}), json!({"frames": 1000, "match": null})),
        flow(json!({"name": "signed"})),
    ] {
        load(&mut engine("virtual", json!({})), vec![first.clone(), other]);
    }
}

#[test]
fn every_frame_of_a_mesh_arrives_where_it_is_addressed_to() {
    let mac = |port: usize| format!("0200000000{port:02x}");
    let colons = |text: &str| text.as_bytes().chunks(2).map(String::from_utf8_lossy).collect::<Vec<_>>().join(":");
    let ports: Vec<Value> = (0..6)
        .map(|number| {
            let mut port = port(&format!("p{number}"), (number + 1) % 6, json!({"delay_ns": 1000}));
            port["mac"] = colons(&mac(number)).into();
            port
        })
        .collect();
    let mut engine = Engine::with_ports("virtual", ports.into());
    let mut flows = Vec::new();
    for from in 0..6 {
        for to in (0..6).filter(|to| *to != from) {
            let template = format!("{}{}{}", mac(to), mac(from), &TEMPLATE[24..]);
            flows.push(flow(json!({"transmit_port": from, "receive_ports": [to], "template": template, "frames": 20})));
        }
    }
    load(&mut engine, flows);
    for _ in 0..2 {
        control(&mut engine, "start", Value::Null);
        wait_for_end(&mut engine, (0..30).collect());
        let tally = tally(&mut engine);
        for flow in tally["flows"].as_array().unwrap() {
            assert_eq!((number(&flow["received"]), number(&flow["misdirected"])), (20, 0), "{flow}");
        }
    }
}

#[test]
fn a_port_that_takes_less_than_was_asked_makes_frames_late_or_unsent() {
    for (is_exact, lossless) in [(true, false), (false, false), (false, true)] {
        let mut slow = port("p0", 1, json!({"tester_ceiling_frames_per_s": 100_000}));
        slow["lossless"] = lossless.into();
        let mut engine = Engine::with_ports("virtual", json!([slow, port("p1", 0, json!({}))]));
        let change = json!({"rate_frames_per_s": 200_000, "duration_s": 0.1, "exact": is_exact});
        load(&mut engine, vec![flow(change)]);
        control(&mut engine, "start", Value::Null);
        wait_for_end(&mut engine, vec![0]);
        let tally = tally(&mut engine);
        let flow = &tally["flows"][0];
        let (ours, theirs) = (number(&flow["unsent_tester"]), number(&flow["unsent_backpressure"]));
        assert_eq!(number(&flow["sent"]) + ours + theirs, 20_000);
        assert_eq!(flow["received"], flow["sent"]);
        match (is_exact, lossless) {
            (true, _) => assert!(ours + theirs == 0 && number(&flow["late_maximum_ns"]) > 90_000_000, "{flow}"),
            (false, false) => assert!(ours > 9_000 && theirs == 0, "{flow}"),
            (false, true) => assert!(theirs > 9_000 && ours == 0, "{flow}"),
        }
    }
}

#[test]
fn frames_of_an_earlier_start_are_stale() {
    // The path is longer than computed time goes on after the last frame: all are under way when the flow begins anew.
    let mut engine = engine("virtual", json!({"delay_ns": 200_000_000}));
    load(&mut engine, vec![flow(json!({"frames": 100, "rate_frames_per_s": 1000}))]);
    for _ in 0..2 {
        control(&mut engine, "start", Value::Null);
        wait_for_end(&mut engine, vec![0]);
    }
    let tally = tally(&mut engine);
    let (flow, port) = (&tally["flows"][0], &tally["ports"][1]);
    assert_eq!((number(&flow["sent"]), number(&flow["received"]), number(&flow["lost"])), (100, 0, 100));
    assert_eq!((number(&port["stale"]), number(&port["foreign"])), (number(&port["received"]), 0));
    assert!(number(&port["stale"]) > 90, "{port}");
}

#[test]
fn a_capture_begins_and_ends_apart_from_transmissions() {
    let folder = std::env::temp_dir().join(format!("nicbench-generator-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut engine = engine("virtual", json!({}));
    load(&mut engine, vec![flow(json!({"frames": 30, "signature": false}))]);
    let prefix = format!("{}/", folder.display());
    let begun = engine.ask(json!({"command": "capture", "action": "start", "ports": [1], "path_prefix": prefix}));
    assert_eq!(begun["ok"], true, "{begun}");
    for _ in 0..2 {
        control(&mut engine, "start", Value::Null);
        wait_for_end(&mut engine, vec![0]);
    }
    let ended = engine.ask(json!({"command": "capture", "action": "stop", "ports": [1]}));
    let file = &ended["captures"][0];
    assert_eq!((number(&file["frames"]), number(&file["dropped"]), number(&file["bytes"])), (60, 0, 24 + 60 * 80));
    let bytes = std::fs::read(file["path"].as_str().unwrap()).unwrap();
    assert_eq!((bytes.len(), &bytes[..4]), (24 + 60 * 80, &[0x4D, 0x3C, 0xB2, 0xA1][..]));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn thousands_of_flows_are_loaded_started_and_counted() {
    let mut engine = engine("virtual", json!({}));
    let one = |number: u32| {
        flow(json!({"frames": 2, "rate_frames_per_s": 10, "fields": [{"bit_offset": 272, "bits": 16,
            "values": {"first": number, "count": 10}}]}))
    };
    load(&mut engine, (0..4096).map(one).collect());
    control(&mut engine, "start", Value::Null);
    wait_for_end(&mut engine, (0..4096).collect());
    let tally = tally(&mut engine);
    assert!(tally["flows"].as_array().unwrap().iter().all(|flow| flow["received"] == 2 && flow["lost"] == 0));
    let more = (0..4097).map(one).collect::<Vec<_>>();
    assert_eq!(engine.ask(json!({"command": "load", "flows": more}))["error"]["kind"], "bad_request");
}

#[test]
fn trials_and_flows_are_of_different_processes() {
    let mut engine = engine("virtual", json!({}));
    assert_eq!(engine.ask(json!({"command": "tally"}))["error"]["kind"], "bad_state");
    load(&mut engine, vec![]);
    let start = engine.ask(conversation::start(1, 1000.0, 64));
    assert_eq!(start["error"]["kind"], "bad_state");
    let mut other = self::engine("virtual", json!({}));
    other.trial(conversation::start(1, 1000.0, 64));
    assert_eq!(other.ask(json!({"command": "load", "flows": []}))["error"]["kind"], "bad_state");
}
