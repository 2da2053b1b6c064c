//! What has arrived of each flow: the next sequence expected, which of those before it came, and the flow's counts.
//!
//! A frame in order touches one cache line. What came longer ago is kept in a ring that is touched once in 64 frames of
//! a flow, or when frames are missing; with few flows the ring is larger, so that a frame that was overtaken by many
//! others is still told from a copy. Rings and holes are zero at first: flows that never use them cost no memory.

mod corrupted_ahead;
mod late_frames;
mod line;
mod reordering;

use corrupted_ahead::CorruptedAhead;
pub use late_frames::{LateFrame, LateFrames};
pub use line::{FlowLine, LONGEST_KEPT_NS, Variation};
use reordering::Holes;
pub use reordering::{FEWEST_COUNTED, Overtaken, Reordering};

const BITS: u64 = 64;
const SMALLEST_RING_WORDS: usize = 4;
const LARGEST_RING_WORDS: usize = 4096;
/// Words that all rings together may have before each shrinks to its smallest.
const RING_BUDGET_WORDS: usize = 1 << 15;

/// How a sequence number stands to those before it in its flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// It is the expected one.
    Next,
    /// Greater than expected: so many were jumped over.
    Ahead(u64),
    /// A greater one of its flow came before it (RFC 4737 3.3).
    Reordered(Overtaken),
    /// Only broken frames with greater sequences came before it.
    BehindBroken,
    /// It came before: a duplicate.
    Duplicate,
    /// No flow of ours can have reached it.
    Impossible,
}

/// What has arrived of all flows of a trial.
#[derive(Clone, Debug, Default)]
pub struct FlowTable {
    lines: Vec<FlowLine>,
    /// Per flow: a bit for each sequence of earlier blocks of 64.
    ring: Vec<u64>,
    ring_words: usize,
    holes: Holes,
    broken_ahead: CorruptedAhead,
}

impl FlowTable {
    /// n-reordering (RFC 4737 5.3) is counted up to `counted`.
    pub fn new(flows: usize, counted: usize) -> Self {
        let share = (RING_BUDGET_WORDS / flows.max(1)).clamp(SMALLEST_RING_WORDS, LARGEST_RING_WORDS);
        let ring_words = 1usize << share.ilog2();
        Self {
            lines: vec![FlowLine::default(); flows],
            ring: vec![0; flows * ring_words],
            ring_words,
            holes: Holes::new(flows, counted),
            broken_ahead: CorruptedAhead::default(),
        }
    }

    /// Words of a flow's ring, and holes that are remembered of it.
    pub fn memory_of_flow(&self) -> (usize, usize) {
        (self.ring_words, self.holes.capacity())
    }

    /// Takes what another receiver counted of the flows from `first` on; it knows their past itself.
    pub fn set_lines(&mut self, first: usize, lines: &[FlowLine]) {
        self.lines[first..first + lines.len()].copy_from_slice(lines);
    }

    /// The greatest n for which n-reordering is counted.
    pub fn reordering_limit(&self) -> usize {
        self.holes.reordering_limit()
    }

    /// What was counted of each flow, in their order.
    pub fn lines(&self) -> &[FlowLine] {
        &self.lines
    }

    /// What a flow needs from the start, and what it needs at most.
    pub fn bytes_per_flow(&self) -> (usize, usize) {
        let line = size_of::<FlowLine>();
        (line, line + self.ring_words * size_of::<u64>() + self.holes.bytes_per_flow())
    }

    /// Nothing has come of this flow.
    pub fn begin_anew(&mut self, flow: u32) {
        let (flow, words) = (flow as usize, self.ring_words);
        self.lines[flow] = FlowLine::default();
        self.ring[flow * words..(flow + 1) * words].fill(0);
        self.holes.forget(flow);
    }

    /// A frame that was observed is a whole one; for those who keep latencies elsewhere.
    #[inline(always)]
    pub fn note_received(&mut self, flow: u32) {
        if let Some(line) = self.lines.get_mut(flow as usize) {
            line.received += 1;
        }
    }

    /// What was counted of one flow.
    #[inline(always)]
    pub fn line(&self, flow: u32) -> Option<&FlowLine> {
        self.lines.get(flow as usize)
    }

    /// What was counted of one flow, for counting.
    #[inline(always)]
    pub fn line_mut(&mut self, flow: u32) -> Option<&mut FlowLine> {
        self.lines.get_mut(flow as usize)
    }

