//! What the program hands over because the kernel cannot judge it: frames that were overtaken, broken signatures,
//! captures.

use std::collections::HashMap;

use crate::analyser::{Analyser, CountedStream, PortTally};
use crate::capture::Capture;
use crate::flows::{Arrival, LateFrame, LateFrames};
use crate::signature::Signature;
use crate::sys::bpf::receiving::{ADVANCED, CAPTURED, Event, JUMPED, OVERFLOW, REORDERED, UNKNOWN};

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
            JUMPED => {
                if let Some(capture) = &mut self.capture {
                    let jumper = Signature { flow: event.flow, sequence: first as u32, time_ns: 0 };
                    capture.trigger(jumper, second);
                }
            }
            _ => {}
        }
    }
}
