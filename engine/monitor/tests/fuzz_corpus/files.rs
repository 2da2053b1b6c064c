//! Any bytes as files of /proc and /sys: a source says what is missing, and no sample holds what it cannot.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use nicbench_monitor::census::{CensusOptions, take_census};
use nicbench_monitor::sampler::Sampler;
use nicbench_monitor::sources::SourceOptions;
use nicbench_protocol::SeriesKind;

/// Between two files, and between two samples.
const NEXT_FILE: u8 = 0x1E;
const NEXT_SAMPLE: u8 = 0x1D;
const MOST_SAMPLES: usize = 4;
const TICK_NS: u64 = 10_000_000;
/// The first byte of a file's bytes chooses one of these. Without `bus/event_source`: nothing is asked of real counters.
const FILES: [&str; 29] = [
    "proc/stat",
    "proc/interrupts",
    "proc/softirqs",
    "proc/net/softnet_stat",
    "proc/net/dev",
    "proc/diskstats",
    "proc/meminfo",
    "proc/pressure/cpu",
    "proc/pressure/io",
    "proc/pressure/memory",
    "proc/cpuinfo",
    "proc/sys/kernel/osrelease",
    "proc/7/stat",
    "proc/7/task/7/schedstat",
    "proc/7/environ",
    "proc/7/cgroup",
    "proc/8/stat",
    "proc/self/cgroup",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq",
    "sys/class/hwmon/hwmon0/name",
    "sys/class/hwmon/hwmon0/temp1_input",
    "sys/class/hwmon/hwmon0/temp1_label",
    "sys/class/thermal/thermal_zone0/type",
    "sys/class/thermal/thermal_zone0/temp",
    "sys/fs/resctrl/mon_data/mon_L3_00/mbm_total_bytes",
    "sys/fs/resctrl/mon_data/mon_L3_00/mbm_local_bytes",
    "sys/fs/resctrl/mon_data/mon_L3_00/llc_occupancy",
    "sys/fs/cgroup/a/cpu.stat",
    "sys/block/sda/size",
];

/// Samples the files that `input` describes.
pub fn judge(input: &[u8]) {
    let folder = folder();
    let mut samples = input.split(|byte| *byte == NEXT_SAMPLE).take(MOST_SAMPLES);
    FILES.iter().for_each(|name| drop(fs::remove_file(folder.join(name))));
    write_files(&folder, samples.next().unwrap_or_default());
    let (proc, sys) = (folder.join("proc"), folder.join("sys"));
    let asked = SourceOptions {
        proc: proc.clone(),
        sys: sys.clone(),
        processes: vec![7, 9],
        namespaces: vec![],
        tick_ns: TICK_NS,
    };
    let (mut sampler, _) = Sampler::open(&asked);
    let mut kinds = HashMap::new();
    sample(&mut sampler, &mut kinds);
    for files in samples {
        write_files(&folder, files);
        sample(&mut sampler, &mut kinds);
    }
    if let Ok(census) = take_census(&CensusOptions { proc, sys, tick_ns: TICK_NS, mark: "mark=1".into() }) {
        assert!(census.processes.len() <= 2, "{census:?}");
        serde_json::to_string(&census).expect("a census is plain data");
    }
}

fn write_files(folder: &Path, files: &[u8]) {
    for file in files.split(|byte| *byte == NEXT_FILE) {
        let Some((which, content)) = file.split_first() else { continue };
        fs::write(folder.join(FILES[usize::from(*which) % FILES.len()]), content).expect("a file in memory");
    }
}

fn sample(sampler: &mut Sampler, kinds: &mut HashMap<u32, SeriesKind>) {
    sampler.sample();
    for series in sampler.record.take_new_series() {
        assert!(!series.of.chars().any(char::is_control), "{series:?}");
        assert!(kinds.insert(series.series, series.kind).is_none(), "{series:?} is told twice");
    }
    for (series, value) in sampler.record.values() {
        let kind = kinds.get(series).expect("a series is told before its values");
        assert!(*kind != SeriesKind::Count || value.is_none_or(|value| value >= 0), "{series} grew by {value:?}");
    }
}

/// One for this process, in memory where that can be.
fn folder() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    let parent = if memory.is_dir() { memory } else { std::env::temp_dir() };
    let folder = parent.join(format!("nicbench-fuzz-{}", std::process::id()));
    for name in FILES {
        fs::create_dir_all(folder.join(name).parent().expect("a folder")).expect("a folder in memory");
    }
    folder
}

/// Removes the files of this process.
pub fn clean() {
    let _ = fs::remove_dir_all(folder());
}
