//! A port as a whole: opened and closed once, its counters, its sockets, and what the kernel knows beside it.

use std::ffi::CString;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::ffi::{self, NO_QUEUE, RawPort, RawPortOptions, RawPortStatistics, RawQueue};
use super::opening;
use super::options::{PortKind, PortOptions};
use super::packet_socket::PacketSocket;
use super::parts::{PortPart, Queues};
use super::sizes;
use crate::error::{EngineError, ErrorKind};
use crate::port::{PortCounters, PortFacts};
use crate::sys::kernel_link::KernelLink;
use crate::sys::xsk::{Xsk, open_sockets};

/// Frames that one worker's part of a port has accepted: written by the worker, read by whoever reads counters.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Accepted(pub AtomicU64);

/// A configured port of DPDK, its queues and counters.
pub(super) struct Device {
    raw: *mut RawPort,
    queues: Vec<(*mut RawQueue, Arc<Accepted>)>,
    xsks: Vec<Xsk>,
    packet_socket: Option<PacketSocket>,
    kernel: Option<KernelLink>,
    carrier_changes_at_start: Option<u64>,
    link: PolledLink,
}

// SAFETY: the shim's structures belong to no thread; whoever has a device has it alone.
unsafe impl Send for Device {}

/// The link's changes where the driver does not announce them: seen when asked.
#[derive(Debug, Default)]
struct PolledLink {
    announced: bool,
    last: Option<bool>,
    changes: u64,
}

impl Device {
    /// Configures and starts the port whose device EAL found under `name`.
    pub fn open(
        options: &PortOptions,
        name: &str,
        kernel: Option<KernelLink>,
        queues: &Queues,
    ) -> Result<(Self, PortFacts), EngineError> {
        let fail = |what: String, next: &str| {
            EngineError::new(ErrorKind::Port, format!("port {}: {what}", options.name), next)
        };
        let text =
            CString::new(name).map_err(|_| fail("its device's name holds a zero byte".into(), "correct the name"))?;
        let number = ffi::port_find(&text);
        if number < 0 {
            return Err(fail(format!("DPDK took no device {name}"), opening::next_for_absent(&options.kind)));
        }
        let state = kernel.as_ref().and_then(|kernel| kernel.state().ok()).unwrap_or_default();
        let is_promiscuous = state.promiscuous.into();
        let raw_options = RawPortOptions { is_promiscuous, ..sizes::raw_options(options, state.mtu_bytes, queues) };
        let sockets_before = open_sockets(libc::AF_XDP).unwrap_or_default();
        let (raw, raw_facts) = opening::open_raw(number, &raw_options)
            .map_err(|(step, reason)| fail(format!("{step}: {reason}"), opening::next_for_setup(&options.kind)))?;
        let mut facts = opening::facts(options, &raw_facts, &raw_options, kernel.as_ref(), &state);
        let mut device = Self {
            raw,
            queues: Vec::new(),
            xsks: Vec::new(),
            packet_socket: None,
            carrier_changes_at_start: state.carrier_changes,
            kernel,
            link: PolledLink { announced: raw_facts.reports_link_changes != 0, last: facts.link_up, changes: 0 },
        };
        if options.kind.is_af_xdp() {
            let opened =
                open_sockets(libc::AF_XDP).unwrap_or_default().difference(&sockets_before).copied().collect::<Vec<_>>();
            device.take_sockets(&opened, queues.receive, options.send_buffer_bytes, &mut facts).map_err(|reason| {
                fail(format!("its AF_XDP socket: {reason}"), "run as root, or give CAP_NET_ADMIN and CAP_NET_RAW")
            })?;
        }
        if let (PortKind::AfPacket { .. }, Some(kernel)) = (&options.kind, &device.kernel) {
            device.packet_socket = PacketSocket::find(kernel.index());
        }
        Ok((device, facts))
    }

    fn take_sockets(
        &mut self,
        opened: &[libc::c_int],
        expected: u32,
        send_buffer_bytes: Option<u64>,
        facts: &mut PortFacts,
    ) -> io::Result<()> {
        if opened.len() != expected as usize {
            return Err(io::Error::other(format!("DPDK opened {} where {expected} was expected", opened.len())));
        }
        for descriptor in opened {
            let xsk = Xsk::new(*descriptor)?;
            if let Some(bytes) = send_buffer_bytes {
                xsk.set_send_buffer(bytes)?;
            }
            facts.send_buffer_bytes = Some(xsk.send_buffer_bytes()?);
            facts.transmit_budget_frames = xsk.raise_transmit_budget(facts.transmit_descriptors);
            self.xsks.push(xsk);
        }
        Ok(())
    }

