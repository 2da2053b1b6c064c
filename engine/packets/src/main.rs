//! The binary: NDJSON on stdin and stdout. Without arguments it is the tester (`protocol/README.md`), with `reflect`
//! the reference forwarder (`protocol/reflect.md`), with `measure analyse` a benchmark of the receiver, with `measure
//! receive` and `measure generate` one of the receiver and of the sender in the kernel, with `measure loops` the hot loops
//! for a counter of instructions, with `measure looks CPU` one of the core watch, with `measure sharing CPU...` a watch of what else runs on the physical cores of CPUs.

use std::process::ExitCode;

use nicbench_packets::error::EngineError;
use nicbench_packets::{look_cost, measure, reflector, session, sharing, sys};
use serde::Serialize;

const USAGE: &str = "without arguments it speaks the protocol on stdin and stdout; `reflect [FILE]` forwards frames";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    sys::signal::install();
    sys::thread::prefer();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => ExitCode::from(session::run().clamp(0, 255) as u8),
        ["measure", "sharing", ref cpus @ ..] if !cpus.is_empty() => watch_sharing(cpus),
        ["measure", "looks", cpu] => print(look_cost::run(cpu)),
        ["measure", "loops"] => print(measure::loops::run()),
        ["measure", what] => print(measure::run(what)),
        ["reflect"] => ExitCode::from(reflector::session::run(None)),
        ["reflect", file] => ExitCode::from(reflector::session::run(Some(file))),
        _ => {
            eprintln!("nicbench-packets: unexpected arguments {arguments:?}; {USAGE}");
            ExitCode::from(2)
        }
    }
}

fn print(report: Result<impl Serialize, EngineError>) -> ExitCode {
    match report {
        Ok(report) => {
            println!("{}", serde_json::to_string(&report).unwrap_or_default());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("nicbench-packets: {error}");
            ExitCode::from(2)
        }
    }
}

fn watch_sharing(cpus: &[&str]) -> ExitCode {
    match sharing::run(cpus) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nicbench-packets: {error}");
            ExitCode::from(2)
        }
    }
}
