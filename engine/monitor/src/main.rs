//! The binary: NDJSON on stdin and stdout (`protocol/monitor.md`). It takes no arguments.

use std::process::ExitCode;

use nicbench_monitor::{session, sys};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.is_empty() {
        eprintln!("nicbench-monitor: unexpected arguments {arguments:?}; it speaks the protocol on stdin and stdout");
        return ExitCode::from(2);
    }
    sys::signal::install();
    ExitCode::from(session::run().clamp(0, 255) as u8)
}
