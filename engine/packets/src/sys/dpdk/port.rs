//! `Port` over an `ethdev` of DPDK, with what the kernel knows beside it.

use std::ffi::CString;
use std::io;

use super::ffi::{self, RawPort, RawPortOptions, RawPortStatistics};
use super::kernel_link::KernelLink;
use super::opening;
use super::options::{PortKind, PortOptions};
use super::packet_socket::PacketSocket;
use super::sizes;
use crate::error::{EngineError, ErrorKind};
use crate::port::{Frame, MAXIMUM_BURST, Port, PortCounters, PortFacts};
use crate::sys::xsk::{Xsk, open_sockets};

/// A socket's 32-bit count of completions is read at least this often, in frames accepted.
const COMPLETIONS_READ_EVERY: u64 = 1 << 24;

/// A configured port. Its queue, pool and socket are given back on `Drop`.
pub(super) struct DpdkPort {
    raw: *mut RawPort,
    facts: PortFacts,
    accepted: u64,
    completions_read_at: u64,
    xsk: Option<Xsk>,
    packet_socket: Option<PacketSocket>,
    kernel: Option<KernelLink>,
    carrier_changes_at_start: Option<u64>,
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
        let fail = |what: String, next: &str| {
            EngineError::new(ErrorKind::Port, format!("port {}: {what}", options.name), next)
        };
        let name =
            CString::new(device).map_err(|_| fail("its device's name holds a zero byte".into(), "correct the name"))?;
        let number = ffi::port_find(&name);
        if number < 0 {
            return Err(fail(format!("DPDK took no device {device}"), opening::next_for_absent(&options.kind)));
        }
        let state = kernel.as_ref().and_then(|kernel| kernel.state().ok()).unwrap_or_default();
        let is_promiscuous = state.promiscuous.into();
        let raw_options = RawPortOptions { is_promiscuous, ..sizes::raw_options(options, state.mtu_bytes) };
        let sockets_before = open_sockets(libc::AF_XDP).unwrap_or_default();
        let (raw, raw_facts) = opening::open_raw(number, &raw_options)
            .map_err(|(step, reason)| fail(format!("{step}: {reason}"), opening::next_for_setup(&options.kind)))?;
        let mut port = Self {
            raw,
            facts: opening::facts(options, &raw_facts, &raw_options, kernel.as_ref(), &state),
            accepted: 0,
            completions_read_at: 0,
            xsk: None,
            packet_socket: None,
            carrier_changes_at_start: state.carrier_changes,
            kernel,
            link: PolledLink { announced: raw_facts.reports_link_changes != 0, ..PolledLink::default() },
        };
        if options.kind.is_af_xdp() {
            let opened =
                open_sockets(libc::AF_XDP).unwrap_or_default().difference(&sockets_before).copied().collect::<Vec<_>>();
            port.take_socket(&opened, options.send_buffer_bytes).map_err(|reason| {
                fail(format!("its AF_XDP socket: {reason}"), "run as root, or give CAP_NET_ADMIN and CAP_NET_RAW")
            })?;
        }
        if let (PortKind::AfPacket { .. }, Some(kernel)) = (&options.kind, &port.kernel) {
            port.packet_socket = PacketSocket::find(kernel.index());
        }
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
        self.xsk = Some(xsk);
        Ok(())
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
        self.allocate_prefilled(frames, length, 0)
    }

    fn allocate_prefilled(&mut self, frames: &mut [Frame], length: usize, tag: u64) -> usize {
        let Ok(length) = u32::try_from(length) else { return 0 };
        // SAFETY: `raw` is open, and the shim fills at most `burst` places of `frames`.
        unsafe { ffi::nb_allocate(self.raw, frames.as_mut_ptr(), burst(frames), length, tag) as usize }
    }

    fn send(&mut self, frames: &[Frame]) -> usize {
        // SAFETY: `raw` is open; the frames came from a port of this process and are still the caller's, as `Port`
        // asks.
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
        let kernel = self.kernel.as_ref().and_then(|kernel| kernel.state().ok()).unwrap_or_default();
        let mut counters = PortCounters {
            completed: self.accepted,
            receive_overrun: raw.missed + raw.no_buffer,
            link_changes: self.link_changes(raw.link_changes, kernel.carrier_changes),
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
        if let Some(dropped) = self.packet_socket.as_mut().map(PacketSocket::dropped) {
            counters.receive_overrun += dropped;
            counters.named.insert("packet_socket_dropped".to_owned(), dropped);
        }
        let dropped = [("device_rx_dropped", kernel.receive_dropped), ("device_tx_dropped", kernel.transmit_dropped)];
        counters.named.extend(dropped.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
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
