//! A conversation: it begins with a line that names a token, which is repeated; then frames, until the other end is gone.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, Error, Read, Write};

use crate::answers::Answers;
use crate::frame::{CONTENT, CREDIT, Frame, INPUT, INPUT_END, MOST_BYTES, READ, SIGNAL, START, WRITE, number};
use crate::process::{Running, Wanted};
use crate::sys;

/// The first words of a conversation, before the token. The version changes with the frames.
pub const GREETING: &str = "nicbench-agent 1 ";
/// Enough to know one by: where the port was never seen closed, the first nine bytes were taken for the head of a frame.
const KNOWN_BY: &str = "agent 1 ";
const MOST_GREETING_BYTES: u64 = 4096;

/// One conversation to its end, whatever came before it on the port. Everything that was started in it is killed.
pub fn run(reader: &mut impl BufRead, writer: &File) -> Result<(), Error> {
    let Some(token) = greeted(reader)? else { return Ok(()) };
    let answers = Answers::new(writer.try_clone()?);
    answers.raw(format!("{GREETING}{token}\n").as_bytes());
    let mut commands: HashMap<u32, Running> = HashMap::new();
    let ended = loop {
        match Frame::read(reader) {
            Ok(Some(frame)) => obey(frame, &mut commands, &answers),
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    answers.end();
    ended
}

/// The token of the first line that is a greeting; None where the other end is gone before.
fn greeted(reader: &mut impl BufRead) -> Result<Option<String>, Error> {
    loop {
        let mut line = Vec::new();
        if reader.by_ref().take(MOST_GREETING_BYTES).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&line);
        if let Some((_, token)) = text.trim_end().split_once(KNOWN_BY) {
            return Ok(Some(token.to_owned()));
        }
    }
}

fn obey(frame: Frame, commands: &mut HashMap<u32, Running>, answers: &Answers) {
    let Frame { kind, id, body } = frame;
    match kind {
        START => {
            let started = serde_json::from_slice(&body)
                .map_err(Error::from)
                .and_then(|wanted: Wanted| Running::start(&wanted, id, answers));
            match started {
                Ok(running) => drop(commands.insert(id, running)),
                Err(error) => answers.failed(id, &error),
            }
        }
        READ => answer(id, fs::read(&*String::from_utf8_lossy(&body)).and_then(bounded), answers),
        WRITE => answer(id, write(&body).map(|()| Vec::new()), answers),
        _ => {
            let Some(running) = commands.get_mut(&id) else { return };
            match kind {
                INPUT => running.give(body),
                INPUT_END => running.end_input(),
                SIGNAL => running.signal(i32::try_from(number(&body)).unwrap_or(sys::KILL)),
                CREDIT if number(&body) == 0 => drop(commands.remove(&id)), // nobody listens any more
                CREDIT => running.allow(u64::from(number(&body))),
                _ => {}
            }
        }
    }
}

fn answer(id: u32, done: Result<Vec<u8>, Error>, answers: &Answers) {
    match done {
        Ok(content) => answers.send(CONTENT, id, content),
        Err(error) => answers.failed(id, &error),
    }
}

fn bounded(content: Vec<u8>) -> Result<Vec<u8>, Error> {
    if content.len() > MOST_BYTES { Err(Error::from_raw_os_error(libc::EFBIG)) } else { Ok(content) }
}

/// The length of the path, the path, the content: in one call, for files of /proc and /sys take a value whole.
fn write(body: &[u8]) -> Result<(), Error> {
    let length = number(body) as usize;
    let path = body.get(4..4 + length).ok_or_else(|| Error::from_raw_os_error(libc::EINVAL))?;
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&*String::from_utf8_lossy(path))?;
    file.write_all(&body[4 + length..])
}
