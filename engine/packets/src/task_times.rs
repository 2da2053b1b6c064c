//! How long each task of the machine has run, and where: who else used a core (proc(5), `schedstat`).
//!
//! The ticks of `/proc/stat` cannot tell: on a core that takes interrupts all the time they find the interrupt, seldom
//! the program that it interrupts.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// The kernel's threads that do packet work, which on the DUT's core is the DUT's own: one does a core's interrupt work
/// when there is much of it, the other polls an interface (threaded NAPI).
const PACKET_THREADS: [&str; 2] = ["ksoftirqd/", "napi/"];
/// Our own look at a DUT's core: it takes microseconds, but interrupts that come meanwhile are billed to it.
pub const CORE_WATCH_THREAD: &str = "core-watch";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Task {
    cpu: u32,
    ran_ns: u64,
}

/// The run times of all tasks at one moment.
#[derive(Debug, Clone, Default)]
pub struct TaskTimes {
    tasks: HashMap<u32, Task>,
}

impl TaskTimes {
    /// Reads every task; `None` where the kernel keeps no account.
    pub fn read() -> Option<Self> {
        let mut tasks = HashMap::new();
        for process in numeric_entries(Path::new("/proc")) {
            for (number, folder) in numeric_entries(&process.1.join("task")) {
                if let Some(task) = read_task(&folder) {
                    tasks.insert(number, task);
                }
            }
        }
        (!tasks.is_empty()).then_some(Self { tasks })
    }

    /// Time that tasks which now belong to `cpu` have run since `before`, the threads of packet work apart.
    pub fn since(&self, before: &Self, cpu: u32) -> u64 {
        let grown = |(number, task): (&u32, &Task)| {
            let ran_before = before.tasks.get(number).map_or(0, |before| before.ran_ns);
            task.ran_ns.saturating_sub(ran_before)
        };
        self.tasks.iter().filter(|(_, task)| task.cpu == cpu).map(grown).sum()
    }
}

/// The entries of a folder whose names are numbers, with their paths.
fn numeric_entries(folder: &Path) -> Vec<(u32, std::path::PathBuf)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path()))).collect()
}

/// A task that ended meanwhile, a thread of packet work, or our own core watch is left out.
fn read_task(folder: &Path) -> Option<Task> {
    let stat = fs::read_to_string(folder.join("stat")).ok()?;
    let (name, cpu) = parse_stat(&stat)?;
    if PACKET_THREADS.iter().any(|thread| name.starts_with(thread)) || name == CORE_WATCH_THREAD {
        return None;
    }
    let ran_ns = fs::read_to_string(folder.join("schedstat")).ok()?.split_whitespace().next()?.parse().ok()?;
    Some(Task { cpu, ran_ns })
}

/// The name and the CPU of a task. The name may hold spaces and parentheses; the CPU is the 39th field.
fn parse_stat(stat: &str) -> Option<(&str, u32)> {
    let (begin, end) = (stat.find('(')?, stat.rfind(')')?);
    let cpu = stat.get(end + 1..)?.split_whitespace().nth(36)?.parse().ok()?;
    Some((stat.get(begin + 1..end)?, cpu))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(tasks: &[(u32, u32, u64)]) -> TaskTimes {
        TaskTimes { tasks: tasks.iter().map(|&(number, cpu, ran_ns)| (number, Task { cpu, ran_ns })).collect() }
    }

    #[test]
    fn time_of_tasks_on_a_core_is_summed_and_new_tasks_count_from_their_start() {
        let before = times(&[(1, 0, 100), (2, 1, 500)]);
        let after = times(&[(1, 0, 150), (2, 1, 900), (3, 1, 70)]);
        assert_eq!(after.since(&before, 1), 470);
        assert_eq!(after.since(&before, 0), 50);
    }

    #[test]
    fn a_name_may_hold_spaces_and_parentheses() {
        let fields = (3..=52).map(|field| if field == 3 { "S".into() } else { field.to_string() });
        let stat = format!("7 (a (b) c) {}", fields.collect::<Vec<String>>().join(" "));
        assert_eq!(parse_stat(&stat), Some(("a (b) c", 39)));
    }

    #[test]
    fn this_machines_tasks_are_read() {
        let before = TaskTimes::read();
        assert!(before.is_none_or(|times| times.tasks.contains_key(&std::process::id())));
    }

    #[test]
    fn text_that_is_no_stat_is_nobody() {
        for text in ["", "7", "7 (", "7 (a) S", ")7("] {
            assert_eq!(parse_stat(text), None);
        }
    }
}
