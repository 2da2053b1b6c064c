//! A tree of files like /proc and /sys for one test, and samples of it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Moment, Open, Source, SourceOptions};
use crate::open_file::Buffer;
use crate::record::Record;

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Removed at the end of its test.
pub struct Tree {
    folder: PathBuf,
    buffer: Buffer,
    record: Record,
    names: Vec<String>,
    now_ns: u64,
    pub forks: Option<u64>,
}

impl Tree {
    pub fn new(files: &[(&str, &str)]) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("nicbench-monitor-{}-{number}", std::process::id()));
        let (buffer, record) = (Buffer::default(), Record::default());
        let tree = Self { folder, buffer, record, names: vec![], now_ns: 0, forks: None };
        files.iter().for_each(|(path, text)| tree.write(path, text));
        tree
    }

    /// In place, as the kernel's files change: an open one shows the new content.
    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn path(&self) -> &Path {
        &self.folder
    }

    pub fn asked(&self) -> SourceOptions {
        let (proc, sys) = (self.folder.join("proc"), self.folder.join("sys"));
        std::fs::create_dir_all(&proc).unwrap();
        SourceOptions { proc, sys, processes: vec![], namespaces: vec![], tick_ns: 10_000_000 }
    }

    pub fn open(&mut self, open: Open) -> Result<Box<dyn Source>, String> {
        open(&self.asked(), &mut self.record)
    }

    pub fn open_asked(&mut self, open: Open, asked: &SourceOptions) -> Result<Box<dyn Source>, String> {
        open(asked, &mut self.record)
    }

    /// One sample, 1 s after the one before, as `metric of` and value.
    pub fn sample(&mut self, source: &mut dyn Source) -> Vec<(String, Option<i64>)> {
        self.try_sample(source).unwrap()
    }

    pub fn try_sample(&mut self, source: &mut dyn Source) -> Result<Vec<(String, Option<i64>)>, String> {
        self.record.clear();
        self.now_ns += 1_000_000_000;
        let Self { buffer, record, now_ns, forks, .. } = self;
        source.sample(&mut Moment { buffer, record, now_ns: *now_ns, forks: *forks })?;
        let fresh = self.record.take_new_series();
        self.names.extend(fresh.iter().map(|series| format!("{} {}", series.metric, series.of).trim().to_owned()));
        Ok(self.record.values().iter().map(|(series, value)| (self.names[*series as usize].clone(), *value)).collect())
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The value of one series; panics where the sample does not hold it.
pub fn of(sample: &[(String, Option<i64>)], name: &str) -> Option<i64> {
    sample.iter().find(|(each, _)| each == name).unwrap_or_else(|| panic!("no {name} in {sample:?}")).1
}
