//! An interface that stays with its driver: what it is, and what it counts.

use std::collections::BTreeMap;

use nicbench_protocol::{PortRequest, StampClockReply, Timestamps};

use super::answering::Answering;
use super::card_clock::CardClock;
use super::receiver::{Judges, Receiver};
use crate::error::{EngineError, ErrorKind};
use crate::port::{PortCounters, PortFacts};
use crate::sys::bpf::LARGEST_BATCH;
use crate::sys::bpf::LARGEST_FRAME;
use crate::sys::bpf::generating::Flushed;
use crate::sys::kernel_link::KernelLink;
use crate::traffic::neighbours::Addresses;
use crate::wire::ethernet::{FCS_BYTES, SHORTEST_FRAME_BYTES};
use crate::wire::{Ethernet, Header, Vlan};

/// A ring that this driver finds full is that of its peer: the frame has left the tester.
const PEER_OWNS_RING: &str = "veth";

/// A port of the tester inside the kernel.
#[derive(Debug)]
pub struct XdpPort {
    facts: PortFacts,
    kernel: KernelLink,
    /// The analysis of what arrives.
    pub receiver: Receiver,
    /// Where it has addresses to answer for.
    answering: Option<Answering>,
    /// What its driver did with the frames, over all transmissions.
    flushed: Flushed,
}

impl XdpPort {
    /// Attaches the receiving program to the interface `device`; `processor` judges what comes, where it is given.
    ///
    /// # Errors
    /// Where there is no such interface, its driver runs no XDP programs, or another's program is there.
    pub fn open(
        number: usize,
        request: &PortRequest,
        device: &str,
        timestamps: Timestamps,
        processor: Option<u32>,
    ) -> Result<Self, EngineError> {
        let refuse = |what: String, next: &str| EngineError::new(ErrorKind::Port, what, next);
        let kernel = KernelLink::open(device).map_err(|error| {
            refuse(format!("port {}: interface {device}: {error}", request.name), "see the interfaces: ip link")
        })?;
        let state = kernel.state().map_err(|error| {
            refuse(format!("port {}: interface {device}: {error}", request.name), "look at: ip link")
        })?;
        let driver = kernel.driver().unwrap_or_else(|| "unknown".into());
        let clock = match timestamps {
            Timestamps::Card => Some(CardClock::open(&request.name, &kernel)?),
            _ => None,
        };
        let stamps = clock.as_ref().map(|clock| clock.facts().clone());
        let judges = Judges { queues: state.receive_queues.unwrap_or(1), processor };
        let receiver = Receiver::attach(number, &request.name, kernel.index(), judges, clock)?;
        let untagged = state.mtu_bytes.unwrap_or(1500) as usize + Ethernet::BYTES;
        let [longest, tagged] =
            [untagged, untagged + Vlan::BYTES].map(|bytes| bytes.min(LARGEST_FRAME) as u32 + FCS_BYTES);
        let facts = PortFacts {
            name: request.name.clone(),
            driver,
            mac: state.mac,
            link_bits_per_s: kernel.bits_per_s(),
            link_up: state.carrier,
            minimum_frame_bytes: SHORTEST_FRAME_BYTES,
            maximum_frame_bytes: longest,
            tag_bytes: tagged - longest,
            maximum_burst: LARGEST_BATCH,
            transmit_descriptors: request.transmit_descriptors,
            receive_descriptors: request.receive_descriptors,
            send_buffer_bytes: None,
            transmit_budget_frames: None,
            numa_node: None,
            lossless: false,
            stamps,
        };
        let answering = match request.addresses.as_slice() {
            [] => None,
            ranges => {
                let addresses = Addresses::new(&request.name, facts.mac, ranges)?;
                Some(Answering::start(&request.name, kernel.index(), addresses)?)
            }
        };
        Ok(Self { facts, kernel, receiver, answering, flushed: Flushed::default() })
    }

    pub fn facts(&self) -> &PortFacts {
        &self.facts
    }

    /// The clock that stamps what it receives; `None` where that is the program's.
    pub fn stamp_clock(&self) -> Option<StampClockReply> {
        self.receiver.card_clock().and_then(CardClock::reply)
    }

    /// The number of the interface.
    pub fn interface(&self) -> u32 {
        self.kernel.index()
    }

    /// Adds what a transmission sent out of this port.
    pub fn note(&mut self, flushed: Flushed) {
        self.flushed.taken += flushed.taken;
        self.flushed.refused += flushed.refused;
        self.flushed.failed += flushed.failed;
    }

    /// Cumulative, since the port was opened.
    pub fn counters(&self) -> PortCounters {
        let (state, gone) = self.kernel.state_or_why_not();
        let mut named: BTreeMap<String, u64> = self.receiver.counters();
        named.insert("redirect_taken".into(), self.flushed.taken);
        named.insert("redirect_refused".into(), self.flushed.refused);
        named.insert("redirect_failed".into(), self.flushed.failed);
        let kept = [("kernel_rx_dropped", state.receive_dropped), ("kernel_tx_dropped", state.transmit_dropped)];
        named.extend(self.answering.as_ref().map(Answering::counters).unwrap_or_default());
        named.extend(kept.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        let at_peer = if self.facts.driver == PEER_OWNS_RING { self.flushed.refused } else { 0 };
        PortCounters {
            completed: self.flushed.taken + at_peer,
            receive_overrun: self.receiver.receive_overrun(),
            link_changes: state.carrier_changes.unwrap_or(0),
            link_up: state.carrier,
            named,
            gone,
        }
    }
}
