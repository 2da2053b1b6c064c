//! A field that differs between flows: where it stands in the frame, and which value each flow has.

use std::ops::Range;

use crate::signature::scramble;
use crate::wire::{read_number, write_number};

/// The values of a field over the flows of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Values {
    pub first: u128,
    pub count: u64,
    pub step: u64,
    pub order: Order,
}

/// Which flow has which value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// In turn: the next value after `flows_per_value` flows, as the digits of the flow's number.
    InTurn { flows_per_value: u64 },
    /// Drawn at random for each flow.
    Drawn { seed: u64 },
}

impl Values {
    /// The value of the flow with this number, from 0 within the stream.
    pub fn of(&self, flow: u32) -> u128 {
        let index = match self.order {
            Order::InTurn { flows_per_value } => u64::from(flow) / flows_per_value % self.count,
            // The upper half of a product with a uniform number is uniform below `count`.
            Order::Drawn { seed } => {
                let drawn = scramble(seed ^ scramble(u64::from(flow)));
                ((u128::from(drawn) * u128::from(self.count)) >> 64) as u64
            }
        };
        self.first.wrapping_add(u128::from(index) * u128::from(self.step))
    }

    /// Whether any flow may have this value.
    pub fn contains(&self, value: u128) -> bool {
        let distance = value.wrapping_sub(self.first);
        let step = u128::from(self.step.max(1));
        distance % step == 0 && distance / step < u128::from(self.count)
    }

    pub fn last(&self) -> u128 {
        self.first.saturating_add(u128::from(self.count - 1) * u128::from(self.step))
    }
}

/// A varied field in a frame: `mask` bits, `shift` above the lowest bit of the big-endian number in `bytes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariedField {
    pub bytes: Range<usize>,
    pub shift: u32,
    pub mask: u128,
    pub values: Values,
}

impl VariedField {
    /// Writes the flow's value, leaving the bits beside the field.
    #[inline]
    pub fn write(&self, frame: &mut [u8], flow: u32) {
        let value = self.values.of(flow);
        let bytes = &mut frame[self.bytes.clone()];
        match bytes {
            [high, low] if self.mask == 0xFFFF => [*high, *low] = (value as u16).to_be_bytes(),
            [a, b, c, d] if self.mask == 0xFFFF_FFFF => [*a, *b, *c, *d] = (value as u32).to_be_bytes(),
            _ => write_number(bytes, self.shift, self.mask, value),
        }
    }

    /// The value in a frame; `None` where the frame ends before it.
    pub fn read(&self, frame: &[u8]) -> Option<u128> {
        Some(read_number(frame.get(self.bytes.clone())?) >> self.shift & self.mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_turn(first: u128, count: u64, step: u64, flows_per_value: u64) -> Values {
        Values { first, count, step, order: Order::InTurn { flows_per_value } }
    }

    #[test]
    fn values_in_turn_are_the_digits_of_the_flow() {
        let (fast, slow) = (in_turn(10, 3, 2, 1), in_turn(0, 2, 1, 3));
        let pairs: Vec<_> = (0..7).map(|flow| (fast.of(flow), slow.of(flow))).collect();
        assert_eq!(pairs, [(10, 0), (12, 0), (14, 0), (10, 1), (12, 1), (14, 1), (10, 0)]);
        assert!(fast.contains(14) && !fast.contains(13) && !fast.contains(16) && !fast.contains(9));
    }

    #[test]
    fn drawn_values_are_the_same_every_time_and_cover_their_range() {
        let values = Values { first: 1000, count: 16, step: 1, order: Order::Drawn { seed: 7 } };
        let mut counts = [0; 16];
        for flow in 0..16_000 {
            assert_eq!(values.of(flow), values.of(flow));
            counts[(values.of(flow) - 1000) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn what_is_written_is_read_back() {
        let place = VariedField { bytes: 1..17, shift: 0, mask: u128::MAX, values: in_turn(u128::MAX - 3, 3, 1, 1) };
        let mut frame = [0; 18];
        place.write(&mut frame, 2);
        assert_eq!((place.read(&frame), frame[0], frame[17]), (Some(u128::MAX - 1), 0, 0));
        assert_eq!(place.read(&frame[..16]), None);
    }
}