    /// A worker's queues, and where it counts what they accept. They live as long as the device.
    pub fn queue(&mut self, part: PortPart) -> Option<(*mut RawQueue, Arc<Accepted>)> {
        let (transmit, receive) = (part.transmit.unwrap_or(NO_QUEUE), part.receive.unwrap_or(NO_QUEUE));
        // SAFETY: `raw` is open, and both numbers are of queues that it was configured with.
        let queue = unsafe { ffi::nb_queue_open(self.raw, transmit, receive) };
        if queue.is_null() {
            return None;
        }
        let accepted = Arc::new(Accepted::default());
        self.queues.push((queue, Arc::clone(&accepted)));
        Some((queue, accepted))
    }

    fn link_changes(&mut self, announced: u64, carrier_changes: Option<u64>) -> u64 {
        if let (Some(now), Some(start)) = (carrier_changes, self.carrier_changes_at_start) {
            return now.saturating_sub(start);
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

    /// Reads the sockets' 32-bit counts before they can wrap unseen.
    pub fn read_completions(&mut self) {
        self.xsks.iter_mut().for_each(|xsk| {
            xsk.completions();
        });
    }

    fn add_extended_counters(&self, counters: &mut PortCounters) {
        // SAFETY: `raw` is open until `Drop`.
        let Ok(count) = u32::try_from(unsafe { ffi::nb_extended_count(self.raw) }) else { return };
        let mut names = vec![[0u8; 64]; count as usize];
        let mut values = vec![0u64; count as usize];
        // SAFETY: both arrays have `count` places.
        let filled = unsafe { ffi::nb_extended(self.raw, names.as_mut_ptr(), values.as_mut_ptr(), count) };
        let filled = usize::try_from(filled).unwrap_or_default().min(names.len());
        counters.named.extend(names.iter().zip(values).take(filled).map(|(name, value)| (ffi::text(name), value)));
    }

    /// The sum over all queues.
    pub fn counters(&mut self) -> PortCounters {
        let mut raw = RawPortStatistics::default();
        // SAFETY: `raw` is open, and the shim fills the whole structure.
        unsafe { ffi::nb_statistics(self.raw, &mut raw) };
        // SAFETY: the queues are open until `Drop`.
        let unlinearised = self.queues.iter().map(|(queue, _)| unsafe { ffi::nb_queue_unlinearised(*queue) }).sum();
        let accepted = self.queues.iter().map(|(_, accepted)| accepted.0.load(Ordering::Acquire)).sum();
        let (kernel, gone) = self.kernel.as_ref().map(KernelLink::state_or_why_not).unwrap_or_default();
        let mut counters = PortCounters {
            completed: accepted,
            receive_overrun: raw.missed + raw.no_buffer,
            link_changes: self.link_changes(raw.link_changes, kernel.carrier_changes),
            link_up: kernel.carrier.or(self.link.last),
            gone,
            ..PortCounters::default()
        };
        self.add_extended_counters(&mut counters);
        let named = [
            ("accepted", accepted),
            ("tx_packets", raw.transmitted),
            ("rx_packets", raw.received),
            ("imissed", raw.missed),
            ("rx_nombuf", raw.no_buffer),
            ("ierrors", raw.receive_errors),
            ("oerrors", raw.transmit_errors),
            ("rx_unlinearised", unlinearised),
        ];
        counters.named.extend(named.map(|(name, value)| (name.to_owned(), value)));
        if !self.xsks.is_empty() {
            self.count_sockets(&mut counters);
        }
        if let Some(dropped) = self.packet_socket.as_mut().map(PacketSocket::read_dropped) {
            counters.receive_overrun += dropped;
            counters.named.insert("packet_socket_dropped".to_owned(), dropped);
        }
        let dropped = [("device_rx_dropped", kernel.receive_dropped), ("device_tx_dropped", kernel.transmit_dropped)];
        counters.named.extend(dropped.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        counters
    }

    /// AF_XDP: the kernel's own counts, the sum of the sockets.
    fn count_sockets(&mut self, counters: &mut PortCounters) {
        counters.completed = self.xsks.iter_mut().map(Xsk::completions).sum();
        counters.named.insert("completions".to_owned(), counters.completed);
        let statistics: Vec<_> = self.xsks.iter().filter_map(|xsk| Some((xsk, xsk.statistics().ok()?))).collect();
        if statistics.is_empty() {
            return;
        }
        counters.receive_overrun =
            statistics.iter().map(|(xsk, statistics)| statistics.receive_overrun(xsk.zero_copy())).sum();
        for (name, value) in statistics.iter().flat_map(|(_, statistics)| statistics.counters_by_name()) {
            *counters.named.entry(name.to_owned()).or_default() += value;
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // The mapping goes before the socket it maps.
        self.xsks.clear();
        // SAFETY: opened by `open` and `queue`, closed once; no worker outlives the first one, which holds the device,
        // and no frame of a pool is used after its port, as `Frame` asks.
        unsafe {
            self.queues.iter().for_each(|(queue, _)| ffi::nb_queue_close(*queue));
            ffi::nb_port_close(self.raw);
        }
    }
}
