//! Replies and events, which the engine writes.

use serde::{Deserialize, Serialize};

use crate::stamps::StampClockReply;
use crate::{
    CapturesReply, ControlReply, ErrorReport, HostsReply, LoadReply, NeighboursReply, PingReply, Reading, TallyReply,
};

/// The content of a reply that is not an error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Reply {
    /// The reply to `hello`.
    Hello(HelloReply),
    /// The reply to `configure`.
    Configure(ConfigureReply),
    /// The reply to `drain`.
    Reading(Box<Reading>),
    /// The reply to `start`.
    Start(StartReply),
    /// The reply to `settle`.
    Late(LateReply),
    /// The reply to `sent`.
    Sent(SentReply),
    /// The reply to `clock`.
    Clock(ClockTimeReply),
    /// The reply to `stats`.
    Stats(StatsReply),
    /// The reply to `load`.
    Load(LoadReply),
    /// The reply to `control`.
    Control(ControlReply),
    /// The reply to `tally`.
    Tally(Box<TallyReply>),
    /// The reply to `capture`.
    Captures(CapturesReply),
    /// The reply to `hosts`.
    Hosts(HostsReply),
    /// The reply to `neighbours`.
    Neighbours(NeighboursReply),
    /// The reply to `ping`.
    Ping(PingReply),
    /// The reply to `stop`, `renew` and `close`.
    Done {},
}

impl Reply {
    /// Makes the line, without its end.
    pub fn line(&self, id: i64) -> String {
        reply_line(id, self)
    }

    /// Makes the line of an error; `id` is `None` where the request had none.
    pub fn error_line(id: Option<i64>, error: &ErrorReport) -> String {
        #[derive(Serialize)]
        struct Line<'a> {
            id: Option<i64>,
            ok: bool,
            error: &'a ErrorReport,
        }
        to_line(&Line { id, ok: false, error })
    }
}

/// Makes the line of a reply of any binary, without its end.
pub(crate) fn reply_line(id: i64, reply: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Line<'a, Content> {
        id: i64,
        ok: bool,
        #[serde(flatten)]
        reply: &'a Content,
    }
    to_line(&Line { id, ok: true, reply })
}

fn to_line(value: &impl Serialize) -> String {
    // Plain structs with text keys always serialise; an empty line would be ignored by the reader.
    serde_json::to_string(value).unwrap_or_default()
}

/// The reply to `hello`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HelloReply {
    /// The binary's name.
    pub engine: String,
    /// The binary's version.
    pub version: String,
    /// See [`crate::PROTOCOL_VERSION`].
    pub protocol: String,
    /// DPDK's version; `None` where built without.
    pub dpdk: Option<String>,
    /// Linked network drivers.
    pub drivers: Vec<String>,
    /// What it was built with.
    pub features: Vec<String>,
    /// The least processor it runs on.
    pub cpu_baseline: String,
    /// Length of the signature.
    pub signature_bytes: u32,
}

/// The reply to `configure`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConfigureReply {
    /// In the order of the request.
    pub ports: Vec<PortReply>,
    /// The clock in use.
    pub clock: ClockReply,
    /// The arguments that EAL was given; empty where it did not start.
    pub eal_arguments: Vec<String>,
}

fn is_nothing(bytes: &u32) -> bool {
    *bytes == 0
}

/// A configured port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PortReply {
    /// The value of the request.
    pub name: String,
    /// The driver's name in DPDK, or `simulated`.
    pub driver: String,
    /// The port's MAC address; `None` where it has none.
    pub mac: Option<String>,
    /// The nominal rate of the link; `None` where unknown.
    pub link_bits_per_s: Option<u64>,
    /// `None` where it is unknown.
    pub link_up: Option<bool>,
    /// The size with FCS.
    pub max_frame_bytes: u32,
    /// So much longer a frame may be that begins with a VLAN tag.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub tag_bytes: u32,
    /// The size with FCS.
    pub min_frame_bytes: u32,
    /// The number that the driver granted.
    pub transmit_descriptors: u32,
    /// The number that the driver granted.
    pub receive_descriptors: u32,
    /// The socket's send buffer, read back; `None` where there is none.
    pub send_buffer_bytes: Option<u64>,
    /// The most frames that one call takes from an AF_XDP socket in copy mode; `None` where the kernel's default of 32
    /// stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transmit_budget_frames: Option<u32>,
    /// `None` where it is unknown.
    pub numa_node: Option<i32>,
    /// The value of the request.
    pub lossless: bool,
    /// The clock that stamps what arrives here; `None` where the time-stamp counter does.
    #[serde(default)]
    pub timestamps: Option<StampClockReply>,
}

