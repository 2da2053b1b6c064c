//! Every process of the machine and what CPU time it has used, at one moment: two of them tell who used the CPUs
//! between. It is asked for before and after a round, never while something is measured.

use std::collections::BTreeMap;
use std::fs::{File, read};
use std::io;
use std::path::{Path, PathBuf};

use nicbench_protocol::{Census, CensusGroup, CensusProcess};

use crate::stat::Stat;
use crate::sys::clock::monotonic_ns;
use crate::sys::directory::each_number;
use crate::text::{fields, lines, number};

/// In the order of `/proc/stat`.
const STATES: [&str; 8] = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];
/// Where version 2 of control groups is mounted: by itself, or beside version 1.
const GROUPS: [&str; 2] = ["fs/cgroup", "fs/cgroup/unified"];
/// Where version 1 has the accounts of CPU time.
const ACCOUNTS: [&str; 2] = ["fs/cgroup/cpuacct", "fs/cgroup/cpu,cpuacct"];
/// Of a process with more threads the kernel's ticks must do.
const MOST_THREADS: u64 = 256;

/// Where processes end all the time a count lacks one of them now and then.
const MOST_COUNTS: u32 = 5;

/// Where everything is read from.
#[derive(Debug, Clone)]
pub struct CensusOptions {
    /// `/proc`, or a tree like it.
    pub proc: PathBuf,
    /// `/sys`, or a tree like it.
    pub sys: PathBuf,
    /// The kernel's tick.
    pub tick_ns: u64,
    /// See `configure`.
    pub mark: String,
}

/// Counts every process, anew where one ended before its turn: its parent has its time then, and had its turn before.
pub fn take_census(asked: &CensusOptions) -> io::Result<Census> {
    let (mut census, mut all_counted) = count_all(asked)?;
    for _ in 1..MOST_COUNTS {
        if all_counted {
            break;
        }
        (census, all_counted) = count_all(asked)?;
    }
    Ok(census)
}

/// Counts every process but those that end meanwhile; returns also whether there were none of these.
fn count_all(asked: &CensusOptions) -> io::Result<(Census, bool)> {
    let (cpus, states) = cpu_states(&read(asked.proc.join("stat"))?, asked.tick_ns);
    let pressure = read(asked.proc.join("pressure/cpu")).ok().and_then(|text| pressure_some_ns(&text));
    let taken_ns = monotonic_ns();
    let mut pids = Vec::new();
    each_number(&File::open(&asked.proc)?, &mut vec![0; 32 << 10], |pid| pids.push(pid))?;
    pids.sort_unstable();
    let monitor = std::process::id();
    let home = group_paths(&asked.proc.join("self/cgroup"));
    let mut groups = BTreeMap::new();
    let listed = pids.len();
    let processes =
        pids.into_iter().filter_map(|pid| count(asked, pid, &home, &mut groups)).collect::<Vec<CensusProcess>>();
    let all_counted = processes.len() == listed;
    let census = Census {
        taken_ns,
        monitor,
        parent: std::os::unix::process::parent_id(),
        cpus,
        states,
        pressure_some_ns: pressure,
        processes,
        groups: groups.into_iter().map(|(path, usage_ns)| CensusGroup { path, usage_ns }).collect(),
    };
    Ok((census, all_counted))
}

fn count(
    asked: &CensusOptions,
    pid: u32,
    home: &[String],
    groups: &mut BTreeMap<String, u64>,
) -> Option<CensusProcess> {
    let folder = asked.proc.join(pid.to_string());
    let text = read(folder.join("stat")).ok()?;
    let stat = Stat::of(&text)?;
    let marked = !stat.is_kernel && has_mark(&folder, &asked.mark);
    let group = if marked { account_of(asked, &folder, home, groups) } else { None };
    Some(CensusProcess {
        pid,
        parent: stat.parent,
        started: stat.started_ticks,
        cpu: stat.cpu,
        name: crate::text::name(stat.name),
        kernel: stat.is_kernel,
        zombie: stat.is_zombie,
        marked,
        group,
        own_ns: own_ns(&folder, &stat, asked.tick_ns),
        ended_ns: stat.ended_ticks.saturating_mul(asked.tick_ns),
    })
}

/// The kernel rounds user and system time down to a tick each; the scheduler's own account of each thread is exact, but
/// lacks threads that have ended.
fn own_ns(folder: &Path, stat: &Stat, tick_ns: u64) -> u64 {
    let ticks_ns = stat.user_ticks.saturating_add(stat.system_ticks).saturating_mul(tick_ns);
    let run_ns = if stat.threads > MOST_THREADS { None } else { run_ns(folder) };
    run_ns.map_or(ticks_ns, |exact_ns| exact_ns.clamp(ticks_ns, ticks_ns.saturating_add(2 * tick_ns)))
}

