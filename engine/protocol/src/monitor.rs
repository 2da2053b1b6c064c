//! The conversation with `nicbench-monitor` (`protocol/monitor.md`): what is asked, what it answers, what a sample
//! holds.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::reply::reply_line;
use crate::request::{Head, HelloFields, RenewFields, fields, head, mistyped, refusal};
use crate::{ErrorKind, Refusal};

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub struct MonitorRequest {
    /// Chosen by the controller; its reply repeats it.
    pub id: i64,
    /// What is asked.
    pub command: MonitorCommand,
}

/// The commands.
#[derive(Debug, Clone, PartialEq)]
pub enum MonitorCommand {
    /// Who are you?
    Hello {
        /// The controller's version of the protocol.
        protocol: String,
    },
    /// What is watched, and how often: once per process.
    Configure(MonitorConfigure),
    /// Sample from now on.
    Start,
    /// One sample out of turn.
    Sample,
    /// One sample, then none until `resume`.
    Pause {
        /// Seconds for which the controller will be silent, beyond the lease.
        duration_s: f64,
        /// Samples go on, without the sources for which the kernel interrupts other CPUs.
        only_interrupting: bool,
    },
    /// One sample, which spans the pause; then all sources in turn again.
    Resume,
    /// What this process has cost so far.
    Stats,
    /// Every process and its CPU time, at one moment.
    Census,
    /// From now on note what changes in the networks that `configure` names.
    Watch,
    /// What changed there since `watch`; nothing is noted any more.
    Changes,
    /// Renew the lease, nothing else.
    Renew {
        /// Seconds for which the controller will be silent, beyond the lease.
        duration_s: f64,
    },
    /// The last sample, then exit.
    Close,
}

/// The fields of `configure`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MonitorConfigure {
    /// From one sample to the next: 100 to 60000.
    #[serde(default = "one_second")]
    pub interval_ms: u32,
    /// CPUs on which the monitor may run; empty: wherever the system puts it.
    #[serde(default)]
    pub cpus: Vec<u32>,
    /// Processes whose CPU time is told, with what they started.
    #[serde(default)]
    pub processes: Vec<u32>,
    /// Network namespaces whose interfaces are told beside those of its own.
    #[serde(default)]
    pub namespaces: Vec<NamespaceRequest>,
    /// `NAME=VALUE` in the environment of processes that the controller started; empty: none has it.
    #[serde(default)]
    pub mark: String,
    /// Networks in which `watch` notes what others change.
    #[serde(default)]
    pub watched: Vec<WatchedNetwork>,
}

fn one_second() -> u32 {
    1000
}

/// A network namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceRequest {
    /// Stands before the names of its interfaces.
    pub name: String,
    /// As in `/run/netns/NAME`.
    pub path: String,
}

/// A network in which changes are noted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedNetwork {
    /// Its changes are told under this name.
    pub name: String,
    /// As in `/run/netns/NAME`; `None`: the monitor's own.
    #[serde(default)]
    pub path: Option<String>,
    /// The interfaces that count; empty: all.
    #[serde(default)]
    pub devices: Vec<String>,
}

#[derive(Deserialize)]
struct PauseFields {
    #[serde(default)]
    duration_s: f64,
    #[serde(default)]
    only_interrupting: bool,
}

/// Reads one line.
pub fn parse_monitor(line: &str) -> Result<MonitorRequest, Refusal> {
    let Head { id, name, value } = head(line)?;
    let command = match name.as_str() {
        "hello" => fields::<HelloFields>(value).map(|fields| MonitorCommand::Hello { protocol: fields.protocol }),
        "configure" => fields(value).map(MonitorCommand::Configure),
        "start" => Ok(MonitorCommand::Start),
        "sample" => Ok(MonitorCommand::Sample),
        "pause" => fields::<PauseFields>(value).map(|PauseFields { duration_s, only_interrupting }| {
            MonitorCommand::Pause { duration_s, only_interrupting }
        }),
        "resume" => Ok(MonitorCommand::Resume),
        "stats" => Ok(MonitorCommand::Stats),
        "census" => Ok(MonitorCommand::Census),
        "watch" => Ok(MonitorCommand::Watch),
        "changes" => Ok(MonitorCommand::Changes),
        "renew" => fields::<RenewFields>(value).map(|fields| MonitorCommand::Renew { duration_s: fields.duration_s }),
        "close" => Ok(MonitorCommand::Close),
        _ => {
            let next =
                "use hello, configure, start, sample, pause, resume, stats, census, watch, changes, renew or close";
            return Err(refusal(Some(id), ErrorKind::UnknownCommand, format!("unknown command {name:?}"), next));
        }
    };
    command.map(|command| MonitorRequest { id, command }).map_err(|error| mistyped(id, &name, &error))
}

