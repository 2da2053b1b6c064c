//! The configuration line: what of it cannot be, and what a forwarder makes of it.

use std::path::Path;

use nicbench_protocol::{ClockSource, Configure, FateLogRequest, Faults, PortKind, Reflect, Timestamps};

use super::forwarder::Setup;
use crate::error::{EngineError, ErrorKind};
use crate::faults::impossible_odds;
use crate::port::MAXIMUM_BURST;
use crate::session::open;

const LONGEST_DELAY_NS: u64 = 10_000_000_000;
/// The most ports that DPDK has room for.
const MOST_PORTS: usize = 32;
const MOST_HELD_FRAMES: u32 = 1 << 20;
const MOST_RECORDS: usize = 100_000_000;
const NEXT: &str = "compare the configuration with protocol/reflect.md";

/// Reads the line and refuses what cannot be, before anything is opened: the ports in the words of `configure`, and the
/// rest.
pub fn check(line: &str) -> Result<(Configure, Setup, Option<FateLogRequest>), EngineError> {
    let reflect: Reflect =
        serde_json::from_str(line).map_err(|error| bad_request(format!("the configuration: {error}")))?;
    let ports_there = reflect.ports.len();
    if ports_there > MOST_PORTS {
        return Err(bad_request(format!("there are {ports_there} ports, and at most {MOST_PORTS} can be")));
    }
    if ports_there > 1 && ports_there % 2 == 1 && !reflect.same_port {
        return Err(bad_request(format!("there are {ports_there} ports, and frames go between the two of a pair")));
    }
    if let Some(port) = reflect.ports.iter().find(|port| matches!(port.kind, PortKind::Simulated { .. })) {
        return Err(bad_request(format!("port {}: the forwarder has no simulated ports", port.name)));
    }
    if !(1..=MAXIMUM_BURST as u32).contains(&reflect.burst) {
        return Err(bad_request(format!("burst is {}, and it is from 1 to {MAXIMUM_BURST}", reflect.burst)));
    }
    if let Some(what) = impossible(&reflect.faults) {
        return Err(bad_request(format!("faults: {what}")));
    }
    let configure = ports(&reflect);
    open::check(&configure)?;
    let log = reflect.log.as_ref().map(check_log).transpose()?;
    let setup = Setup {
        same_port: reflect.same_port,
        mode: reflect.mode,
        burst: reflect.burst as usize,
        when_full: reflect.when_full,
        faults: reflect.faults.clone(),
        log,
        trial: reflect.log.as_ref().map_or(1, |log| log.trial),
    };
    Ok((configure, setup, reflect.log))
}

/// The ports in the form of a `configure` request.
fn ports(reflect: &Reflect) -> Configure {
    Configure {
        run_key: reflect.log.as_ref().map_or_else(|| "0".repeat(16), |log| log.run_key.clone()),
        clock: ClockSource::Tsc,
        worker_cpu: reflect.worker_cpu,
        workers: Vec::new(),
        watch_cpus: Vec::new(),
        huge_pages: reflect.huge_pages,
        memory_mib: reflect.memory_mib,
        eal: reflect.eal.clone(),
        timestamps: Timestamps::Tsc,
        clock_error: None,
        ports: reflect.ports.clone(),
    }
}

/// Checks the log's options; returns the run key and how many records to keep.
fn check_log(log: &FateLogRequest) -> Result<(u64, usize), EngineError> {
    let run_key =
        u64::from_str_radix(&log.run_key, 16).map_err(|_| bad_request("log: run_key is not 16 hex digits".into()))?;
    if log.trial == 0 {
        return Err(bad_request("log: trial is 0, and trials are numbered from 1".into()));
    }
    if log.frames > MOST_RECORDS {
        return Err(bad_request(format!("log: frames is {}, and at most {MOST_RECORDS} are kept", log.frames)));
    }
    let folder = Path::new(&log.file).parent().filter(|folder| !folder.as_os_str().is_empty());
    if Path::new(&log.file).file_name().is_none() || folder.is_some_and(|folder| !folder.is_dir()) {
        return Err(bad_request(format!("log: {:?} is no file in a folder that is there", log.file)));
    }
    Ok((run_key, log.frames))
}

