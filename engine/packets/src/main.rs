//! The binary: NDJSON on stdin and stdout, see `protocol/README.md`. It takes no arguments.

use std::process::ExitCode;

use nicbench_packets::{session, sys};

fn main() -> ExitCode {
    if let Some(argument) = std::env::args().nth(1) {
        eprintln!("nicbench-packets: unexpected argument {argument:?}; it speaks the protocol on stdin and stdout");
        return ExitCode::from(2);
    }
    sys::signal::install();
    ExitCode::from(session::run().clamp(0, 255) as u8)
}
