//! The reading of a trial: what `drain` answers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::detail::{
    ArrivalsReading, CaptureReading, FlowReportReading, FlowsReading, GroupReading, IntervalsReading,
    ReorderingReading, TrafficClassesReading, VariationReading,
};
use crate::stamps::StampReading;

/// The whole reading.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Of which trial.
    pub trial: u32,
    /// From the first scheduled frame until the last one had left its port, as far as ports tell.
    pub transmit_ns: u64,
    /// From the first scheduled frame until the last one was handed to its port, or the schedule was over.
    #[serde(default)]
    pub sending_ns: u64,
    /// Frames that had left the ports by then, so that both together are a rate.
    #[serde(default)]
    pub sent_while_sending: u64,
    /// In the order of `start`.
    pub streams: Vec<StreamReading>,
    /// In the order of `configure`.
    pub ports: Vec<PortReading>,
    /// Of the engine itself, during the transmission.
    pub health: HealthReading,
    /// Where `start` asked for one.
    #[serde(default)]
    pub capture: Option<CaptureReading>,
    /// Where `start` asked for one.
    #[serde(default)]
    pub flow_report: Option<FlowReportReading>,
}

/// The counts of one stream: each frame has one fate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamReading {
    /// As in `start`.
    pub name: String,
    /// rate x duration, rounded down.
    pub intended: u64,
    /// Completed by the port.
    pub sent: u64,
    /// Not sent, by the tester's fault.
    pub unsent_tester: u64,
    /// Refused by a lossless port.
    pub unsent_backpressure: u64,
    /// Distinct, intact, by the end of the drain.
    pub received: u64,
    /// sent - received - late - corrupted - unattributed, never below 0.
    pub lost: u64,
    /// After the drain: known after `settle` only.
    pub late: u64,
    /// Copies beside their originals.
    pub duplicated: u64,
    /// Overtaken by a later frame of their flow (RFC 4737).
    pub reordered: u64,
    /// Ours, with a broken payload or length.
    pub corrupted: u64,
    /// Not as they were sent, and their sequence came already.
    #[serde(default)]
    pub corrupted_copies: u64,
    /// Missing here, and a frame of these addresses came with a broken signature.
    #[serde(default)]
    pub unattributed: u64,
    /// Of each frame (of a mix: the smallest), signature and payload: compared byte by byte.
    #[serde(default)]
    pub checked_bytes: Option<u32>,
    /// The largest burst that was sent at once.
    pub maximum_burst: u32,
    /// Between frames, as they were handed to the port; `None` where fewer than two were sent.
    #[serde(default)]
    pub transmit_gaps: Option<TransmitGapsReading>,
    /// How late the frames of a capture with its own timing were sent; `None` for all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness: Option<TransmitGapsReading>,
    /// By how much the times between these frames differ from those asked for; `None` for all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_errors: Option<TransmitGapsReading>,
    /// `None` where nothing was received.
    pub latency: Option<LatencyReading>,
    /// `None` where every frame came in order.
    #[serde(default)]
    pub reordering: Option<ReorderingReading>,
    /// `None` where no two frames of a flow followed one another.
    #[serde(default)]
    pub variation: Option<VariationReading>,
    /// `None` where nothing was received.
    #[serde(default)]
    pub intervals: Option<IntervalsReading>,
    /// `None` where nothing was received.
    #[serde(default)]
    pub arrivals: Option<ArrivalsReading>,
    /// When the last frame was sent that came right after a jump in its flow's sequence; `None` where none is missing.
    #[serde(default)]
    pub last_jump_ns: Option<u64>,
    /// Where there is more than one.
    #[serde(default)]
    pub groups: Vec<GroupReading>,
    /// `None` from engines that do not tell.
    #[serde(default)]
    pub flows: Option<FlowsReading>,
    /// Where `start` asked for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_classes: Option<TrafficClassesReading>,
}

/// The time between the frames of a stream as each sender handed them to the port; within a burst it is 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TransmitGapsReading {
    /// Gaps measured: one fewer than frames, for each sender.
    pub count: u64,
    /// Exact.
    pub minimum_ns: u64,
    /// Exact.
    pub mean_ns: f64,
    /// Exact.
    pub maximum_ns: u64,
    /// HdrHistogram V2 (compressed), base64: nanoseconds, 2 digits, 1 ns to 100 s.
    pub histogram: String,
}

