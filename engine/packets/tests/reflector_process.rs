//! The reference forwarder as a process: its configuration, commands and end, and a tester beside it over memif.
#![cfg(feature = "dpdk")]

mod conversation;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use conversation::{Engine, count, start};
use nicbench_packets::reflector::expectation::expectation;
use nicbench_packets::reflector::log;
use serde_json::{Value, json};

/// A forwarder that was given its configuration on stdin and is forwarding.
fn forwarder(configuration: &Value) -> Engine {
    timed_forwarder(configuration).0
}

/// The same, and how fast it found the time-stamp counter to be.
fn timed_forwarder(configuration: &Value) -> (Engine, f64) {
    let mut engine = Engine::start_with(&["reflect"]);
    assert_eq!(engine.read()["event"], "ready");
    engine.write(&configuration.to_string());
    let event = engine.read();
    assert_eq!(event["event"], "forwarding", "{event}");
    (engine, event["clock"]["hz"].as_f64().unwrap())
}

fn ring() -> Value {
    json!({"ports": [{"name": "d0", "kind": "ring"}], "memory_mib": 256})
}

/// A folder of this test's own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("nicbench-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn it_answers_while_it_forwards_and_reports_when_it_is_closed() {
    let mut engine = forwarder(&ring());
    engine.write(r#"{"command":"stats"}"#);
    let first = engine.read();
    assert_eq!((&first["event"], first["directions"].as_array().unwrap().len()), (&json!("stats"), 1));
    assert!(first["core_clock_hz"].as_f64().unwrap() > 1e8);
    assert_eq!(first["busy_tsc_cycles_per_frame"], Value::Null, "unknown is not zero");
    engine.write("dance");
    assert_eq!(engine.read()["error"]["kind"], "bad_request");
    engine.write(r#"{"command":"stats","probe_core_clock":true}"#);
    let second = engine.read();
    assert!(second["idle_polls"].as_u64().unwrap() >= first["idle_polls"].as_u64().unwrap());
    engine.write(r#"{"command":"close"}"#);
    let report = engine.read();
    assert_eq!(
        (&report["event"], &report["ended_by"], &report["log"]),
        (&json!("report"), &json!("close"), &Value::Null)
    );
    assert_eq!(engine.finish(), Some(0));
}

#[test]
fn the_end_of_stdin_and_a_signal_end_it_in_order() {
    let engine = forwarder(&ring());
    assert_eq!(engine.finish(), Some(0));
    let mut engine = forwarder(&ring());
    let process = engine.process_id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &process]).status().unwrap().success());
    assert_eq!(engine.read()["ended_by"], "signal");
    assert_eq!(engine.finish(), Some(0));
}

#[test]
fn a_configuration_that_cannot_be_is_refused_with_its_reason() {
    let folder = Folder::new("reflect-refused");
    std::fs::write(folder.file("bad.json"), r#"{"ports":[{"name":"d0","kind":"ring"}],"faults":{"loss":7}}"#).unwrap();
    for (file, named) in [("bad.json", "loss is 7"), ("absent.json", "absent.json")] {
        let mut engine = Engine::start_with(&["reflect", &folder.file(file)]);
        assert_eq!(engine.read()["event"], "ready");
        let event = engine.read();
        assert_eq!((&event["event"], &event["error"]["kind"]), (&json!("failed"), &json!("bad_request")));
        assert!(event["error"]["message"].as_str().unwrap().contains(named), "{event}");
        assert_eq!(engine.finish(), Some(1));
    }
}

/// Ports of one side of two memif links.
fn memif(folder: &Folder, role: &str, name: &str) -> Value {
    let port = |number: u32| {
        let socket = folder.file(&format!("memif{number}.sock"));
        let vdev = format!("net_memif{number},role={role},id=0,socket={socket},socket-abstract=no,rsize=11");
        json!({"name": format!("{name}{number}"), "kind": "vdev", "vdev": vdev, "lossless": true})
    };
    json!([port(0), port(1)])
}

/// A tester with these ports, and how fast it found the time-stamp counter to be.
fn timed_tester(ports: Value) -> (Engine, f64) {
    let mut engine = Engine::start();
    assert_eq!(engine.read()["event"], "ready");
    let configure = json!({"command": "configure", "run_key": "0123456789abcdef", "clock": "tsc", "ports": ports});
    let reply = engine.ask(configure);
    assert_eq!(reply["ok"], true, "{reply}");
    (engine, reply["clock"]["hz"].as_f64().unwrap())
}

/// Trials until the links are up (memif joins its ends a moment after both have started): the last one, and the frames
/// of all.
fn connected(engine: &mut Engine) -> (u32, u64) {
    let mut sent = 0;
    for trial in 1..100 {
        let (reading, _) = engine.trial(start(trial, 100.0, 64));
        sent += count(&reading, "sent");
        if count(&reading, "received") > 0 {
            return (trial, sent);
        }
    }
    panic!("the links never came up");
}

/// Waits until the forwarder has had so many frames of the tester's and none is left in it.
fn wait_until_through(forwarder: &mut Engine, tester: &mut Engine, frames: u64) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let is_late = Instant::now() > deadline;
        forwarder.write(r#"{"command":"stats"}"#);
        let stats = forwarder.read();
        let way = &stats["directions"][0];
        if way["received"] == frames && way["under_way"] == 0 {
            return;
        }
        assert!(!is_late, "{frames} frames were sent, and a minute later there is {stats}");
        // The tester ends when nobody speaks to it.
        tester.ask(json!({"command": "renew"}));
        std::thread::sleep(Duration::from_millis(1));
    }
}

