//! The thread that reads stdin: it answers what needs no worker, and passes on the rest.

use std::io;
use std::sync::{Arc, OnceLock};
use std::thread;

use nicbench_protocol::{ClockTimeReply, Command, Reply, Request, next_line, parse};

use super::bad_state;
use super::lease::Lease;
use super::mailbox::{MailboxSender, Message};
use crate::clock::TscClock;
use crate::output::Output;
use crate::snapshot::Snapshot;
use crate::sys::tsc;

/// What the thread answers from.
pub struct Shared {
    pub output: Arc<Output>,
    pub snapshot: Arc<Snapshot>,
    pub lease: Arc<Lease>,
    /// The clock of the engine's time, once there is one.
    pub counter: Arc<OnceLock<TscClock>>,
}

/// Starts the thread that reads stdin.
pub fn read(shared: Shared, mailbox: MailboxSender) {
    thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        while let Some(line) = next_line(&mut stdin) {
            match line.and_then(|line| parse(&line)) {
                Ok(request) => dispatch(request, &shared, &mailbox),
                Err(refusal) => shared.output.refuse(refusal.id, &refusal.error),
            }
        }
        mailbox.post(Message::End(0));
    });
}

fn dispatch(request: Request, shared: &Shared, mailbox: &MailboxSender) {
    let Shared { output, snapshot, lease, counter } = shared;
    if matches!(request.command, Command::Clock) {
        // Before anything else: what it takes until the reply is what its time is uncertain by.
        match counter.get() {
            Some(clock) => output.reply(request.id, &Reply::Clock(time_of(clock))),
            None => {
                let next = "configure ports that are not `xdp`, with the clock `tsc`";
                output.fail(request.id, bad_state("the engine has no clock that tells its time", next));
            }
        }
        return lease.renew(0.0);
    }
    lease.renew(match &request.command {
        Command::Start(start) => start.duration_s,
        Command::Drain { duration_s, .. } | Command::Settle { duration_s } | Command::Renew { duration_s } => {
            *duration_s
        }
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

fn time_of(clock: &TscClock) -> ClockTimeReply {
    let before = tsc::ticks();
    let realtime_ns = tsc::realtime_ns();
    let after = tsc::ticks();
    ClockTimeReply { now_ns: clock.time_ns(before + after.saturating_sub(before) / 2), realtime_ns }
}