/// The content of a reply that is not an error.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum MonitorReply {
    /// To `hello`.
    Hello(MonitorHello),
    /// To `configure`.
    Configure(MonitorConfigureReply),
    /// To `start`, `sample`, `pause`, `resume`, `stats` and `close`.
    Cost(Cost),
    /// To `census`.
    Census(Census),
    /// To `changes`.
    Changes(Changes),
    /// To `renew` and `watch`.
    Done {},
}

impl MonitorReply {
    /// The line, without its end.
    pub fn line(&self, id: i64) -> String {
        reply_line(id, self)
    }
}

/// To `hello`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MonitorHello {
    /// The binary's name.
    pub engine: String,
    /// The binary's version.
    pub version: String,
    /// See [`crate::PROTOCOL_VERSION`].
    pub protocol: String,
    /// The sources that it knows.
    pub features: Vec<String>,
    /// The least processor it runs on.
    pub cpu_baseline: String,
    /// Whether it needs nothing of its host but the kernel.
    pub is_static: bool,
}

/// To `configure`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MonitorConfigureReply {
    /// CPUs on which the monitor runs; empty where it was not bound.
    pub cpus: Vec<u32>,
    /// The kernel's tick, in which it counts the times of CPUs and processes.
    pub tick_ns: u64,
    /// Each source, and why it is missing where it is.
    pub sources: Vec<SourceReply>,
    /// The networks in which changes cannot be noted, or not all, and why.
    pub unwatched: Vec<Unwatched>,
}

/// A network in which changes are not noted, or not all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unwatched {
    /// As in `configure`.
    pub network: String,
    /// What is missing.
    pub missing: String,
}

/// What changed between `watch` and `changes`, in the order in which it was seen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// The first ones.
    pub changes: Vec<Change>,
    /// How many more there were.
    pub more: u64,
    /// Networks in which there were more than the kernel kept.
    pub overflowed: Vec<String>,
}

/// One change of a network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// As in `configure`.
    pub network: String,
    /// Of what.
    pub kind: ChangeKind,
    /// What became of it.
    pub action: ChangeAction,
    /// The interface that it is of.
    pub device: Option<String>,
    /// Which one: a prefix, an address, a setting, a table.
    pub what: Option<String>,
    /// Its value before.
    pub before: Option<String>,
    /// Its value afterwards.
    pub after: Option<String>,
    /// Since `watch`; `None`: at some time before `changes`.
    pub after_ns: Option<u64>,
    /// The number of the process that did it, where the kernel tells.
    pub pid: Option<u32>,
    /// Its name, where it could still be seen.
    pub process: Option<String>,
}

/// What was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// An interface, or a property of it.
    Link,
    /// An address of an interface.
    Address,
    /// A route or a next hop.
    Route,
    /// A rule that chooses among tables of routes.
    Rule,
    /// An entry of the neighbour table, or a static one of a bridge's.
    Neighbour,
    /// A queueing discipline or one of its classes.
    Queueing,
    /// A filter or action of traffic control.
    Filter,
    /// The ruleset of nftables.
    Ruleset,
    /// Rules of iptables that are not nftables'.
    Iptables,
    /// An XDP program.
    Xdp,
    /// A tcx program.
    Tcx,
    /// A setting of the kernel (sysctl).
    Setting,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeAction {
    /// It was not there before.
    Added,
    /// It is not there any more.
    Removed,
    /// It was there, and is another now.
    Changed,
}

/// One source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceReply {
    /// As in `hello`'s `features`.
    pub source: String,
    /// Why it tells nothing here; `None` where it does.
    pub missing: Option<String>,
}

/// What the monitor has cost so far, by its own account (getrusage(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// CPU time in user mode and in the kernel.
    pub cpu_ns: u64,
    /// Since it started.
    pub elapsed_ns: u64,
    /// How many there were.
    pub samples: u64,
    /// The most CPU time that one of them took.
    pub maximum_sample_ns: u64,
    /// The most memory that it ever held; `None` where the kernel does not tell.
    pub resident_bytes: Option<u64>,
}

/// Every process of the machine at one moment, with the CPU time that each has used since it began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Census {
    /// Monotonic.
    pub taken_ns: u64,
    /// The monitor's own process.
    pub monitor: u32,
    /// The process that started the monitor.
    pub parent: u32,
    /// CPUs that are on.
    pub cpus: u32,
    /// CPU time since boot by state, all CPUs together: `["user", 12]`. Guests are part of user and nice.
    pub states: Vec<(String, u64)>,
    /// Time since boot in which some task waited for a CPU; `None` where the kernel does not tell.
    pub pressure_some_ns: Option<u64>,
    /// In the order of their numbers.
    pub processes: Vec<CensusProcess>,
    /// Control groups of marked processes that are not the monitor's own.
    pub groups: Vec<CensusGroup>,
}

