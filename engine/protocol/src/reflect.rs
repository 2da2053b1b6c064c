//! `nicbench-packets reflect`: the line that configures the reference forwarder, and what it says.

use serde::{Deserialize, Serialize};

use crate::{ClockReply, ErrorReport, PortReply, PortRequest};

/// The configuration: one JSON object on one line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reflect {
    /// CPU of the forwarding loop; `None` leaves it where the system puts it.
    #[serde(default)]
    pub worker_cpu: Option<u32>,
    /// Memory in huge pages.
    #[serde(default)]
    pub huge_pages: bool,
    /// Memory for EAL.
    #[serde(default = "default_memory_mib")]
    pub memory_mib: u32,
    /// Further EAL arguments.
    #[serde(default)]
    pub eal: Vec<String>,
    /// Pairs, crossed: the first with the second, the third with the fourth. Or one, whose frames go back.
    pub ports: Vec<PortRequest>,
    /// Frames of every port go back out of it.
    #[serde(default)]
    pub same_port: bool,
    /// What is changed in each frame.
    #[serde(default)]
    pub mode: ReflectMode,
    /// Frames taken at once, at most.
    #[serde(default = "default_burst")]
    pub burst: u32,
    /// What becomes of frames that the transmit ring refuses.
    #[serde(default)]
    pub when_full: WhenFull,
    /// What goes wrong; nothing, where it is left out.
    #[serde(default)]
    pub faults: Faults,
    /// Where the fate of each frame is written.
    #[serde(default)]
    pub log: Option<FateLogRequest>,
}

fn default_memory_mib() -> u32 {
    512
}

fn default_burst() -> u32 {
    32
}

/// What is changed in each frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReflectMode {
    /// Nothing.
    #[default]
    Forward,
    /// Source and destination MAC address change places.
    MacSwap,
}

/// What becomes of frames that the transmit ring refuses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhenFull {
    /// They are dropped and counted, as by testpmd.
    #[default]
    Drop,
    /// They are offered again, and nothing is received meanwhile: the pressure is handed back.
    Wait,
}

/// Seeded faults. Times are on top of the forwarder's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Faults {
    /// Of all randomness, with the direction and the trial.
    pub seed: u64,
    /// Every frame is held for so long.
    pub delay_ns: u64,
    /// Further delay, uniform from 0; frames stay in order.
    pub jitter_ns: u64,
    /// Probability that a frame is lost.
    pub loss: f64,
    /// Probability that a frame is sent twice.
    pub duplicate: f64,
    /// Probability that a frame is overtaken.
    pub reorder: f64,
    /// How many later frames overtake it.
    pub reorder_by: u32,
    /// Probability that a bit behind the signature is flipped (in it, where the frame ends there).
    pub corrupt_payload: f64,
    /// Probability that a bit of the signature is flipped.
    pub corrupt_signature: f64,
    /// Probability that a bit of a length field is flipped.
    pub corrupt_length: f64,
    /// Frames over this rate are dropped (token bucket); `None` is unlimited.
    pub rate_frames_per_s: Option<f64>,
    /// Depth of the bucket.
    pub rate_burst_frames: u32,
    /// A server with a queue in place of the bucket: so many frames wait for it, and one more is dropped.
    pub rate_queue_frames: Option<u32>,
    /// For so long after a frame came too fast every frame is dropped.
    pub outage_ns: u64,
    /// Frames under way at once in a direction; one more is dropped.
    pub held_frames: u32,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            seed: 0,
            delay_ns: 0,
            jitter_ns: 0,
            loss: 0.0,
            duplicate: 0.0,
            reorder: 0.0,
            reorder_by: 1,
            corrupt_payload: 0.0,
            corrupt_signature: 0.0,
            corrupt_length: 0.0,
            rate_frames_per_s: None,
            rate_burst_frames: 32,
            rate_queue_frames: None,
            outage_ns: 0,
            held_frames: 4096,
        }
    }
}

/// Where the fate of each frame is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FateLogRequest {
    /// Written when the forwarder closes.
    pub file: String,
    /// Of the tester, as in `configure`: frames are named by their signatures.
    pub run_key: String,
    /// The first trial; `trial` names later ones.
    #[serde(default = "default_trial")]
    pub trial: u32,
    /// Frames kept; later ones are counted and not kept.
    #[serde(default = "default_frames")]
    pub frames: usize,
}

fn default_trial() -> u32 {
    1
}

fn default_frames() -> usize {
    1_000_000
}

/// A line on stdin after the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum ReflectCommand {
    /// Asks for an event `stats`.
    Stats {
        /// Also time the core's clock, which holds up forwarding for less than a millisecond.
        #[serde(default)]
        probe_core_clock: bool,
    },
    /// Frames of this trial come next: the random sequences begin afresh. Answered by `stats`.
    Trial {
        /// As in `start`.
        trial: u32,
    },
    /// Ends the forwarder.
    Close,
}