fn tsc() -> String {
    "tsc".into()
}

/// One-way latency of the frames received.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencyReading {
    /// By what a sent frame is stamped: `software` or `scheduled`.
    pub source: String,
    /// By what a received one is: `tsc`, `card` or `kernel`.
    #[serde(default = "tsc")]
    pub received_by: String,
    /// Of the coarser of the two stamps.
    pub resolution_ns: f64,
    /// One burst's time, and with a clock of the port's own how well its time is known.
    pub uncertainty_ns: f64,
    /// Frames that by their stamps arrived before they were sent: they are among the latencies as 0.
    #[serde(default)]
    pub negative: u64,
    /// The greatest of these times before.
    #[serde(default)]
    pub negative_maximum_ns: u64,
    /// Frames measured.
    pub count: u64,
    /// Exact.
    pub minimum_ns: u64,
    /// Exact.
    pub mean_ns: f64,
    /// Exact.
    pub maximum_ns: u64,
    /// HdrHistogram V2 (compressed), base64: nanoseconds, 3 digits, 1 ns to 100 s.
    pub histogram: String,
    /// Those of them that were under way while one of the DUT's cores was shared; `None` where nobody looked.
    #[serde(default)]
    pub shared_core: Option<SharedCoreReading>,
}

/// Frames that were under way while a look at one of the DUT's cores found it slow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedCoreReading {
    /// Frames; they are among those of the stream.
    pub count: u64,
    /// As the stream's.
    pub histogram: String,
}

/// What a port saw that belongs to no stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PortReading {
    /// As in `configure`.
    pub name: String,
    /// Every frame that came by the end of the drain; `None` where the engine is older than this count.
    #[serde(default)]
    pub arrived: Option<u64>,
    /// Not ours.
    pub foreign: u64,
    /// Of this trial, of a stream that does not end at this port.
    pub misdirected: u64,
    /// Of an earlier trial of this run.
    #[serde(default)]
    pub stale: u64,
    /// Addressed as ours, signature broken.
    pub corrupted_unattributed: u64,
    /// Lost by the tester itself.
    pub receive_overrun: u64,
    /// Every counter by name, as the difference over the trial.
    pub counters: BTreeMap<String, u64>,
    /// The link went down or up.
    pub link_changed: bool,
    /// The clock that stamps what arrives here; `None` where the time-stamp counter does.
    #[serde(default)]
    pub timestamps: Option<StampReading>,
}

/// How the worker fared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HealthReading {
    /// The longest time between two iterations.
    pub longest_gap_ns: u64,
    /// Sum of the gaps over the floor.
    pub total_gap_ns: u64,
    /// Shorter gaps are ordinary work.
    pub gap_floor_ns: u64,
    /// Gaps over the floor.
    pub gaps: u64,
    /// Of the worker's loop.
    pub iterations: u64,
    /// Of those, without a frame.
    pub idle_iterations: u64,
    /// Context switches of the worker's thread.
    pub voluntary_switches: Option<u64>,
    /// Context switches of the worker's thread.
    pub involuntary_switches: Option<u64>,
    /// Monotonic clock against TSC.
    pub clock_step_ns: Option<i64>,
    /// Before and after.
    pub core_clock_hz: Option<[f64; 2]>,
    /// Of the watched CPUs.
    pub cpus: Vec<CpuTimes>,
    /// Of each worker, in the order of `configure`; empty where there is one, whose values are those above. Sums and
    /// the longest gap above are over all workers, the clocks are the first one's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerReading>,
}

/// How one of several workers fared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkerReading {
    /// The longest time between two iterations.
    pub longest_gap_ns: u64,
    /// Sum of the gaps over the floor.
    pub total_gap_ns: u64,
    /// Gaps over the floor.
    pub gaps: u64,
    /// Of its loop.
    pub iterations: u64,
    /// Of those, without a frame.
    pub idle_iterations: u64,
    /// Frames that ports took from it.
    pub sent: u64,
    /// Before and after.
    pub core_clock_hz: Option<[f64; 2]>,
}

