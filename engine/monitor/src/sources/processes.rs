//! `/proc/PID/stat` (proc(5)): CPU time of the processes asked for and of what they started, threads included.
//!
//! New ones are looked for only when something was started since the last sample. What begins and ends between two
//! samples is not seen.

use std::fs::File;
use std::path::PathBuf;

use super::{Moment, Source, SourceOptions, unreadable};
use crate::open_file::{Buffer, OpenFile};
use crate::record::{Count, Record};
use crate::stat::Stat;
use crate::sys::directory::each_number;

/// At one time; further ones are left out.
const MOST_PROCESSES: usize = 512;

struct Processes {
    proc: PathBuf,
    folder: File,
    tick_ns: u64,
    roots: Vec<u32>,
    ours: Vec<Process>,
    /// Everybody else, sorted.
    others: Vec<u32>,
    listed: Vec<u32>,
    fresh: Vec<(u32, u32)>,
    listing: Vec<u8>,
    forks: Option<u64>,
}

struct Process {
    pid: u32,
    name: Box<[u8]>,
    file: OpenFile,
    user: Count,
    system: Count,
}

pub fn open(asked: &SourceOptions, _: &mut Record) -> Result<Box<dyn Source>, String> {
    if asked.processes.is_empty() {
        return Err("no process was asked for".into());
    }
    Ok(Box::new(Processes {
        proc: asked.proc.clone(),
        folder: File::open(&asked.proc).map_err(|error| unreadable(&asked.proc, &error))?,
        tick_ns: asked.tick_ns,
        roots: asked.processes.clone(),
        ours: vec![],
        others: vec![],
        listed: vec![],
        fresh: vec![],
        listing: vec![0; 32 << 10],
        forks: None,
    }))
}

impl Source for Processes {
    fn sample(&mut self, moment: &mut Moment) -> Result<(), String> {
        // Read before the list: a process that starts meanwhile is found at the next sample.
        if moment.forks.is_none() || moment.forks != self.forks {
            self.look(moment).map_err(|error| unreadable(&self.proc, &error))?;
            self.forks = moment.forks;
        }
        let tick_ns = self.tick_ns;
        self.ours.retain_mut(|process| process.put(moment, tick_ns));
        Ok(())
    }
}

impl Processes {
    /// Finds the children of ours among the processes that were not there before.
    fn look(&mut self, moment: &mut Moment) -> std::io::Result<()> {
        let Self { listed, listing, .. } = self;
        listed.clear();
        each_number(&self.folder, listing, |pid| listed.push(pid))?;
        listed.sort_unstable();
        self.others.retain(|pid| listed.binary_search(pid).is_ok());
        self.fresh.clear();
        for index in 0..self.listed.len() {
            let pid = self.listed[index];
            if self.others.binary_search(&pid).is_ok() || self.ours.iter().any(|process| process.pid == pid) {
                continue;
            }
            if let Some(parent) = self.parent(pid, moment.buffer) {
                self.fresh.push((pid, parent));
            }
        }
        self.adopt(moment);
        self.others.extend(self.fresh.iter().map(|(pid, _)| *pid));
        self.others.sort_unstable();
        Ok(())
    }

    /// A parent may stand behind its child in the list: until nobody is found any more.
    fn adopt(&mut self, moment: &mut Moment) {
        loop {
            let ours = |pid: &u32| self.roots.contains(pid) || self.ours.iter().any(|process| process.pid == *pid);
            let Some(place) = self.fresh.iter().position(|(pid, parent)| ours(pid) || ours(parent)) else { return };
            let (pid, _) = self.fresh.swap_remove(place);
            if self.ours.len() < MOST_PROCESSES {
                self.ours.extend(self.process(pid, moment));
            }
        }
    }

    fn parent(&self, pid: u32, buffer: &mut Buffer) -> Option<u32> {
        let file = OpenFile::open(&self.proc.join(format!("{pid}/stat"))).ok()?;
        Stat::of(file.read_value(buffer).ok()?).map(|stat| stat.parent)
    }

