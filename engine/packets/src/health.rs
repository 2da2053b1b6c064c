//! What the engine sees of its own machine around a transmission: switches, CPU times, clock steps, the core's clock.

use std::hint::black_box;

use nicbench_protocol::CpuTimes;

use crate::clock::simultaneous;
use crate::port::Clock;
use crate::sys::{thread, tsc};
use crate::task_times::TaskTimes;

/// The state of thread and machine at one moment.
#[derive(Debug, Clone)]
struct Moment {
    switches: Option<(u64, u64)>,
    cpus: Vec<CpuTimes>,
    tasks: Option<TaskTimes>,
    ticks: u64,
    monotonic_ns: u64,
}

/// Readings before a transmission, to be compared with those after it.
#[derive(Debug, Clone)]
pub struct HealthProbe {
    watched: Vec<u32>,
    before: Moment,
    core_clock_hz: f64,
}

/// How thread and machine fared over a transmission.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HealthChange {
    pub voluntary_switches: Option<u64>,
    pub involuntary_switches: Option<u64>,
    pub clock_step_ns: Option<i64>,
    pub core_clock_hz: Option<[f64; 2]>,
    pub cpus: Vec<CpuTimes>,
}

impl HealthProbe {
    /// Reads the state; to be called right before the transmission.
    pub fn start(clock: &(impl Clock + ?Sized), watched: &[u32]) -> Self {
        let core_clock_hz = core_clock_hz(clock);
        Self { watched: watched.to_vec(), before: Moment::read(watched), core_clock_hz }
    }

    /// Reads the state again, right after the transmission, and gives the differences.
    pub fn finish(&self, clock: &(impl Clock + ?Sized)) -> HealthChange {
        let after = Moment::read(&self.watched);
        let tsc_ns = clock.machine_nanoseconds(after.ticks.saturating_sub(self.before.ticks)) as i64;
        let monotonic_ns = after.monotonic_ns as i64 - self.before.monotonic_ns as i64;
        let switches = after.switches.zip(self.before.switches);
        HealthChange {
            voluntary_switches: switches.map(|(after, before)| after.0 - before.0),
            involuntary_switches: switches.map(|(after, before)| after.1 - before.1),
            clock_step_ns: Some(monotonic_ns - tsc_ns),
            core_clock_hz: Some([self.core_clock_hz, core_clock_hz(clock)]),
            cpus: difference(&self.before, &after),
        }
    }
}

impl Moment {
    fn read(watched: &[u32]) -> Self {
        let (ticks, monotonic_ns) = simultaneous();
        let stat =
            if watched.is_empty() { String::new() } else { std::fs::read_to_string("/proc/stat").unwrap_or_default() };
        let ns_per_tick = 1_000_000_000 / thread::stat_ticks_per_s();
        Self {
            switches: thread::context_switches(),
            cpus: parse_stat(&stat, watched, ns_per_tick),
            tasks: if watched.is_empty() { None } else { TaskTimes::read() },
            ticks,
            monotonic_ns,
        }
    }
}

