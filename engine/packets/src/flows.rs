//! What has arrived of each flow: the next sequence expected and a window of those before it.
//!
//! With many flows a flow is one cache line; with few, its window is larger, so that a frame that was overtaken by many others is
//! still told from a copy. The table is zero at first, so untouched flows cost no memory.

const BITS: u64 = 64;
const LINE_WORDS: usize = 8;
const SMALLEST_WINDOW_WORDS: usize = 4;
const LARGEST_WINDOW_WORDS: usize = 4096;
/// Words that all windows together may have before each shrinks to its smallest.
const WINDOW_BUDGET_WORDS: usize = 1 << 15;

/// What a sequence number says of its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// Greater than all before.
    InOrder,
    /// A greater one of its flow came before it (RFC 4737 3.2).
    Reordered,
    /// It came before.
    Duplicate,
    /// No flow of ours was ever there.
    Impossible,
}

/// All flows of a trial.
#[derive(Debug, Default)]
pub struct FlowTable {
    /// Per flow: the next sequence expected, then the window.
    words: Vec<u64>,
    stride: usize,
    window_words: usize,
}

impl FlowTable {
    pub fn new(flows: usize) -> Self {
        let share = (WINDOW_BUDGET_WORDS / flows.max(1)).clamp(SMALLEST_WINDOW_WORDS, LARGEST_WINDOW_WORDS);
        let window_words = 1usize << share.ilog2();
        let stride = (window_words + 1).next_multiple_of(LINE_WORDS);
        Self { words: vec![0; flows * stride], stride, window_words }
    }

    /// Judges the arrival of `sequence` (its lower 32 bits) in `flow`.
    #[inline]
    pub fn observe(&mut self, flow: usize, sequence: u32) -> Arrival {
        let Some(line) = self.words.get_mut(flow * self.stride..).and_then(|rest| rest.split_first_mut()) else {
            return Arrival::Impossible;
        };
        let (expected, rest) = line;
        let mask = self.window_words - 1;
        let Some(window) = rest.get_mut(..self.window_words) else { return Arrival::Impossible };
        let ahead = i64::from(sequence.wrapping_sub(*expected as u32) as i32);
        let Some(full) = expected.checked_add_signed(ahead) else { return Arrival::Impossible };
        let word = (full / BITS) as usize & mask;
        let bit = 1 << (full % BITS);
        if full >= *expected {
            clear_words_entered(window, *expected, full);
            window[word] |= bit;
            *expected = full + 1;
            return Arrival::InOrder;
        }
        // The word that holds `expected` has lost what it held a window ago.
        if full / BITS + self.window_words as u64 <= (*expected - 1) / BITS {
            // Too old to tell: a late frame is likelier than a late copy, and calling it lost would charge the DUT.
            return Arrival::Reordered;
        }
        if window[word] & bit != 0 {
            return Arrival::Duplicate;
        }
        window[word] |= bit;
        Arrival::Reordered
    }
}

/// The window is a ring: each word is cleared when the first sequence of its new lap arrives.
#[inline]
fn clear_words_entered(window: &mut [u64], expected: u64, full: u64) {
    let words = window.len() as u64;
    let first = expected.div_ceil(BITS);
    let last = full / BITS;
    if first > last {
        return;
    }
    for word in first.max(last.saturating_sub(words - 1))..=last {
        window[(word % words) as usize] = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_in_order_are_in_order_for_many_laps_of_the_window() {
        let mut table = FlowTable::new(8192);
        for sequence in 0..10_000 {
            assert_eq!(table.observe(8191, sequence), Arrival::InOrder);
        }
    }

    #[test]
    fn a_copy_is_a_duplicate_and_an_overtaken_frame_is_reordered_once() {
        let mut table = FlowTable::new(1 << 20);
        let arrivals: Vec<_> = [0, 1, 1, 4, 2, 2, 3, 5].map(|sequence| table.observe(3, sequence)).into();
        use Arrival::{Duplicate, InOrder, Reordered};
        assert_eq!(arrivals, [InOrder, InOrder, Duplicate, InOrder, Reordered, Duplicate, Reordered, InOrder]);
    }

    #[test]
    fn lost_frames_leave_no_trace_of_an_earlier_lap() {
        let mut table = FlowTable::new(1 << 20);
        for sequence in 0..300 {
            table.observe(0, sequence);
        }
        assert_eq!(table.observe(0, 600), Arrival::InOrder);
        for sequence in 450..600 {
            assert_eq!(table.observe(0, sequence), Arrival::Reordered, "{sequence}");
            assert_eq!(table.observe(0, sequence), Arrival::Duplicate, "{sequence}");
        }
    }

    #[test]
    fn sequences_go_on_over_the_32_bit_wrap() {
        let mut table = FlowTable::new(1);
        let step = 1 << 30;
        for sequence in [0u32, step, 2 * step, 3 * step, u32::MAX - 1] {
            assert_eq!(table.observe(0, sequence), Arrival::InOrder);
        }
        let arrivals: Vec<_> = [0, u32::MAX, u32::MAX, 1, 1].map(|sequence| table.observe(0, sequence)).into();
        use Arrival::{Duplicate, InOrder, Reordered};
        assert_eq!(arrivals, [InOrder, Reordered, Duplicate, InOrder, Duplicate]);
        assert_eq!(table.words[0], (1 << 32) + 2);
    }

    #[test]
    fn few_flows_remember_further_back() {
        let mut table = FlowTable::new(1);
        for sequence in (0..200_000).filter(|sequence| *sequence != 5) {
            table.observe(0, sequence);
        }
        assert_eq!((table.observe(0, 5), table.observe(0, 5)), (Arrival::Reordered, Arrival::Duplicate));
    }

    #[test]
    fn a_flow_or_sequence_that_cannot_be_is_impossible() {
        let mut table = FlowTable::new(2);
        assert_eq!(table.observe(2, 0), Arrival::Impossible);
        assert_eq!(table.observe(0, u32::MAX), Arrival::Impossible);
    }
}
