//! `Port` over an `ethdev` of DPDK, with what the kernel knows beside it.

use std::ffi::{CStr, CString};
use std::io;
use std::ptr::{null, null_mut};

use super::ffi::{self, RawPort, RawPortFacts, RawPortOptions, RawPortStatistics};
use super::kernel_link::KernelLink;
use super::options::{PortKind, PortOptions};
use super::sizes;
use crate::error::{EngineError, ErrorKind};
use crate::port::{Frame, MAXIMUM_BURST, Port, PortCounters, PortFacts};
use crate::sys::xsk::{Xsk, XskStatistics, open_sockets};

/// A socket's 32-bit count of completions is read at least this often, in frames accepted.
const COMPLETIONS_READ_EVERY: u64 = 1 << 24;

/// A configured port. Its queue, pool and socket are given back on `Drop`.
pub(super) struct DpdkPort {
    raw: *mut RawPort,
    facts: PortFacts,
    accepted: u64,
    completions_read_at: u64,
    xsk: Option<Xsk>,
    statistics_at_start: XskStatistics,
    kernel: Option<KernelLink>,
    carrier_changes_at_start: u64,
    link: PolledLink,
}

/// The link's changes where the driver does not announce them: seen when asked.
#[derive(Debug, Default)]
struct PolledLink {
    announced: bool,
    last: Option<bool>,
    changes: u64,
}

impl DpdkPort {
    /// Configures and starts the port whose device EAL found under `device`.
    pub fn open(options: &PortOptions, device: &str, kernel: Option<KernelLink>) -> Result<Self, EngineError> {
        let fail = |what: String, next: &str| EngineError::new(ErrorKind::Port, format!("port {}: {what}", options.name), next);
        let name = CString::new(device).map_err(|_| fail("its device's name holds a zero byte".into(), "correct the name"))?;
        let number = ffi::port_find(&name);
        if number < 0 {
            return Err(fail(format!("DPDK took no device {device}"), next_for_absent(&options.kind)));
        }
        let kernel_mtu = kernel.as_ref().and_then(|kernel| kernel.state().ok()).and_then(|state| state.mtu_bytes);
        let raw_options = sizes::raw_options(options, kernel_mtu);
        let sockets_before = open_sockets().unwrap_or_default();
        let (raw, raw_facts) = open_raw(number, &raw_options).map_err(|(step, reason)| fail(format!("{step}: {reason}"), next_for_setup(&options.kind)))?;
        let mut port = Self {
            raw,
            facts: facts(options, &raw_facts, &raw_options, kernel.as_ref(), kernel_mtu),
            accepted: 0,
            completions_read_at: 0,
            xsk: None,
            statistics_at_start: XskStatistics::default(),
            carrier_changes_at_start: 0,
            kernel,
            link: PolledLink { announced: raw_facts.reports_link_changes != 0, ..PolledLink::default() },
        };
        if matches!(options.kind, PortKind::AfXdp { .. }) {
            let opened = open_sockets().unwrap_or_default().difference(&sockets_before).copied().collect::<Vec<_>>();
            port.take_socket(&opened, options.send_buffer_bytes)
                .map_err(|reason| fail(format!("its AF_XDP socket: {reason}"), "run as root, or give CAP_NET_ADMIN and CAP_NET_RAW"))?;
        }
        port.carrier_changes_at_start = port.carrier_changes().unwrap_or_default();
        port.link.last = port.facts.link_up;
        Ok(port)
    }

    fn take_socket(&mut self, opened: &[libc::c_int], send_buffer_bytes: Option<u64>) -> io::Result<()> {
        let &[descriptor] = opened else {
            return Err(io::Error::other(format!("DPDK opened {} where one was expected", opened.len())));
        };
        let xsk = Xsk::new(descriptor)?;
        if let Some(bytes) = send_buffer_bytes {
            xsk.set_send_buffer(bytes)?;
        }
        self.facts.send_buffer_bytes = Some(xsk.send_buffer_bytes()?);
        self.statistics_at_start = xsk.statistics()?;
        self.xsk = Some(xsk);
        Ok(())
    }

