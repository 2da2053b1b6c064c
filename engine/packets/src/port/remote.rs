//! A port of another engine: it takes a number, so that streams, flows and signatures are the same in both engines.

use super::{Frame, Port, PortCounters, PortFacts};
use crate::wire::ethernet::SHORTEST_FRAME_BYTES;

/// In the place of a driver's name.
pub const DRIVER: &str = "remote";

/// Nothing goes or comes here.
#[derive(Debug)]
pub struct RemotePort(PortFacts);

impl RemotePort {
    /// The port of this name; what frames it takes the other engine checks.
    pub fn new(name: &str, lossless: bool) -> Self {
        Self(PortFacts {
            name: name.into(),
            driver: DRIVER.into(),
            mac: None,
            link_bits_per_s: None,
            link_up: None,
            minimum_frame_bytes: SHORTEST_FRAME_BYTES,
            maximum_frame_bytes: u32::from(u16::MAX),
            tag_bytes: 0,
            maximum_burst: crate::port::MAXIMUM_BURST,
            transmit_descriptors: 0,
            receive_descriptors: 0,
            send_buffer_bytes: None,
            transmit_budget_frames: None,
            numa_node: None,
            lossless,
            stamps: None,
        })
    }
}

impl Port for RemotePort {
    fn facts(&self) -> &PortFacts {
        &self.0
    }

    fn allocate(&mut self, _frames: &mut [Frame], _length: usize) -> usize {
        0
    }

    fn send(&mut self, _frames: &[Frame]) -> usize {
        0
    }

    fn receive(&mut self, _frames: &mut [Frame]) -> usize {
        0
    }

    fn free(&mut self, _frames: &[Frame]) {}

    fn flush(&mut self) {}

    fn counters(&mut self) -> PortCounters {
        PortCounters::default()
    }
}
