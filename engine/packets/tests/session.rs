//! How the process behaves: statistics, stopping, ending, and lines that are no requests.

mod conversation;

use conversation::{Engine, count, port, start};
use serde_json::{Value, json};

fn engine(clock: &str) -> Engine {
    Engine::with_ports(clock, json!([port("t0", 1, json!({})), port("t1", 0, json!({}))]))
}

fn long_start() -> Value {
    let mut start = start(1, 1000.0, 64);
    start["duration_s"] = 60.into();
    start
}

#[test]
fn statistics_can_be_read_and_a_transmission_stopped_while_it_runs() {
    let mut engine = engine("tsc");
    assert_eq!(engine.ask(long_start())["ok"], true);
    let stats = loop {
        let stats = engine.ask(json!({"command": "stats"}));
        if stats["streams"][0]["received"].as_u64().unwrap() > 10 {
            break stats;
        }
    };
    assert_eq!(stats["trial"], 1);
    assert_eq!(engine.ask(start(2, 1.0, 64))["error"]["kind"], "bad_state");
    assert_eq!(engine.ask(json!({"command": "stop"}))["ok"], true);
    assert_eq!(engine.read()["event"], "transmitted");
    let reading = engine.ask(json!({"command": "drain", "duration_s": 0.01}));
    assert_eq!(count(&reading, "intended"), 60_000);
    assert_eq!(count(&reading, "sent") + count(&reading, "unsent_tester"), 60_000);
    assert_eq!(count(&reading, "received"), count(&reading, "sent"));
    assert_eq!(engine.finish(), Some(0));
}

#[test]
fn a_drain_asked_for_early_waits_for_the_transmission() {
    let mut engine = engine("tsc");
    engine.send(start(1, 1000.0, 64));
    let drain = engine.send(json!({"command": "drain", "duration_s": 0.01}));
    let settle = engine.send(json!({"command": "settle", "duration_s": 0.01}));
    assert_eq!(engine.read()["ok"], true);
    assert_eq!(engine.read()["event"], "transmitted");
    let (reading, late) = (engine.read(), engine.read());
    assert_eq!((reading["id"].as_i64(), late["id"].as_i64()), (Some(drain), Some(settle)));
    assert_eq!(count(&reading, "intended"), 100);
}

#[test]
fn the_end_of_stdin_ends_a_running_transmission() {
    let mut engine = engine("tsc");
    assert_eq!(engine.ask(long_start())["ok"], true);
    assert_eq!(engine.finish(), Some(0));
}

#[test]
fn a_request_cut_short_by_close_is_answered_as_interrupted() {
    let mut engine = engine("tsc");
    assert_eq!(engine.ask(long_start())["ok"], true);
    engine.send(json!({"command": "drain", "duration_s": 0.01}));
    engine.send(json!({"command": "close"}));
    assert_eq!(engine.read()["error"]["kind"], "interrupted");
    assert_eq!(engine.read()["ok"], true);
    assert_eq!(engine.finish(), Some(0));
}

#[test]
fn a_signal_ends_the_engine_with_the_signals_status() {
    for (name, status) in [("-TERM", 143), ("-INT", 130)] {
        let mut engine = engine("tsc");
        assert_eq!(engine.ask(long_start())["ok"], true);
        let process = engine.process_id().to_string();
        assert!(std::process::Command::new("kill").args([name, &process]).status().unwrap().success());
        while !engine.read().is_null() {}
        assert_eq!(engine.finish(), Some(status));
    }
}

#[test]
fn a_trial_number_is_used_once() {
    let mut engine = engine("virtual");
    engine.trial(start(7, 1000.0, 64));
    let reply = engine.ask(start(7, 1000.0, 64));
    assert_eq!(reply["error"]["kind"], "bad_request", "{reply}");
}

#[test]
fn no_line_whatever_kills_the_engine() {
    let mut engine = engine("virtual");
    let deep = "[".repeat(200_000);
    let long = format!(r#"{{"id":1,"command":"{}"}}"#, "x".repeat(3 << 20));
    let odd = [
        "\u{0}",
        "nul",
        "{\"id\":1e999}",
        r#"{"id":1,"command":"start","trial":-1}"#,
        &deep,
        &long,
        r#"{"id":9223372036854775808,"command":"renew"}"#,
        r#"{"id":1,"command":"drain","duration_s":1e999}"#,
        r#"{"id":1,"command":"start","trial":1,"duration_s":1,"streams":{}}"#,
    ];
    for line in odd {
        engine.write(line);
        assert_eq!(engine.read()["ok"], false, "{line:.60}");
    }
    for duration in [json!(-1), json!(1e300), json!(null), json!("1")] {
        assert_eq!(engine.ask(json!({"command": "drain", "duration_s": duration}))["ok"], false);
    }
    assert_eq!(engine.ask(json!({"command": "renew"}))["ok"], true);
    assert_eq!(engine.finish(), Some(0));
}
