//! The binary as a controller meets it: the conversations of `protocol/examples/monitor`, samples, a pause, and how it
//! ends.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

struct Monitor {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Monitor {
    fn start() -> Self {
        Self::of(&mut Command::new(env!("CARGO_BIN_EXE_nicbench-monitor")))
    }

    fn of(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, stdin, stdout }
    }

    fn write(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).and_then(|()| stdin.write_all(b"\n")).unwrap();
    }

    /// The next line, null at the end.
    fn read(&mut self) -> Value {
        let mut line = String::new();
        if self.stdout.read_line(&mut line).unwrap() == 0 { Value::Null } else { serde_json::from_str(&line).unwrap() }
    }

    /// Asks, and gives the events before the reply, and the reply.
    fn ask(&mut self, request: Value) -> (Vec<Value>, Value) {
        self.write(&request.to_string());
        let mut events = Vec::new();
        loop {
            let line = self.read();
            assert!(!line.is_null(), "it ended before it answered {request}");
            if line["id"] == request["id"] {
                return (events, line);
            }
            events.push(line);
        }
    }

    fn configured(interval_ms: u32) -> Self {
        let mut monitor = Self::start();
        let request =
            json!({"id": 1, "command": "configure", "interval_ms": interval_ms, "processes": [std::process::id()]});
        assert_eq!(monitor.ask(request).1["ok"], true);
        monitor
    }

    fn finish(mut self) -> Option<i32> {
        self.stdin = None;
        self.child.wait().unwrap().code()
    }
}

/// The series of these events by number, as `metric of`.
fn names(events: &[Value]) -> Vec<String> {
    let series =
        events.iter().filter(|event| event["event"] == "series").flat_map(|event| event["series"].as_array().unwrap());
    series.map(|each| format!("{} {}", each["metric"].as_str().unwrap(), each["of"].as_str().unwrap())).collect()
}

fn samples(events: &[Value]) -> Vec<&Value> {
    events.iter().filter(|event| event["event"] == "sample").collect()
}

/// Where `actual` differs from `expected`, if it does (protocol/examples/README.md).
fn difference(place: &str, expected: &Value, actual: &Value) -> Option<String> {
    match (expected, actual) {
        (Value::String(any), _) if any == "*" => None,
        (Value::Object(expected), Value::Object(actual)) => expected.iter().find_map(|(name, expected)| {
            let place = format!("{place}.{name}");
            actual.get(name).map_or(Some(format!("{place} is missing")), |actual| difference(&place, expected, actual))
        }),
        _ if expected == actual => None,
        _ => Some(format!("{place}: expected {expected}, got {actual}")),
    }
}

fn replay(path: &Path) {
    let mut monitor = Monitor::start();
    for (number, line) in std::fs::read_to_string(path).unwrap().lines().enumerate() {
        if let Some(request) = line.strip_prefix("> ") {
            monitor.write(request);
        } else if let Some(expected) = line.strip_prefix("< ") {
            let expected: Value = serde_json::from_str(expected).unwrap();
            assert_eq!(difference("", &expected, &monitor.read()), None, "{}:{}", path.display(), number + 1);
        }
    }
    assert_eq!(monitor.finish(), Some(0), "{}", path.display());
}

#[test]
fn every_conversation_of_the_protocol_is_as_written() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../protocol/examples/monitor");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 2);
    paths.iter().for_each(|path| replay(path));
}

#[test]
fn samples_tell_of_cpus_of_processes_and_of_what_they_cost() {
    let mut monitor = Monitor::configured(60_000);
    let (first, _) = monitor.ask(json!({"id": 2, "command": "start"}));
    let names = names(&first);
    let (second, cost) = monitor.ask(json!({"id": 3, "command": "sample"}));
    assert_eq!((samples(&first).len(), samples(&second).len()), (1, 1));
    let value = |name: &str| {
        let series = names.iter().position(|each| each == name).unwrap_or_else(|| panic!("no {name} in {names:?}"));
        let values = samples(&second)[0]["values"].as_array().unwrap();
        let value = values.iter().find(|pair| pair[0] == series).unwrap_or_else(|| panic!("no value of {name}"));
        value[1].as_i64().unwrap()
    };
    assert!(value("context_switches ") > 0 && value("monitor_cpu_ns monitor") > 0);
    assert!(value("cpu_idle_ns cpu0") >= 0 && value("memory_total_bytes ") > 0);
    let own = names.iter().find(|name| name.starts_with(&format!("process_user_ns {} ", std::process::id())));
    assert!(own.is_some(), "{names:?}");
    assert_eq!(cost["samples"], 2);
    assert!(cost["cpu_ns"].as_u64().unwrap() >= cost["maximum_sample_ns"].as_u64().unwrap());
    assert_eq!(monitor.finish(), Some(0));
}

#[test]
fn a_pause_is_one_sample_long() {
    let mut monitor = Monitor::configured(100);
    monitor.ask(json!({"id": 2, "command": "start"}));
    monitor.ask(json!({"id": 3, "command": "pause", "duration_s": 1}));
    std::thread::sleep(std::time::Duration::from_millis(350));
    let (during, _) = monitor.ask(json!({"id": 4, "command": "resume"}));
    let spanning = samples(&during);
    assert_eq!(spanning.len(), 1);
    assert!(spanning[0]["interval_ns"].as_u64().unwrap() >= 350_000_000);
    // And then in turn again.
    while monitor.read()["event"] != "sample" {}
    assert_eq!(monitor.finish(), Some(0));
}

#[test]
fn it_ends_with_its_stdin_even_in_a_pause_and_refuses_arguments() {
    let mut monitor = Monitor::configured(100);
    monitor.ask(json!({"id": 2, "command": "start"}));
    monitor.ask(json!({"id": 3, "command": "pause", "duration_s": 1000}));
    assert_eq!(monitor.finish(), Some(0));
    let refused = Command::new(env!("CARGO_BIN_EXE_nicbench-monitor")).arg("--help").output().unwrap();
    assert_eq!((refused.status.code(), refused.stdout.len()), (Some(2), 0));
}
