//! One engine process and a conversation with it.
#![allow(dead_code)] // Each test binary uses its own part.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

pub struct Engine {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    next_id: i64,
}

impl Engine {
    /// Starts the binary; nothing is read yet.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts the binary with arguments; nothing is read yet.
    pub fn start_with(arguments: &[&str]) -> Self {
        Self::of(Command::new(env!("CARGO_BIN_EXE_nicbench-packets")).args(arguments))
    }

    /// Starts the binary in a folder, which paths are then relative to; nothing is read yet.
    pub fn start_in(folder: &Path) -> Self {
        Self::of(Command::new(env!("CARGO_BIN_EXE_nicbench-packets")).current_dir(folder))
    }

    fn of(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdin, stdout, next_id: 0 }
    }

    /// Starts it, reads `ready` and configures `ports`.
    pub fn with_ports(clock: &str, ports: Value) -> Self {
        let mut engine = Self::start();
        assert_eq!(engine.read()["event"], "ready");
        let reply =
            engine.ask(json!({"command": "configure", "run_key": "0123456789abcdef", "clock": clock, "ports": ports}));
        assert_eq!(reply["ok"], true, "{reply}");
        engine
    }

    pub fn process_id(&self) -> i32 {
        self.child.id() as i32
    }

    pub fn write(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).and_then(|()| stdin.write_all(b"\n")).unwrap();
    }

    /// The next line, null at the end.
    pub fn read(&mut self) -> Value {
        let mut line = String::new();
        if self.stdout.read_line(&mut line).unwrap() == 0 { Value::Null } else { serde_json::from_str(&line).unwrap() }
    }

    /// Sends a request with an id of its own and does not wait.
    pub fn send(&mut self, mut request: Value) -> i64 {
        self.next_id += 1;
        request["id"] = self.next_id.into();
        self.write(&request.to_string());
        self.next_id
    }

    /// Sends a request and reads the next line that answers it.
    pub fn ask(&mut self, request: Value) -> Value {
        let id = self.send(request);
        loop {
            let reply = self.read();
            if reply.is_null() || reply["id"] == id {
                return reply;
            }
        }
    }

    /// A whole trial: the reading, and what was late.
    pub fn trial(&mut self, start: Value) -> (Value, Value) {
        self.trial_with_drain(start, 0.05)
    }

    /// A whole trial whose frames may be under way for long.
    pub fn trial_with_drain(&mut self, start: Value, drain_s: f64) -> (Value, Value) {
        let reply = self.ask(start);
        assert_eq!(reply["ok"], true, "{reply}");
        assert_eq!(self.read()["event"], "transmitted");
        let reading = self.ask(json!({"command": "drain", "duration_s": drain_s}));
        let late = self.ask(json!({"command": "settle", "duration_s": 0.05}));
        (reading, late)
    }

    /// Closes stdin and waits for the exit status.
    pub fn finish(mut self) -> Option<i32> {
        self.stdin = None;
        self.child.wait().unwrap().code()
    }
}

/// A simulated port.
pub fn port(name: &str, sends_to: usize, dut: Value) -> Value {
    json!({"name": name, "kind": "simulated", "link_bits_per_s": 10e9, "sends_to": sends_to, "dut": dut})
}

/// `start` with one stream from port 0 to port 1 for 0.1 s.
pub fn start(trial: u32, rate_frames_per_s: f64, frame_bytes: u32) -> Value {
    json!({"command": "start", "trial": trial, "duration_s": 0.1, "streams": [{
        "name": "forward", "transmit_port": 0, "receive_port": 1, "frame_bytes": frame_bytes,
        "rate_frames_per_s": rate_frames_per_s, "source_mac": "02:00:00:00:00:00",
        "destination_mac": "02:00:00:00:00:01", "ip": 4, "source_address": "198.18.0.2",
        "destination_address": "198.19.0.2"}]})
}

/// A count of the first stream.
pub fn count(reading: &Value, name: &str) -> u64 {
    reading["streams"][0][name].as_u64().unwrap_or_else(|| panic!("{name} in {reading}"))
}

/// A counter of a port.
pub fn counter(reading: &Value, port: usize, name: &str) -> u64 {
    reading["ports"][port]["counters"][name].as_u64().unwrap_or_else(|| panic!("{name} in {reading}"))
}
