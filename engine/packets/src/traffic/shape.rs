//! One frame of a stream as it is before flow and signature: its length, what that changes, and what the receiver compares.

use std::ops::Range;

use super::checks::{Check, checks};
use super::stack::Part;
use crate::signature::SIGNATURE_BYTES;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// Without FCS.
    pub length: usize,
    /// Where the payload ends; behind it is padding.
    end: usize,
    pub signature: usize,
    /// Length fields.
    lengths: Vec<(usize, u16)>,
    checks: Vec<Check>,
    /// Checksums and length fields that nobody on the way may change begin here.
    untouched_from: usize,
    /// What is compared byte by byte.
    compared: Vec<Range<usize>>,
}

impl Shape {
    /// The shape of `frame`, whose parts end at `end`. Flows differ in `varied`; whoever forwards it leaves alone what is behind
    /// `untouched_from`.
    pub fn new(
        frame: &[u8],
        parts: &[Part],
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
        let checks = checks(&filled, parts, end, &variable);
        let mut holes = variable;
        holes.extend(checks.iter().map(|check| check.at..check.at + 2));
        holes.extend(lengths.iter().map(|(at, _)| *at..at + 2));
        holes.sort_by_key(|range| range.start);
        let compared = without(untouched_from..end, &holes);
        Self { length: frame.len(), end, signature, lengths, checks, untouched_from, compared }
    }

    /// Writes what the length changes.
    #[inline]
    pub fn write_lengths(&self, frame: &mut [u8]) {
        put_lengths(frame, &self.lengths);
    }

    /// Writes every checksum of a frame that is otherwise complete, inner ones first.
    #[inline]
    pub fn write_checks(&self, frame: &mut [u8]) {
        for check in &self.checks {
            let checksum = check.of(frame);
            frame[check.at..check.at + 2].copy_from_slice(&checksum.to_be_bytes());
        }
    }

    /// Whether lengths and payload are as sent; `sent` is the frame without what differs between flows.
    #[inline]
    pub fn is_intact(&self, frame: &[u8], sent: &[u8]) -> bool {
        // Padding may be cut or made anew on the way.
        let fits = frame.len() == self.length || (self.end < self.length && frame.len() >= self.end);
        fits && self.lengths.iter().all(|(at, length)| frame[*at..at + 2] == length.to_be_bytes())
            && self.compared.iter().all(|range| frame[range.clone()] == sent[range.clone()])
            && self.untouched_checks().all(|check| frame[check.at..check.at + 2] == check.of(frame).to_be_bytes())
    }

    /// The checksum at this place of a frame; 0 where there is none.
    pub fn check_at(&self, at: usize, frame: &[u8]) -> u16 {
        self.checks.iter().find(|check| check.at == at).map_or(0, |check| check.sum_of(frame))
    }

    /// Checksums in what is carried: whoever forwards the frame has no business there.
    fn untouched_checks(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| check.at >= self.untouched_from)
    }
}

fn lengths(parts: &[Part], end: usize) -> Vec<(usize, u16)> {
    let field = |part: &Part| match *part {
        Part::Ipv4 { at } => Some((at + 2, (end - at) as u16)),
        Part::Ipv6 { at } => Some((at + 4, (end - at - 40) as u16)),
        Part::Udp { at, .. } => Some((at + 4, (end - at) as u16)),
        Part::Tcp { .. } => None,
    };
    parts.iter().filter_map(field).collect()
}

fn put_lengths(frame: &mut [u8], lengths: &[(usize, u16)]) {
    for (at, length) in lengths {
        frame[*at..at + 2].copy_from_slice(&length.to_be_bytes());
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
