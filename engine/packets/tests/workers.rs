//! Several workers, each on a core of its own: what they sent and received together is exact.
#![cfg(feature = "dpdk")]

mod conversation;

use std::collections::BTreeSet;

use conversation::{Engine, count, start};
use serde_json::{Value, json};

/// CPUs that this process may use; `None` where there are not so many: a machine with one has no room for two workers.
fn free_cpus<const COUNT: usize>() -> Option<[u32; COUNT]> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim();
    let ranges = list.split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse().ok()?)
    });
    let cpus: BTreeSet<u32> = ranges.flatten().collect();
    cpus.into_iter().take(COUNT).collect::<Vec<_>>().try_into().ok()
}

fn engine(workers: Value) -> Engine {
    engine_that_watches(workers, &[])
}

fn engine_that_watches(workers: Value, cpus: &[u32]) -> Engine {
    let mut engine = Engine::start();
    assert_eq!(engine.read()["event"], "ready");
    let reply = engine.ask(json!({"command": "configure", "run_key": "0123456789abcdef", "clock": "tsc",
        "memory_mib": 256, "workers": workers, "watch_cpus": cpus, "ports": [{"name": "loop", "kind": "ring", "lossless": true}]}));
    assert_eq!(reply["ok"], true, "{reply}");
    engine
}

/// A trial over the loop; every frame that was sent comes back.
fn looped(engine: &mut Engine, trial: u32, flows: u32) -> Value {
    let mut start = start(trial, 20_000.0, 64);
    let stream = &mut start["streams"][0];
    (stream["receive_port"], stream["flows"]) = (0.into(), flows.into());
    stream["source_port_count"] = flows.into();
    let (reading, late) = engine.trial(start);
    assert_eq!(late["late"], json!([0]));
    let unsent = count(&reading, "unsent_tester") + count(&reading, "unsent_backpressure");
    assert_eq!(count(&reading, "intended"), 2000);
    assert_eq!(count(&reading, "sent") + unsent, 2000);
    assert_eq!(count(&reading, "received"), count(&reading, "sent"), "{reading}");
    for nothing in ["lost", "duplicated", "reordered", "corrupted"] {
        assert_eq!(count(&reading, nothing), 0, "{nothing}: {reading}");
    }
    reading
}

#[test]
fn one_worker_sends_and_another_receives() {
    let Some([first, second]) = free_cpus() else { return };
    for workers in [
        json!([{"cpu": first, "transmit": [0]}, {"cpu": second, "receive": [0]}]),
        json!([{"cpu": first, "receive": [0]}, {"cpu": second, "transmit": [0]}]),
    ] {
        let mut engine = engine(workers);
        for trial in 1..=3 {
            let reading = looped(&mut engine, trial, 1);
            let sent: Vec<u64> =
                (0..2).map(|index| reading["health"]["workers"][index]["sent"].as_u64().unwrap()).collect();
            assert!(sent.iter().sum::<u64>() == count(&reading, "sent") && sent.contains(&0), "{sent:?}");
        }
        assert_eq!(engine.finish(), Some(0));
    }
}

#[test]
fn two_workers_share_the_flows_and_the_schedule() {
    let Some([first, second]) = free_cpus() else { return };
    let mut engine = engine(json!([
        {"cpu": first, "transmit": [0], "receive": [0]}, {"cpu": second, "transmit": [0], "receive": [0]}]));
    let reading = looped(&mut engine, 1, 16);
    assert_eq!(reading["health"]["workers"].as_array().unwrap().len(), 2);
    let mut uneven = start(2, 20_000.0, 64);
    (uneven["streams"][0]["receive_port"], uneven["streams"][0]["flows"]) = (0.into(), 3.into());
    let refusal = engine.ask(uneven);
    assert!(refusal["error"]["message"].as_str().unwrap().contains("3 flows"), "{refusal}");
    assert_eq!(engine.finish(), Some(0));
}

#[test]
fn a_core_beside_several_workers_is_watched_and_one_of_theirs_is_not() {
    let Some([first, second, watched]) = free_cpus() else { return };
    let workers = json!([{"cpu": first, "transmit": [0]}, {"cpu": second, "receive": [0]}]);
    let mut engine = engine_that_watches(workers, &[second, watched]);
    for trial in 1..=2 {
        let reading = looped(&mut engine, trial, 1);
        let [workers_own, beside] = [0, 1].map(|cpu| reading["health"]["cpus"][cpu]["speed_samples"].clone());
        assert!(workers_own.is_null(), "{reading}");
        // Nobody looks where the kernel does not let a thread run before others.
        let looked = beside.as_u64().is_some_and(|looks| looks > 0);
        assert_eq!(reading["streams"][0]["latency"]["shared_core"].is_object(), looked, "{reading}");
    }
    assert_eq!(engine.finish(), Some(0));
}

#[test]
fn workers_that_cannot_be_are_refused() {
    for (workers, word) in
        [(json!([{"cpu": 0, "transmit": [3]}]), "port 3"), (json!([{"cpu": 0}, {"cpu": 0}]), "CPU 0")]
    {
        let mut engine = Engine::start();
        assert_eq!(engine.read()["event"], "ready");
        let reply = engine.ask(json!({"command": "configure", "run_key": "0123456789abcdef", "clock": "tsc",
            "workers": workers, "ports": [{"name": "loop", "kind": "ring"}]}));
        assert!(reply["error"]["message"].as_str().unwrap().contains(word), "{reply}");
        assert_eq!(engine.finish(), Some(0));
    }
}