/// A line of the forwarder, beside `seq` and `time_ns`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum ReflectEvent {
    /// The first line of all.
    Ready {
        /// See [`crate::PROTOCOL_VERSION`].
        protocol: String,
    },
    /// The ports are open and frames are forwarded.
    Forwarding {
        /// In the order of the request.
        ports: Vec<PortReply>,
        /// Of every time here.
        clock: ClockReply,
        /// As given to EAL.
        eal_arguments: Vec<String>,
    },
    /// Asked for by `stats` or `trial`.
    Stats(Box<ReflectStats>),
    /// A line that is no command, or a configuration that cannot be: then it is the last line.
    Failed {
        /// Why, and what to do.
        error: ErrorReport,
    },
    /// The last line.
    Report {
        /// Why it ended.
        ended_by: EndedBy,
        /// Since the start.
        #[serde(flatten)]
        stats: Box<ReflectStats>,
        /// What was written; `None` without a log.
        log: Option<FateLogReport>,
    },
}

/// Why the forwarder ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// The command `close`.
    Close,
    /// The end of stdin.
    Stdin,
    /// SIGTERM or SIGINT.
    Signal,
}

/// Counts since the start: a reader takes differences.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReflectStats {
    /// Turns of the loop.
    pub iterations: u64,
    /// Of those, turns that found no frame and had none to send.
    pub idle_polls: u64,
    /// TSC cycles of the loop,
    pub tsc_cycles: u64,
    /// and of its turns with frames.
    pub busy_tsc_cycles: u64,
    /// TSC cycles a second.
    pub tsc_hz: f64,
    /// The core's clock when it was last timed; `None` before that.
    pub core_clock_hz: Option<f64>,
    /// Busy TSC cycles for each frame received; `None` where there was none.
    pub busy_tsc_cycles_per_frame: Option<f64>,
    /// The same in cycles of the core, by `core_clock_hz`.
    pub busy_core_cycles_per_frame: Option<f64>,
    /// One for each way through the forwarder.
    pub directions: Vec<DirectionStats>,
}

/// Frames of one way through the forwarder. received + duplicated = sent + every kind of drop + what is under way.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionStats {
    /// Number of the port that receives.
    pub from_port: usize,
    /// Number of the port that sends.
    pub to_port: usize,
    /// Frames received.
    pub received: u64,
    /// Frames that the transmit ring took.
    pub sent: u64,
    /// Refused by the transmit ring and dropped.
    pub dropped_transmit_full: u64,
    /// By `loss`.
    pub lost: u64,
    /// By `rate_frames_per_s`.
    pub dropped_rate: u64,
    /// By `held_frames`.
    pub dropped_held_full: u64,
    /// Under way when a trial or the forwarder ended.
    pub dropped_at_end: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Frames overtaken by as many as `reorder_by` says.
    pub reordered: u64,
    /// Frames changed, of every kind.
    pub corrupted: u64,
    /// Frames under way.
    pub under_way: u64,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FateLogReport {
    /// As asked for.
    pub file: String,
    /// Records in it.
    pub records: u64,
    /// Records that found no room.
    pub left_out: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_survives_a_round_trip_with_its_defaults() {
        let text = r#"{"ports":[{"name":"d0","kind":"vdev","vdev":"net_memif0,role=server"}],"mode":"mac_swap",
            "faults":{"loss":0.1,"seed":7},"log":{"file":"fates.ndjson","run_key":"00000000000000ff"}}"#;
        let reflect: Reflect = serde_json::from_str(text).unwrap();
        assert_eq!((reflect.burst, reflect.mode, reflect.when_full), (32, ReflectMode::MacSwap, WhenFull::Drop));
        assert_eq!((reflect.faults.reorder_by, reflect.faults.held_frames), (1, 4096));
        assert_eq!(reflect.log.as_ref().map(|log| (log.trial, log.frames)), Some((1, 1_000_000)));
        let again: Reflect = serde_json::from_str(&serde_json::to_string(&reflect).unwrap()).unwrap();
        assert_eq!(reflect, again);
    }

    #[test]
    fn commands_are_told_by_their_name() {
        let command = |text| serde_json::from_str::<ReflectCommand>(text).ok();
        assert_eq!(command(r#"{"command":"stats"}"#), Some(ReflectCommand::Stats { probe_core_clock: false }));
        assert_eq!(command(r#"{"command":"trial","trial":4}"#), Some(ReflectCommand::Trial { trial: 4 }));
        assert_eq!(command(r#"{"command":"close","id":3}"#), Some(ReflectCommand::Close));
        assert_eq!(command(r#"{"command":"dance"}"#), None);
    }

    #[test]
    fn the_report_holds_its_counts_beside_the_reason() {
        let report = ReflectEvent::Report { ended_by: EndedBy::Stdin, stats: Box::default(), log: None };
        let text = serde_json::to_string(&report).unwrap();
        assert!(text.starts_with(r#"{"event":"report","ended_by":"stdin","iterations":0"#), "{text}");
        assert_eq!(serde_json::from_str::<ReflectEvent>(&text).unwrap(), report);
    }
}
