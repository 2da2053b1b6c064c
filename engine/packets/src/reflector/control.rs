//! The thread that reads stdin for the forwarding loop: commands, and the end.

use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use nicbench_protocol::{EndedBy, ReflectCommand};

use crate::error::{EngineError, ErrorKind};
use crate::sys::signal;

/// What the loop is told to do.
#[derive(Debug)]
pub enum Told {
    Do(ReflectCommand),
    /// A line that is no command, to be answered with this error.
    Refuse(EngineError),
    End(EndedBy),
}

/// The commands that wait for the loop.
#[derive(Debug)]
pub struct Control {
    receiver: Receiver<Told>,
    waiting: Arc<AtomicBool>,
}

impl Control {
    /// Starts the thread that reads commands.
    pub fn read(input: impl BufRead + Send + 'static) -> Self {
        let (sender, receiver) = channel();
        let waiting = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&waiting);
        std::thread::spawn(move || {
            let commands = input.lines().map_while(Result::ok).filter(|line| !line.trim().is_empty());
            let told = commands.map(|line| command(&line)).chain([Told::End(EndedBy::Stdin)]);
            for message in told {
                // The loop is gone only when the process is about to be.
                let _ = sender.send(message);
                flag.store(true, Ordering::Release);
            }
        });
        Self { receiver, waiting }
    }

    /// Whether a command is waiting. Cheap: asked in every turn.
    #[inline(always)]
    pub fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) || signal::received().is_some()
    }

    /// The next command, if there is one.
    pub fn next(&self) -> Option<Told> {
        if signal::received().is_some() {
            return Some(Told::End(EndedBy::Signal));
        }
        // Cleared first: whatever is sent later sets it again.
        self.waiting.store(false, Ordering::Release);
        self.receiver.try_recv().ok()
    }
}

fn command(line: &str) -> Told {
    match serde_json::from_str(line) {
        Ok(ReflectCommand::Trial { trial: 0 }) => refuse("trial is 0, and trials are numbered from 1".into()),
        Ok(ReflectCommand::Close) => Told::End(EndedBy::Close),
        Ok(command) => Told::Do(command),
        Err(error) => refuse(format!("the line is no command: {error}")),
    }
}

fn refuse(message: String) -> Told {
    Told::Refuse(EngineError::new(ErrorKind::BadRequest, message, "use stats, trial or close, see protocol/reflect.md"))
}