const DELAY_NS: u64 = 2_000_000;
/// Two differences of times in whole nanoseconds, each cut off.
const ROUNDING_NS: f64 = 3.0;

#[test]
fn over_memif_the_testers_counts_are_those_of_the_log() {
    let folder = Folder::new("reflect-memif");
    let log_file = folder.file("fates.ndjson");
    let (mut forwarder, forwarder_hz) = timed_forwarder(&json!({
        "ports": memif(&folder, "server", "d"), "mode": "mac_swap", "memory_mib": 256,
        "faults": {"seed": 5, "delay_ns": DELAY_NS, "loss": 0.05, "duplicate": 0.05, "reorder": 0.05, "reorder_by": 2,
                   "corrupt_payload": 0.05, "corrupt_signature": 0.05},
        "log": {"file": log_file, "run_key": "0123456789abcdef"},
    }));
    let (mut tester, tester_hz) = timed_tester(memif(&folder, "client", "t"));
    let (last, sent_before) = connected(&mut tester);
    // A frame that is still under way would be one of the next trial to the log, and of none to the tester.
    wait_until_through(&mut forwarder, &mut tester, sent_before);
    let trial = last + 1;
    forwarder.write(&json!({"command": "trial", "trial": trial}).to_string());
    assert_eq!(forwarder.read()["event"], "stats");
    assert_eq!(tester.ask(start(trial, 20_000.0, 128))["ok"], true);
    assert_eq!(tester.read()["event"], "transmitted");
    let sent = tester.ask(json!({"command": "stats"}))["streams"][0]["sent"].as_u64().unwrap();
    wait_until_through(&mut forwarder, &mut tester, sent_before + sent);
    // So long that the tester polls without haste again: the driver unmaps the memory of a peer that leaves, whoever is
    // reading it.
    let reading = tester.ask(json!({"command": "drain", "duration_s": 1.2}));
    assert_eq!(reading["ok"], true, "{reading}");
    forwarder.write(r#"{"command":"close"}"#);
    let report = forwarder.read();
    assert_eq!(report["event"], "report", "{report}");
    assert_eq!((&report["log"]["file"], &report["log"]["left_out"]), (&json!(log_file), &json!(0)));
    assert_eq!(forwarder.finish(), Some(0));
    tester.finish();

    let records = log::read(&std::fs::read_to_string(&log_file).unwrap()).unwrap();
    assert_eq!(report["log"]["records"], records.len());
    let of_trial: Vec<_> = records.into_iter().filter(|record| record.trial == trial).collect();
    let expected = expectation(&of_trial);
    let counts = ["sent", "received", "duplicated", "reordered", "corrupted"].map(|name| count(&reading, name));
    let logged = [expected.arrived, expected.received, expected.duplicated, expected.reordered, expected.corrupted];
    assert_eq!(counts, logged, "{reading}");
    assert_eq!(reading["ports"][1]["corrupted_unattributed"], expected.corrupted_unattributed);
    assert!(expected.reordered > 10 && expected.lost > 10 && expected.corrupted_unattributed > 10);
    // Each process timed the counter for itself, so the nanoseconds of the one are not quite those of the other.
    let least_ns = DELAY_NS as f64 * forwarder_hz / tester_hz - ROUNDING_NS;
    let minimum_ns = reading["streams"][0]["latency"]["minimum_ns"].as_f64().unwrap();
    assert!(minimum_ns >= least_ns, "{minimum_ns} ns, of at least {least_ns} ns");
}
