//! Counters outside the cores, by perf_event_open(2): memory traffic and traffic between sockets. They are shared by
//! everybody, so that a count is of the whole socket, and where there are more of them than hardware counters the
//! kernel takes turns.

use perf_event::events::Software;
use perf_event::{Builder, Counter, ReadFormat};

use super::uncore_plan::{PlannedCounter, links, memory};
use super::{Moment, Source, SourceOptions};
use crate::record::{Count, Record};

struct Uncore {
    counters: Vec<One>,
    sums: Vec<Sum>,
}

/// One counter, and the sum that it is part of.
struct One {
    counter: Counter,
    scale: f64,
    sum: usize,
    /// Count, time enabled and time counted at the last reading.
    before: (u64, u64, u64),
}

/// Of all counters of a metric and socket.
struct Sum {
    metric: &'static str,
    socket: u32,
    grown: Option<f64>,
    /// Cumulative, so that it is told as other counters are.
    total: f64,
    count: Count,
}

pub fn open_memory(asked: &SourceOptions, record: &mut Record) -> Result<Box<dyn Source>, String> {
    open(
        asked,
        record,
        memory,
        "the processor or its hypervisor shows no counter of memory traffic (uncore_imc, amd_umc, amd_df)",
    )
}

pub fn open_links(asked: &SourceOptions, record: &mut Record) -> Result<Box<dyn Source>, String> {
    open(
        asked,
        record,
        links,
        "the processor or its hypervisor shows no counter of traffic between sockets (uncore_upi, amd_df)",
    )
}

type Plan = fn(&std::path::Path, &[u8]) -> Vec<PlannedCounter>;

fn open(asked: &SourceOptions, record: &mut Record, plan: Plan, none: &str) -> Result<Box<dyn Source>, String> {
    let cpuinfo = std::fs::read(asked.proc.join("cpuinfo")).unwrap_or_default();
    let planned = plan(&asked.sys, &cpuinfo);
    if planned.is_empty() {
        return Err(none.into());
    }
    let mut uncore = Uncore { counters: vec![], sums: vec![] };
    for one in &planned {
        let counter = counter(one).map_err(|error| {
            format!(
                "perf_event_open refused {} on cpu{}: {error} (it needs CAP_PERFMON or kernel.perf_event_paranoid 0)",
                one.metric, one.cpu
            )
        })?;
        let sum = uncore.sum(one, record);
        uncore.counters.push(One { counter, scale: one.scale, sum, before: (0, 0, 0) });
    }
    Ok(Box::new(uncore))
}

fn counter(planned: &PlannedCounter) -> std::io::Result<Counter> {
    let mut builder = Builder::new(Software::DUMMY);
    builder.attrs_mut().type_ = planned.kind;
    builder.attrs_mut().config = planned.config;
    builder.any_pid().one_cpu(planned.cpu as usize).include_kernel().include_hv();
    builder.read_format(ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING);
    let mut counter = builder.build()?;
    counter.enable()?;
    Ok(counter)
}

impl Uncore {
    fn sum(&mut self, one: &PlannedCounter, record: &mut Record) -> usize {
        let known = self.sums.iter().position(|sum| (sum.metric, sum.socket) == (one.metric, one.socket));
        known.unwrap_or_else(|| {
            let count = Count::new(record, one.metric, format!("socket{}", one.socket));
            self.sums.push(Sum { metric: one.metric, socket: one.socket, grown: None, total: 0.0, count });
            self.sums.len() - 1
        })
    }
}

impl Source for Uncore {
    fn sample(&mut self, moment: &mut Moment) -> Result<(), String> {
        self.sums.iter_mut().for_each(|sum| sum.grown = Some(0.0));
        for one in &mut self.counters {
            let read = one.counter.read_full().ok();
            let now = read.as_ref().and_then(|data| {
                let ns = |time: Option<std::time::Duration>| time.map(|time| time.as_nanos() as u64);
                Some((data.count(), ns(data.time_enabled())?, ns(data.time_running())?))
            });
            let grown = now.and_then(|now| scaled_growth(one.before, now));
            one.before = now.unwrap_or(one.before);
            let sum = &mut self.sums[one.sum];
            sum.grown = sum.grown.zip(grown).map(|(sum, grown)| sum + grown * one.scale);
        }
        for sum in &mut self.sums {
            sum.total += sum.grown.unwrap_or(0.0);
            sum.count.put(moment.record, sum.grown.map(|_| sum.total as u64));
        }
        Ok(())
    }

    fn interrupts_others(&self) -> bool {
        true // the CPU that its PMU names for each socket
    }
}

/// What a counter grew by, if it had counted all the time in which it was enabled; `None` where it never did.
fn scaled_growth(before: (u64, u64, u64), now: (u64, u64, u64)) -> Option<f64> {
    let (count, enabled, running) =
        (now.0.wrapping_sub(before.0), now.1.wrapping_sub(before.1), now.2.wrapping_sub(before.2));
    (running > 0).then(|| count as f64 * enabled as f64 / running as f64)
}

#[cfg(test)]
mod tests {
    use super::super::tree::Tree;
    use super::*;

    #[test]
    fn a_counter_that_took_turns_is_scaled() {
        assert_eq!(scaled_growth((10, 100, 100), (20, 200, 150)), Some(20.0));
        assert_eq!(scaled_growth((10, 100, 100), (10, 200, 100)), None);
    }

    #[test]
    fn a_machine_without_such_counters_is_a_reason() {
        assert!(Tree::new(&[]).open(open_memory).err().unwrap().contains("memory traffic"));
        assert!(Tree::new(&[]).open(open_links).err().unwrap().contains("sockets"));
    }
}
