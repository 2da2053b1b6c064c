//! What all frames of one size have in common: lengths, checksums, and the bytes that the receiver compares.

use std::ops::Range;

use super::checksums::{FrameChecksum, checksums};
use super::header_stack::ComputedHeader;
use crate::signature::SIGNATURE_BYTES;
use crate::wire::{Header, Ipv6, ipv4, ipv6, is_u16_at, udp, write_u16};

/// What all frames of one size have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// The length of the frame, without FCS.
    pub length: usize,
    /// Where the payload ends; behind it is padding.
    end: usize,
    /// Where it begins; behind every frame where there is none.
    pub signature: usize,
    /// The length fields: place and value.
    lengths: Vec<(usize, u16)>,
    checksums: Vec<FrameChecksum>,
    /// Checksums and length fields that nobody on the way may change begin here.
    untouched_from: usize,
    /// The bytes that the receiver compares one by one.
    compared: Vec<Range<usize>>,
}

impl Shape {
    /// The shape of `frame`, whose parts end at `end`. Flows differ in `varied`; whoever forwards it leaves alone what
    /// is behind `untouched_from`.
    pub fn new(
        frame: &[u8],
        parts: &[ComputedHeader],
        (signature, end): (usize, usize),
        varied: &[Range<usize>],
        untouched_from: usize,
    ) -> Self {
        let lengths = lengths(parts, end);
        let mut filled = frame.to_vec();
        put_lengths(&mut filled, &lengths);
        let mut variable = varied.to_vec();
        variable.push(signature..signature + SIGNATURE_BYTES);
        variable.sort_by_key(|range| (range.start, range.end));
        variable.dedup();
        let checksums = checksums(&filled, parts, end, &variable);
        let mut holes = variable;
        holes.extend(checksums.iter().map(FrameChecksum::range));
        holes.extend(lengths.iter().map(|(at, _)| *at..at + size_of::<u16>()));
        holes.sort_by_key(|range| range.start);
        let compared = without(untouched_from..end, &holes);
        Self { length: frame.len(), end, signature, lengths, checksums, untouched_from, compared }
    }

    /// Of a frame of so many bytes that is sent as it is.
    pub fn as_it_is(length: usize) -> Self {
        let (lengths, checksums, compared) = (Vec::new(), Vec::new(), Vec::new());
        Self { length, end: length, signature: usize::MAX, lengths, checksums, untouched_from: 0, compared }
    }

    /// Writes the length fields.
    #[inline]
    pub fn write_lengths(&self, frame: &mut [u8]) {
        put_lengths(frame, &self.lengths);
    }

    /// Writes every checksum of a frame that is otherwise complete, inner ones first.
    #[inline]
    pub fn write_checksums(&self, frame: &mut [u8]) {
        for check in &self.checksums {
            let checksum = check.of(frame);
            write_u16(frame, check.at, checksum);
        }
    }

    /// The length fields: place, and by how much each is less than the length of the frame.
    pub fn length_fields(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.lengths.iter().map(|(at, value)| (*at, self.length - usize::from(*value)))
    }

    /// The bytes that are compared one by one.
    pub fn compared(&self) -> &[Range<usize>] {
        &self.compared
    }

    /// Whether lengths and payload are as sent; `sent` is the frame without what differs between flows.
    #[inline]
    pub fn is_intact(&self, frame: &[u8], sent: &[u8]) -> bool {
        // Padding may be cut or made anew on the way.
        let fits = frame.len() == self.length || (self.end < self.length && frame.len() >= self.end);
        fits && self.lengths.iter().all(|(at, length)| is_u16_at(frame, *at, *length))
            && self.compared.iter().all(|range| frame[range.clone()] == sent[range.clone()])
            && self.untouched_checksums().all(|check| is_u16_at(frame, check.at, check.of(frame)))
    }

    /// The checksum at this place of a frame; 0 where there is none.
    pub fn checksum_at_place(&self, at: usize, frame: &[u8]) -> u16 {
        self.checksums.iter().find(|check| check.at == at).map_or(0, |check| check.sum_of(frame))
    }

    /// Every checksum, inner ones first.
    pub fn checksums(&self) -> &[FrameChecksum] {
        &self.checksums
    }

    /// Checksums in what is carried: whoever forwards the frame has no business there.
    pub fn untouched_checksums(&self) -> impl Iterator<Item = &FrameChecksum> {
        self.checksums.iter().filter(|check| check.at >= self.untouched_from)
    }
}

fn lengths(parts: &[ComputedHeader], end: usize) -> Vec<(usize, u16)> {
    let field = |part: &ComputedHeader| match *part {
        ComputedHeader::Ipv4 { at } => Some((ipv4::TOTAL_LENGTH.offset(at), (end - at) as u16)),
        ComputedHeader::Ipv6 { at } => Some((ipv6::PAYLOAD_LENGTH.offset(at), (end - at - Ipv6::BYTES) as u16)),
        ComputedHeader::Udp { at, .. } => Some((udp::LENGTH.offset(at), (end - at) as u16)),
        ComputedHeader::Length { at, from } => Some((at, (end - from) as u16)),
        ComputedHeader::Tcp { .. } => None,
    };
    parts.iter().filter_map(field).collect()
}

fn put_lengths(frame: &mut [u8], lengths: &[(usize, u16)]) {
    for (at, length) in lengths {
        write_u16(frame, *at, *length);
    }
}

/// `whole` without `holes`, which are in order.
pub fn without(whole: Range<usize>, holes: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut rest = Vec::new();
    let mut from = whole.start;
    for hole in holes {
        if from < hole.start.min(whole.end) {
            rest.push(from..hole.start.min(whole.end));
        }
        from = from.max(hole.end);
    }
    if from < whole.end {
        rest.push(from..whole.end);
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_cut_out_wherever_they_are() {
        assert_eq!(without(10..20, &[0..5, 8..12, 14..15, 15..16, 19..30]), [12..14, 16..19]);
        assert_eq!(without(10..20, &[]), std::slice::from_ref(&(10..20)));
        assert_eq!(without(10..20, &[25..26, 30..31]), std::slice::from_ref(&(10..20)));
        assert!(without(10..20, std::slice::from_ref(&(5..40))).is_empty());
    }
}
