//! What is kept beyond the totals: which flows share a histogram, and how much memory histograms may take.

use nicbench_protocol::{MAXIMUM_FLOW_GROUPS, MINIMUM_REORDERING_N};

use super::Expected;
use crate::error::{EngineError, ErrorKind};
use crate::latency::LatencyCounts;

/// Which details are kept beyond the totals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Detail {
    /// Groups of flows with a histogram of their own, over all streams; a stream has one at least.
    pub flow_groups: u32,
    /// Whether each flow gets a histogram of its own.
    pub flow_histograms: bool,
    /// n-reordering (RFC 4737 5.3) is counted for n from 1 to this.
    pub reordering_n: u32,
    /// Whether the traffic class of each frame is counted.
    pub traffic_classes: bool,
}

impl Default for Detail {
    fn default() -> Self {
        Self { flow_groups: 1, flow_histograms: false, reordering_n: MINIMUM_REORDERING_N, traffic_classes: false }
    }
}

/// The most memory that histograms of single flows may take.
pub const FLOW_HISTOGRAM_LIMIT_BYTES: usize = 1 << 30;

/// Where the latencies of a stream's flows are counted: groups are runs of flows, as long as a power of two.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grouping {
    pub(super) first_group: usize,
    pub(super) shift: u32,
    pub(super) groups: usize,
}

/// Refuses histograms of single flows that exceed their limit.
pub(super) fn check_memory(flows: usize, detail: Detail) -> Result<(), EngineError> {
    let bytes = flows * LatencyCounts::BYTES;
    if !detail.flow_histograms || bytes <= FLOW_HISTOGRAM_LIMIT_BYTES {
        return Ok(());
    }
    let mib = |bytes: usize| bytes >> 20;
    let message = format!(
        "histograms of {flows} flows may take {} MiB, and the limit is {} MiB",
        mib(bytes),
        mib(FLOW_HISTOGRAM_LIMIT_BYTES)
    );
    let next = format!(
        "use at most {} flows, or do without `histograms` in `flow_report`",
        FLOW_HISTOGRAM_LIMIT_BYTES / LatencyCounts::BYTES
    );
    Err(EngineError::new(ErrorKind::BadRequest, message, next))
}

/// Divides the groups of flows evenly among the streams.
pub(super) fn groupings(expected: &[Expected], detail: Detail) -> Vec<Grouping> {
    let wanted = detail.flow_groups.clamp(1, MAXIMUM_FLOW_GROUPS);
    let share = (wanted / (expected.len().max(1) as u32)).max(1);
    let mut first_group = 0;
    let grouping = |stream: &Expected| {
        let last_flow = stream.flows.saturating_sub(1);
        let fits = |shift: &u32| (last_flow >> shift) < share;
        let shift = if detail.flow_histograms { 0 } else { (0..32).find(fits).unwrap_or(31) };
        let groups = (last_flow >> shift) as usize + 1;
        let grouping = Grouping { first_group, shift, groups };
        first_group += groups;
        grouping
    };
    expected.iter().map(grouping).collect()
}
