//! Counts of one stream and of one port.

use crate::flows::{LONGEST_KEPT_NS, Reordering};
use crate::latency::LatencySummary;

/// What a stream has received; minimum, mean and maximum latency lie with its flows.
#[derive(Debug, Clone, Default)]
pub struct StreamTally {
    pub received: u64,
    pub duplicated: u64,
    pub reordered: u64,
    pub corrupted: u64,
    /// Frames that are not as they were sent, of sequences that came already.
    pub corrupted_copies: u64,
    /// The first frame that was received had other addresses than were sent: so the DUT may rewrite those of all.
    pub is_rewritten: bool,
    /// First copies, intact, that came after the drain.
    pub late: u64,
    /// Frames with this stream's addresses and a broken signature.
    pub unattributed: u64,
    pub reordering: Reordering,
    /// The greatest difference between the latencies of frames that follow one another.
    pub variation_maximum_ns: u32,
    /// Frames in order without an intact frame right before them: they have no variation.
    pub unpaired: u64,
    /// Sequences passed over that have not come since; signed, because another receiver may have seen the jump.
    pub missing: i64,
    /// When the last frame was sent that came after a jump.
    pub(super) last_jump_ns: Option<u64>,
    /// Frames that by their stamps arrived before they were sent.
    pub negative: u64,
    /// The greatest time by which a stamp was too early.
    pub negative_maximum_ns: u64,
    /// Extremes of latencies that are too long for a flow's line.
    pub(super) beyond: Option<(u64, u64)>,
}

impl StreamTally {
    /// Frames in order whose predecessor's latency is known.
    pub fn pairs(&self) -> u64 {
        (self.received - self.reordered).saturating_sub(self.unpaired)
    }

    /// Notes that a frame sent at this time passed over `jumped` sequences.
    pub fn jump(&mut self, jumped: u64, sent_ns: u64) {
        self.missing += jumped as i64;
        self.last_jump_ns = self.last_jump_ns.max(Some(sent_ns));
    }

    /// See [`Self::jump`]; `None` where everything that was passed over came after all.
    pub fn last_jump_ns(&self) -> Option<u64> {
        self.last_jump_ns.filter(|_| self.missing > 0)
    }

    /// Records a latency over [`LONGEST_KEPT_NS`].
    #[cold]
    pub fn record_beyond(&mut self, latency_ns: u64) {
        let (least, most) = self.beyond.unwrap_or((latency_ns, latency_ns));
        self.beyond = Some((least.min(latency_ns), most.max(latency_ns)));
    }

    /// A frame that arrived so long before it was sent: the clocks disagree. Among the latencies it is a 0.
    #[cold]
    pub fn record_negative(&mut self, before_ns: u64) -> u64 {
        self.negative += 1;
        self.negative_maximum_ns = self.negative_maximum_ns.max(before_ns);
        0
    }

    /// Puts the exact extremes where the flows' lines could not keep them.
    pub fn correct(&self, summary: &mut LatencySummary) {
        let Some((least, most)) = self.beyond else { return };
        summary.maximum_ns = most;
        if summary.minimum_ns >= LONGEST_KEPT_NS {
            summary.minimum_ns = least;
        }
    }

    pub fn merge(&mut self, other: &Self) {
        self.received += other.received;
        self.duplicated += other.duplicated;
        self.reordered += other.reordered;
        self.corrupted += other.corrupted;
        self.corrupted_copies += other.corrupted_copies;
        self.is_rewritten |= other.is_rewritten;
        self.late += other.late;
        self.unattributed += other.unattributed;
        self.reordering.merge(&other.reordering);
        self.variation_maximum_ns = self.variation_maximum_ns.max(other.variation_maximum_ns);
        self.unpaired += other.unpaired;
        self.missing += other.missing;
        self.last_jump_ns = self.last_jump_ns.max(other.last_jump_ns);
        self.negative += other.negative;
        self.negative_maximum_ns = self.negative_maximum_ns.max(other.negative_maximum_ns);
        for latency_ns in other.beyond.into_iter().flat_map(|(least, most)| [least, most]) {
            self.record_beyond(latency_ns);
        }
    }
}

/// Frames that count for no stream, of one port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortTally {
    /// Every frame that came by the end of the drain; each is in one count of a stream or of the port.
    pub arrived: u64,
    pub foreign: u64,
    /// Of this trial, and of a stream that does not end here: a switch flooded them, or they went the wrong way.
    pub misdirected: u64,
    pub corrupted_unattributed: u64,
    /// Of an earlier trial of this run.
    pub stale: u64,
}

impl PortTally {
    pub fn merge(&mut self, other: &Self) {
        self.arrived += other.arrived;
        self.foreign += other.foreign;
        self.misdirected += other.misdirected;
        self.corrupted_unattributed += other.corrupted_unattributed;
        self.stale += other.stale;
    }
}
