//! Latencies by the stamps of simulated cards, whose clocks have an offset and a frequency of their own.

mod conversation;

use conversation::{Engine, count, port, start};
use serde_json::{Value, json};

/// Time on the way through the simulated device, and of 64 + 20 bytes on the wire of 10 Gb/s.
const DELAY_NS: u64 = 30_000;
const WIRE_NS: u64 = 67;

fn configure(timestamps: &str, clocks: [Value; 2]) -> (Engine, Value) {
    let dut = json!({"delay_ns": DELAY_NS, "seed": 5});
    let mut ports = [port("t0", 1, dut.clone()), port("t1", 0, dut)];
    for (port, clock) in ports.iter_mut().zip(clocks) {
        port["card_clock"] = clock;
    }
    let mut engine = Engine::start();
    assert_eq!(engine.read()["event"], "ready");
    let reply = engine.ask(json!({"command": "configure", "run_key": "0123456789abcdef", "clock": "virtual",
        "timestamps": timestamps, "ports": ports}));
    (engine, reply)
}

/// A trial of two seconds, both ports with this clock.
fn trial(timestamps: &str, clock: Value) -> (Value, Value) {
    let (mut engine, configured) = configure(timestamps, [clock.clone(), clock]);
    assert_eq!(configured["ok"], true, "{configured}");
    let mut request = start(1, 50_000.0, 64);
    request["duration_s"] = 2.into();
    let (reading, _) = engine.trial(request);
    assert_eq!(engine.finish(), Some(0));
    assert_eq!(count(&reading, "received"), 100_000, "{reading}");
    (configured, reading)
}

fn latency<'a>(reading: &'a Value, name: &str) -> &'a Value {
    &reading["streams"][0]["latency"][name]
}

fn stamps<'a>(reading: &'a Value, port: usize, name: &str) -> &'a Value {
    &reading["ports"][port]["timestamps"][name]
}

/// Every latency is the device's, within `tolerance_ns`.
fn assert_true(reading: &Value, tolerance_ns: u64) {
    for name in ["minimum_ns", "maximum_ns"] {
        let latency_ns = latency(reading, name).as_u64().unwrap();
        assert!(latency_ns.abs_diff(DELAY_NS + WIRE_NS) <= tolerance_ns, "{name} {latency_ns}");
    }
}

#[test]
fn a_card_with_an_offset_and_a_frequency_of_its_own_gives_true_latencies() {
    for clock in [
        json!({"offset": 1u64 << 62, "ppm": 85.0}),
        json!({"offset": 17, "ppm": -140.0, "hz": 156_250_000.0}),
        // Wraps around in every 0.27 s.
        json!({"bits": 28, "ppm": 3.5}),
    ] {
        let tolerance_ns = if clock["hz"].is_null() { 2 } else { 8 };
        let (configured, reading) = trial("card", clock.clone());
        assert_true(&reading, tolerance_ns);
        assert_eq!(latency(&reading, "received_by"), "card");
        assert_eq!((latency(&reading, "negative"), stamps(&reading, 1, "steps")), (&json!(0), &json!(0)), "{clock}");
        assert_eq!(stamps(&reading, 1, "stamped"), 100_000, "{clock}");
        assert!(stamps(&reading, 1, "uncertainty_ns").as_f64().unwrap() <= tolerance_ns as f64, "{reading}");
        let told = &configured["ports"][1]["timestamps"];
        assert_eq!((&told["source"], &told["transmit_samples"]), (&json!("card"), &json!(true)));
        let nominal = clock["hz"].as_f64().unwrap_or(1e9);
        let ppm = (told["hz"].as_f64().unwrap() / nominal - 1.0) * 1e6;
        assert!((ppm - clock["ppm"].as_f64().unwrap()).abs() < 0.2, "{ppm} of {clock}");
    }
}

#[test]
fn software_stamps_the_same_frames_when_it_polls_and_is_later() {
    let (configured, reading) = trial("tsc", json!({"ppm": 85.0}));
    assert!(latency(&reading, "mean_ns").as_f64().unwrap() > (DELAY_NS + WIRE_NS) as f64);
    assert_eq!(latency(&reading, "received_by"), "tsc");
    assert_eq!(configured["ports"][1]["timestamps"], Value::Null);
    assert_eq!(reading["ports"][1]["timestamps"], Value::Null);
}

