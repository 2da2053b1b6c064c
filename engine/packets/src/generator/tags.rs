//! Counts of received frames by the values of fields: which marks, labels or addresses a DUT gave them.

use std::collections::HashMap;

use nicbench_protocol::FlowTag;

use super::receiver::Arrived;
use crate::error::{EngineError, ErrorKind};

/// Values that are counted apart; frames with others are counted together.
const MOST_VALUES: usize = 4096;
const MOST_BITS: u32 = 128;
/// The last bit at which a field may begin.
const LAST_BIT: u32 = 65_535;

/// The fields of one flow, and what arrived by their values.
#[derive(Debug)]
pub struct Tags {
    fields: Vec<FlowTag>,
    counts: HashMap<u128, Arrived>,
    others: Arrived,
}

/// What arrived with the same values, one for each field, in hexadecimal; `None`: with any beyond the first 4096.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tagged {
    pub values: Option<Vec<String>>,
    pub arrived: Arrived,
}

impl Tags {
    /// Tags of the flow `name`; `None` without fields.
    ///
    /// # Errors
    /// Where fields are longer than is kept, or lie beyond any frame.
    pub fn of(name: &str, fields: &[FlowTag]) -> Result<Option<Self>, EngineError> {
        let bits = fields.iter().map(|field| u64::from(field.bits)).sum::<u64>();
        let is_field = |field: &FlowTag| field.bits > 0 && field.offset_bits <= LAST_BIT;
        if bits > u64::from(MOST_BITS) || !fields.iter().all(is_field) {
            let message = format!("flow {name}: its tags have {bits} bits");
            return Err(EngineError::new(ErrorKind::BadRequest, message, "use 1 to 128 bits in all, within a frame"));
        }
        let counts = HashMap::new();
        Ok((!fields.is_empty()).then(|| Self { fields: fields.to_vec(), counts, others: Arrived::default() }))
    }

    pub fn clear(&mut self) {
        self.counts.clear();
        self.others = Arrived::default();
    }

    /// Counts a frame. One that ends before a field has zeros there.
    pub fn count(&mut self, frame: &[u8], now: u64) {
        let value = self.fields.iter().fold(0, |value, field| joined(value, field.bits, read(frame, *field)));
        let is_known = self.counts.len() < MOST_VALUES || self.counts.contains_key(&value);
        let arrived = if is_known { self.counts.entry(value).or_default() } else { &mut self.others };
        arrived.add(frame, now);
    }

    /// What was counted, by values in ascending order.
    pub fn counted(&self) -> Vec<Tagged> {
        let mut known: Vec<_> = self.counts.iter().collect();
        known.sort_by_key(|(value, _)| **value);
        let known =
            known.into_iter().map(|(value, arrived)| Tagged { values: Some(self.values(*value)), arrived: *arrived });
        let others = (self.others.frames > 0).then_some(Tagged { values: None, arrived: self.others });
        known.chain(others).collect()
    }

    /// The values of the fields, which were joined to one.
    fn values(&self, mut joined: u128) -> Vec<String> {
        let mut values = Vec::new();
        for field in self.fields.iter().rev() {
            let mask = u128::MAX >> (MOST_BITS - field.bits);
            values.push(format!("{:0width$x}", joined & mask, width = field.bits.div_ceil(4) as usize));
            joined = joined.checked_shr(field.bits).unwrap_or(0);
        }
        values.reverse();
        values
    }
}

fn joined(before: u128, bits: u32, value: u128) -> u128 {
    before.checked_shl(bits).unwrap_or(0) | value
}

/// The value of a field, whose first bit is the highest.
fn read(frame: &[u8], field: FlowTag) -> u128 {
    let end = field.offset_bits + field.bits;
    let bytes = (field.offset_bits / 8..end.div_ceil(8)).map(|at| frame.get(at as usize).copied().unwrap_or(0));
    // A field of 128 bits within a byte lies in 17 of them: the bits before it fall out at the top.
    let spare = end.next_multiple_of(8) - end;
    let mut value = 0u128;
    let count = bytes.len();
    for (place, byte) in bytes.enumerate() {
        value = if place + 1 == count && spare > 0 {
            (value << (8 - spare)) | u128::from(byte >> spare)
        } else {
            (value << 8) | u128::from(byte)
        };
    }
    value & (u128::MAX >> (MOST_BITS - field.bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(fields: &[(u32, u32)]) -> Tags {
        let fields: Vec<_> =
            fields.iter().map(|(offset_bits, bits)| FlowTag { offset_bits: *offset_bits, bits: *bits }).collect();
        Tags::of("f", &fields).unwrap().unwrap()
    }

    fn told(tags: &Tags) -> Vec<(Vec<String>, u64)> {
        tags.counted().into_iter().map(|each| (each.values.unwrap(), each.arrived.frames)).collect()
    }

    #[test]
    fn frames_are_counted_by_the_values_of_all_fields() {
        let mut tags = tags(&[(4, 4), (8, 6), (14, 2)]);
        for byte in [0b0000_0101, 0b0000_0110, 0b0000_0101] {
            tags.count(&[0xA7, byte], 1);
        }
        let value = |ecn: &str| ["7", "01", ecn].map(String::from).to_vec();
        assert_eq!(told(&tags), [(value("1"), 2), (value("2"), 1)]);
        tags.clear();
        assert_eq!(tags.counted(), []);
    }

    #[test]
    fn a_field_may_be_a_whole_address_and_lie_across_bytes() {
        let address: Vec<u8> = (0x10..0x20).collect();
        let mut whole = tags(&[(8, 128)]);
        whole.count(&[&[0xFF], address.as_slice()].concat(), 1);
        assert_eq!(told(&whole)[0].0, ["101112131415161718191a1b1c1d1e1f"]);
        let mut across = tags(&[(12, 128)]);
        across.count(&[&[0xFF, 0xF1], address.as_slice()].concat(), 1);
        assert_eq!(told(&across)[0].0, ["1101112131415161718191a1b1c1d1e1"]);
        let mut beyond = tags(&[(12, 8)]);
        beyond.count(&[0xFF, 0xFA], 1);
        assert_eq!(told(&beyond)[0].0, ["a0"]);
    }

    #[test]
    fn values_beyond_a_number_are_counted_together() {
        let mut tags = tags(&[(0, 16)]);
        (0..5000u16).for_each(|value| tags.count(&value.to_be_bytes(), 1));
        let counted = tags.counted();
        assert_eq!((counted.len(), counted[4096].arrived.frames), (4097, 904));
        assert_eq!(counted[4096].values, None);
        assert!(Tags::of("f", &[FlowTag { offset_bits: 0, bits: 129 }]).is_err());
        assert!(Tags::of("f", &[FlowTag { offset_bits: 0, bits: 0 }]).is_err());
        assert!(Tags::of("f", &[]).unwrap().is_none());
    }
}