    fn process(&self, pid: u32, moment: &mut Moment) -> Option<Process> {
        let file = OpenFile::open(&self.proc.join(format!("{pid}/stat"))).ok()?;
        let name: Box<[u8]> = Stat::of(file.read_value(moment.buffer).ok()?)?.name.into();
        let (user, system) = declare(pid, &name, moment.record);
        Some(Process { pid, name, file, user, system })
    }
}

fn declare(pid: u32, name: &[u8], record: &mut Record) -> (Count, Count) {
    let of = format!("{pid} {}", crate::text::name(name));
    (Count::new(record, "process_user_ns", of.clone()), Count::new(record, "process_system_ns", of))
}

impl Process {
    /// False once it has ended.
    fn put(&mut self, moment: &mut Moment, tick_ns: u64) -> bool {
        let Some(stat) = self.file.read_value(moment.buffer).ok().and_then(Stat::of) else { return false };
        if *stat.name != *self.name {
            // It became another program (execve): what it does from now on has that one's name.
            self.name = stat.name.into();
            (self.user, self.system) = declare(self.pid, &self.name, moment.record);
        }
        self.user.put(moment.record, Some(stat.user_ticks.saturating_mul(tick_ns)));
        self.system.put(moment.record, Some(stat.system_ticks.saturating_mul(tick_ns)));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::{Tree, of};
    use super::*;

    fn stat(pid: u32, name: &str, parent: u32, user: u32) -> String {
        format!("{pid} ({name}) S {parent} 1 1 0 -1 4194560 1 2 3 4 {user} 7 0 0 20 0 1 0 5 6 7 8\n")
    }

    #[test]
    fn children_and_their_children_are_ours_and_nobody_else_is() {
        let files = [
            ("proc/100/stat", stat(100, "nicbench", 1, 10)),
            ("proc/90/stat", stat(90, "engine (x)", 95, 20)),
            ("proc/95/stat", stat(95, "wrapper", 100, 0)),
            ("proc/50/stat", stat(50, "other", 1, 0)),
        ];
        let mut tree = Tree::new(&files.each_ref().map(|(path, text)| (*path, text.as_str())));
        tree.forks = Some(4);
        let asked = SourceOptions { processes: vec![100], ..tree.asked() };
        let mut source = tree.open_asked(open, &asked).unwrap();
        tree.sample(&mut *source);
        tree.write("proc/90/stat", stat(90, "engine (x)", 95, 23));
        let second = tree.sample(&mut *source);
        assert_eq!(of(&second, "process_user_ns 90 engine (x)"), Some(30_000_000));
        assert_eq!((of(&second, "process_system_ns 100 nicbench"), second.len()), (Some(0), 6));
    }

    #[test]
    fn what_is_started_later_is_found_when_something_was_started() {
        let mut tree = Tree::new(&[("proc/100/stat", &stat(100, "nicbench", 1, 10))]);
        tree.forks = Some(4);
        let asked = SourceOptions { processes: vec![100], ..tree.asked() };
        let mut source = tree.open_asked(open, &asked).unwrap();
        tree.sample(&mut *source);
        tree.write("proc/101/stat", stat(101, "setpriv", 100, 0));
        assert_eq!(tree.sample(&mut *source).len(), 2);
        tree.forks = Some(5);
        tree.sample(&mut *source);
        tree.write("proc/101/stat", stat(101, "engine", 100, 1));
        tree.sample(&mut *source);
        tree.write("proc/101/stat", stat(101, "engine", 100, 3));
        assert_eq!(of(&tree.sample(&mut *source), "process_user_ns 101 engine"), Some(20_000_000));
    }

    #[test]
    fn a_process_that_has_ended_is_told_no_more() {
        let mut tree = Tree::new(&[("proc/100/stat", &stat(100, "nicbench", 1, 10))]);
        let asked = SourceOptions { processes: vec![100], ..tree.asked() };
        let mut source = tree.open_asked(open, &asked).unwrap();
        tree.sample(&mut *source);
        tree.write("proc/100/stat", "");
        assert!(tree.sample(&mut *source).is_empty());
    }
}
