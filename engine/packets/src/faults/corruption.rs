//! Flips one bit of a frame, somewhere the receiver looks.

use super::path::Change;
use super::random::Random;
use crate::signature::SIGNATURE_BYTES;
use crate::template::signature_offset;

/// The UDP length lies so far before the signature (RFC 768).
const LENGTH_BEFORE_SIGNATURE: usize = 4;
const LENGTH_BYTES: usize = 2;

/// Flips a bit in what `wanted` names; returns what was hit, or `None` where the frame has no such place.
pub fn corrupt(bytes: &mut [u8], wanted: Change, random: &mut Random) -> Option<Change> {
    let signature = signature_offset(bytes).filter(|offset| offset + SIGNATURE_BYTES <= bytes.len())?;
    let pattern = signature + SIGNATURE_BYTES;
    let (hit, range) = match wanted {
        Change::CorruptedPayload if pattern < bytes.len() => (wanted, pattern..bytes.len()),
        Change::CorruptedPayload | Change::CorruptedSignature => (Change::CorruptedSignature, signature..pattern),
        Change::CorruptedLength => {
            let length = signature - LENGTH_BEFORE_SIGNATURE;
            (wanted, length..length + LENGTH_BYTES)
        }
        Change::None | Change::Copy => return None,
    };
    let bit = random.below(range.len() as u64 * 8) as usize;
    bytes[range.start + bit / 8] ^= 1 << (bit % 8);
    Some(hit)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ethernet, IPv4, UDP, signature, `payload` more bytes, all zero but what names them.
    fn frame(payload: usize) -> Vec<u8> {
        let mut bytes = vec![0; 14 + 20 + 8 + SIGNATURE_BYTES + payload];
        (bytes[12], bytes[14], bytes[23]) = (0x08, 0x45, 17);
        bytes
    }

    fn hit(wanted: Change, payload: usize) -> (Option<Change>, Vec<usize>) {
        let (before, mut random) = (frame(payload), Random::seeded(3, 1, 1));
        let mut places = Vec::new();
        let mut what = None;
        for _ in 0..200 {
            let mut bytes = before.clone();
            what = corrupt(&mut bytes, wanted, &mut random);
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
    fn a_frame_that_cannot_be_ours_is_left_alone() {
        let mut arp = vec![0; 60];
        (arp[12], arp[13]) = (0x08, 0x06);
        let before = arp.clone();
        assert_eq!(corrupt(&mut arp, Change::CorruptedPayload, &mut Random::seeded(1, 1, 1)), None);
        assert_eq!(arp, before);
    }
}
