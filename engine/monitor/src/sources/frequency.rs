//! The clock of each core, as the kernel measured it: cpufreq's `scaling_cur_freq`, else `/proc/cpuinfo`.

use super::{Moment, Source, SourceOptions, base, entries};
use crate::open_file::OpenFile;
use crate::record::{Gauge, Record};
use crate::text::{fields, lines, number, only};

enum Frequency {
    /// kHz, a file for each CPU.
    Cpufreq(Vec<(OpenFile, Gauge)>),
    /// MHz with three decimals, in the order of the file.
    Cpuinfo(OpenFile, Vec<Gauge>),
}

pub fn open(asked: &SourceOptions, record: &mut Record) -> Result<Box<dyn Source>, String> {
    let release = std::fs::read(asked.proc.join("sys/kernel/osrelease")).unwrap_or_default();
    if is_older(&release, (5, 18)) {
        // arch_freq_get_on_cpu sent an interrupt to each core until then.
        return Err("reading it would interrupt every core on a kernel before 5.18".into());
    }
    let mut files = Vec::new();
    for folder in entries(&asked.sys.join("devices/system/cpu")) {
        let name = base(&folder);
        if name.strip_prefix("cpu").is_some_and(|rest| number(rest.as_bytes()).is_some()) {
            if let Ok(file) = OpenFile::open(&folder.join("cpufreq/scaling_cur_freq")) {
                files.push((file, Gauge::new(record, "frequency_hz", name)));
            }
        }
    }
    if !files.is_empty() {
        return Ok(Box::new(Frequency::Cpufreq(files)));
    }
    let cpuinfo = asked.proc.join("cpuinfo");
    let text = std::fs::read(&cpuinfo).map_err(|error| super::unreadable(&cpuinfo, &error))?;
    let flags = lines(&text).find(|line| line.starts_with(b"flags"));
    if !flags.is_some_and(|line| fields(line).any(|flag| flag == b"aperfmperf")) {
        // What stands there then is the nominal clock, whatever the real one is.
        return Err(
            "the kernel has no counters to measure it by (cpufreq, APERF/MPERF): a virtual machine hides them".into()
        );
    }
    let gauges = lines(&text).filter_map(|line| value(line, b"processor")).filter_map(number);
    let gauges = gauges.map(|cpu| Gauge::new(record, "frequency_hz", format!("cpu{cpu}"))).collect();
    Ok(Box::new(Frequency::Cpuinfo(asked.proc("cpuinfo")?, gauges)))
}

impl Source for Frequency {
    fn sample(&mut self, moment: &mut Moment) -> Result<(), String> {
        match self {
            Self::Cpufreq(files) => {
                for (file, gauge) in files {
                    // A CPU that was switched off has none.
                    let khz = file.read_value(moment.buffer).ok().and_then(only);
                    gauge.put_unsigned(moment.record, khz.and_then(|khz| khz.checked_mul(1000)));
                }
            }
            Self::Cpuinfo(file, gauges) => {
                let text = file.read(moment.buffer).map_err(|error| format!("/proc/cpuinfo: {error}"))?;
                let clocks = lines(text).filter_map(|line| value(line, b"cpu MHz"));
                for (gauge, clock) in gauges.iter().zip(clocks) {
                    gauge.put_unsigned(moment.record, hz(clock));
                }
            }
        }
        Ok(())
    }
}

/// The value of a line of `/proc/cpuinfo`.
fn value<'a>(line: &'a [u8], label: &[u8]) -> Option<&'a [u8]> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    (line[..colon].trim_ascii() == label).then(|| line[colon + 1..].trim_ascii())
}

/// MHz with decimals.
fn hz(mhz: &[u8]) -> Option<u64> {
    let mhz: f64 = std::str::from_utf8(mhz).ok()?.parse().ok()?;
    (mhz.is_finite() && (0.0..1e6).contains(&mhz)).then_some((mhz * 1e6) as u64)
}

/// Whether a kernel's release, as in `6.1.0-18-amd64`, is older than a version; what is no release is not.
pub fn is_older(release: &[u8], than: (u64, u64)) -> bool {
    let mut parts = release.split(|byte| !byte.is_ascii_digit()).map(number);
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(major), Some(minor)) => (major, minor) < than,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::Tree;
    use super::*;

    #[test]
    fn cpufreq_is_taken_where_it_is() {
        let files = [
            ("sys/devices/system/cpu/cpu10/cpufreq/scaling_cur_freq", "2800123\n"),
            ("sys/devices/system/cpu/cpufreq/boost", "1\n"),
        ];
        let mut tree = Tree::new(&files);
        let mut source = tree.open(open).unwrap();
        assert_eq!(tree.sample(&mut *source), [("frequency_hz cpu10".into(), Some(2_800_123_000))]);
    }

    #[test]
    fn cpuinfo_is_believed_only_where_the_kernel_measures() {
        let text = |flag: &str| format!("processor\t: 3\ncpu MHz\t\t: 2100.250\nflags\t\t: fpu {flag} sse\n\n");
        let mut measured = Tree::new(&[("proc/cpuinfo", &text("aperfmperf"))]);
        let mut source = measured.open(open).unwrap();
        assert_eq!(measured.sample(&mut *source), [("frequency_hz cpu3".into(), Some(2_100_250_000))]);
        assert!(Tree::new(&[("proc/cpuinfo", &text(""))]).open(open).is_err());
    }

    #[test]
    fn on_an_old_kernel_no_core_is_interrupted() {
        let files = [
            ("proc/sys/kernel/osrelease", "5.14.0-427.el9\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "1\n"),
        ];
        assert!(Tree::new(&files).open(open).err().unwrap().contains("5.18"));
        assert!(!is_older(b"6.1.0-18-amd64", (5, 18)) && !is_older(b"5.18.0", (5, 18)) && !is_older(b"", (5, 18)));
    }
}
