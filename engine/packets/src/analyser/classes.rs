//! Counts the traffic class of received frames: DSCP and ECN of the outermost IP header (RFC 2474 3, RFC 3168 5).

use nicbench_protocol::TrafficClassesReading;

use crate::wire::{Header, Headers, Ipv4, Ipv6, ipv4, ipv6};

/// RFC 3168 5: the codepoint "congestion experienced", of the field's two lowest bits.
const CE: u8 = 3;
const CODEPOINTS: u8 = 3;
/// A reading has the flows one by one where there are at most so many.
const MOST_FLOWS: usize = 1024;

/// Counts of one receiver, by stream and by flow.
#[derive(Debug, Clone)]
pub(super) struct Classes {
    /// By stream: frames of each value of the field.
    streams: Vec<[u64; 256]>,
    /// By flow: frames with CE.
    marked: Vec<u64>,
}

impl Classes {
    pub(super) fn new(streams: usize, flows: usize) -> Self {
        Self { streams: vec![[0; 256]; streams], marked: vec![0; flows] }
    }

    /// Counts a frame of `flow`; one without an IP header is not counted.
    pub(super) fn count(&mut self, stream: usize, flow: u32, frame: &[u8]) {
        let Some(class) = traffic_class(frame) else { return };
        if let Some(counts) = self.streams.get_mut(stream) {
            counts[usize::from(class)] += 1;
        }
        if let Some(marked) = self.marked.get_mut(flow as usize).filter(|_| class & CODEPOINTS == CE) {
            *marked += 1;
        }
    }

    /// Adds what another receiver counted.
    pub(super) fn merge(&mut self, other: &Self) {
        for (counts, more) in self.streams.iter_mut().zip(&other.streams) {
            counts.iter_mut().zip(more.iter()).for_each(|(count, more)| *count += more);
        }
        self.marked.iter_mut().zip(&other.marked).for_each(|(count, more)| *count += more);
    }

    /// Of a stream with so many flows from `first_flow` on.
    pub(super) fn reading(&self, stream: usize, first_flow: u32, flows: u32) -> TrafficClassesReading {
        let counts = self.streams[stream].iter().zip(0..=u8::MAX);
        let (first, flows) = (first_flow as usize, flows as usize);
        TrafficClassesReading {
            received: counts.filter(|(count, _)| **count > 0).map(|(count, class)| (class, *count)).collect(),
            marked_flows: if flows <= MOST_FLOWS { self.marked[first..first + flows].to_vec() } else { Vec::new() },
        }
    }
}

/// The field of the outermost IP header, behind any tags.
fn traffic_class(frame: &[u8]) -> Option<u8> {
    let ip = Headers::find(frame, 0)?.ip?;
    if ip.is_v6 {
        return Some(Ipv6::at(frame, ip.at)?.get(ipv6::TRAFFIC_CLASS) as u8);
    }
    Some(Ipv4::at(frame, ip.at)?.get(ipv4::TRAFFIC_CLASS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(ethertype: u16, ip: &[u8]) -> Vec<u8> {
        [&[0; 12][..], &ethertype.to_be_bytes(), ip, &[0; 40]].concat()
    }

    #[test]
    fn both_versions_are_read_and_other_frames_are_not_counted() {
        let v4 = frame(0x0800, &[0x45, 0x63, 0, 60]);
        let v6 = frame(0x86DD, &[0x66, 0x20, 0, 0]);
        assert_eq!((traffic_class(&v4), traffic_class(&v6)), (Some(0x63), Some(0x62)));
        assert_eq!(traffic_class(&frame(0x8808, &[1, 1])), None);
    }

    #[test]
    fn marks_are_counted_by_flow_and_two_receivers_add_up() {
        let mut one = Classes::new(2, 3);
        let mut other = one.clone();
        one.count(0, 0, &frame(0x0800, &[0x45, 0x63, 0, 60]));
        one.count(1, 2, &frame(0x0800, &[0x45, 0x62, 0, 60]));
        other.count(1, 2, &frame(0x0800, &[0x45, 0x63, 0, 60]));
        one.merge(&other);
        let reading = one.reading(1, 1, 2);
        assert_eq!(reading.received, [(0x62, 1), (0x63, 1)]);
        assert_eq!(reading.marked_flows, [0, 1]);
    }
}
