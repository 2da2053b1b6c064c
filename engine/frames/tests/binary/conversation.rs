//! The binary as a controller meets it: the conversations of `protocol/examples/frames`, a run that is stopped, and how
//! it ends.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::common::{BINARY, Folder};
use serde_json::{Value, json};

struct Engine {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Engine {
    fn start(folder: &Folder) -> Self {
        let mut command = Command::new(BINARY);
        let mut child = command.current_dir(&folder.0).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
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

    /// The result of the work.
    fn result(&mut self) -> Value {
        loop {
            let line = self.read();
            assert!(!line.is_null(), "it ended without a result");
            if line["event"] == "ended" {
                return line["result"].clone();
            }
        }
    }

    fn finish(mut self) -> Option<i32> {
        self.stdin = None;
        self.child.wait().unwrap().code()
    }
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
    let folder = Folder::new();
    let mut engine = Engine::start(&folder);
    for (number, line) in std::fs::read_to_string(path).unwrap().lines().enumerate() {
        if let Some(request) = line.strip_prefix("> ") {
            engine.write(request);
        } else if let Some(expected) = line.strip_prefix("< ") {
            let expected: Value = serde_json::from_str(expected).unwrap();
            assert_eq!(difference("", &expected, &engine.read()), None, "{}:{}", path.display(), number + 1);
        }
    }
    assert_eq!(engine.finish(), Some(0), "{}", path.display());
}

#[test]
fn every_conversation_of_the_protocol_is_as_written() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../protocol/examples/frames");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 2);
    paths.iter().for_each(|path| replay(path));
}

fn configured(folder: &Folder) -> Engine {
    let mut engine = Engine::start(folder);
    let request = json!({"id": 1, "command": "configure", "task": "write", "directory": ".", "frame_bytes": 4096,
        "frames": 100_000, "frames_per_s": 100.0});
    assert_eq!(engine.ask(request).1["ok"], true);
    engine
}

#[test]
fn work_that_is_stopped_gives_its_result_and_seconds_come_meanwhile() {
    let folder = Folder::new();
    let mut engine = configured(&folder);
    let (_, started) = engine.ask(json!({"id": 2, "command": "start"}));
    assert!(started["begins_at_ns"].as_u64().unwrap() > 0);
    assert_eq!(engine.read()["event"], "interval");
    let (_, stats) = engine.ask(json!({"id": 3, "command": "stats"}));
    assert!(stats["running"] == true && stats["frames"].as_u64().unwrap() >= 1, "{stats}");
    assert_eq!(engine.ask(json!({"id": 4, "command": "stop"})).1["ok"], true);
    let result = engine.result();
    assert_eq!(result["ended_by"], "stopped");
    assert!(result["frames"].as_u64() >= stats["frames"].as_u64());
    assert_eq!(engine.finish(), Some(0));
}

#[test]
fn close_and_the_end_of_stdin_end_it_with_its_result() {
    for closes in [true, false] {
        let folder = Folder::new();
        let mut engine = configured(&folder);
        engine.ask(json!({"id": 2, "command": "start"}));
        while !folder.file("frame_000001.dpx").exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        if closes {
            engine.write(r#"{"id": 3, "command": "close"}"#);
        } else {
            engine.stdin = None;
        }
        assert_eq!(engine.result()["ended_by"], "stopped");
        assert_eq!(engine.finish(), Some(0));
    }
}

#[test]
fn work_begins_when_it_was_told_to() {
    let folder = Folder::new();
    let mut engine = Engine::start(&folder);
    let now = engine.read()["time_ns"].as_u64().unwrap();
    let request =
        json!({"id": 1, "command": "configure", "task": "write", "directory": ".", "frame_bytes": 4096, "frames": 3});
    assert_eq!(engine.ask(request).1["ok"], true);
    let begins_at_ns = now + 300_000_000;
    let (_, started) = engine.ask(json!({"id": 2, "command": "start", "begins_at_ns": begins_at_ns}));
    assert_eq!(started["begins_at_ns"], begins_at_ns);
    let result = engine.result();
    assert_eq!((&result["began_at_ns"], &result["frames"]), (&begins_at_ns.into(), &3.into()));
    assert_eq!(engine.finish(), Some(0));
}
