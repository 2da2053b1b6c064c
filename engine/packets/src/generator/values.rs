//! The values of a field, and where they stand in a frame's bits.

use std::collections::HashSet;

use nicbench_protocol::{FrameField, RandomValues, ValueRange, Values};

use crate::signature::scramble;
use crate::traffic::sizes::Refused;

/// As many values of a range are kept one by one, to know them again.
const MOST_KEPT: u64 = 4096;

/// Some bits of a frame, and the values they take.
#[derive(Debug, Clone)]
pub struct Field {
    pub place: BitPlace,
    order: Order,
}

/// Where bits stand in a frame, big endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BitPlace {
    pub offset: usize,
    pub bits: u32,
}

#[derive(Debug, Clone)]
enum Order {
    Range { first: u128, step: u128, count: u64 },
    List(Vec<u128>),
    Random { first: u128, step: u128, count: u64, seed: u64, repeats_after: Option<u64> },
}

impl Field {
    pub fn of(request: &FrameField) -> Result<Self, Refused> {
        let place = BitPlace { offset: request.bit_offset as usize, bits: request.bits };
        if !(1..=128).contains(&place.bits) {
            return Err((format!("a field has {} bits", place.bits), "give a field 1 to 128 bits"));
        }
        let order = match &request.values {
            Values::Range(ValueRange { first, step, count }) => {
                Order::Range { first: first.0, step: step.0, count: *count }
            }
            Values::List { list } => Order::List(list.iter().map(|value| value.0).collect()),
            Values::Random { random: RandomValues { range, seed, repeats_after } } => Order::Random {
                first: range.first.0,
                step: range.step.0,
                count: range.count,
                seed: *seed,
                repeats_after: *repeats_after,
            },
        };
        let field = Self { place, order };
        if field.count() == 0 {
            return Err((format!("the field at bit {} has no values", place.offset), "give each field a value"));
        }
        Ok(field)
    }

    /// How many values there are.
    fn count(&self) -> u64 {
        match &self.order {
            Order::Random { repeats_after: Some(0), .. } => 0,
            Order::Range { count, .. } | Order::Random { count, .. } => *count,
            Order::List(list) => list.len() as u64,
        }
    }

    /// The one value of a field that does not vary.
    pub fn constant(&self) -> Option<u128> {
        (self.count() == 1).then(|| self.value(0))
    }

    /// What frame `number` of the flow has here.
    #[inline]
    pub fn value(&self, number: u64) -> u128 {
        let value = match &self.order {
            Order::Range { first, step, count } => first.wrapping_add(step.wrapping_mul((number % count).into())),
            Order::List(list) => list[(number % list.len() as u64) as usize],
            Order::Random { first, step, count, seed, repeats_after } => {
                let place = repeats_after.map_or(number, |period| number % period);
                let drawn = (u128::from(scramble(seed ^ scramble(place))) * u128::from(*count)) >> 64;
                first.wrapping_add(step.wrapping_mul(drawn))
            }
        };
        value & self.place.mask()
    }

    /// Writes what frame `number` has here.
    #[inline]
    pub fn write(&self, number: u64, frame: &mut [u8]) {
        self.place.put(frame, self.value(number));
    }

    /// The values as a set.
    pub fn members(&self) -> Members {
        let mask = self.place.mask();
        let (first, step, count) = match &self.order {
            Order::List(list) => return Members::Some(list.iter().map(|value| value & mask).collect()),
            Order::Range { first, step, count } | Order::Random { first, step, count, .. } => (*first, *step, *count),
        };
        let value = |index: u64| first.wrapping_add(step.wrapping_mul(index.into())) & mask;
        match count {
            0..=MOST_KEPT => Members::Some((0..count).map(value).collect()),
            _ => Members::Range { first, step, count, mask },
        }
    }
}

impl BitPlace {
    pub fn mask(self) -> u128 {
        u128::MAX >> (128 - self.bits)
    }

    /// The first byte behind it.
    pub fn end(self) -> usize {
        (self.offset + self.bits as usize).div_ceil(8)
    }

    /// Writes `value`; the frame holds the place.
    #[inline]
    pub fn put(self, frame: &mut [u8], value: u128) {
        let bytes = (self.bits / 8) as usize;
        if self.offset % 8 == 0 && self.bits % 8 == 0 {
            let first = self.offset / 8;
            return frame[first..first + bytes].copy_from_slice(&value.to_be_bytes()[16 - bytes..]);
        }
        let (mut value, mut left, mut end) = (value, self.bits as usize, self.offset + self.bits as usize);
        while left > 0 {
            let (byte, used) = ((end - 1) / 8, (end - 1) % 8 + 1);
            let taken = used.min(left);
            let (mask, shift) = (((1u16 << taken) - 1) as u8, 8 - used);
            frame[byte] = frame[byte] & !(mask << shift) | (value as u8 & mask) << shift;
            (value, left, end) = (value >> taken, left - taken, end - taken);
        }
    }

    /// Reads what stands there; `None` where the frame is too short.
    #[inline]
    pub fn get(self, frame: &[u8]) -> Option<u128> {
        let bytes = frame.get(self.offset / 8..self.end())?;
        let behind = self.end() * 8 - (self.offset + self.bits as usize);
        // 128 bits that begin within a byte are in 17 of them.
        let (last, front) = bytes.split_last()?;
        let front = front.iter().fold(0u128, |value, byte| value << 8 | u128::from(*byte));
        Some((front << (8 - behind) | u128::from(*last) >> behind) & self.mask())
    }
}

