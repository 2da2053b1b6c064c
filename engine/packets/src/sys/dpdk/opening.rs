//! The steps that open a port: the shim's call, the facts it gives, and what to do where it fails.

use std::ffi::CStr;
use std::ptr::{null, null_mut};

use nicbench_protocol::Timestamps;

use super::ffi::{self, RawPort, RawPortFacts, RawPortOptions};
use super::options::{PortKind, PortOptions};
use super::sizes;
use crate::port::PortFacts;
use crate::stamps::StampFacts;
use crate::sys::kernel_link::{KernelLink, LinkState};
use crate::wire::ethernet::SHORTEST_FRAME_BYTES;

/// Opens port `number`; an error is the step that failed and why.
pub(super) fn open_raw(
    number: libc::c_int,
    options: &RawPortOptions,
) -> Result<(*mut RawPort, RawPortFacts), (String, String)> {
    let mut raw = null_mut();
    let mut step = null();
    // SAFETY: all zeros is a valid value of this plain structure.
    let mut facts: RawPortFacts = unsafe { std::mem::zeroed() };
    // SAFETY: valid places for the call's four results; `number` is a port that EAL found and nobody else configures.
    let result = unsafe { ffi::nb_port_open(number, options, &mut raw, &mut facts, &mut step) };
    if result < 0 {
        // SAFETY: the shim sets `step` to a constant text before anything can fail.
        let step = unsafe { CStr::from_ptr(step) }.to_string_lossy().into_owned();
        return Err((step, ffi::error_text(result)));
    }
    Ok((raw, facts))
}

/// What the port turned out to be, without what its socket knows.
pub(super) fn facts(
    options: &PortOptions,
    raw: &RawPortFacts,
    asked: &RawPortOptions,
    kernel: Option<&KernelLink>,
    state: &LinkState,
) -> PortFacts {
    let driver_speed = (raw.link_mbits_per_s != u32::MAX).then(|| u64::from(raw.link_mbits_per_s) * 1_000_000);
    let (maximum_frame_bytes, tag_bytes) =
        sizes::longest_frames(state.mtu_bytes.unwrap_or(raw.mtu_bytes), raw.buffer_bytes);
    PortFacts {
        name: options.name.clone(),
        driver: ffi::text(&raw.driver),
        mac: (raw.mac != [0; 6]).then_some(raw.mac),
        // Drivers over a kernel interface report a constant; the interface itself knows better.
        link_bits_per_s: kernel.map_or(driver_speed, KernelLink::bits_per_s),
        link_up: state.carrier.or(Some(raw.link_up != 0)),
        minimum_frame_bytes: SHORTEST_FRAME_BYTES,
        maximum_frame_bytes,
        tag_bytes,
        // The driver of AF_XDP makes its transmit ring as long as the receive ring.
        transmit_descriptors: if asked.umem != 0 { raw.receive_descriptors } else { raw.transmit_descriptors },
        receive_descriptors: raw.receive_descriptors,
        send_buffer_bytes: None,
        transmit_budget_frames: None,
        numa_node: (raw.numa_node >= 0).then_some(raw.numa_node),
        maximum_burst: crate::port::MAXIMUM_BURST,
        lossless: options.lossless,
        stamps: stamps(raw.clock),
    }
}

/// Of received frames, where they were asked for and the driver makes them.
fn stamps(clock: u32) -> Option<StampFacts> {
    let card = StampFacts {
        source: Timestamps::Card,
        clock: "rte_eth_read_clock",
        bits: 64,
        resolution_ns: None,
        transmit_samples: false,
    };
    match clock {
        ffi::CLOCK_DEVICE => Some(card),
        ffi::CLOCK_TIMESYNC => Some(StampFacts { clock: "rte_eth_timesync_read_time", transmit_samples: true, ..card }),
        ffi::CLOCK_SYSTEM => Some(StampFacts {
            source: Timestamps::Kernel,
            clock: "CLOCK_REALTIME",
            // net_pcap cuts them off there.
            resolution_ns: Some(1000.0),
            ..card
        }),
        _ => None,
    }
}

pub(super) fn next_for_absent(kind: &PortKind) -> &'static str {
    match kind {
        PortKind::Pci { .. } => {
            "bind the card to vfio-pci (dpdk-devbind.py), or, if it is an mlx4 or mlx5, leave it to its kernel driver; \
             DPDK's own words are on stderr"
        }
        PortKind::AfXdp { .. } | PortKind::AfPacket { .. } | PortKind::Pcap { .. } => {
            "check the queue number (ethtool -l) and the privileges; DPDK's own words are on stderr"
        }
        _ => "check the device's arguments; DPDK's own words are on stderr",
    }
}

pub(super) fn next_for_setup(kind: &PortKind) -> &'static str {
    match kind {
        PortKind::AfXdp { .. } => {
            "run as root; remove another XDP program (ip link set dev DEVICE xdp off) or the queue's other owner; \
             lower an MTU over 3498; DPDK's own words are on stderr"
        }
        _ => "give more memory_mib or fewer descriptors; DPDK's own words are on stderr",
    }
}
