//! `/proc/stat` (proc(5)): how each CPU spent its time, context switches, new processes, and who waits to run.

use super::{Moment, Source, SourceOptions};
use crate::open_file::OpenFile;
use crate::record::{Count, Gauge, Record};
use crate::text::{fields, lines, number};

/// In the order of the file; `guest` is part of `user` there and taken out of it here, so that the states add up.
const STATES: [&str; 9] = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest"];

struct Cpu {
    file: OpenFile,
    tick_ns: u64,
    /// By number; a CPU that is switched off is `None`.
    cpus: Vec<Option<[Count; STATES.len()]>>,
    switches: Count,
    forks: Count,
    running: Gauge,
    blocked: Gauge,
}

pub fn open(asked: &SourceOptions, record: &mut Record) -> Result<Box<dyn Source>, String> {
    Ok(Box::new(Cpu {
        file: asked.proc("stat")?,
        tick_ns: asked.tick_ns,
        cpus: vec![],
        switches: Count::new(record, "context_switches", ""),
        forks: Count::new(record, "processes_started", ""),
        running: Gauge::new(record, "processes_running", ""),
        blocked: Gauge::new(record, "processes_blocked", ""),
    }))
}

impl Source for Cpu {
    fn sample(&mut self, moment: &mut Moment) -> Result<(), String> {
        let text = self.file.read(moment.buffer).map_err(|error| format!("/proc/stat: {error}"))?;
        for line in lines(text) {
            let mut words = fields(line);
            let (Some(label), mut rest) = (words.next(), words) else { continue };
            match label {
                b"ctxt" => self.switches.put(moment.record, rest.next().and_then(number)),
                b"processes" => {
                    moment.forks = rest.next().and_then(number);
                    self.forks.put(moment.record, moment.forks);
                }
                b"procs_running" => self.running.put_unsigned(moment.record, rest.next().and_then(number)),
                b"procs_blocked" => self.blocked.put_unsigned(moment.record, rest.next().and_then(number)),
                _ => {
                    let Some(cpu) = label.strip_prefix(b"cpu").and_then(number) else { continue };
                    let mut ticks = [None; STATES.len() + 1];
                    ticks.iter_mut().zip(rest).for_each(|(tick, field)| *tick = number(field));
                    put(&mut self.cpus, cpu as usize, ticks, self.tick_ns, moment.record);
                }
            }
        }
        Ok(())
    }
}

type Ticks = [Option<u64>; STATES.len() + 1];

fn put(cpus: &mut Vec<Option<[Count; STATES.len()]>>, cpu: usize, mut ticks: Ticks, tick_ns: u64, record: &mut Record) {
    if cpu >= super::per_cpu::MOST_CPUS {
        return;
    }
    // user and guest, nice and guest_nice
    for (whole, part) in [(0, 8), (1, 9)] {
        if let (Some(time), Some(guest)) = (ticks[whole], ticks[part]) {
            ticks[whole] = Some(time.saturating_sub(guest));
        }
    }
    if let (Some(guest), Some(nice)) = (ticks[8], ticks[9]) {
        ticks[8] = Some(guest.saturating_add(nice));
    }
    if cpus.len() <= cpu {
        cpus.resize(cpu + 1, None);
    }
    let states = cpus[cpu]
        .get_or_insert_with(|| STATES.map(|state| Count::new(record, &format!("cpu_{state}_ns"), format!("cpu{cpu}"))));
    for (state, ticks) in states.iter_mut().zip(ticks) {
        state.put(record, ticks.map(|ticks| ticks.saturating_mul(tick_ns)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::{Tree, of};
    use super::*;

    const BEFORE: &str = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 100 20 30 400 5 6 7 8 10 2\ncpu2 1 2 3 4\nintr 5 0 5\nctxt 1000\nbtime 1\n\
        processes 50\nprocs_running 2\nprocs_blocked 1\nsoftirq 1 2\n";

    #[test]
    fn the_states_of_a_cpu_add_up_to_its_time() {
        let mut tree = Tree::new(&[("proc/stat", BEFORE)]);
        let mut source = tree.open(open).unwrap();
        let first = tree.sample(&mut *source);
        assert_eq!((of(&first, "processes_running"), of(&first, "processes_blocked")), (Some(2), Some(1)));
        assert!(first.iter().all(|(name, _)| !name.ends_with("cpu0")), "there is no difference yet: {first:?}");
        tree.write("proc/stat", BEFORE.replace("cpu0 100 20 30 400 5 6 7 8 10 2", "cpu0 150 22 33 420 5 6 17 9 20 3"));
        let second = tree.sample(&mut *source);
        let ns = |state: &str| of(&second, &format!("cpu_{state}_ns cpu0"));
        assert_eq!((ns("user"), ns("nice"), ns("guest")), (Some(400_000_000), Some(10_000_000), Some(110_000_000)));
        assert_eq!((ns("softirq"), ns("steal"), ns("irq")), (Some(100_000_000), Some(10_000_000), Some(0)));
        let states = STATES.iter().map(|state| ns(state).unwrap()).sum::<i64>();
        assert_eq!(states, (50 + 2 + 3 + 20 + 10 + 1) * 10_000_000);
    }

    #[test]
    fn a_kernel_without_a_state_leaves_it_unknown() {
        let mut tree = Tree::new(&[("proc/stat", BEFORE)]);
        let mut source = tree.open(open).unwrap();
        tree.sample(&mut *source);
        let second = tree.sample(&mut *source);
        assert_eq!((of(&second, "cpu_system_ns cpu2"), of(&second, "cpu_steal_ns cpu2")), (Some(0), None));
        assert_eq!(of(&second, "context_switches"), Some(0));
    }
}
