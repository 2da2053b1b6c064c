//! Whether a frame with a broken signature is one of ours all the same, by its addresses and ports.

use std::collections::HashSet;

use super::field::Place;
use super::headers::{Headers, walk};
use super::shape::without;
use super::stack::{Part, Stack};
use std::ops::Range;

/// What names a flow of a file: addresses, protocol and ports, or the type of a frame without IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    ethertype: u16,
    addresses: [u8; 32],
    protocol: u8,
    ports: [u8; 4],
}

impl Key {
    /// Of a frame whose headers were found.
    pub fn of(frame: &[u8], headers: &Headers) -> Self {
        let mut key = Self { ethertype: headers.ethertype, addresses: [0; 32], protocol: 0, ports: [0; 4] };
        if let Some(ip) = headers.ip {
            let addresses = &frame[ip.addresses()];
            key.addresses[..addresses.len()].copy_from_slice(addresses);
            key.protocol = ip.protocol;
        }
        if let Some(transport) = headers.transport {
            key.ports.copy_from_slice(&frame[transport.at..transport.at + 4]);
        }
        key
    }
}

/// How our frames are addressed.
#[derive(Debug, Clone)]
pub enum Addressed {
    /// The same bytes in these places, and one of its values in each varied one.
    Like { bytes: Vec<u8>, fixed: Vec<Range<usize>>, varied: Vec<Place> },
    /// One of these flows.
    OneOf(HashSet<Key>),
}

impl Addressed {
    /// As the outermost headers of `stack`, without what changes on the way.
    pub fn like(stack: &Stack) -> Self {
        let outer = |at: &usize| *at <= stack.untouched_from;
        let mut ranges = Vec::new();
        for part in &stack.parts {
            match *part {
                Part::Ipv4 { at } if outer(&at) => ranges.extend([at - 2..at, at + 9..at + 10, at + 12..at + 20]),
                Part::Ipv6 { at } if outer(&at) => ranges.extend([at - 2..at, at + 6..at + 7, at + 8..at + 40]),
                Part::Udp { at, .. } | Part::Tcp { at, .. } if outer(&at) => ranges.push(at..at + 4),
                _ => {}
            }
        }
        if ranges.is_empty() {
            let from = stack.untouched_from.saturating_sub(2).max(12);
            ranges.push(from.min(stack.header.len())..stack.header.len());
        }
        let is_within = |place: &&Place| ranges.iter().any(|range| range.contains(&place.bytes.start));
        let varied: Vec<Place> = stack.places.iter().filter(is_within).cloned().collect();
        let mut holes: Vec<Range<usize>> = varied.iter().map(|place| place.bytes.clone()).collect();
        holes.sort_by_key(|range| range.start);
        let fixed = ranges.into_iter().flat_map(|range| without(range, &holes)).collect();
        Self::Like { bytes: stack.header.clone(), fixed, varied }
    }

    pub fn matches(&self, frame: &[u8]) -> bool {
        match self {
            Self::Like { bytes, fixed, varied } => {
                fixed.iter().all(|range| frame.get(range.clone()) == bytes.get(range.clone()))
                    && varied.iter().all(|place| place.read(frame).is_some_and(|value| place.values.contains(value)))
            }
            Self::OneOf(keys) => walk(frame, 0).is_some_and(|headers| keys.contains(&Key::of(frame, &headers))),
        }
    }
}