    fn carrier_changes(&self) -> Option<u64> {
        self.kernel.as_ref()?.state().ok()?.carrier_changes
    }

    fn link_changes(&mut self, announced: u64) -> u64 {
        if let Some(now) = self.carrier_changes() {
            return now - self.carrier_changes_at_start.min(now);
        }
        if self.link.announced {
            return announced;
        }
        // SAFETY: `raw` is open until `Drop`.
        let now = match unsafe { ffi::nb_link_up(self.raw) } {
            1 => Some(true),
            0 => Some(false),
            _ => None,
        };
        if now.is_some() && self.link.last.is_some() && now != self.link.last {
            self.link.changes += 1;
        }
        self.link.last = now.or(self.link.last);
        self.link.changes
    }

    fn read_completions(&mut self) {
        self.completions_read_at = self.accepted;
        if let Some(xsk) = &mut self.xsk {
            xsk.completions();
        }
    }

    fn extended(&self, counters: &mut PortCounters) {
        // SAFETY: `raw` is open until `Drop`.
        let Ok(count) = u32::try_from(unsafe { ffi::nb_extended_count(self.raw) }) else { return };
        let mut names = vec![[0u8; 64]; count as usize];
        let mut values = vec![0u64; count as usize];
        // SAFETY: both arrays have `count` places.
        let filled = unsafe { ffi::nb_extended(self.raw, names.as_mut_ptr(), values.as_mut_ptr(), count) };
        let filled = usize::try_from(filled).unwrap_or_default().min(names.len());
        counters.named.extend(names.iter().zip(values).take(filled).map(|(name, value)| (ffi::text(name), value)));
    }
}

impl Port for DpdkPort {
    fn facts(&self) -> &PortFacts {
        &self.facts
    }

    fn allocate(&mut self, frames: &mut [Frame], length: usize) -> usize {
        let Ok(length) = u32::try_from(length) else { return 0 };
        // SAFETY: `raw` is open, and the shim fills at most `burst` places of `frames`.
        unsafe { ffi::nb_allocate(self.raw, frames.as_mut_ptr(), burst(frames), length) as usize }
    }

    fn send(&mut self, frames: &[Frame]) -> usize {
        // SAFETY: `raw` is open; the frames came from a port of this process and are still the caller's, as `Port` asks.
        let accepted = unsafe { ffi::nb_send(self.raw, frames.as_ptr(), burst(frames)) };
        self.accepted += u64::from(accepted);
        if self.accepted - self.completions_read_at >= COMPLETIONS_READ_EVERY {
            self.read_completions();
        }
        accepted as usize
    }

    fn receive(&mut self, frames: &mut [Frame]) -> usize {
        // SAFETY: `raw` is open, and the shim fills at most `burst` places of `frames`.
        unsafe { ffi::nb_receive(self.raw, frames.as_mut_ptr(), burst(frames)) as usize }
    }

    fn free(&mut self, frames: &[Frame]) {
        for part in frames.chunks(MAXIMUM_BURST) {
            // SAFETY: the frames came from a port of this process and are still the caller's, as `Port` asks.
            unsafe { ffi::nb_free(part.as_ptr(), burst(part)) };
        }
    }

    fn flush(&mut self) {
        // SAFETY: `raw` is open until `Drop`.
        unsafe { ffi::nb_flush(self.raw) };
    }

