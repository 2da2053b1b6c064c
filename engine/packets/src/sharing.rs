//! `nicbench-packets measure sharing CPU...`: whether somebody else used the physical cores of these CPUs while another
//! program was measured. Each line on stdin ends one stretch and begins the next; the answer is that stretch, a line of
//! JSON.
//!
//! No CPU of the machine sleeps meanwhile, where the kernel can be asked for that: one that a hypervisor wakes up finds
//! itself beside a neighbour far more often than one that is at work, so a look at it would tell of its sleep.

use std::fs::{self, File};
use std::io::{self, BufRead, Write};

use nicbench_protocol::CpuTimes;
use serde::Serialize;

use crate::clock::TscClock;
use crate::core_watch::CoreWatch;
use crate::error::{EngineError, ErrorKind};
use crate::health::parse_stat;
use crate::port::Clock;

/// What was seen since the last line of input.
#[derive(Debug, Serialize)]
struct Stretch {
    cpus: Vec<Looks>,
}

/// `slow` of the `looks` at a CPU found its physical core in use by somebody else too; none where nobody could look.
#[derive(Debug, Serialize)]
struct Looks {
    cpu: u32,
    looks: u32,
    slow: u32,
    /// The core's clock, the mean over the looks and the 99th percentile since the start; none where it is not known.
    clock_hz: Option<u64>,
    highest_clock_hz: Option<u64>,
}

/// Watches the CPUs until stdin ends; an error names a CPU that does not exist.
pub fn run(cpus: &[&str]) -> Result<(), EngineError> {
    let wrong = |cpu: &&str| {
        let message = format!("there is no CPU {cpu:?}");
        EngineError::new(ErrorKind::BadRequest, message, "use: measure sharing CPU..., with numbers as in /proc/stat")
    };
    let watched = cpus.iter().map(|cpu| cpu.parse().map_err(|_| wrong(cpu))).collect::<Result<Vec<u32>, _>>()?;
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let mut times = parse_stat(&stat, &watched, 1);
    if let Some(missing) = watched.iter().position(|cpu| times.iter().all(|times| times.cpu != *cpu)) {
        return Err(wrong(&cpus[missing]));
    }
    let _awake = keep_awake();
    serve(&CoreWatch::start(&watched, TscClock::calibrated().hz()), &mut times).map_err(|error| {
        EngineError::new(ErrorKind::BadState, format!("stdin or stdout: {error}"), "call it with both open")
    })
}

/// Holds for as long as the file is open (Documentation/power/pm_qos_interface.rst); nothing where it is not granted.
fn keep_awake() -> io::Result<File> {
    let mut request = File::options().write(true).open("/dev/cpu_dma_latency")?;
    request.write_all(&0i32.to_ne_bytes())?;
    Ok(request)
}

fn serve(core_watch: &CoreWatch, times: &mut [CpuTimes]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        line?;
        core_watch.finish(times, 0);
        let looks = |times: &mut CpuTimes| Looks {
            cpu: times.cpu,
            looks: times.speed_samples.take().unwrap_or(0),
            slow: times.slow_samples.take().unwrap_or(0),
            clock_hz: times.clock_hz.take(),
            highest_clock_hz: times.highest_clock_hz.take(),
        };
        let stretch = Stretch { cpus: times.iter_mut().map(looks).collect() };
        writeln!(output, "{}", serde_json::to_string(&stretch)?)?;
        output.flush()?;
        core_watch.begin();
    }
    Ok(())
}