/// How one CPU spent the transmission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)] // The names are those of proc(5), with their unit.
pub struct CpuTimes {
    pub cpu: u32,
    pub user_ns: u64,
    pub nice_ns: u64,
    pub system_ns: u64,
    pub softirq_ns: u64,
    pub irq_ns: u64,
    pub steal_ns: u64,
    pub idle_ns: u64,
    /// Time that tasks ran on it, the kernel's own softirq thread apart (schedstat); what interrupts a task is billed
    /// to it. Unknown where the kernel keeps no such account.
    #[serde(default)]
    pub other_tasks_ns: Option<u64>,
    /// Looks taken at how much of the physical core this CPU got; unknown where nobody could look.
    #[serde(default)]
    pub speed_samples: Option<u32>,
    /// Of those, how many found under 80 % of the best: another hyperthread or guest used the same core.
    #[serde(default)]
    pub slow_samples: Option<u32>,
    /// The clock of the core, the mean over the looks that found it unshared (over all, where under a tenth did);
    /// unknown where nobody could look, and where the core's cycles cannot be counted.
    #[serde(default)]
    pub clock_hz: Option<u64>,
    /// The 99th percentile of the clocks of all looks since the watch began; unknown as above.
    #[serde(default)]
    pub highest_clock_hz: Option<u64>,
    /// The longest that the core stood still: how late an interrupt of its timer came; null where nobody could look.
    #[serde(default)]
    pub longest_pause_ns: Option<u64>,
    /// The looks in the order of their time; unknown where nobody could look.
    #[serde(default)]
    pub looks: Option<LooksReading>,
}

/// The looks at one core over a trial, a slot of time for each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LooksReading {
    /// When the first slot begins, since the first frame of the transmission was due; before that it is negative.
    pub begins_ns: i64,
    /// The length of a slot.
    pub slot_ns: u64,
    /// A byte for each slot, zlib in base64: the core's speed in hundredths of its best, rounded down; 0 where nobody
    /// looked.
    pub shares: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detail::SilenceReading;

    #[test]
    fn a_reading_survives_a_round_trip_and_unknown_stays_null() {
        let reading = Reading {
            trial: 3,
            transmit_ns: 1_000_000_000,
            sending_ns: 999_000_000,
            sent_while_sending: 9,
            streams: vec![StreamReading {
                name: "forward".into(),
                intended: 10,
                sent: 9,
                unsent_tester: 1,
                unsent_backpressure: 0,
                received: 0,
                lost: 9,
                late: 0,
                duplicated: 0,
                reordered: 0,
                corrupted: 0,
                corrupted_copies: 0,
                unattributed: 0,
                checked_bytes: Some(18),
                maximum_burst: 4,
                transmit_gaps: None,
                lateness: None,
                gap_errors: None,
                latency: None,
                reordering: None,
                variation: Some(VariationReading { pairs: 2, mean_ns: 1.5, maximum_ns: 2 }),
                intervals: Some(IntervalsReading { interval_ns: 5, received: vec![1], missing: vec![-1] }),
                arrivals: Some(ArrivalsReading {
                    first_ns: 1,
                    last_ns: 9,
                    silence: Some(SilenceReading { from_ns: 2, to_ns: 8 }),
                }),
                last_jump_ns: Some(8),
                groups: vec![],
                flows: Some(FlowsReading { flows: 2, most_lost: Some((1, 9)), ..FlowsReading::default() }),
                traffic_classes: Some(TrafficClassesReading { received: vec![(3, 9)], marked_flows: vec![9, 0] }),
            }],
            ports: vec![],
            health: HealthReading {
                longest_gap_ns: 5,
                total_gap_ns: 0,
                gap_floor_ns: 100_000,
                gaps: 0,
                iterations: 7,
                idle_iterations: 2,
                voluntary_switches: None,
                involuntary_switches: None,
                clock_step_ns: None,
                core_clock_hz: None,
                cpus: vec![],
                workers: vec![],
            },
            capture: None,
            flow_report: Some(FlowReportReading { path: "a".into(), flows: 2, error: None }),
        };
        let text = serde_json::to_string(&reading).unwrap();
        assert!(text.contains(r#""latency":null"#) && text.contains(r#""core_clock_hz":null"#));
        assert_eq!(serde_json::from_str::<Reading>(&text).unwrap(), reading);
    }
}