fn run_ns(folder: &Path) -> Option<u64> {
    let tasks = folder.join("task");
    let mut threads = Vec::new();
    each_number(&File::open(&tasks).ok()?, &mut vec![0; 4 << 10], |thread| threads.push(thread)).ok()?;
    let of = |thread: &u32| {
        let text = read(tasks.join(format!("{thread}/schedstat"))).ok()?;
        fields(&text).next().and_then(number)
    };
    threads.iter().try_fold(0u64, |sum, thread| Some(sum.saturating_add(of(thread)?)))
}

/// Whether the process of this folder of `/proc` was started by the controller: its environment has the mark.
pub fn has_mark(folder: &Path, mark: &str) -> bool {
    // A process of another user does not show its environment, unless we are root.
    !mark.is_empty()
        && read(folder.join("environ"))
            .is_ok_and(|text| text.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes()))
}

/// Its control group, where that is another than ours and the kernel tells what it used.
fn account_of(
    asked: &CensusOptions,
    folder: &Path,
    home: &[String],
    groups: &mut BTreeMap<String, u64>,
) -> Option<String> {
    group_paths(&folder.join("cgroup")).into_iter().filter(|path| !home.contains(path)).find(|path| {
        groups.contains_key(path)
            || usage_ns(&asked.sys, path).is_some_and(|usage_ns| {
                groups.insert(path.clone(), usage_ns);
                true
            })
    })
}

/// Of version 2, and of version 1 the one with the accounts, as `/proc/PID/cgroup` has them: `0::/PATH`.
fn group_paths(file: &Path) -> Vec<String> {
    let text = read(file).unwrap_or_default();
    let mut found = Vec::new();
    for line in lines(&text) {
        let line = String::from_utf8_lossy(line);
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(kinds), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        if kinds.is_empty() || kinds.split(',').any(|kind| kind == "cpuacct") {
            found.push(format!("{kinds}:{path}"));
        }
    }
    found
}

fn usage_ns(sys: &Path, path: &str) -> Option<u64> {
    let (kinds, path) = path.split_once(':')?;
    let below = path.trim_start_matches('/');
    if !kinds.is_empty() {
        let texts = ACCOUNTS.iter().filter_map(|root| read(sys.join(root).join(below).join("cpuacct.usage")).ok());
        return texts.map(|text| crate::text::only(&text)).next().flatten();
    }
    let texts = GROUPS.iter().filter_map(|root| read(sys.join(root).join(below).join("cpu.stat")).ok());
    texts.filter_map(|text| usage_of(&text)).next()
}

fn usage_of(text: &[u8]) -> Option<u64> {
    let line = lines(text).find(|line| line.starts_with(b"usage_usec "))?;
    fields(line).nth(1).and_then(number).map(|usec| usec.saturating_mul(1_000))
}

/// The CPUs that are on, and their time by state, in nanoseconds. Guests are in `user` and in `nice` of the file.
fn cpu_states(text: &[u8], tick_ns: u64) -> (u32, Vec<(String, u64)>) {
    let mut sums = [0u64; STATES.len()];
    let mut cpus = 0;
    for line in lines(text) {
        let mut words = fields(line);
        let is_cpu =
            words.next().and_then(|label| label.strip_prefix(b"cpu")).is_some_and(|rest| number(rest).is_some());
        if is_cpu {
            cpus += 1;
            sums.iter_mut().zip(words).for_each(|(sum, word)| {
                *sum = sum.saturating_add(number(word).unwrap_or(0));
            });
        }
    }
    (cpus, STATES.iter().zip(sums).map(|(name, ticks)| ((*name).into(), ticks.saturating_mul(tick_ns))).collect())
}