#[test]
fn sampled_frames_tell_how_long_they_took_to_leave() {
    let (_, reading) = trial("card", json!({"ppm": 20.0}));
    let delay = stamps(&reading, 0, "transmit_delay");
    assert!(delay["count"].as_u64().unwrap() > 100 && delay["count"] == delay["asked"], "{delay}");
    let minimum_ns = delay["minimum_ns"].as_i64().unwrap();
    assert!(minimum_ns.abs_diff(WIRE_NS as i64) <= 2 && delay["maximum_ns"].as_i64().unwrap() < 2_000, "{delay}");
    assert_eq!(stamps(&reading, 1, "transmit_delay")["asked"], 0);
}

#[test]
fn wrong_readings_of_the_clock_are_counted_and_spoil_nothing() {
    let (_, reading) = trial("card", json!({"ppm": -30.0, "bad_reads": 0.1}));
    assert_true(&reading, 2);
    let outliers = stamps(&reading, 1, "outliers").as_u64().unwrap();
    assert!((100..300).contains(&outliers), "{outliers}");
}

#[test]
fn frames_without_a_stamp_have_the_software_s_time_and_are_counted() {
    let (_, reading) = trial("card", json!({"unstamped": 0.25}));
    let [stamped, unstamped] = ["stamped", "unstamped"].map(|name| stamps(&reading, 1, name).as_u64().unwrap());
    assert!(stamped + unstamped == 100_000 && (24_000..26_000).contains(&unstamped), "{unstamped}");
    assert_eq!(latency(&reading, "count"), 100_000);
}

#[test]
fn a_clock_that_is_set_back_is_noticed_and_what_it_made_negative_is_counted() {
    let (_, reading) = trial("card", json!({"step_after_s": 1.0, "step_ns": -1_000_000}));
    assert_eq!(stamps(&reading, 1, "steps"), 1);
    let negative = latency(&reading, "negative").as_u64().unwrap();
    // Until three readings, a millisecond apart, have said so: 50 frames each.
    assert!((50..=250).contains(&negative), "{negative}");
    let most = latency(&reading, "negative_maximum_ns").as_u64().unwrap();
    assert!(most.abs_diff(1_000_000 - DELAY_NS - WIRE_NS) <= 2, "{most}");
    assert_eq!(latency(&reading, "minimum_ns"), 0);
}

#[test]
fn stamps_later_than_the_receipt_are_counted() {
    let (_, reading) = trial("card", json!({"step_after_s": 1.0, "step_ns": 1_000_000}));
    let early = stamps(&reading, 1, "early").as_u64().unwrap();
    assert!((50..=250).contains(&early), "{early}");
    assert!(stamps(&reading, 1, "early_maximum_ns").as_u64().unwrap() > 990_000);
}

#[test]
fn stamps_of_another_time_are_not_believed() {
    let (_, reading) = trial("card", json!({"step_after_s": 1.0, "step_ns": 3_600_000_000_000u64}));
    assert!(stamps(&reading, 1, "implausible").as_u64().unwrap() >= 50);
    assert!(latency(&reading, "maximum_ns").as_u64().unwrap() < 1_000_000);
}

#[test]
fn ports_without_such_stamps_are_refused_by_name() {
    let (mut engine, reply) = configure("card", [Value::Null, json!({})]);
    let error = &reply["error"];
    assert_eq!(error["kind"], "bad_request");
    assert_eq!(error["message"], "no time stamps of the card at the port t0 (simulated, without a card_clock)");
    assert!(error["next"].as_str().unwrap().contains("tsc"));
    let packet = json!([{"name": "a", "kind": "af_packet", "device": "none0"}]);
    let reply = engine.ask(json!({"command": "configure", "run_key": "0123456789abcdef", "clock": "tsc",
        "timestamps": "kernel", "ports": packet}));
    assert_eq!(reply["error"]["message"], "no time stamps of the kernel at the port a (net_af_packet)");
    assert_eq!(engine.finish(), Some(0));
}

#[test]
fn a_clock_that_cannot_be_is_refused() {
    for (clock, what) in
        [(json!({"hz": 0}), "hz"), (json!({"bits": 80}), "bits"), (json!({"bad_reads": 2}), "bad_reads")]
    {
        let (_, reply) = configure("card", [clock, json!({})]);
        assert!(reply["error"]["message"].as_str().unwrap().contains(&format!("t0: card_clock.{what}")), "{reply}");
    }
}
