//! The binary: frames on a serial port, or on stdin and stdout (`protocol/agent.md`). `nicbench-agent [PORT]`.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, Error, Read};
use std::os::fd::AsFd;
use std::process::ExitCode;

use nicbench_agent::session;

const BUFFER_BYTES: usize = 256 * 1024;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let opened = match arguments.as_slice() {
        [] => standard(),
        [port] => device(port),
        _ => {
            eprintln!("nicbench-agent: expected at most one argument, a serial port, and got {arguments:?}");
            return ExitCode::from(2);
        }
    };
    match opened {
        Ok((mut reader, writer)) => serve(&mut reader, &writer, arguments.is_empty()),
        Err(error) => {
            eprintln!("nicbench-agent: {}: {error}", arguments.first().map_or("stdin and stdout", String::as_str));
            ExitCode::from(3)
        }
    }
}

fn standard() -> Result<(File, File), Error> {
    let input = std::io::stdin().as_fd().try_clone_to_owned()?;
    let output = std::io::stdout().as_fd().try_clone_to_owned()?;
    Ok((File::from(input), File::from(output)))
}

fn device(path: &str) -> Result<(File, File), Error> {
    let port = OpenOptions::new().read(true).write(true).open(path)?;
    Ok((port.try_clone()?, port))
}

/// One conversation after the other; of stdin and stdout there is one.
fn serve(reader: &mut File, writer: &File, once: bool) -> ExitCode {
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, Patient { reader, once });
    loop {
        let ended = session::run(&mut reader, writer);
        if once {
            return match ended {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    eprintln!("nicbench-agent: {error}");
                    ExitCode::from(1)
                }
            };
        }
    }
}

/// A port reads as ended while nobody is at its other end: that ends a conversation, and is no reason to hurry.
struct Patient<'a> {
    reader: &'a mut File,
    once: bool,
}

impl Read for Patient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        let count = self.reader.read(buffer)?;
        if count == 0 && !self.once {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Ok(count)
    }
}
