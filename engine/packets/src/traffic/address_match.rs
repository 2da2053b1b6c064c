//! Whether a frame with a broken signature is one of ours all the same, by its addresses and ports.

use std::collections::HashSet;
use std::ops::Range;

use super::header_stack::{ComputedHeader, HeaderStack};
use super::shape::without;
use super::varied_field::VariedField;
use crate::template::{AddressBits, AddressRange};
use crate::wire::{Ethernet, Header, Headers, ethernet, ipv4, ipv6, udp};

/// What names a flow of a file: addresses, protocol and ports, or the type of a frame without IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlowKey {
    ethertype: u16,
    addresses: [u8; 32],
    protocol: u8,
    ports: [u8; 4],
}

impl FlowKey {
    /// The key of a frame whose headers were found.
    pub fn of(frame: &[u8], headers: &Headers) -> Self {
        let mut key = Self { ethertype: headers.ethertype, addresses: [0; 32], protocol: 0, ports: [0; 4] };
        if let Some(ip) = headers.ip {
            let addresses = &frame[ip.addresses()];
            key.addresses[..addresses.len()].copy_from_slice(addresses);
            key.protocol = ip.protocol;
        }
        if let Some(transport) = headers.transport {
            key.ports.copy_from_slice(&frame[udp::PORTS.range(transport.at)]);
        }
        key
    }
}

/// How frames of a stream are recognised by their addresses.
#[derive(Debug, Clone)]
pub enum AddressMatch {
    /// By the same bytes in these places, and one of its values in each varied field.
    Like { bytes: Vec<u8>, fixed: Vec<Range<usize>>, varied: Vec<VariedField> },
    /// By the key of one of these flows.
    OneOf(HashSet<FlowKey>),
}

impl AddressMatch {
    /// Recognises frames with the outermost headers of `stack`, without the fields that change on the way.
    pub fn like(stack: &HeaderStack) -> Self {
        let outermost = stack.parts.iter().find_map(|part| match *part {
            ComputedHeader::Ipv4 { at } => Some((at, ipv4::PROTOCOL.range(at), ipv4::ADDRESSES.range(at))),
            ComputedHeader::Ipv6 { at } => Some((at, ipv6::NEXT_HEADER.range(at), ipv6::ADDRESSES.range(at))),
            _ => None,
        });
        let mut ranges = Vec::new();
        if let Some((network, protocol, addresses)) = outermost {
            // What labels or a session carry has no type of Ethernet's right before it.
            ranges.extend((network == stack.link_bytes).then(|| ethernet::type_before(network)));
            ranges.extend([protocol, addresses]);
            ranges.extend(stack.parts.iter().find_map(|part| match *part {
                ComputedHeader::Udp { at, ip, .. } | ComputedHeader::Tcp { at, ip } if ip.at == network => {
                    Some(udp::PORTS.range(at))
                }
                _ => None,
            }));
        }
        if ranges.is_empty() {
            // Without IP: from the type of what Ethernet and its tags carry.
            let link = stack.untouched_from.max(Ethernet::BYTES);
            ranges.push(ethernet::type_before(link).start.min(stack.header.len())..stack.header.len());
        }
        let is_within = |place: &&VariedField| ranges.iter().any(|range| range.contains(&place.bytes.start));
        let varied: Vec<VariedField> = stack.places.iter().filter(is_within).cloned().collect();
        let mut holes: Vec<Range<usize>> = varied.iter().map(|place| place.bytes.clone()).collect();
        holes.sort_by_key(|range| range.start);
        let fixed = ranges.into_iter().flat_map(|range| without(range, &holes)).collect();
        Self::Like { bytes: stack.header.clone(), fixed, varied }
    }

    /// What frames that match have in common; `None` where they are those of a file.
    pub fn bits(&self) -> Option<AddressBits> {
        let Self::Like { bytes, fixed, varied } = self else { return None };
        let mut bits = AddressBits::default();
        for range in fixed {
            bits.require(range.start, &bytes[range.clone()], &vec![0xFF; range.len()]);
        }
        bits.ranges = varied
            .iter()
            .map(|field| AddressRange {
                at: field.bytes.start,
                bytes: field.bytes.len(),
                shift: field.shift,
                mask: field.mask,
                first: field.values.first,
                span: u128::from(field.values.step.max(1)) * u128::from(field.values.count.saturating_sub(1)),
                is_behind_options: false,
            })
            .collect();
        let ends = fixed.iter().map(|range| range.end).chain(varied.iter().map(|field| field.bytes.end));
        bits.length = ends.max().unwrap_or(0);
        Some(bits)
    }

    pub fn matches(&self, frame: &[u8]) -> bool {
        match self {
            Self::Like { bytes, fixed, varied } => {
                fixed.iter().all(|range| frame.get(range.clone()) == bytes.get(range.clone()))
                    && varied.iter().all(|place| place.read(frame).is_some_and(|value| place.values.contains(value)))
            }
            Self::OneOf(keys) => {
                Headers::find(frame, 0).is_some_and(|headers| keys.contains(&FlowKey::of(frame, &headers)))
            }
        }
    }
}
