//! One command: started in a process group of its own, its pipes carried by threads.

use std::collections::HashMap;
use std::io::{Error, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use serde::Deserialize;

use crate::answers::Answers;
use crate::frame::{ERRORS, EXITED, OUTPUT, OUTPUT_END, TAKEN};
use crate::sys;

const PIECE_BYTES: usize = 64 * 1024;
/// What may be on its way, or wait for the controller, before the command is held up.
const FIRST_CREDIT: u64 = 1024 * 1024;

/// What is asked for.
#[derive(Deserialize)]
pub struct Wanted {
    pub command: Vec<String>,
    #[serde(default)]
    pub environment: HashMap<String, String>,
}

/// A running command. Dropped before it has ended, it is killed with what it started.
pub struct Running {
    group: u32,
    input: Option<Sender<Vec<u8>>>,
    credit: Arc<Credit>,
    ended: Arc<AtomicBool>,
}

impl Running {
    /// The command; an error where it cannot be executed.
    pub fn start(wanted: &Wanted, id: u32, answers: &Answers) -> Result<Running, Error> {
        let (program, arguments) = wanted.command.split_first().ok_or_else(|| Error::other("no command"))?;
        let mut child = Command::new(program)
            .args(arguments)
            .envs(&wanted.environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .current_dir("/")
            .process_group(0)
            .spawn()?;
        let credit = Arc::new(Credit::default());
        let (input, pieces) = channel();
        let stdin = child.stdin.take();
        let group = child.id();
        answers.started(id, group);
        spawn({
            let answers = answers.clone();
            move || feed(stdin, &pieces, id, &answers)
        });
        let ended = Arc::new(AtomicBool::new(false));
        carry(child, id, answers, &credit, &ended);
        Ok(Running { group, input: Some(input), credit, ended })
    }

    /// Bytes for its stdin; what has ended reads nothing.
    pub fn give(&self, bytes: Vec<u8>) {
        if let Some(input) = &self.input {
            let _ = input.send(bytes);
        }
    }

    pub fn end_input(&mut self) {
        self.input = None;
    }

    /// The controller has taken so many bytes.
    pub fn allow(&self, bytes: u64) {
        self.credit.add(bytes);
    }

    pub fn signal(&self, number: i32) {
        sys::signal_group(self.group, number);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended.load(Ordering::Acquire) {
            self.signal(sys::KILL);
        }
        self.credit.add(u64::MAX / 4);
    }
}

/// How many bytes of output may still be sent.
struct Credit {
    left: Mutex<u64>,
    more: Condvar,
}

impl Default for Credit {
    fn default() -> Credit {
        Credit { left: Mutex::new(FIRST_CREDIT), more: Condvar::new() }
    }
}

impl Credit {
    fn add(&self, bytes: u64) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        *left = left.saturating_add(bytes);
        self.more.notify_all();
    }

    /// Waits until there is some, and takes up to so much.
    fn take(&self, most: u64) -> u64 {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = self.more.wait_while(left, |left| *left == 0).unwrap_or_else(PoisonError::into_inner);
        let taken = most.min(*left);
        *left -= taken;
        taken
    }
}

fn feed(stdin: Option<ChildStdin>, pieces: &Receiver<Vec<u8>>, id: u32, answers: &Answers) {
    let mut stdin = stdin;
    for piece in pieces {
        if let Some(pipe) = &mut stdin
            && pipe.write_all(&piece).is_err()
        {
            stdin = None; // it reads no more: what comes is thrown away
        }
        answers.send(TAKEN, id, u32::try_from(piece.len()).unwrap_or(u32::MAX).to_le_bytes().to_vec());
    }
}

/// Its output, until nobody holds the pipes any more; and its end, whoever still holds them.
fn carry(mut child: Child, id: u32, answers: &Answers, credit: &Arc<Credit>, ended: &Arc<AtomicBool>) {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let errors = spawn({
        let answers = answers.clone();
        move || stderr.into_iter().for_each(|pipe| copy(pipe, |bytes| answers.send(ERRORS, id, bytes)))
    });
    spawn({
        let (answers, credit) = (answers.clone(), Arc::clone(credit));
        move || {
            if let Some(pipe) = stdout {
                held_copy(pipe, &credit, |bytes| answers.send(OUTPUT, id, bytes));
            }
            let _ = errors.join();
            answers.send(OUTPUT_END, id, Vec::new());
        }
    });
    let (answers, ended) = (answers.clone(), Arc::clone(ended));
    spawn(move || {
        let status = child.wait().map_or(-sys::KILL, |status| {
            status.code().unwrap_or_else(|| status.signal().map_or(-sys::KILL, |number| -number))
        });
        ended.store(true, Ordering::Release);
        answers.send(EXITED, id, status.to_le_bytes().to_vec());
    });
}

fn copy(mut pipe: impl Read, mut send: impl FnMut(Vec<u8>)) {
    let mut buffer = vec![0; PIECE_BYTES];
    while let Ok(count @ 1..) = pipe.read(&mut buffer) {
        send(buffer[..count].to_vec());
    }
}

fn held_copy(mut pipe: impl Read, credit: &Credit, mut send: impl FnMut(Vec<u8>)) {
    let mut buffer = vec![0; PIECE_BYTES];
    loop {
        let room = credit.take(PIECE_BYTES as u64);
        match pipe.read(&mut buffer[..usize::try_from(room).unwrap_or(PIECE_BYTES)]) {
            Ok(count @ 1..) => {
                credit.add(room - count as u64);
                send(buffer[..count].to_vec());
            }
            _ => return,
        }
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> std::thread::JoinHandle<()> {
    std::thread::spawn(work)
}