/// Times of the watched CPUs in `/proc/stat`, proc(5). A CPU that is not there is left out.
pub fn parse_stat(stat: &str, watched: &[u32], ns_per_tick: u64) -> Vec<CpuTimes> {
    let line = |cpu: u32| {
        let prefix = format!("cpu{cpu} ");
        let fields = stat.lines().find_map(|line| line.strip_prefix(&prefix))?;
        let values: Vec<u64> = fields.split_whitespace().map_while(|field| field.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal; waiting for input or output is idle too.
        let [user, nice, system, idle, wait, irq, softirq, steal, ..] = values[..] else { return None };
        Some(CpuTimes {
            cpu,
            user_ns: user * ns_per_tick,
            nice_ns: nice * ns_per_tick,
            system_ns: system * ns_per_tick,
            softirq_ns: softirq * ns_per_tick,
            irq_ns: irq * ns_per_tick,
            steal_ns: steal * ns_per_tick,
            idle_ns: (idle + wait) * ns_per_tick,
            other_tasks_ns: None,
            speed_samples: None,
            slow_samples: None,
            clock_hz: None,
            highest_clock_hz: None,
            longest_pause_ns: None,
            looks: None,
        })
    };
    watched.iter().filter_map(|cpu| line(*cpu)).collect()
}

fn difference(first: &Moment, last: &Moment) -> Vec<CpuTimes> {
    let tasks = first.tasks.as_ref().zip(last.tasks.as_ref());
    let change = |after: &CpuTimes| {
        let before = first.cpus.iter().find(|times| times.cpu == after.cpu)?;
        // Idle time can run backwards by a tick (proc(5)).
        Some(CpuTimes {
            cpu: after.cpu,
            user_ns: after.user_ns.saturating_sub(before.user_ns),
            nice_ns: after.nice_ns.saturating_sub(before.nice_ns),
            system_ns: after.system_ns.saturating_sub(before.system_ns),
            softirq_ns: after.softirq_ns.saturating_sub(before.softirq_ns),
            irq_ns: after.irq_ns.saturating_sub(before.irq_ns),
            steal_ns: after.steal_ns.saturating_sub(before.steal_ns),
            idle_ns: after.idle_ns.saturating_sub(before.idle_ns),
            other_tasks_ns: tasks.map(|(before, tasks)| tasks.since(before, after.cpu)),
            speed_samples: None,
            slow_samples: None,
            clock_hz: None,
            highest_clock_hz: None,
            longest_pause_ns: None,
            looks: None,
        })
    };
    last.cpus.iter().filter_map(change).collect()
}

const PROBE_STEPS: u64 = 50_000;
/// An exclusive or (1 cycle) and a multiplication (3) that wait for each other, on every x86-64 core since 2008.
const CYCLES_PER_STEP: f64 = 4.0;

/// How fast the core runs now, by a timed chain of dependent multiplications; the fastest of a few tries.
pub fn core_clock_hz(clock: &(impl Clock + ?Sized)) -> f64 {
    let shortest = (0..4).map(|_| time_dependent_chain()).min().unwrap_or(1).max(1);
    CYCLES_PER_STEP * PROBE_STEPS as f64 / (clock.nanoseconds(shortest) as f64 * 1e-9)
}

fn time_dependent_chain() -> u64 {
    let mut value: u64 = black_box(3);
    let (mask, factor) = (black_box(0x55u64), black_box(0x9E37_79B9_7F4A_7C15u64));
    let before = tsc::ticks();
    for _ in 0..PROBE_STEPS {
        value = (value ^ mask).wrapping_mul(factor);
    }
    black_box(value);
    tsc::ticks().saturating_sub(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(cpus: Vec<CpuTimes>) -> Moment {
        Moment { switches: None, cpus, tasks: None, ticks: 0, monotonic_ns: 0 }
    }

    const STAT: &str = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu11 10 0 0 90 0 0 0 0 0 0\nintr 5\n";

    #[test]
    fn the_watched_cpus_are_read_with_waiting_counted_as_idle() {
        let cpus = parse_stat(STAT, &[0, 11], 10);
        assert_eq!((cpus[0].user_ns, cpus[0].nice_ns, cpus[0].system_ns, cpus[0].idle_ns), (10, 20, 30, 90));
        assert_eq!((cpus[0].irq_ns, cpus[0].softirq_ns, cpus[0].steal_ns), (60, 70, 80));
        assert_eq!((cpus[1].cpu, cpus[1].idle_ns), (11, 900));
    }

    #[test]
    fn a_cpu_that_is_not_there_is_left_out_and_garbage_is_no_panic() {
        assert_eq!(parse_stat(STAT, &[1], 10), vec![]);
        assert_eq!(parse_stat("cpu0 x y", &[0], 10), vec![]);
    }

    #[test]
    fn a_time_that_runs_backwards_is_no_time() {
        let before = parse_stat(STAT, &[0], 10);
        let after = parse_stat(&STAT.replace("cpu0 1 2 3 4", "cpu0 2 2 3 1"), &[0], 10);
        let change = difference(&moment(before), &moment(after));
        assert_eq!((change[0].user_ns, change[0].idle_ns), (10, 0));
    }
}
