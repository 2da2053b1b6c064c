//! Recognises frames that bear no signature: by their bytes, but for those that a router changes, or by a filter.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use nicbench_protocol::FilterBytes;

use crate::wire::{Headers, ethernet, ipv4, ipv6};

/// IEEE 802.3 4.4.2: minFrameSize, without FCS.
pub const SMALLEST_FRAME_BYTES: usize = 60;

/// What tells which of a stream's frames a frame is.
#[derive(Debug, Clone)]
pub enum Recognition {
    /// By a hash of its bytes: the frames of the file that have it, in order.
    Bytes(HashMap<u64, Vec<u32>>),
    /// All frames are one kind.
    Filter(Vec<Filter>),
}

/// Bytes that a frame must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    at: usize,
    value: Vec<u8>,
    mask: Vec<u8>,
}

impl Filter {
    /// Reads one; otherwise says what is wrong with it.
    pub fn of(written: &FilterBytes) -> Result<Self, String> {
        let bytes = |text: &str| {
            let digits: Option<Vec<u8>> = text.chars().map(|one| one.to_digit(16).map(|digit| digit as u8)).collect();
            digits.filter(|digits| digits.len() % 2 == 0 && !digits.is_empty())
        };
        let bytes = |text: &str| {
            let digits = bytes(text).ok_or_else(|| format!("{text:?} is no row of bytes"))?;
            Ok::<Vec<u8>, String>(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
        };
        let value = bytes(&written.hex)?;
        let mask = written.mask.as_deref().map_or_else(|| Ok(vec![0xFF; value.len()]), bytes)?;
        if mask.len() != value.len() {
            return Err(format!("{} bytes have a mask of {}", value.len(), mask.len()));
        }
        Ok(Self { at: written.at as usize, value, mask })
    }

    /// Whether a frame holds the bytes.
    pub fn matches(&self, frame: &[u8]) -> bool {
        let Some(bytes) = frame.get(self.at..).and_then(|rest| rest.get(..self.value.len())) else { return false };
        bytes.iter().zip(&self.value).zip(&self.mask).all(|((byte, value), mask)| (byte ^ value) & mask == 0)
    }
}

impl Recognition {
    /// Of these frames, by their bytes.
    pub fn by_bytes(frames: &[Vec<u8>]) -> Self {
        let mut found: HashMap<u64, Vec<u32>> = HashMap::new();
        for (index, frame) in frames.iter().enumerate() {
            found.entry(hash(frame)).or_default().push(index as u32);
        }
        Self::Bytes(found)
    }

    /// The position in a stream of `count` frames over and over that `frame` most likely has where `expected` is the
    /// next one; `stored` gives the frame of an index. `None` where it is none of them.
    pub fn position<'a>(
        &self,
        frame: &[u8],
        expected: u64,
        count: u64,
        stored: impl Fn(u32) -> &'a [u8],
    ) -> Option<u64> {
        let indices = match self {
            Self::Filter(filters) => return filters.iter().all(|filter| filter.matches(frame)).then_some(expected),
            Self::Bytes(found) => found.get(&hash(frame))?,
        };
        let lap = expected / count;
        let laps = lap.saturating_sub(1)..=lap + 1;
        let mut nearest: Option<u64> = None;
        for index in indices {
            if !is_same(frame, stored(*index)) {
                continue;
            }
            for position in laps.clone().map(|lap| lap * count + u64::from(*index)) {
                // Of two as near the one ahead: if it was a copy of the other, the next of its kind will count as one.
                let rank = |position: u64| (position.abs_diff(expected), position < expected);
                let is_nearer = nearest.is_none_or(|other| rank(position) < rank(other));
                nearest = if is_nearer { Some(position) } else { nearest };
            }
        }
        nearest
    }
}

