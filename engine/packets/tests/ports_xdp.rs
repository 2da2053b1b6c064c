//! The tester inside the kernel over a veth pair, in a network namespace of this test's own that ends with it: the
//! program itself, by its protocol. Needs root; without, it says that it did nothing.
#![cfg(feature = "xdp")]
#![allow(unsafe_code)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

fn ip(arguments: &str) -> Value {
    let output = Command::new("ip").args(arguments.split_whitespace()).output().expect("the program ip");
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
}

/// One pair, t0-t1, in a namespace that no other interface or program shares.
fn enter_lab() {
    // SAFETY: no pointers; it moves this thread, and the programs it starts later, to a new namespace.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0, "a network namespace of our own");
    // IPv6 would greet its neighbours, and the counts below are exact.
    std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").expect("IPv6 off");
    ip("link add t0 type veth peer name t1");
    for device in ["t0", "t1"] {
        ip(&format!("link set {device} up"));
    }
}

struct Engine {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    trials: u32,
}

impl Engine {
    fn start() -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_nicbench-packets"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the engine");
        let (input, output) = (process.stdin.take().expect("stdin"), process.stdout.take().expect("stdout"));
        Self { process, input, output: BufReader::new(output), trials: 0 }
    }

    fn request(&mut self, command: &str, mut fields: Value) -> Value {
        (fields["id"], fields["command"]) = (1.into(), command.into());
        writeln!(self.input, "{fields}").expect("an open pipe");
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("text") > 0, "the engine ended during {command}");
            let reply: Value = serde_json::from_str(&line).expect("JSON");
            if reply["id"] == 1 {
                return reply;
            }
        }
    }

    fn configure(&mut self, devices: &[&str]) -> Value {
        self.configure_as(devices, &json!({}))
    }

    /// As `more` says besides.
    fn configure_as(&mut self, devices: &[&str], more: &Value) -> Value {
        let port = |device: &&str| {
            json!({"name": device, "kind": "xdp", "device": device, "transmit_descriptors": 256,
                   "receive_descriptors": 256, "lossless": false, "send_buffer_bytes": null})
        };
        let ports: Vec<Value> = devices.iter().map(port).collect();
        self.request(
            "configure",
            merged(
                json!({"run_key": "0123456789abcdef", "clock": "tsc", "worker_cpu": null,
            "watch_cpus": [], "huge_pages": false, "memory_mib": 64, "eal": [], "ports": ports}),
                more,
            ),
        )
    }

    fn trial(&mut self, streams: Vec<Value>, start: Value) -> Value {
        self.trials += 1;
        let mut fields = json!({"trial": self.trials, "duration_s": 0.1, "streams": streams});
        start.as_object().into_iter().flatten().for_each(|(key, value)| fields[key] = value.clone());
        let reply = self.request("start", fields);
        assert_eq!(reply["ok"], true, "{reply}");
        let reading = self.request("drain", json!({"duration_s": 0.05}));
        assert_eq!(reading["ok"], true, "{reading}");
        reading
    }
}

