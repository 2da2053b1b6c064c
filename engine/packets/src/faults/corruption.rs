//! Corrupts a frame: flips one bit, in a place that the receiver checks.

use super::path::Change;
use super::random::Random;
use super::signature_place::SignaturePlace;
use crate::signature::SIGNATURE_BYTES;

const LENGTH_BYTES: usize = 2;

/// Flips a bit in what `wanted` names; returns what was hit, or `None` where the frame has no such place.
pub fn corrupt(bytes: &mut [u8], place: SignaturePlace, wanted: Change, random: &mut Random) -> Option<Change> {
    let pattern = place.signature + SIGNATURE_BYTES;
    let end = place.end.min(bytes.len());
    let (hit, range) = match wanted {
        Change::CorruptedPayload if pattern < end => (wanted, pattern..end),
        Change::CorruptedPayload | Change::CorruptedSignature => (Change::CorruptedSignature, place.signature..pattern),
        Change::CorruptedLength => place.udp_length.map(|length| (wanted, length..length + LENGTH_BYTES))?,
        Change::None | Change::Copy => return None,
    };
    let bit = random.below(range.len() as u64 * 8) as usize;
    *bytes.get_mut(range.start + bit / 8)? ^= 1 << (bit % 8);
    Some(hit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(wanted: Change, payload: usize) -> (Option<Change>, Vec<usize>) {
        let place = SignaturePlace { signature: 42, end: 58 + payload, udp_length: Some(38) };
        let (before, mut random) = (vec![0; 64 + payload], Random::seeded(3, 1, 1));
        let mut places = Vec::new();
        let mut what = None;
        for _ in 0..200 {
            let mut bytes = before.clone();
            what = corrupt(&mut bytes, place, wanted, &mut random);
            let changed: Vec<usize> = (0..bytes.len()).filter(|place| bytes[*place] != before[*place]).collect();
            assert_eq!(changed.len(), 1, "one bit of one byte");
            places.extend(changed);
        }
        places.sort_unstable();
        places.dedup();
        (what, places)
    }

    #[test]
    fn each_kind_hits_its_own_bytes_and_all_of_them() {
        let signature: Vec<usize> = (42..58).collect();
        assert_eq!(hit(Change::CorruptedPayload, 2), (Some(Change::CorruptedPayload), vec![58, 59]));
        assert_eq!(hit(Change::CorruptedSignature, 2), (Some(Change::CorruptedSignature), signature.clone()));
        assert_eq!(hit(Change::CorruptedLength, 2), (Some(Change::CorruptedLength), vec![38, 39]));
        assert_eq!(hit(Change::CorruptedPayload, 0), (Some(Change::CorruptedSignature), signature));
    }

    #[test]
    fn a_frame_without_a_length_of_udp_keeps_its_bytes() {
        let place = SignaturePlace { signature: 54, end: 74, udp_length: None };
        let mut bytes = vec![0; 80];
        assert_eq!(corrupt(&mut bytes, place, Change::CorruptedLength, &mut Random::seeded(1, 1, 1)), None);
        assert_eq!(bytes, vec![0; 80]);
    }
}