/// Values that can be known again.
#[derive(Debug, Clone)]
pub enum Members {
    Some(HashSet<u128>),
    Range { first: u128, step: u128, count: u64, mask: u128 },
}

impl Members {
    #[inline]
    pub fn contains(&self, value: u128) -> bool {
        match self {
            Self::Some(values) => values.contains(&value),
            Self::Range { first, step, count, mask } => {
                let upwards = (value.wrapping_sub(*first) & mask, step & mask);
                let downwards = (first.wrapping_sub(value) & mask, step.wrapping_neg() & mask);
                let is_reached = |(distance, step): (u128, u128)| match step {
                    0 => distance == 0,
                    _ => distance % step == 0 && distance / step < u128::from(*count),
                };
                is_reached(upwards) || is_reached(downwards)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(text: &str) -> Field {
        Field::of(&serde_json::from_str(text).unwrap()).unwrap()
    }

    #[test]
    fn values_come_in_turn_and_wrap_at_the_width_of_the_field() {
        let range = field(r#"{"bit_offset":0,"bits":16,"values":{"first":65534,"step":1,"count":4}}"#);
        assert_eq!((0..6).map(|number| range.value(number)).collect::<Vec<_>>(), [65534, 65535, 0, 1, 65534, 65535]);
        let down = field(r#"{"bit_offset":0,"bits":8,"values":{"first":1,"step":-1,"count":3}}"#);
        assert_eq!((0..4).map(|number| down.value(number)).collect::<Vec<_>>(), [1, 0, 255, 1]);
        let list = field(r#"{"bit_offset":0,"bits":8,"values":{"list":[7,9]}}"#);
        assert_eq!((0..3).map(|number| list.value(number)).collect::<Vec<_>>(), [7, 9, 7]);
    }

    #[test]
    fn random_values_are_of_the_range_all_of_it_and_repeat_where_asked() {
        let random =
            field(r#"{"bit_offset":0,"bits":16,"values":{"random":{"first":10,"step":2,"count":5,"seed":3}}}"#);
        let drawn: HashSet<u128> = (0..200).map(|number| random.value(number)).collect();
        assert_eq!(drawn, HashSet::from([10, 12, 14, 16, 18]));
        let text = r#"{"bit_offset":0,"bits":16,"values":{"random":{"first":0,"count":60000,"repeats_after":4}}}"#;
        let again = field(text);
        assert!((0..4).all(|number| again.value(number) == again.value(number + 4)));
        assert_ne!(again.value(0), again.value(1));
    }

    #[test]
    fn what_is_put_into_bits_is_got_back_and_nothing_else_is_touched() {
        for (offset, bits) in [(0, 1), (7, 1), (4, 12), (13, 3), (3, 128), (8, 128), (0, 48), (12, 20), (5, 64)] {
            let place = BitPlace { offset, bits };
            for (background, value) in [(0u8, u128::MAX), (0xFF, 0), (0xAA, 0x1234_5678_9ABC_DEF0_1357_9BDF_0246_8ACE)]
            {
                let mut frame = [background; 20];
                let before = frame;
                place.put(&mut frame, value & place.mask());
                assert_eq!(place.get(&frame), Some(value & place.mask()), "{place:?}");
                let bit = |frame: &[u8; 20], bit: usize| frame[bit / 8] >> (7 - bit % 8) & 1;
                let others = (0..160).filter(|bit| !(offset..offset + bits as usize).contains(bit));
                assert!(others.into_iter().all(|other| bit(&frame, other) == bit(&before, other)), "{place:?}");
            }
            assert_eq!(place.get(&[0; 20][..place.end() - 1]), None, "{place:?}");
        }
    }

    #[test]
    fn the_set_holds_exactly_the_values() {
        for text in [
            r#"{"bit_offset":0,"bits":16,"values":{"first":65000,"step":7,"count":300}}"#,
            r#"{"bit_offset":0,"bits":16,"values":{"first":100,"step":-2,"count":5000}}"#,
            r#"{"bit_offset":0,"bits":16,"values":{"first":100,"step":3,"count":9000}}"#,
            r#"{"bit_offset":0,"bits":16,"values":{"list":[1,500]}}"#,
        ] {
            let field = field(text);
            let values: HashSet<u128> = (0..9000).map(|number| field.value(number)).collect();
            let members = field.members();
            assert!((0..=65535).all(|value| members.contains(value) == values.contains(&value)), "{text}");
        }
    }

    #[test]
    fn a_field_without_values_or_bits_is_refused() {
        for text in [
            r#"{"bit_offset":0,"bits":16,"values":{"list":[]}}"#,
            r#"{"bit_offset":0,"bits":16,"values":{"first":1,"count":0}}"#,
            r#"{"bit_offset":0,"bits":129,"values":{"first":1}}"#,
            r#"{"bit_offset":0,"bits":0,"values":{"first":1}}"#,
            r#"{"bit_offset":0,"bits":8,"values":{"random":{"first":1,"repeats_after":0}}}"#,
        ] {
            assert!(Field::of(&serde_json::from_str(text).unwrap()).is_err(), "{text}");
        }
    }
}
