//! Lengths and checksums of a frame, computed when everything else of it is written.

use nicbench_protocol::{Fixup, PseudoHeader};

use crate::checksum;
use crate::traffic::sizes::Refused;

/// Computed in their order.
#[derive(Debug, Clone)]
pub struct Fixups(Vec<Fixup>);

impl Fixups {
    /// All places must lie within the template.
    pub fn of(requests: &[Fixup], template_bytes: usize) -> Result<Self, Refused> {
        let end_of = |at: usize, bytes: usize| at.saturating_add(bytes);
        for request in requests {
            let (end, what) = match request {
                Fixup::Length { at, bytes, counted_from, .. } => {
                    if ![1, 2, 4].contains(bytes) {
                        let what = format!("the length at byte {at} has {bytes} bytes");
                        return Err((what, "give a length 1, 2 or 4 bytes"));
                    }
                    (end_of(*at, *bytes).max(*counted_from), format!("the length at byte {at}"))
                }
                Fixup::Checksum { at, from, to, pseudo, .. } => {
                    let ends = |pseudo: PseudoHeader| {
                        let destination = pseudo.destination_at.map_or(0, |at| end_of(at, pseudo.address_bytes / 2));
                        end_of(pseudo.addresses_at, pseudo.address_bytes).max(destination)
                    };
                    let addresses = pseudo.map_or(0, ends);
                    let end = end_of(*at, 2).max(to.unwrap_or(*from)).max(addresses);
                    if at < from || to.is_some_and(|to| end_of(*at, 2) > to) {
                        let what = format!("the checksum at byte {at} is not among the bytes that it covers");
                        return Err((what, "give `from` and `to` around `at`"));
                    }
                    (end, format!("the checksum at byte {at}"))
                }
            };
            if end > template_bytes {
                let what = format!("{what} needs {end} bytes, and the template has {template_bytes}");
                return Err((what, "make the template longer"));
            }
        }
        Ok(Self(requests.to_vec()))
    }

    #[inline]
    pub fn apply(&self, frame: &mut [u8]) {
        for fixup in &self.0 {
            match fixup {
                Fixup::Length { at, bytes, counted_from, minus } => {
                    let length = (frame.len() - counted_from).saturating_sub(*minus) as u32;
                    frame[*at..at + bytes].copy_from_slice(&length.to_be_bytes()[4 - bytes..]);
                }
                Fixup::Checksum { at, from, to, minus, pseudo, zero_as_ffff, spoil } => {
                    let to = to.unwrap_or(frame.len().saturating_sub(*minus).max(at + 2));
                    frame[*at..at + 2].fill(0);
                    let sum = pseudo.map_or(0, |pseudo| pseudo_sum(pseudo, frame, to - from));
                    let sum = match checksum::finish(checksum::add(sum, &frame[*from..to])) {
                        0 if *zero_as_ffff => 0xFFFF,
                        sum => sum,
                    };
                    // A wrong sum of 0 would say that there is none (RFC 768).
                    let sum = match sum ^ u16::from(*spoil) {
                        0 if *zero_as_ffff => sum ^ 2,
                        sum => sum,
                    };
                    frame[*at..at + 2].copy_from_slice(&sum.to_be_bytes());
                }
            }
        }
    }
}