fn pressure_some_ns(text: &[u8]) -> Option<u64> {
    let line = lines(text).find(|line| line.starts_with(b"some"))?;
    let total = fields(line).find_map(|field| field.strip_prefix(b"total="))?;
    number(total).map(|usec| usec.saturating_mul(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::tree::Tree;

    const STAT: &str = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 10 1 2 100 3 0 4 5 0 0\ncpu1 20 1 2 100 3 0 4 5 0 0\nctxt 5\n";

    fn stat(pid: u32, name: &str, parent: u32, flags: u32, times: &str) -> String {
        format!("{pid} ({name}) S {parent} 1 1 0 -1 {flags} 1 2 3 4 {times} 20 0 1 0 77 6 7 8\n")
    }

    fn census(tree: &Tree) -> Census {
        let (proc, sys) = (tree.path().join("proc"), tree.path().join("sys"));
        take_census(&CensusOptions { proc, sys, tick_ns: 10_000_000, mark: "NICBENCH_OWNER=1".into() }).unwrap()
    }

    #[test]
    fn times_that_no_counter_holds_stay_at_its_end() {
        let (cpus, states) = cpu_states(b"cpu0 18446744073709551615 1\ncpu1 2 1\n", 10);
        assert_eq!((cpus, states[0].1, states[1].1), (2, u64::MAX, 20));
    }

    #[test]
    fn every_process_is_counted_with_its_ended_children() {
        let tree = Tree::new(&[
            ("proc/stat", STAT),
            ("proc/pressure/cpu", "some avg10=1.20 avg60=4.56 avg300=7.90 total=1000\nfull avg10=0.00 total=0\n"),
            ("proc/2/stat", &stat(2, "kthreadd", 0, 0x0020_0000, "0 1 0 0")),
            ("proc/9/stat", &stat(9, "iperf3", 1, 0, "3 4 5 6")),
            ("proc/9/environ", "HOME=/root\0NICBENCH_OWNER=1\0"),
            ("proc/9/task/9/schedstat", "81000000 5 6\n"),
            ("proc/10/stat", &stat(10, "stress-ng", 1, 0, "30 4 0 0")),
            ("proc/10/environ", "NICBENCH_OWNER=12\0"),
        ]);
        let found = census(&tree);
        assert_eq!((found.cpus, found.pressure_some_ns), (2, Some(1_000_000)));
        assert_eq!(found.states[0], ("user".into(), 300_000_000));
        let told: Vec<_> = found.processes.iter().map(|one| (one.pid, one.kernel, one.marked, one.own_ns)).collect();
        // 7 ticks are 70 to 90 ms: the scheduler's account says which.
        let expected = [(2, true, false, 10_000_000), (9, false, true, 81_000_000), (10, false, false, 340_000_000)];
        assert_eq!(told, expected);
        assert_eq!((found.processes[1].ended_ns, found.processes[1].started), (110_000_000, 77));
    }

    #[test]
    fn threads_that_have_ended_are_in_the_ticks_alone() {
        let tree = Tree::new(&[
            ("proc/stat", STAT),
            ("proc/9/stat", &stat(9, "iperf3", 1, 0, "300 4 0 0")),
            ("proc/9/task/9/schedstat", "81000000 5 6\n"),
        ]);
        assert_eq!(census(&tree).processes[0].own_ns, 3_040_000_000);
    }

    #[test]
    fn a_marked_process_in_a_group_of_its_own_has_that_groups_account() {
        for (line, file, text) in [
            ("0::/machine/libpod-1", "sys/fs/cgroup/machine/libpod-1/cpu.stat", "usage_usec 1500\nuser_usec 1\n"),
            ("2:cpuacct:/libpod-1", "sys/fs/cgroup/cpuacct/libpod-1/cpuacct.usage", "1500000\n"),
        ] {
            let tree = Tree::new(&[
                ("proc/stat", STAT),
                ("proc/self/cgroup", "2:cpuacct:/\n0::/\n"),
                ("proc/9/stat", &stat(9, "sh", 1, 0, "3 4 5 6")),
                ("proc/9/environ", "NICBENCH_OWNER=1\0"),
                ("proc/9/cgroup", &format!("3:memory:/x\n{line}\n")),
                (file, text),
            ]);
            let found = census(&tree);
            assert_eq!(found.groups.len(), 1, "{line}");
            assert_eq!(found.groups[0].usage_ns, 1_500_000);
            assert_eq!(found.processes[0].group.as_deref(), Some(found.groups[0].path.as_str()));
        }
    }

    #[test]
    fn of_this_machine_we_are_one() {
        let asked =
            CensusOptions { proc: "/proc".into(), sys: "/sys".into(), tick_ns: 10_000_000, mark: String::new() };
        let found = take_census(&asked).unwrap();
        assert!(found.processes.iter().any(|one| one.pid == found.monitor && one.parent == found.parent));
    }

    #[test]
    fn where_a_process_ends_before_its_turn_all_are_counted_anew() {
        let parent = stat(7, "sh", 1, 0, "0 0 5 0");
        let tree = Tree::new(&[
            ("proc/stat", STAT),
            ("proc/7/stat", &stat(7, "sh", 1, 0, "0 0 0 0")),
            ("proc/8/environ", ""),
            ("proc/9/stat", &stat(9, "iperf3", 7, 0, "5 0 0 0")),
        ]);
        let proc = tree.path().join("proc");
        let held = proc.join("8/stat");
        assert!(std::process::Command::new("mkfifo").arg(&held).status().unwrap().success());
        let found = std::thread::scope(|scope| {
            scope.spawn(|| {
                // Process 8 is being read: its parent has been, and process 9 has not.
                let mut writing = std::fs::OpenOptions::new().write(true).open(&held).unwrap();
                std::fs::remove_dir_all(proc.join("9")).unwrap();
                std::fs::write(proc.join("7/stat"), &parent).unwrap();
                std::fs::remove_file(&held).unwrap();
                std::fs::write(&held, stat(8, "sleep", 1, 0, "0 0 0 0")).unwrap();
                std::io::Write::write_all(&mut writing, stat(8, "sleep", 1, 0, "0 0 0 0").as_bytes()).unwrap();
            });
            census(&tree)
        });
        let told: Vec<_> = found.processes.iter().map(|one| (one.pid, one.ended_ns)).collect();
        assert_eq!(told, [(7, 50_000_000), (8, 0)]);
    }
}
