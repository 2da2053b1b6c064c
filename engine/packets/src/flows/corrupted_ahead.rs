//! Frames that came broken take no part in the order of their flow, yet their sequences count as seen.
//!
//! A broken frame that is ahead of its flow moves the sequence that is expected. A whole frame that comes after it with
//! a smaller sequence is out of order only if a whole one with a greater sequence came before it; so the greatest whole
//! one is remembered until the next one comes. Flows without broken frames are not here.

use std::collections::HashMap;

/// Flows in which a broken frame is the greatest, at most; beyond, broken frames take part in the order.
const MOST_FLOWS: usize = 1 << 16;

#[derive(Debug, Clone, Copy)]
struct Place {
    /// One beyond the greatest whole frame.
    whole_next: u64,
    /// What the flow expected after the broken one; if it expects something else now, a whole frame has come.
    next: u64,
}

/// Flows whose greatest sequence came in a corrupted frame.
#[derive(Debug, Default, Clone)]
pub struct CorruptedAhead {
    flows: HashMap<u32, Place>,
}

impl CorruptedAhead {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Notes that a corrupted frame moved the sequence that `flow` expects.
    pub fn note_advance(&mut self, flow: u32, from: u64, to: u64, expects: impl Fn(u32) -> u64) {
        if self.flows.len() >= MOST_FLOWS {
            self.flows.retain(|flow, place| expects(*flow) == place.next);
        }
        if let Some(place) = self.flows.get_mut(&flow) {
            let whole_next = if place.next == from { place.whole_next } else { from };
            *place = Place { whole_next, next: to };
        } else if self.flows.len() < MOST_FLOWS {
            self.flows.insert(flow, Place { whole_next: from, next: to });
        }
    }

    /// Whether only broken frames are greater than this whole one, which then is the greatest.
    pub fn is_behind_broken_only(&mut self, flow: u32, sequence: u64, next: u64) -> bool {
        let found = self.flows.get_mut(&flow).filter(|place| place.next == next && sequence >= place.whole_next);
        found.map(|place| place.whole_next = sequence + 1).is_some()
    }
}