fn merged(mut fields: Value, more: &Value) -> Value {
    more.as_object().into_iter().flatten().for_each(|(key, value)| fields[key] = value.clone());
    fields
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn stream(name: &str, ways: [usize; 2], change: Value) -> Value {
    let mut stream = json!({
        "name": name, "transmit_port": ways[0], "receive_port": ways[1], "frame_bytes": 64, "rate_frames_per_s": 20000,
        "source_mac": "02:00:00:00:00:01", "destination_mac": "02:00:00:00:00:02", "ip": 4,
        "source_address": "198.18.0.2", "destination_address": "198.19.0.2"});
    change.as_object().into_iter().flatten().for_each(|(key, value)| stream[key] = value.clone());
    stream
}

/// Everything that was asked for came back, whole and in order.
fn assert_all_came(reading: &Value) {
    for stream in reading["streams"].as_array().expect("streams") {
        let count = |name: &str| stream[name].as_u64().expect("a count");
        assert_eq!(count("sent") + count("unsent_tester"), count("intended"), "{stream}");
        assert_eq!((count("received"), count("lost")), (count("sent"), 0), "{stream}");
        assert!(count("received") > 0, "{stream}");
        let others = ["late", "duplicated", "reordered", "corrupted", "unattributed"].map(count);
        assert_eq!(others, [0; 5], "{stream}");
        assert_eq!(stream["latency"]["count"], stream["received"], "{stream}");
        assert_eq!(stream["latency"]["negative"], 0, "{stream}");
    }
}

#[test]
fn frames_are_made_and_checked_in_the_kernel() {
    // SAFETY: no pointers.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("not root: nothing was tested");
        return;
    }
    enter_lab();
    // A veth has no card, and its kernel no stamps for programs.
    for (source, words) in [("card", "no card stands behind it"), ("kernel", "no time stamps of the kernel")] {
        let mut engine = Engine::start();
        engine.request("hello", json!({"protocol": "1.0"}));
        let refused = engine.configure_as(&["t0", "t1"], &json!({"timestamps": source}));
        assert!(refused["ok"] == false && refused.to_string().contains(words), "{refused}");
    }
    let mut engine = Engine::start();
    engine.request("hello", json!({"protocol": "1.0"}));
    let reply = engine.configure(&["t0", "t1"]);
    if reply["ok"] != true {
        eprintln!("this kernel does not make frames by XDP, nothing was tested: {reply}");
        return;
    }
    let vlan_tcp = json!([
        {"layer": "ethernet", "source": "02:00:00:00:00:01", "destination": "02:00:00:00:00:02"},
        {"layer": "vlan", "id": 7},
        {"layer": "ipv4", "source": "198.18.0.2", "destination": {"first": "198.19.0.2", "count": 50}},
        {"layer": "tcp", "source": 1000, "destination": 2000}]);
    let v6 =
        json!({"ip": 6, "frame_bytes": 200, "source_address": "2001:db8::2", "destination_address": "2001:db8::3"});
    for change in [
        json!({}),
        json!({"frame_bytes": 1518}),
        json!({"flows": 1000, "source_port_count": 1000}),
        json!({"flows": 70_000, "source_port_count": 7, "source_address_count": 10_000, "rate_frames_per_s": 700_000}),
        v6,
        json!({"layers": vlan_tcp, "frame_bytes": 128, "flows": 50}),
        json!({"burst_frames": 8}),
        json!({"sizes": [{"frame_bytes": 64, "weight": 7}, {"frame_bytes": 570, "weight": 4},
                         {"frame_bytes": 1514, "weight": 1}], "flows": 6, "source_port_count": 6}),
        json!({"size_sweep": {"from": 100, "to": 1514}, "layers": vlan_tcp, "flows": 50}),
        json!({"frames": 100}),
    ] {
        let reading = engine.trial(vec![stream("up", [0, 1], change)], json!({}));
        assert_all_came(&reading);
        assert_eq!(reading["ports"][0]["foreign"], 0);
    }
    // As many at a call as the kernel makes; the program looks at its clock less often.
    let reading = engine.trial(vec![stream("up", [0, 1], json!({}))], json!({"burst": 256}));
    assert_all_came(&reading);
    let refused = engine.request(
        "start",
        json!({"trial": 90, "duration_s": 1, "burst": 257,
        "streams": [stream("up", [0, 1], json!({}))]}),
    );
    assert!(refused.to_string().contains("from 1 to 256"), "{refused}");
    // Both ways at once, streams of different sizes, one of which begins later.
    let streams = vec![
        stream("up", [0, 1], json!({})),
        stream("long", [0, 1], json!({"frame_bytes": 900, "source_port": 5000, "begins_s": 0.05})),
        stream("down", [1, 0], json!({"frame_bytes": 128})),
    ];
    let reading = engine.trial(streams, json!({"latency_from": "scheduled"}));
    assert_all_came(&reading);
    assert_eq!(reading["streams"][1]["intended"], 1000);
    // What is stopped has lasted as long as it did.
    let long = json!({"trial": 91, "duration_s": 60, "streams": [stream("up", [0, 1], json!({}))]});
    assert_eq!(engine.request("start", long)["ok"], true);
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(engine.request("stop", json!({}))["ok"], true);
    let reading = engine.request("drain", json!({"duration_s": 0.05}));
    let transmit_ns = reading["transmit_ns"].as_u64().expect("a time");
    assert!((100_000_000..59_000_000_000).contains(&transmit_ns), "{transmit_ns}");
    // Frames that the driver did not take for want of a peer have not left the tester.
    ip("link set t1 down");
    engine.trials = 91;
    let reading = engine.trial(vec![stream("up", [0, 1], json!({}))], json!({}));
    let refused = &reading["streams"][0];
    assert_eq!((&refused["sent"], &refused["lost"]), (&json!(0), &json!(0)), "{refused}");
    assert_eq!(refused["unsent_tester"], refused["intended"]);
    ip("link set t1 up");
    assert_all_came(&engine.trial(vec![stream("up", [0, 1], json!({}))], json!({})));
    // A killed engine leaves nothing behind.
    assert!(ip("-j link show t0")[0]["xdp"].is_object());
    drop(engine);
    assert!(ip("-j link show t0")[0]["xdp"].is_null());
    // Another's program stays where it is.
    let mut first = Engine::start();
    assert_eq!(first.configure(&["t0", "t1"])["ok"], true);
    let mut second = Engine::start();
    let refused = second.configure(&["t0"]);
    assert_eq!(refused["ok"], false);
    assert!(refused["error"]["message"].as_str().expect("text").contains("program"), "{refused}");
    // A trial whose interface went away tells nothing of a device.
    drop(second);
    let start = json!({"trial": 1, "duration_s": 0.5, "streams": [stream("up", [0, 1], json!({}))]});
    assert_eq!(first.request("start", start)["ok"], true);
    ip("link del t0");
    let refused = first.request("drain", json!({"duration_s": 0.05}));
    assert_eq!(refused["ok"], false, "{refused}");
    assert!(refused["error"]["message"].as_str().expect("text").contains("is gone"), "{refused}");
}