/// RFC 9293 3.1, RFC 768, RFC 8200 8.1: the addresses, the protocol and the length.
fn pseudo_sum(pseudo: PseudoHeader, frame: &[u8], length: usize) -> u64 {
    let PseudoHeader { addresses_at, address_bytes, protocol, destination_at } = pseudo;
    let one_bytes = address_bytes / 2;
    let destination_at = destination_at.unwrap_or(addresses_at + one_bytes);
    // A length of more than 16 bits is two words of the sum.
    let sum = u64::from(protocol) + (length as u64 >> 16) + (length as u64 & 0xFFFF);
    let sum = checksum::add(sum, &frame[addresses_at..addresses_at + one_bytes]);
    checksum::add(sum, &frame[destination_at..destination_at + one_bytes])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixups(text: &str, template_bytes: usize) -> Result<Fixups, Refused> {
        Fixups::of(&serde_json::from_str::<Vec<Fixup>>(text).unwrap(), template_bytes)
    }

    #[test]
    fn places_outside_the_template_are_refused() {
        for text in [
            r#"[{"kind":"length","at":39,"counted_from":14}]"#,
            r#"[{"kind":"length","at":16,"counted_from":41}]"#,
            r#"[{"kind":"length","at":16,"bytes":3,"counted_from":14}]"#,
            r#"[{"kind":"checksum","at":24,"from":14,"to":41}]"#,
            r#"[{"kind":"checksum","at":24,"from":30,"to":34}]"#,
            r#"[{"kind":"checksum","at":24,"from":14,"to":10}]"#,
            r#"[{"kind":"checksum","at":18446744073709551615,"from":14}]"#,
            r#"[{"kind":"checksum","at":24,"from":14,"pseudo":{"addresses_at":26,"address_bytes":32,"protocol":6}}]"#,
            r#"[{"kind":"checksum","at":24,"from":14,
                "pseudo":{"addresses_at":6,"address_bytes":32,"protocol":6,"destination_at":25}}]"#,
        ] {
            assert!(fixups(text, 40).is_err(), "{text}");
        }
    }

    #[test]
    fn the_checksum_of_a_frame_with_its_checksum_is_zero() {
        let fixups =
            fixups(r#"[{"kind":"length","at":2,"counted_from":0},{"kind":"checksum","at":10,"from":0,"to":20}]"#, 20);
        let mut frame: Vec<u8> = (0x40..0x54).collect();
        fixups.unwrap().apply(&mut frame);
        assert_eq!(frame[2..4], [0, 20]);
        assert_eq!(checksum::finish(checksum::add(0, &frame)), 0);
    }

    #[test]
    fn a_checksum_covers_the_destination_that_a_routing_header_has() {
        let fixups = fixups(
            r#"[{"kind":"checksum","at":12,"from":12,
            "pseudo":{"addresses_at":0,"address_bytes":8,"protocol":17,"destination_at":8}}]"#,
            16,
        );
        let mut frame: Vec<u8> = (0x40..0x50).collect();
        fixups.unwrap().apply(&mut frame);
        let covered = [&frame[..4], &frame[8..], &[0, 17, 0, 4]].concat();
        assert_eq!(checksum::finish(checksum::add(0, &covered)), 0);
    }

    #[test]
    fn a_checksum_may_leave_out_the_end_and_may_be_spoilt() {
        let frame = |text: &str| {
            let mut frame: Vec<u8> = (0..12).collect();
            fixups(text, 8).unwrap().apply(&mut frame);
            frame
        };
        let good = frame(r#"[{"kind":"checksum","at":2,"from":0,"minus":4}]"#);
        assert_eq!(checksum::finish(checksum::add(0, &good[..8])), 0);
        let mut spoilt = frame(r#"[{"kind":"checksum","at":2,"from":0,"minus":4,"spoil":true}]"#);
        spoilt[3] ^= 1;
        assert_eq!(spoilt, good);
        // Never less than the checksum itself.
        assert_eq!(frame(r#"[{"kind":"checksum","at":2,"from":2,"minus":99}]"#)[2..4], [0xFF; 2]);
    }

    #[test]
    fn a_checksum_of_zero_is_sent_as_ones_where_asked() {
        let text = r#"[{"kind":"checksum","at":0,"from":0,"zero_as_ffff":true}]"#;
        let mut frame = vec![0, 0, 0xFF, 0xFF];
        fixups(text, 4).unwrap().apply(&mut frame);
        assert_eq!(frame, [0xFF; 4]);
        // A wrong one is not 0 either, which would say that there is none.
        let mut frame = vec![0, 0, 0xFF, 0xFE];
        fixups(&text.replace("true", r#"true,"spoil":true"#), 4).unwrap().apply(&mut frame);
        assert_eq!(frame[..2], [0, 3]);
    }
}