/// What a router changes: MAC addresses, hop limit and the checksum of IPv4's header.
fn changing(headers: Option<&Headers>) -> [Range<usize>; 3] {
    let none = 0..0;
    let addresses = ethernet::ADDRESSES.range(0);
    match headers.and_then(|headers| headers.ip) {
        Some(ip) if ip.is_v6 => [addresses, ipv6::HOP_LIMIT.range(ip.at), none],
        Some(ip) => [addresses, ipv4::HOP_LIMIT.range(ip.at), ipv4::CHECKSUM.range(ip.at)],
        None => [addresses, none.clone(), none],
    }
}

/// The frame without its padding, which may be cut or made anew on the way.
fn unpadded<'a>(frame: &'a [u8], headers: Option<&Headers>) -> &'a [u8] {
    let end = match headers {
        Some(headers) if headers.ip.is_some() => headers.end,
        _ if frame.len() <= SMALLEST_FRAME_BYTES => {
            frame.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
        }
        _ => frame.len(),
    };
    &frame[..end.min(frame.len())]
}

/// The frame in parts, without padding and what a router changes.
fn parts(frame: &[u8]) -> [&[u8]; 4] {
    let headers = Headers::find(frame, 0);
    let whole = unpadded(frame, headers.as_ref());
    let mut from = 0;
    let mut rest = [&frame[..0]; 4];
    let holes = changing(headers.as_ref());
    for (part, hole) in rest.iter_mut().zip(holes.iter().filter(|hole| !hole.is_empty())) {
        *part = whole.get(from..hole.start).unwrap_or_default();
        from = hole.end;
    }
    rest[3] = whole.get(from..).unwrap_or_default();
    rest
}

fn hash(frame: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts(frame).iter().for_each(|part| part.hash(&mut hasher));
    hasher.finish()
}

fn is_same(one: &[u8], other: &[u8]) -> bool {
    parts(one) == parts(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(hop_limit: u8, last: u8) -> Vec<u8> {
        let mut bytes = vec![hop_limit; 12];
        bytes.extend([8, 0, 0x45, 0, 0, 41, 0, 0, 0, 0, hop_limit, 17, hop_limit, 1, 1, 1, 1, 1, 2, 2, 2, 2]);
        bytes.extend([0; 20]);
        bytes.push(last);
        bytes
    }

    fn position(frames: &[Vec<u8>], frame: &[u8], expected: u64) -> Option<u64> {
        let recognition = Recognition::by_bytes(frames);
        recognition.position(frame, expected, frames.len() as u64, |index| &frames[index as usize])
    }

    #[test]
    fn a_routed_frame_is_recognised_and_one_with_another_byte_is_not() {
        let frames = [frame(64, 1), frame(64, 2), frame(64, 3)];
        assert_eq!(position(&frames, &frame(63, 2), 0), Some(1));
        assert_eq!(position(&frames, &frame(64, 9), 0), None);
        assert_eq!(position(&frames, &frame(64, 2)[..53], 0), None);
        let padded = [frame(64, 2), vec![7; 5]].concat();
        assert_eq!(position(&frames, &padded, 0), Some(1), "padding is nobody's");
    }

    #[test]
    fn of_frames_that_are_alike_it_is_the_nearest_to_the_one_expected() {
        let frames = [frame(64, 1), frame(64, 7), frame(64, 2), frame(64, 7)];
        assert_eq!(
            [0, 2, 3, 4, 7].map(|expected| position(&frames, &frame(64, 7), expected)),
            [1, 3, 3, 5, 7].map(Some)
        );
        assert_eq!(position(&frames, &frame(64, 1), 6), Some(8));
    }

    #[test]
    fn a_filter_asks_for_some_bits_at_a_place() {
        let filter =
            |hex: &str, mask: Option<&str>| FilterBytes { at: 12, hex: hex.into(), mask: mask.map(Into::into) };
        let matches = |hex, mask| Filter::of(&filter(hex, mask)).unwrap().matches(&frame(1, 1));
        assert!(matches("0800", None) && matches("0f00", Some("f000")) && !matches("0801", None));
        assert!(!Filter::of(&filter("0800", None)).unwrap().matches(&[0; 13]));
        assert!(Filter::of(&filter("080", None)).is_err() && Filter::of(&filter("0800", Some("ff"))).is_err());
    }
}
