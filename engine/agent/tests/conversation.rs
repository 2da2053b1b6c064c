//! The agent as its controller has it: greeted on a pipe, commands one beside the other.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use nicbench_agent::frame::{
    CONTENT, CREDIT, EXITED, FAILED, Frame, INPUT, INPUT_END, OUTPUT, OUTPUT_END, READ, SIGNAL, START, STARTED, WRITE,
};

struct Agent {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Agent {
    fn greeted(first: &[u8]) -> Agent {
        let mut child = Command::new(env!("CARGO_BIN_EXE_nicbench-agent"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        input.write_all(first).unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "nicbench-agent 1 token\n");
        Agent { child, input, output }
    }

    fn new() -> Agent {
        Agent::greeted(b"nicbench-agent 1 token\n")
    }

    fn send(&mut self, kind: u8, id: u32, body: &[u8]) {
        self.input.write_all(&Frame { kind, id, body: body.to_vec() }.bytes()).unwrap();
    }

    fn start(&mut self, id: u32, command: &[&str]) {
        let wanted = serde_json::json!({"command": command, "environment": {"SAID": "yes"}});
        self.send(START, id, wanted.to_string().as_bytes());
    }

    /// What is said of a command until its output and itself have ended.
    fn ending(&mut self, id: u32) -> (String, i32) {
        let (mut text, mut status, mut ended) = (Vec::new(), None, false);
        while status.is_none() || !ended {
            let frame = Frame::read(&mut self.output).unwrap().unwrap();
            assert_eq!(frame.id, id);
            match frame.kind {
                OUTPUT => {
                    self.send(CREDIT, id, &u32::try_from(frame.body.len()).unwrap().to_le_bytes());
                    text.extend(frame.body);
                }
                OUTPUT_END => ended = true,
                EXITED => status = Some(i32::from_le_bytes(frame.body.try_into().unwrap())),
                _ => {}
            }
        }
        (String::from_utf8(text).unwrap(), status.unwrap())
    }

    fn answer(&mut self, kind: u8) -> Vec<u8> {
        let frame = Frame::read(&mut self.output).unwrap().unwrap();
        assert_eq!(frame.kind, kind, "{:?}", String::from_utf8_lossy(&frame.body));
        frame.body
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_command_has_its_environment_and_its_status() {
    let mut agent = Agent::new();
    agent.start(1, &["sh", "-c", "echo $SAID; exit 3"]);
    agent.send(INPUT_END, 1, &[]);
    assert_eq!(agent.ending(1), ("yes\n".to_owned(), 3));
}

#[test]
fn what_is_given_is_read_and_more_output_than_may_wait_comes_whole() {
    let mut agent = Agent::new();
    agent.start(7, &["sh", "-c", "read count; head -c $count /dev/zero | tr '\\0' x"]);
    agent.send(INPUT, 7, b"5000000\n");
    agent.send(INPUT_END, 7, &[]);
    let (text, status) = agent.ending(7);
    assert_eq!((text.len(), status), (5_000_000, 0));
}

#[test]
fn a_signal_reaches_what_the_command_started() {
    let mut agent = Agent::new();
    agent.start(1, &["sh", "-c", "sleep 1000; echo never"]);
    agent.answer(STARTED);
    agent.send(SIGNAL, 1, &9_u32.to_le_bytes());
    assert_eq!(agent.ending(1), (String::new(), -9));
}

#[test]
fn a_program_that_is_not_there_is_told_by_its_number() {
    let mut agent = Agent::new();
    agent.start(1, &["no-such-program"]);
    assert_eq!(agent.answer(FAILED)[..4], 2_i32.to_le_bytes());
}

#[test]
fn files_are_written_and_read_whole() {
    let path = std::env::temp_dir().join(format!("nicbench-agent-{}", std::process::id()));
    let name = path.to_str().unwrap().as_bytes();
    let mut agent = Agent::new();
    let mut body = u32::try_from(name.len()).unwrap().to_le_bytes().to_vec();
    body.extend(name);
    body.extend(b"some text");
    agent.send(WRITE, 1, &body);
    assert!(agent.answer(CONTENT).is_empty());
    agent.send(READ, 2, name);
    assert_eq!(agent.answer(CONTENT), b"some text");
    std::fs::remove_file(&path).unwrap();
    agent.send(READ, 3, name);
    assert_eq!(agent.answer(FAILED)[..4], 2_i32.to_le_bytes());
}

#[test]
fn a_greeting_is_found_behind_what_an_earlier_conversation_left() {
    let mut agent = Agent::greeted(b"\0\0\x07rest of a frame\nnicbench-agent 1 token\n");
    agent.start(1, &["true"]);
    agent.send(INPUT_END, 1, &[]);
    assert_eq!(agent.ending(1).1, 0);
}

#[test]
fn what_runs_is_killed_when_the_controller_is_gone() {
    let mut agent = Agent::new();
    agent.start(1, &["sleep", "1000"]);
    let pid = u32::from_le_bytes(agent.answer(STARTED).try_into().unwrap());
    let Agent { input, .. } = &mut agent;
    drop(std::mem::replace(input, Command::new("true").stdin(Stdio::piped()).spawn().unwrap().stdin.take().unwrap()));
    let mut rest = Vec::new();
    agent.output.read_to_end(&mut rest).unwrap();
    agent.child.wait().unwrap();
    // It is killed by now, and dies when the kernel gets to it.
    for _ in 0..500 {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if state.is_empty() || state.contains(") Z ") {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("process {pid} goes on");
}
