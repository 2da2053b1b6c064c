//! Checksums of a frame: what never changes is summed once, what differs between frames is added to it.

use std::ops::Range;

use super::header_stack::ComputedHeader;
use crate::checksum::{add, finish};
use crate::wire::headers::Ip;
use crate::wire::{Header, Ipv4, ip_protocol, ipv4, tcp, udp};

/// One checksum of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameChecksum {
    /// The first byte of the checksum.
    pub at: usize,
    /// The sum of everything under it that is the same in every frame.
    constant: u64,
    /// What is under it and differs, and whether that begins at an odd place of the sum.
    variable: Vec<(Range<usize>, bool)>,
    /// A checksum of zero is sent as 0xFFFF: zero means that there is none (RFC 768, RFC 8200 8.1).
    never_zero: bool,
}

impl FrameChecksum {
    /// The sum of everything under it that is the same in every frame.
    pub fn constant(&self) -> u64 {
        self.constant
    }

    /// What is under it and differs, and whether that begins at an odd place of the sum.
    pub fn variable(&self) -> &[(Range<usize>, bool)] {
        &self.variable
    }

    /// Whether a checksum of zero is sent as 0xFFFF.
    pub fn is_never_zero(&self) -> bool {
        self.never_zero
    }

    /// The bytes of the checksum itself.
    pub fn range(&self) -> Range<usize> {
        self.at..self.at + size_of::<u16>()
    }

    /// The checksum of a frame that is otherwise complete.
    #[inline]
    pub fn of(&self, frame: &[u8]) -> u16 {
        match self.sum_of(frame) {
            0 if self.never_zero => 0xFFFF,
            checksum => checksum,
        }
    }

    /// As [`Self::of`], and zero where it comes to zero.
    #[inline]
    pub fn sum_of(&self, frame: &[u8]) -> u16 {
        let sum = self.variable.iter().fold(self.constant, |sum, (range, odd)| {
            let part = add(0, &frame[range.clone()]);
            sum + if *odd { u64::from(swap_sum(part)) } else { part }
        });
        finish(sum)
    }
}

/// RFC 1071 2(B): the sum of bytes that are off by one is the byte-swapped sum.
fn swap_sum(sum: u64) -> u16 {
    (!finish(sum)).swap_bytes()
}

/// The checksums of a frame whose lengths are filled in, inner ones first. `end` is where the payload ends, `variable`
/// what differs between frames, in order and apart from each other.
pub fn checksums(frame: &[u8], parts: &[ComputedHeader], end: usize, variable: &[Range<usize>]) -> Vec<FrameChecksum> {
    parts.iter().rev().filter_map(|part| check(frame, *part, end, variable)).collect()
}

fn check(frame: &[u8], part: ComputedHeader, end: usize, variable: &[Range<usize>]) -> Option<FrameChecksum> {
    match part {
        ComputedHeader::Ipv4 { at } => {
            let header = at..at + Ipv4::at(frame, at)?.header_bytes();
            Some(over(frame, ipv4::CHECKSUM.offset(at), 0, &[header], variable, false))
        }
        ComputedHeader::Ipv6 { .. } | ComputedHeader::Length { .. } => None,
        ComputedHeader::Udp { checksum: false, .. } => None,
        ComputedHeader::Udp { at, ip, .. } => Some(transport(frame, (at, udp::CHECKSUM.offset(at), end), ip, variable)),
        ComputedHeader::Tcp { at, ip } => Some(transport(frame, (at, tcp::CHECKSUM.offset(at), end), ip, variable)),
    }
}

/// RFC 768, RFC 9293 3.1, RFC 8200 8.1: the pseudo header holds addresses, protocol and length.
fn transport(
    frame: &[u8],
    (at, checksum_at, end): (usize, usize, usize),
    ip: Ip,
    variable: &[Range<usize>],
) -> FrameChecksum {
    let start = u64::from(ip.protocol) + (end - at) as u64;
    over(frame, checksum_at, start, &[ip.addresses(), at..end], variable, ip.protocol == ip_protocol::UDP)
}

/// The checksum over `covered`, each range of which begins at an even place of the sum.
fn over(
    frame: &[u8],
    at: usize,
    start: u64,
    covered: &[Range<usize>],
    variable: &[Range<usize>],
    never_zero: bool,
) -> FrameChecksum {
    let mut check = FrameChecksum { at, constant: start, variable: Vec::new(), never_zero };
    let own = std::iter::once(check.range());
    for range in covered {
        let mut constant = frame[range.clone()].to_vec();
        for hole in variable.iter().cloned().chain(own.clone()) {
            let (from, to) = (hole.start.max(range.start), hole.end.min(range.end));
            if from >= to {
                continue;
            }
            constant[from - range.start..to - range.start].fill(0);
            if hole.start != at {
                check.variable.push((from..to, (from - range.start) % 2 == 1));
            }
        }
        check.constant = add(check.constant, &constant);
    }
    check
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::Random;

    /// The checksum by the definition, over a frame as it is.
    fn by_definition(frame: &[u8], at: usize, start: u64, covered: &[Range<usize>]) -> u16 {
        let mut frame = frame.to_vec();
        frame[at..at + 2].fill(0);
        finish(covered.iter().fold(start, |sum, range| add(sum, &frame[range.clone()])))
    }

    #[test]
    fn sums_kept_apart_give_the_checksum_of_the_whole_wherever_the_holes_are() {
        let mut random = Random::seeded(5, 1, 1);
        for _ in 0..2000 {
            let end = 80 + random.below(60) as usize;
            let mut frame: Vec<u8> = (0..end).map(|_| random.below(256) as u8).collect();
            let mut holes = Vec::new();
            let mut from = 0;
            while from + 20 < end {
                from += random.below(20) as usize;
                let to = (from + 1 + random.below(17) as usize).min(end);
                // A hole over the checksum itself cannot be: nobody varies it.
                if to <= 40 || from >= 42 {
                    holes.push(from..to);
                }
                from = to + 1;
            }
            let covered = [14..22, 34..end];
            let check = over(&frame, 40, 77, &covered, &holes, false);
            for hole in &holes {
                frame[hole.clone()].iter_mut().for_each(|byte| *byte = random.below(256) as u8);
            }
            assert_eq!(check.of(&frame), by_definition(&frame, 40, 77, &covered), "{holes:?} in {end}");
        }
    }

    #[test]
    fn a_checksum_of_zero_over_udp_is_sent_as_ones() {
        let frame = [0xFF, 0xFF, 0, 0];
        assert_eq!(over(&frame, 2, 0, &[0..2, 2..4], &[], true).of(&frame), 0xFFFF);
        assert_eq!(over(&frame, 2, 0, &[0..2, 2..4], &[], false).of(&frame), 0);
    }
}
