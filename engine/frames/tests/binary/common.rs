//! A directory in memory for one test, and the binary in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

pub const BINARY: &str = env!("CARGO_BIN_EXE_nicbench-frames");

/// Removed with everything in it.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = base.join(format!("nicbench-frames-test-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// All names in it, sorted.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// `nicbench-frames TASK DIRECTORY ARGUMENTS`.
    pub fn command(&self, task: &str, arguments: &str) -> Command {
        let mut command = Command::new(BINARY);
        command.arg(task).arg(&self.0).args(arguments.split_whitespace()).stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    pub fn run(&self, task: &str, arguments: &str) -> Ran {
        Ran::of(self.command(task, arguments).arg("--json").output().unwrap())
    }

    /// Runs it, and it must succeed.
    pub fn done(&self, task: &str, arguments: &str) -> Value {
        let ran = self.run(task, arguments);
        assert_eq!(ran.status, Some(0), "{task} {arguments}: {}", ran.errors);
        ran.result
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// How a run ended.
#[derive(Debug)]
pub struct Ran {
    pub status: Option<i32>,
    /// Null where there was none.
    pub result: Value,
    pub errors: String,
}

impl Ran {
    pub fn of(output: Output) -> Self {
        Self {
            status: output.status.code(),
            result: serde_json::from_slice(&output.stdout).unwrap_or(Value::Null),
            errors: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// It ended at a frame: its kind of failure.
    pub fn failure(&self) -> &str {
        assert_eq!((self.status, &self.result["ended_by"]), (Some(4), &Value::from("failure")), "{}", self.errors);
        assert!(self.errors.contains("next: "), "{}", self.errors);
        self.result["failure"]["kind"].as_str().unwrap()
    }
}
