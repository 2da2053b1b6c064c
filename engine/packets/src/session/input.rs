//! The thread that reads stdin: it answers what needs no worker, and passes on the rest.

use std::io;
use std::sync::Arc;
use std::thread;

use nicbench_protocol::{Command, Reply, Request, next_line, parse};

use super::bad_state;
use super::lease::Lease;
use super::mailbox::{MailboxSender, Message};
use crate::output::Output;
use crate::snapshot::Snapshot;

/// Starts the thread that reads stdin.
pub fn read(output: Arc<Output>, snapshot: Arc<Snapshot>, lease: Arc<Lease>, mailbox: MailboxSender) {
    thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        while let Some(line) = next_line(&mut stdin) {
            match line.and_then(|line| parse(&line)) {
                Ok(request) => dispatch(request, &output, &snapshot, &lease, &mailbox),
                Err(refusal) => output.refuse(refusal.id, &refusal.error),
            }
        }
        mailbox.post(Message::End(0));
    });
}

fn dispatch(request: Request, output: &Output, snapshot: &Snapshot, lease: &Lease, mailbox: &MailboxSender) {
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
        _ => {
            lease.allow_work();
            mailbox.post(Message::Request(request));
        }
    }
}