/// One process, threads included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CensusProcess {
    /// Its number.
    pub pid: u32,
    /// Of its parent.
    pub parent: u32,
    /// In ticks since boot: tells it from a later process of the same number.
    pub started: u64,
    /// The CPU that it last ran on; `None` where the kernel does not tell.
    pub cpu: Option<u32>,
    /// As the kernel has it, at most 15 characters.
    pub name: String,
    /// Whether it is a thread of the kernel.
    pub kernel: bool,
    /// Whether it has ended, and its parent has not waited for it yet. It has no environment any more.
    pub zombie: bool,
    /// Whether its environment has the mark that `configure` names.
    pub marked: bool,
    /// The control group, where it is among `groups`.
    pub group: Option<String>,
    /// CPU time of its own.
    pub own_ns: u64,
    /// CPU time of children that ended and were waited for, and of theirs.
    pub ended_ns: u64,
}

/// What a control group has used, ended processes included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CensusGroup {
    /// As `/proc/PID/cgroup` names it.
    pub path: String,
    /// CPU time.
    pub usage_ns: u64,
}

/// Whether a value belongs to the interval or to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeriesKind {
    /// What was counted over the interval.
    Count,
    /// What was read at its end.
    Gauge,
}

/// What a number in a sample's `values` stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesDeclaration {
    /// From 0, rising.
    pub series: u32,
    /// What is told, its unit at the end.
    pub metric: String,
    /// Of what: a CPU, an interface, a process.
    pub of: String,
    /// Counted or read.
    pub kind: SeriesKind,
}

/// An event that is not a sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum MonitorEvent {
    /// The first line of all.
    Ready {
        /// See [`crate::PROTOCOL_VERSION`].
        protocol: String,
    },
    /// Series that samples will hold from now on.
    Series {
        /// Which.
        series: Vec<SeriesDeclaration>,
    },
    /// A source tells nothing from now on.
    Missing(SourceReply),
}

/// Writes the line of an event `sample` into `line`, without its end. It is written by hand, so that a sample takes no
/// memory.
pub fn sample_line(line: &mut String, values: &[(u32, Option<i64>)], interval_ns: u64, seq: u64, time_ns: u64) {
    line.clear();
    line.push_str(r#"{"event":"sample","values":["#);
    for (index, (series, value)) in values.iter().enumerate() {
        if index > 0 {
            line.push(',');
        }
        // Writing to text does not fail.
        let _ = match value {
            Some(value) => write!(line, "[{series},{value}]"),
            None => write!(line, "[{series},null]"),
        };
    }
    let _ = write!(line, r#"],"interval_ns":{interval_ns},"seq":{seq},"time_ns":{time_ns}}}"#);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_configure_leaves_out_has_the_documented_default() {
        let request = parse_monitor(r#"{"id":1,"command":"configure","colour":"green"}"#).unwrap();
        let expected = MonitorConfigure {
            interval_ms: 1000,
            cpus: vec![],
            processes: vec![],
            namespaces: vec![],
            mark: String::new(),
            watched: vec![],
        };
        assert_eq!(request, MonitorRequest { id: 1, command: MonitorCommand::Configure(expected) });
    }

    #[test]
    fn commands_of_the_other_binary_are_unknown_to_this_one() {
        let refusal = parse_monitor(r#"{"id":2,"command":"drain","duration_s":1}"#).unwrap_err();
        assert_eq!((refusal.id, refusal.error.kind), (Some(2), ErrorKind::UnknownCommand));
    }

    #[test]
    fn a_mistyped_field_is_named() {
        let refusal = parse_monitor(r#"{"id":2,"command":"configure","processes":["one"]}"#).unwrap_err();
        assert_eq!(refusal.error.kind, ErrorKind::BadRequest);
        assert!(refusal.error.message.contains("configure"), "{}", refusal.error.message);
    }

    #[test]
    fn a_sample_is_json_and_says_null_for_the_unknown() {
        let mut line = "what was there before".to_owned();
        sample_line(&mut line, &[(0, Some(12)), (7, None), (8, Some(-3))], 1_000_000_000, 5, 99);
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["values"], serde_json::json!([[0, 12], [7, null], [8, -3]]));
        assert_eq!((&value["event"], &value["seq"]), (&"sample".into(), &5.into()));
        assert_eq!((&value["interval_ns"], &value["time_ns"]), (&1_000_000_000u64.into(), &99.into()));
    }

    #[test]
    fn an_empty_sample_is_json_too() {
        let mut line = String::new();
        sample_line(&mut line, &[], 1, 2, 3);
        assert!(serde_json::from_str::<serde_json::Value>(&line).is_ok(), "{line}");
    }
}
