//! What the program hands over because the kernel cannot judge it: frames that were overtaken, broken signatures,
//! captures.

use std::collections::HashMap;

use crate::analyser::{Analyser, CountedStream, PortTally, Silence};
use crate::capture::Capture;
use crate::flows::{Arrival, LateFrame, LateFrames};
use crate::sys::bpf::receiving::{ADVANCED, CAPTURED, Event, OVERFLOW, REORDERED, Tally, UNKNOWN};

/// What the events of one receive queue told.
#[derive(Debug)]
pub struct ShardEvents {
    late: LateFrames,
    /// By stream, in their order.
    pub streams: Vec<CountedStream>,
    /// By flow: frames that were overtaken.
    pub reordered: HashMap<u32, u32>,
    pub port: PortTally,
    /// By histogram: counts that went over 32 bits.
    pub overflows: HashMap<u32, Vec<usize>>,
    pub capture: Option<Capture>,
}

impl ShardEvents {
    pub fn new(flows: usize, streams: usize, reordering_n: usize, capture: Option<Capture>) -> Self {
        Self {
            late: LateFrames::new(flows, reordering_n),
            streams: vec![CountedStream::default(); streams],
            reordered: HashMap::new(),
            port: PortTally::default(),
            overflows: HashMap::new(),
            capture,
        }
    }

    /// Judges one event of `port`; `streams` says which stream of `judge` the kernel's is, `expects` what a flow
    /// expects.
    pub fn take(
        &mut self,
        (event, bytes): (&Event, &[u8]),
        port: usize,
        streams: &[usize],
        judge: &Analyser,
        expects: impl Fn(u32) -> u64,
    ) {
        let [first, second, third, fourth] = event.numbers;
        let stream = streams.get(event.stream as usize).copied().unwrap_or(0);
        match event.kind {
            REORDERED => {
                let opened = fourth.checked_sub(1);
                let late = LateFrame { flow: event.flow, sequence: first, arrival: second, next: third, opened };
                let arrival = self.late.judge(late);
                if matches!(arrival, Arrival::Reordered(_)) {
                    *self.reordered.entry(event.flow).or_default() += 1;
                }
                self.streams[stream].count_late(arrival);
            }
            ADVANCED => self.late.note_corrupted(event.flow, first, second, expects),
            OVERFLOW => self.overflows.entry(first as u32).or_default().push(second as usize),
            UNKNOWN => {
                // As long as the frame was: what is behind the part that is here is no address.
                let mut frame = bytes[..bytes.len().min(second as usize)].to_vec();
                frame.resize(second as usize, 0);
                match judge.stream_addressed(port, &frame) {
                    None => self.port.foreign += 1,
                    Some(index) => {
                        self.streams[index].tally.unattributed += 1;
                        self.port.corrupted_unattributed += 1;
                    }
                }
            }
            CAPTURED => {
                if let Some(capture) = &mut self.capture {
                    capture.push(port, &bytes[..bytes.len().min(second as usize)], first);
                }
            }
            _ => {}
        }
    }
}

/// Adds what the kernel counted to what its events told.
pub fn add_tally(stream: &mut CountedStream, tally: &Tally) {
    let ours = &mut stream.tally;
    ours.received = tally.received;
    ours.duplicated = tally.duplicated;
    ours.reordered += tally.reordered;
    ours.corrupted = tally.corrupted;
    ours.late = tally.late;
    ours.unattributed += tally.unattributed;
    ours.variation_maximum_ns = tally.variation_maximum_ns as u32;
    ours.unpaired += tally.unpaired;
    ours.missing = tally.missing;
    ours.negative = tally.negative;
    ours.negative_maximum_ns = tally.negative_maximum_ns;
    stream.last_jump_ns = tally.last_jump_ns.checked_sub(1);
    stream.beyond = (tally.beyond_most_ns > 0).then_some((tally.beyond_least_ns, tally.beyond_most_ns));
    stream.times = (tally.received > 0).then_some((tally.first_ns, tally.last_ns));
    let (from_ns, to_ns) = (tally.silence_from_ns, tally.silence_to_ns);
    stream.silence = (to_ns > from_ns).then_some(Silence { from_ns, to_ns });
}
