//! What is sampled: each source is one file. What a machine lacks is missing with a reason, never an error.

mod cpu;
mod disks;
mod frequency;
mod interrupts;
mod memory;
mod memory_traffic;
mod network;
mod per_cpu;
mod pressure;
mod processes;
mod softirqs;
mod softnet;
mod temperatures;
mod uncore;
mod uncore_plan;

use std::io;
use std::path::{Path, PathBuf};

use nicbench_protocol::NamespaceRequest;

use crate::open_file::{Buffer, OpenFile};
use crate::record::Record;

/// Where everything is read from, and what the controller asked for.
#[derive(Debug, Clone)]
pub struct SourceOptions {
    /// `/proc`, or a tree like it.
    pub proc: PathBuf,
    /// `/sys`, or a tree like it.
    pub sys: PathBuf,
    /// Processes to tell of, with what they started.
    pub processes: Vec<u32>,
    /// Beside our own.
    pub namespaces: Vec<NamespaceRequest>,
    /// The kernel's tick.
    pub tick_ns: u64,
}

impl SourceOptions {
    /// This machine, and nothing of processes or namespaces.
    pub fn here() -> Self {
        let (proc, sys) = ("/proc".into(), "/sys".into());
        Self { proc, sys, processes: vec![], namespaces: vec![], tick_ns: crate::sys::clock::tick_ns() }
    }

    fn proc(&self, path: &str) -> Result<OpenFile, String> {
        open(&self.proc.join(path))
    }
}

/// What sources share while a sample is taken.
pub struct Moment<'a> {
    /// Scratch.
    pub buffer: &'a mut Buffer,
    /// Where values go.
    pub record: &'a mut Record,
    /// Monotonic.
    pub now_ns: u64,
    /// Processes and threads started since boot: whether any can be new.
    pub forks: Option<u64>,
}

/// One source.
pub trait Source {
    /// Puts its values; the reason where it can tell nothing any more.
    fn sample(&mut self, moment: &mut Moment) -> Result<(), String>;

    /// Whether the kernel interrupts other CPUs to read it.
    fn interrupts_others(&self) -> bool {
        false
    }
}

type Open = fn(&SourceOptions, &mut Record) -> Result<Box<dyn Source>, String>;

/// In the order in which they are read: `cpu` comes first, for it tells `processes` whether there can be new ones.
pub const SOURCES: [(&str, Open); 14] = [
    ("cpu", cpu::open),
    ("processes", processes::open),
    ("interrupts", interrupts::open),
    ("softirqs", softirqs::open),
    ("softnet", softnet::open),
    ("network", network::open),
    ("disks", disks::open),
    ("memory", memory::open),
    ("pressure", pressure::open),
    ("frequency", frequency::open),
    ("temperatures", temperatures::open),
    ("memory_bandwidth", memory_traffic::open),
    ("uncore_memory", uncore::open_memory),
    ("uncore_links", uncore::open_links),
];

fn open(path: &Path) -> Result<OpenFile, String> {
    OpenFile::open(path).map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// Entries of a folder in the order of their names; none where there is no such folder.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    found.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
    found
}

/// The last part of a path.
fn base(path: &Path) -> String {
    path.file_name().map(|name| crate::text::name(name.as_encoded_bytes())).unwrap_or_default()
}

#[cfg(test)]
pub mod tree;