fn impossible(faults: &Faults) -> Option<String> {
    let delays = [("delay_ns", faults.delay_ns), ("jitter_ns", faults.jitter_ns), ("outage_ns", faults.outage_ns)];
    if let Some((name, value)) = delays.into_iter().find(|(_, value)| *value > LONGEST_DELAY_NS) {
        return Some(format!("{name} is {value}, and at most {LONGEST_DELAY_NS}"));
    }
    if faults.rate_frames_per_s.is_some_and(|rate| !(1e-3..=1e12).contains(&rate)) {
        return Some("rate_frames_per_s is out of range (1e-3 to 1e12)".into());
    }
    if faults.rate_burst_frames == 0 {
        return Some("rate_burst_frames is 0, so that nothing would pass".into());
    }
    if faults.rate_frames_per_s.is_none() && (faults.rate_queue_frames.is_some() || faults.outage_ns > 0) {
        return Some("rate_queue_frames and outage_ns are of a rate, and there is no rate_frames_per_s".into());
    }
    if let Some(frames) = faults.rate_queue_frames.filter(|frames| *frames >= faults.held_frames) {
        return Some(format!("rate_queue_frames is {frames}, and only {} frames are held", faults.held_frames));
    }
    if !(1..=MOST_HELD_FRAMES).contains(&faults.held_frames) {
        return Some(format!("held_frames is {}, and it is from 1 to {MOST_HELD_FRAMES}", faults.held_frames));
    }
    impossible_odds(faults)
}

fn bad_request(message: String) -> EngineError {
    EngineError::new(ErrorKind::BadRequest, message, NEXT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(rest: &str) -> String {
        let line = format!(r#"{{"ports":[{{"name":"d0","kind":"null"}}]{rest}}}"#);
        check(&line).map_or_else(|error| error.message, |_| String::new())
    }

    #[test]
    fn a_configuration_of_ports_alone_is_enough() {
        assert_eq!(problem(""), "");
    }

    #[test]
    fn ports_stand_in_pairs_unless_frames_go_back() {
        let of = |count: usize, rest: &str| {
            let ports = vec![r#"{"name":"d","kind":"null"}"#; count].join(",");
            check(&format!(r#"{{"ports":[{ports}]{rest}}}"#)).map_or_else(|error| error.message, |_| String::new())
        };
        assert_eq!((of(2, ""), of(4, ""), of(3, r#","same_port":true"#)), Default::default());
        assert!(of(3, "").contains("3 ports"), "{}", of(3, ""));
        assert!(of(33, r#","same_port":true"#).contains("at most 32"));
    }

    #[test]
    fn what_cannot_be_is_named() {
        let refused = [
            (r#","burst":65"#, "burst is 65"),
            (r#","faults":{"loss":2}"#, "loss is 2"),
            (r#","faults":{"delay_ns":99999999999}"#, "delay_ns"),
            (r#","faults":{"rate_frames_per_s":0}"#, "rate_frames_per_s"),
            (r#","faults":{"held_frames":0}"#, "held_frames"),
            (r#","faults":{"outage_ns":1000}"#, "there is no rate_frames_per_s"),
            (r#","faults":{"rate_frames_per_s":1000,"rate_queue_frames":5000}"#, "rate_queue_frames is 5000"),
            (r#","log":{"file":"/no/such/folder/x","run_key":"0000000000000001"}"#, "/no/such/folder"),
            (r#","log":{"file":"x","run_key":"1"}"#, "run_key"),
            (r#","mode":"backwards""#, "backwards"),
        ];
        for (rest, named) in refused {
            assert!(problem(rest).contains(named), "{rest}: {:?}", problem(rest));
        }
        assert!(check("no json").is_err());
        assert!(check(r#"{"ports":[]}"#).is_err());
    }
}