#[test]
fn a_worker_that_only_receives_judges_frames_on_its_own_cpu() {
    // SAFETY: no pointers.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("not root: nothing was tested");
        return;
    }
    let cpus = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    enter_lab();
    let mut engine = Engine::start();
    let both = json!({"cpu": cpus - 1, "transmit": [0, 1], "receive": []});
    let only = |cpu: u64, ports: Value| json!({"cpu": cpu, "transmit": [], "receive": ports});
    let reply = engine.configure_as(&["t0", "t1"], &json!({"workers": [both, only(0, json!([0, 1]))]}));
    if reply["ok"] != true {
        eprintln!("this kernel does not make frames by XDP, nothing was tested: {reply}");
        return;
    }
    // More flows than there is room for at first: the way to the CPU is made anew.
    for change in [json!({}), json!({"frame_bytes": 1518}), json!({"flows": 70_000, "source_address_count": 70_000})] {
        let reading = engine.trial(vec![stream("up", [0, 1], change), stream("down", [1, 0], json!({}))], json!({}));
        assert_all_came(&reading);
        assert_eq!((&reading["ports"][0]["receive_overrun"], &reading["ports"][0]["foreign"]), (&json!(0), &json!(0)));
    }
    // As fast as it goes: what is sent is counted, or found out as refused for want of room.
    let reading = engine.trial(vec![stream("up", [0, 1], json!({"rate_frames_per_s": 0}))], json!({}));
    let (up, port) = (&reading["streams"][0], &reading["ports"][1]);
    assert!(up["sent"].as_u64() > Some(1000), "{up}");
    assert_eq!((&up["lost"], &up["reordered"], &up["duplicated"]), (&port["receive_overrun"], &json!(0), &json!(0)));
    drop(engine);
    let mut engine = Engine::start();
    let workers = json!({"workers": [both, only(0, json!([0, 1])), only(cpus, json!([1]))]});
    let refused = engine.configure_as(&["t0", "t1"], &workers);
    assert_eq!(refused["ok"], false);
    assert!(refused["error"]["message"].as_str().expect("text").contains("hands frames over to one"), "{refused}");
}
