//! The thread that reads stdin: it answers what needs no worker, and passes on the rest.

use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::thread;

use nicbench_protocol::{Command, ErrorReport, Reply, Request, parse};

use super::bad_state;
use super::desk::{Mailbox, Message};
use super::lease::Lease;
use crate::error::ErrorKind;
use crate::output::Output;
use crate::snapshot::Snapshot;

/// Longer lines are not kept.
const LONGEST_LINE_BYTES: u64 = 1 << 20;

/// Starts the thread.
pub fn read(output: Arc<Output>, snapshot: Arc<Snapshot>, lease: Arc<Lease>, mailbox: Mailbox) {
    thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        while let Some(line) = next_line(&mut stdin) {
            match line.and_then(|line| parse(&line).map_err(|refusal| (refusal.id, refusal.error))) {
                Ok(request) => dispatch(request, &output, &snapshot, &lease, &mailbox),
                Err((id, error)) => output.refuse(id, &error),
            }
        }
        mailbox.post(Message::End(0));
    });
}

type Line = Result<String, (Option<i64>, ErrorReport)>;

/// The next line that is not empty; `None` at the end.
fn next_line(input: &mut impl BufRead) -> Option<Line> {
    loop {
        let mut bytes = Vec::new();
        let count = input.by_ref().take(LONGEST_LINE_BYTES).read_until(b'\n', &mut bytes).ok()?;
        if count == 0 {
            return None;
        }
        if count as u64 == LONGEST_LINE_BYTES && bytes.last() != Some(&b'\n') {
            skip_line(input);
            return Some(Err(bad_line(&format!("the line is longer than {LONGEST_LINE_BYTES} bytes"))));
        }
        match String::from_utf8(bytes) {
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) => return Some(Ok(line)),
            Err(_) => return Some(Err(bad_line("the line is not UTF-8"))),
        }
    }
}

fn skip_line(input: &mut impl BufRead) {
    loop {
        let mut bytes = Vec::new();
        let count = input.by_ref().take(LONGEST_LINE_BYTES).read_until(b'\n', &mut bytes);
        if !count.is_ok_and(|count| count > 0) || bytes.last() == Some(&b'\n') {
            return;
        }
    }
}

fn bad_line(message: &str) -> (Option<i64>, ErrorReport) {
    (None, ErrorReport::new(ErrorKind::BadRequest, message, "send one JSON object a line, in UTF-8"))
}

fn dispatch(request: Request, output: &Output, snapshot: &Snapshot, lease: &Lease, mailbox: &Mailbox) {
    lease.renew(match &request.command {
        Command::Start(start) => start.duration_s,
        Command::Drain { duration_s } | Command::Settle { duration_s } | Command::Renew { duration_s } => *duration_s,
        _ => 0.0,
    });
    match request.command {
        Command::Renew { .. } => output.reply(request.id, &Reply::Done {}),
        Command::Stats => match snapshot.read() {
            Some(stats) => output.reply(request.id, &Reply::Stats(stats)),
            None => output.fail(request.id, bad_state("there is no trial", "ask for `start` first")),
        },
        _ => mailbox.post(Message::Request(request)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_refused_and_the_next_one_is_read() {
        let mut text = vec![b'x'; 3 * LONGEST_LINE_BYTES as usize + 5];
        text.extend(b"\nnext\n");
        let mut input = text.as_slice();
        assert!(next_line(&mut input).unwrap().is_err());
        assert_eq!(next_line(&mut input).unwrap().unwrap(), "next\n");
        assert!(next_line(&mut input).is_none());
    }

    #[test]
    fn empty_lines_are_nothing_and_other_encodings_are_refused() {
        let mut input = &b"\n  \n\xff\xfe\n{}"[..];
        assert!(next_line(&mut input).unwrap().is_err());
        assert_eq!(next_line(&mut input).unwrap().unwrap(), "{}");
    }
}