/// The clock in use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClockReply {
    /// `tsc` or `virtual`.
    pub source: String,
    /// Ticks a second.
    pub hz: f64,
    /// The length of a tick.
    pub resolution_ns: f64,
}

/// The reply to `start`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StartReply {
    /// The monotonic time of the engine's host.
    pub started_ns: u64,
}

/// The reply to `sent`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SentReply {
    /// The number of the trial.
    pub trial: u32,
    /// Frames that left the ports of this engine, in the order of the streams.
    pub sent: Vec<u64>,
    /// The mean time of a burst of each stream, by which the stamps of its frames are uncertain.
    pub burst_ns: Vec<f64>,
}

/// The reply to `clock`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClockTimeReply {
    /// The engine's time: by its worker's clock, from the monotonic clock's when it was configured.
    pub now_ns: u64,
    /// The machine's time of the day at the same moment.
    pub realtime_ns: u64,
}

/// The reply to `settle`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LateReply {
    /// The number of the trial that ended.
    pub trial: u32,
    /// Frames that came after the drain, in the order of the streams.
    pub late: Vec<u64>,
}

/// The reply to `stats`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatsReply {
    /// The number of the trial.
    pub trial: u32,
    /// The time since the trial began.
    pub elapsed_ns: u64,
    /// In the order of `start`.
    pub streams: Vec<StreamProgress>,
}

/// The progress of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamProgress {
    /// Frames that the port has taken.
    pub sent: u64,
    /// Distinct frames that arrived intact.
    pub received: u64,
}

/// A message that answers no request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event<Kind = EventKind> {
    /// What happened.
    #[serde(flatten)]
    pub kind: Kind,
    /// The number of the event, which rises by one.
    pub seq: u64,
    /// The monotonic time of the engine's host.
    pub time_ns: u64,
}

impl<Kind: Serialize> Event<Kind> {
    /// Makes the line, without its end.
    pub fn line(&self) -> String {
        to_line(self)
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// The first line of all.
    Ready {
        /// See [`crate::PROTOCOL_VERSION`].
        protocol: String,
    },
    /// A transmission has ended.
    Transmitted {
        /// The number of the trial.
        trial: u32,
    },
    /// Flows of the generator have sent all, or were stopped.
    FlowsEnded {
        /// Their numbers.
        flows: Vec<u32>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ErrorKind, PROTOCOL_VERSION, major};

    #[test]
    fn a_reply_repeats_the_id_and_says_ok() {
        assert_eq!(Reply::Done {}.line(4), r#"{"id":4,"ok":true}"#);
        let line = Reply::Start(StartReply { started_ns: 5 }).line(9);
        assert_eq!(line, r#"{"id":9,"ok":true,"started_ns":5}"#);
    }

    #[test]
    fn an_error_without_id_says_null() {
        let error = ErrorReport::new(ErrorKind::UnknownCommand, "what failed", "what to do");
        let line = Reply::error_line(None, &error);
        assert!(line.starts_with(r#"{"id":null,"ok":false,"error":{"kind":"unknown_command""#), "{line}");
    }

    #[test]
    fn an_event_survives_a_round_trip() {
        let event = Event { kind: EventKind::Ready { protocol: PROTOCOL_VERSION.into() }, seq: 0, time_ns: 12 };
        assert_eq!(event.line(), r#"{"event":"ready","protocol":"1.7","seq":0,"time_ns":12}"#);
        assert_eq!(serde_json::from_str::<Event>(&event.line()).unwrap(), event);
    }

    #[test]
    fn the_major_number_is_what_stands_before_the_point() {
        assert_eq!((major("1.0"), major("2"), major("x.1")), (Some(1), Some(2), None));
    }
}
