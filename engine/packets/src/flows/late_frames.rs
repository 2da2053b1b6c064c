//! Frames that were overtaken, judged apart from the table that knows the order of their flows.

use super::corrupted_ahead::CorruptedAhead;
use super::reordering::Holes;
use super::{Arrival, FlowLine};

/// A frame with a smaller sequence than one before it, as its flow stood when it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LateFrame {
    pub flow: u32,
    pub sequence: u64,
    /// Intact frames of the flow before it.
    pub arrival: u64,
    /// The sequence that the flow expected.
    pub next: u64,
    /// The arrival that jumped over it; `None` where that is not known any more.
    pub opened: Option<u64>,
}

/// What must be remembered to judge frames that were overtaken.
#[derive(Debug, Default)]
pub struct LateFrames {
    holes: Holes,
    corrupted_ahead: CorruptedAhead,
}

impl LateFrames {
    /// n-reordering (RFC 4737 5.3) is counted up to `counted`.
    pub fn new(flows: usize, counted: usize) -> Self {
        Self { holes: Holes::new(flows, counted), corrupted_ahead: CorruptedAhead::default() }
    }

    /// A corrupted frame moved the sequence that `flow` expects; `expects` says what others expect now.
    pub fn note_corrupted(&mut self, flow: u32, from: u64, to: u64, expects: impl Fn(u32) -> u64) {
        self.corrupted_ahead.note_advance(flow, from, to, expects);
    }

    /// Judges a frame as [`super::FlowTable::observe`] does.
    pub fn judge(&mut self, late: LateFrame) -> Arrival {
        let LateFrame { flow, sequence, arrival, next, opened } = late;
        if !self.corrupted_ahead.is_empty() && self.corrupted_ahead.is_behind_broken_only(flow, sequence, next) {
            return Arrival::BehindBroken;
        }
        Arrival::Reordered(self.holes.fill_opened(flow as usize, sequence, arrival, opened))
    }

    /// Adds to the counts of `line` the frames that were found to be overtaken.
    pub fn add_reordered(line: &mut FlowLine, frames: u32) {
        line.reordered = line.reordered.saturating_add(frames);
    }
}
