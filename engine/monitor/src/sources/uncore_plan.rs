//! Which counters outside the cores tell memory traffic and traffic between sockets, from what the kernel shows of its
//! PMUs.
//!
//! Names and codes are those of the kernel: the `events` and `format` folders of each PMU where it has them, else
//! `tools/perf/pmu-events/arch/x86` (`amdzen1` to `amdzen4`, `skylakex` to `sapphirerapids`).

use std::path::Path;

use super::{base, entries};
use crate::text::{hexadecimal, lines, list, number};

/// One counter to be opened: perf_event_open(2)'s `type` and `config`, on one CPU of a socket.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedCounter {
    pub metric: &'static str,
    pub socket: u32,
    pub cpu: u32,
    pub kind: u32,
    pub config: u64,
    /// What one count stands for, in the unit of the metric.
    pub scale: f64,
}

/// An event by the words of its PMU's format, and what one count stands for.
type Event = (&'static str, &'static [(&'static str, u64)], f64);

/// Intel names these in `events`; a PMU has the first of each direction that it knows.
const READS: [&str; 3] = ["cas_count_read", "data_read", "data_reads"];
const WRITES: [&str; 3] = ["cas_count_write", "data_write", "data_writes"];
/// From Granite Rapids on a controller has two sub-channels.
const SUBCHANNELS: [&str; 2] = ["_sch0", "_sch1"];
/// A line of cache, by each controller's CAS command (amdzen4/memory-controller.json).
const UMC: [Event; 2] = [
    ("memory_read_bytes", &[("event", 0x0a), ("rdwrmask", 1)], 64.0),
    ("memory_written_bytes", &[("event", 0x0a), ("rdwrmask", 2)], 64.0),
];
/// Both directions, of up to eight channels (amdzen1/data-fabric.json, the same to amdzen3).
const FABRIC_CHANNELS: [u64; 8] = [0x07, 0x47, 0x87, 0xc7, 0x107, 0x147, 0x187, 0x1c7];
/// Outbound, of up to four links, 32 bytes each.
const FABRIC_LINKS: [u64; 4] = [0x7c7, 0x807, 0x847, 0x887];
/// UNC_UPI_TxL_FLITS counts slots, of which a flit has three. Nine slots of data (ALL_DATA) carry a line of 64 bytes;
/// with NON_DATA, those of requests, answers and credits, they are all that the link was used for.
const UPI: [Event; 3] = [
    ("link_transmit_bytes", &[("event", 0x02), ("umask", 0x0f)], 64.0 / 9.0),
    ("link_used_flits", &[("event", 0x02), ("umask", 0x0f)], 1.0 / 3.0),
    ("link_used_flits", &[("event", 0x02), ("umask", 0x97)], 1.0 / 3.0),
];
/// UNC_UPI_CLOCKTICKS: in one, every lane carries 8 bits.
const UPI_CLOCK: (&str, &[(&str, u64)]) = ("link_possible_flits", &[("event", 0x01), ("umask", 0)]);
const BITS_IN_A_TICK: f64 = 8.0;
const BITS_OF_A_FLIT: f64 = 192.0;

/// Counters of memory traffic.
pub fn memory(sys: &Path, cpuinfo: &[u8]) -> Vec<PlannedCounter> {
    let pmus = pmus(sys);
    let of = |prefix: &str, free: bool| {
        let named = |pmu: &&Pmu| pmu.name.starts_with(prefix) && pmu.name.contains("free_running") == free;
        pmus.iter().filter(named).flat_map(Pmu::intel_memory).collect::<Vec<_>>()
    };
    let found = of("uncore_imc", false);
    let found = if found.is_empty() { of("uncore_imc", true) } else { found };
    if !found.is_empty() {
        return found;
    }
    let umc = pmus.iter().filter(|pmu| pmu.name.starts_with("amd_umc"));
    let found: Vec<PlannedCounter> = umc.flat_map(|pmu| UMC.iter().flat_map(|event| pmu.plan_event(event))).collect();
    if found.is_empty() { fabric(&pmus, cpuinfo, "memory_bytes", &FABRIC_CHANNELS, 0x38, 64.0) } else { found }
}

/// Counters of traffic between sockets.
pub fn links(sys: &Path, cpuinfo: &[u8]) -> Vec<PlannedCounter> {
    let pmus = pmus(sys);
    let capacity = upi_lanes(cpuinfo).map(|lanes| {
        let (metric, terms) = UPI_CLOCK;
        (metric, terms, lanes * BITS_IN_A_TICK / BITS_OF_A_FLIT)
    });
    let events: Vec<Event> = UPI.into_iter().chain(capacity).collect();
    let upi: Vec<PlannedCounter> = pmus
        .iter()
        .filter(|pmu| pmu.name.starts_with("uncore_upi_"))
        .flat_map(|pmu| events.iter().flat_map(|event| pmu.plan_event(event)))
        .collect();
    if upi.is_empty() { fabric(&pmus, cpuinfo, "link_transmit_bytes", &FABRIC_LINKS, 0x02, 32.0) } else { upi }
}

fn fabric(
    pmus: &[Pmu],
    cpuinfo: &[u8],
    metric: &'static str,
    codes: &[u64],
    umask: u64,
    scale: f64,
) -> Vec<PlannedCounter> {
    // Other families give these codes another meaning.
    if !is_zen_1_to_3(cpuinfo) {
        return Vec::new();
    }
    let fabrics = pmus.iter().filter(|pmu| pmu.name == "amd_df");
    let config = |pmu: &Pmu, code| Some(pmu.field("event", code)? | pmu.field("umask", umask)?);
    fabrics
        .flat_map(|pmu| codes.iter().flat_map(move |code| pmu.plan_counter(metric, config(pmu, *code), scale)))
        .collect()
}

/// Family 17h, and of 19h the models that are Zen 3.
fn is_zen_1_to_3(cpuinfo: &[u8]) -> bool {
    match processor(cpuinfo) {
        (Some(b"AuthenticAMD" | b"HygonGenuine"), Some(0x17 | 0x18), _) => true,
        (Some(b"AuthenticAMD"), Some(0x19), Some(model)) => matches!(model, 0x00..=0x0f | 0x20..=0x5f),
        _ => false,
    }
}

/// The lanes of a link in one direction; `None` where it is not known of this processor.
fn upi_lanes(cpuinfo: &[u8]) -> Option<f64> {
    match processor(cpuinfo) {
        // Skylake to Cooper Lake, and Ice Lake: UPI 1.
        (Some(b"GenuineIntel"), Some(6), Some(0x55 | 0x6a | 0x6c)) => Some(20.0),
        // Sapphire, Emerald and Granite Rapids, Sierra Forest: UPI 2.
        (Some(b"GenuineIntel"), Some(6), Some(0x8f | 0xcf | 0xad | 0xae | 0xaf)) => Some(24.0),
        _ => None,
    }
}

/// Vendor, family and model.
fn processor(cpuinfo: &[u8]) -> (Option<&[u8]>, Option<u64>, Option<u64>) {
    let value = |label: &[u8]| {
        let line = lines(cpuinfo)
            .find(|line| line.split(|byte| *byte == b':').next().is_some_and(|name| name.trim_ascii() == label))?;
        line.split(|byte| *byte == b':').nth(1).map(<[u8]>::trim_ascii)
    };
    (value(b"vendor_id"), value(b"cpu family").and_then(number), value(b"model").and_then(number))
}

struct Pmu {
    name: String,
    kind: u32,
    /// A CPU of each socket, and the socket.
    cpus: Vec<(u32, u32)>,
    folder: std::path::PathBuf,
}

fn pmus(sys: &Path) -> Vec<Pmu> {
    let folders = entries(&sys.join("bus/event_source/devices"));
    folders.into_iter().filter_map(|folder| pmu(sys, folder)).collect()
}

fn pmu(sys: &Path, folder: std::path::PathBuf) -> Option<Pmu> {
    let kind = u32::try_from(number(std::fs::read(folder.join("type")).ok()?.trim_ascii())?).ok()?;
    let cpus = list(&std::fs::read(folder.join("cpumask")).ok()?);
    let socket = |cpu: u32| {
        let path = sys.join(format!("devices/system/cpu/cpu{cpu}/topology/physical_package_id"));
        std::fs::read(path)
            .ok()
            .and_then(|text| number(text.trim_ascii()))
            .and_then(|socket| u32::try_from(socket).ok())
    };
    let cpus = cpus.into_iter().take(64).map(|cpu| (cpu, socket(cpu).unwrap_or(0))).collect();
    Some(Pmu { name: base(&folder), kind, cpus, folder })
}

impl Pmu {
    /// What its `events` folder names.
    fn intel_memory(&self) -> Vec<PlannedCounter> {
        let one = |metric, names: &[&str]| {
            let named = names.iter().find_map(|name| {
                let whole = self.event(name).map(|event| vec![event]);
                whole.or_else(|| SUBCHANNELS.iter().map(|part| self.event(&format!("{name}{part}"))).collect())
            });
            let events = named.unwrap_or_default();
            events
                .into_iter()
                .flat_map(|(config, bytes)| self.plan_counter(metric, Some(config), bytes))
                .collect::<Vec<_>>()
        };
        [one("memory_read_bytes", &READS), one("memory_written_bytes", &WRITES)].concat()
    }

    /// An event that the kernel describes: its config, and the bytes of one count.
    fn event(&self, name: &str) -> Option<(u64, f64)> {
        let file = |suffix: &str| std::fs::read_to_string(self.folder.join(format!("events/{name}{suffix}"))).ok();
        let mut config = 0;
        for term in file("")?.trim().split(',') {
            let (field, value) = term.split_once('=')?;
            config |= self.field(
                field,
                hexadecimal(value.as_bytes())
                    .filter(|_| value.starts_with("0x"))
                    .or_else(|| number(value.as_bytes()))?,
            )?;
        }
        let unit = match file(".unit")?.trim() {
            "MiB" => 1024.0 * 1024.0,
            "Bytes" => 1.0,
            _ => return None,
        };
        let scale: f64 = file(".scale")?.trim().parse().ok()?;
        (scale.is_finite() && scale > 0.0).then_some((config, scale * unit))
    }

    fn plan_event(&self, (metric, terms, scale): &Event) -> Vec<PlannedCounter> {
        let config = terms.iter().try_fold(0, |config, (name, value)| Some(config | self.field(name, *value)?));
        self.plan_counter(metric, config, *scale)
    }

    fn plan_counter(&self, metric: &'static str, config: Option<u64>, scale: f64) -> Vec<PlannedCounter> {
        let Some(config) = config else { return Vec::new() };
        let on = |&(cpu, socket)| PlannedCounter { metric, socket, cpu, kind: self.kind, config, scale };
        self.cpus.iter().map(on).collect()
    }

    /// `value` in the bits that the PMU's format gives to a field, as in `config:0-7,32-35`; `None` where it does not
    /// fit.
    fn field(&self, name: &str, value: u64) -> Option<u64> {
        let format = std::fs::read_to_string(self.folder.join("format").join(name)).ok()?;
        let bits = list(format.trim().strip_prefix("config:")?.as_bytes());
        let (mut config, mut left) = (0u64, value);
        for bit in bits.into_iter().filter(|bit| *bit < 64) {
            config |= (left & 1) << bit;
            left >>= 1;
        }
        (left == 0).then_some(config)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::Tree;
    use super::*;

    const DEVICES: &str = "sys/bus/event_source/devices";
    const ZEN2: &[u8] = b"processor : 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 23\nmodel\t\t: 49\nmodel name\t: x\n";

    fn add(tree: &Tree, device: &str, files: &[(&str, &str)]) {
        files.iter().for_each(|(file, text)| tree.write(&format!("{DEVICES}/{device}/{file}"), text));
    }

    fn intel() -> Tree {
        let tree = Tree::new(&[("sys/devices/system/cpu/cpu28/topology/physical_package_id", "1\n")]);
        let imc = [
            ("type", "14\n"),
            ("cpumask", "0,28\n"),
            ("format/event", "config:0-7\n"),
            ("format/umask", "config:8-15\n"),
            ("events/cas_count_read", "event=0x04,umask=0x03\n"),
            ("events/cas_count_read.scale", "6.103515625e-5\n"),
            ("events/cas_count_read.unit", "MiB\n"),
            ("events/cas_count_write", "event=0x04,umask=0x0c\n"),
            ("events/cas_count_write.scale", "6.103515625e-5\n"),
            ("events/cas_count_write.unit", "MiB\n"),
        ];
        add(&tree, "uncore_imc_0", &imc);
        let upi = [
            ("type", "20\n"),
            ("cpumask", "0\n"),
            ("format/event", "config:0-7\n"),
            ("format/umask", "config:8-15,32-55\n"),
        ];
        add(&tree, "uncore_upi_0", &upi);
        add(&tree, "uncore_imc_free_running_0", &imc);
        tree
    }

    #[test]
    fn an_intel_server_counts_lines_of_each_controller_and_socket() {
        let tree = intel();
        let planned = memory(&tree.path().join("sys"), b"");
        let one = |metric, socket, cpu, config| PlannedCounter { metric, socket, cpu, kind: 14, config, scale: 64.0 };
        let expected = [
            one("memory_read_bytes", 0, 0, 0x0304),
            one("memory_read_bytes", 1, 28, 0x0304),
            one("memory_written_bytes", 0, 0, 0x0c04),
            one("memory_written_bytes", 1, 28, 0x0c04),
        ];
        assert_eq!(planned, expected);
    }

    #[test]
    fn a_link_of_intel_tells_its_use_where_its_width_is_known() {
        let tree = intel();
        let planned = |cpuinfo: &str| {
            let links = links(&tree.path().join("sys"), cpuinfo.as_bytes());
            assert!(links.iter().all(|one| one.kind == 20));
            links.into_iter().map(|one| (one.metric, one.config, (one.scale * 18.0).round())).collect::<Vec<_>>()
        };
        let of_model = |model: u32| format!("vendor_id : GenuineIntel\ncpu family : 6\nmodel : {model}\n");
        let used = [
            ("link_transmit_bytes", 0x0f02, 128.0),
            ("link_used_flits", 0x0f02, 6.0),
            ("link_used_flits", 0x9702, 6.0),
        ];
        assert_eq!(planned(&of_model(1)), used);
        assert_eq!(planned(&of_model(0x55))[3], ("link_possible_flits", 0x01, 15.0), "5 flits in 6 ticks");
        assert_eq!(planned(&of_model(0x8f))[3], ("link_possible_flits", 0x01, 18.0), "a flit in each tick");
    }

    #[test]
    fn zen_2_counts_by_the_data_fabric_whose_event_is_split() {
        let tree = Tree::new(&[]);
        let df = [
            ("type", "12\n"),
            ("cpumask", "0\n"),
            ("format/event", "config:0-7,32-35,59-60\n"),
            ("format/umask", "config:8-15\n"),
        ];
        add(&tree, "amd_df", &df);
        let sys = tree.path().join("sys");
        let planned = memory(&sys, ZEN2);
        assert_eq!((planned.len(), planned[0].config, planned[4].config), (8, 0x3807, 0x1_0000_3807));
        assert_eq!(links(&sys, ZEN2)[0].config, 0x7_0000_02c7);
        let zen4 = String::from_utf8_lossy(ZEN2).replace("23", "25").replace("49", "17");
        assert!(memory(&sys, zen4.as_bytes()).is_empty(), "the codes mean something else there");
    }

    #[test]
    fn zen_4_counts_by_its_memory_controllers() {
        let tree = Tree::new(&[]);
        let umc = [
            ("type", "30\n"),
            ("cpumask", "0\n"),
            ("format/event", "config:0-7\n"),
            ("format/rdwrmask", "config:8-9\n"),
        ];
        add(&tree, "amd_umc_0", &umc);
        let planned = memory(&tree.path().join("sys"), b"");
        assert_eq!(planned.iter().map(|one| one.config).collect::<Vec<_>>(), [0x010a, 0x020a]);
    }

    #[test]
    fn broken_descriptions_plan_nothing() {
        for (file, text) in [
            ("type", "x"),
            ("cpumask", ""),
            ("events/cas_count_read.unit", "furlong"),
            ("format/umask", "config9:1"),
            ("events/cas_count_read", "event"),
            ("events/cas_count_read.scale", "-1"),
            ("format/event", "config:0"),
        ] {
            let tree = intel();
            tree.write(&format!("{DEVICES}/uncore_imc_0/{file}"), text);
            tree.write(&format!("{DEVICES}/uncore_imc_free_running_0/{file}"), text);
            let planned = memory(&tree.path().join("sys"), b"");
            assert!(planned.iter().all(|one| one.metric != "memory_read_bytes"), "{file}: {planned:?}");
        }
    }
}