    /// Counts a rare event in one of the flow's counters.
    #[cold]
    pub fn count(&mut self, flow: u32, of: impl FnOnce(&mut FlowLine) -> &mut u32) {
        if let Some(line) = self.lines.get_mut(flow as usize) {
            let count = of(line);
            *count = count.saturating_add(1);
        }
    }

    /// Judges the arrival of `sequence` (its lower 32 bits) in `flow`.
    #[inline(always)]
    pub fn observe(&mut self, flow: u32, sequence: u32) -> Arrival {
        let Some(line) = self.lines.get_mut(flow as usize) else { return Arrival::Impossible };
        let place = line.next % BITS;
        if sequence == line.next as u32 && place != 0 {
            line.recent |= 1 << place;
            line.next += 1;
            return Arrival::Next;
        }
        self.observe_rare(flow as usize, sequence, true)
    }

    /// The first of a block of 64, and everything that is not in its place.
    fn observe_rare(&mut self, flow: usize, sequence: u32, whole: bool) -> Arrival {
        let line = &mut self.lines[flow];
        let ring = &mut self.ring[flow * self.ring_words..(flow + 1) * self.ring_words];
        let ahead = i64::from(sequence.wrapping_sub(line.next as u32) as i32);
        let Some(full) = line.next.checked_add_signed(ahead) else { return Arrival::Impossible };
        if full >= line.next {
            enter_block(line, ring, full / BITS);
            let jumped = full - line.next;
            if jumped > 0 {
                self.holes.add(flow, line.next, jumped, line.received);
                line.forget_latency();
            }
            line.recent |= 1 << (full % BITS);
            line.next = full + 1;
            return if jumped == 0 { Arrival::Next } else { Arrival::Ahead(jumped) };
        }
        let (block, present) = (full / BITS, (line.next - 1) / BITS);
        if present - block > ring.len() as u64 {
            // Too old to tell: a late frame is likelier than a late copy, and calling it lost would charge the DUT.
            return Arrival::Reordered(Overtaken::default());
        }
        let slot = (block % ring.len() as u64) as usize;
        let word = if block == present { &mut line.recent } else { &mut ring[slot] };
        let bit = 1 << (full % BITS);
        if *word & bit != 0 {
            return Arrival::Duplicate;
        }
        *word |= bit;
        if !whole {
            return Arrival::Reordered(Overtaken::default());
        }
        if !self.broken_ahead.is_empty() && self.broken_ahead.is_behind_broken_only(flow as u32, full, line.next) {
            return Arrival::BehindBroken;
        }
        Arrival::Reordered(self.holes.fill(flow, full, line.received))
    }

    /// As [`Self::observe`] for a corrupted frame, which takes no part in the order.
    #[cold]
    pub fn observe_broken(&mut self, flow: u32, sequence: u32) -> Arrival {
        let Some(from) = self.line(flow).map(|line| line.next) else { return Arrival::Impossible };
        let arrival = self.observe_rare(flow as usize, sequence, false);
        let lines = &mut self.lines;
        if let (Arrival::Next | Arrival::Ahead(_), Some(line)) = (arrival, lines.get_mut(flow as usize)) {
            line.forget_latency();
            let to = line.next;
            self.broken_ahead.note_advance(flow, from, to, |flow| lines.get(flow as usize).map_or(0, |line| line.next));
        }
        arrival
    }

    /// Adds what another receiver saw of the same flows: each flow is the one's or the other's.
    pub fn merge(&mut self, other: &Self) {
        for (line, theirs) in self.lines.iter_mut().zip(&other.lines) {
            line.merge(theirs);
        }
    }
}

/// The block of 64 that holds the greatest sequence moves on to `block`: the bits of those before it go to the ring.
#[inline]
fn enter_block(line: &mut FlowLine, ring: &mut [u64], block: u64) {
    let words = ring.len() as u64;
    let Some(present) = line.next.checked_sub(1).map(|last| last / BITS) else {
        // Nothing came yet: the blocks before are empty, as the ring is.
        return;
    };
    if block == present {
        return;
    }
    ring[(present % words) as usize] = line.recent;
    line.recent = 0;
    let first = (present + 1).max(block.saturating_sub(words));
    for skipped in first..block {
        ring[(skipped % words) as usize] = 0;
    }
}

#[cfg(test)]
mod tests;