    fn counters(&mut self) -> PortCounters {
        let mut raw = RawPortStatistics::default();
        // SAFETY: `raw` is open, and the shim fills the whole structure.
        unsafe { ffi::nb_statistics(self.raw, &mut raw) };
        let mut counters = PortCounters {
            completed: self.accepted,
            receive_overrun: raw.missed + raw.no_buffer,
            link_changes: self.link_changes(raw.link_changes),
            ..PortCounters::default()
        };
        self.extended(&mut counters);
        let named = [
            ("accepted", self.accepted),
            ("tx_packets", raw.transmitted),
            ("rx_packets", raw.received),
            ("imissed", raw.missed),
            ("rx_nombuf", raw.no_buffer),
            ("ierrors", raw.receive_errors),
            ("oerrors", raw.transmit_errors),
            ("rx_unlinearised", raw.unlinearised),
        ];
        counters.named.extend(named.map(|(name, value)| (name.to_owned(), value)));
        if let Some(xsk) = &mut self.xsk {
            counters.completed = xsk.completions();
            counters.named.insert("completions".to_owned(), counters.completed);
            if let Ok(statistics) = xsk.statistics() {
                counters.receive_overrun = statistics.receive_overrun(xsk.zero_copy());
                counters.named.extend(statistics.named().map(|(name, value)| (name.to_owned(), value)));
            }
        }
        if let Some(state) = self.kernel.as_ref().and_then(|kernel| kernel.state().ok()) {
            let dropped = [("device_rx_dropped", state.receive_dropped), ("device_tx_dropped", state.transmit_dropped)];
            counters.named.extend(dropped.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        }
        counters
    }
}

impl Drop for DpdkPort {
    fn drop(&mut self) {
        // The mapping goes before the socket it maps.
        self.xsk = None;
        // SAFETY: opened by `open`, closed once; no frame of the pool is used after its port, as `Frame` asks.
        unsafe { ffi::nb_port_close(self.raw) };
    }
}

fn burst(frames: &[Frame]) -> u32 {
    frames.len().min(MAXIMUM_BURST) as u32
}

fn open_raw(number: libc::c_int, options: &RawPortOptions) -> Result<(*mut RawPort, RawPortFacts), (String, String)> {
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

fn facts(options: &PortOptions, raw: &RawPortFacts, asked: &RawPortOptions, kernel: Option<&KernelLink>, kernel_mtu: Option<u32>) -> PortFacts {
    let state = kernel.and_then(|kernel| kernel.state().ok());
    let driver_speed = (raw.link_mbits_per_s != u32::MAX).then(|| u64::from(raw.link_mbits_per_s) * 1_000_000);
    PortFacts {
        name: options.name.clone(),
        driver: ffi::text(&raw.driver),
        mac: (raw.mac != [0; 6]).then_some(raw.mac),
        // Drivers over a kernel interface report a constant; the interface itself knows better.
        link_bits_per_s: kernel.map_or(driver_speed, KernelLink::bits_per_s),
        link_up: state.and_then(|state| state.carrier).or(Some(raw.link_up != 0)),
        minimum_frame_bytes: sizes::MINIMUM_FRAME_BYTES,
        maximum_frame_bytes: sizes::maximum_frame_bytes(kernel_mtu.unwrap_or(raw.mtu_bytes), raw.buffer_bytes),
        transmit_descriptors: if asked.umem != 0 { raw.receive_descriptors } else { raw.transmit_descriptors },
        receive_descriptors: raw.receive_descriptors,
        send_buffer_bytes: None,
        numa_node: (raw.numa_node >= 0).then_some(raw.numa_node),
        lossless: options.lossless,
    }
}

fn next_for_absent(kind: &PortKind) -> &'static str {
    match kind {
        PortKind::Pci { .. } => "bind the card to vfio-pci (dpdk-devbind.py), or leave it to mlx5's kernel driver; DPDK's own words are on stderr",
        PortKind::AfXdp { .. } | PortKind::AfPacket { .. } => "check the queue number (ethtool -l) and the privileges; DPDK's own words are on stderr",
        _ => "check the device's arguments; DPDK's own words are on stderr",
    }
}

fn next_for_setup(kind: &PortKind) -> &'static str {
    match kind {
        PortKind::AfXdp { .. } => {
            "run as root; remove another XDP program (ip link set dev DEVICE xdp off) or another owner of the queue; memory_mib 512 holds two ports"
        }
        _ => "give more memory_mib or fewer descriptors; DPDK's own words are on stderr",
    }
}
