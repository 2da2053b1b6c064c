//! The binary: with arguments for people, without any NDJSON on stdin and stdout (`protocol/frames.md`).

use std::process::ExitCode;

use nicbench_frames::{cli, session, sys};

fn main() -> ExitCode {
    sys::signal::install();
    let status = if std::env::args_os().len() > 1 { cli::run() } else { session::run() };
    ExitCode::from(status.clamp(0, 255) as u8)
}
