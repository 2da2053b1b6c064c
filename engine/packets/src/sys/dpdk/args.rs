//! EAL's arguments as a pure function of the kinds of port and the options.

use super::options::{EalOptions, PortKind, PortOptions};
use super::sizes::packet_room_bytes;

/// What the arguments depend on beside the options.
pub(super) struct Surroundings {
    /// Makes the file prefix our own: two engines on one host never share files.
    pub process_id: u32,
    /// Where EAL's main thread goes when no CPU is asked for (it is released again after the start).
    pub any_cpu: u32,
    /// CPUs of EAL's further threads, one for each worker beside the first.
    pub other_cpus: Vec<u32>,
    /// Queues of each port; one where there is nothing said.
    pub queues: Vec<u32>,
    /// The MTU of the interface behind each port, where it has one.
    pub mtus_bytes: Vec<Option<u32>>,
}

/// The arguments, the program's name first.
pub(super) fn arguments(options: &EalOptions, ports: &[PortOptions], surroundings: &Surroundings) -> Vec<String> {
    let mut list = vec![
        "nicbench-packets".to_owned(),
        lcores(options.worker_cpu.unwrap_or(surroundings.any_cpu), &surroundings.other_cpus),
        "-m".to_owned(),
        options.memory_mib.to_string(),
        format!("--file-prefix=nicbench_{}", surroundings.process_id),
        "--no-telemetry".to_owned(),
        "--log-level=warning".to_owned(),
    ];
    // Either way nothing on disk outlives a killed engine; `--in-memory`, which also needs no mount for huge pages,
    // is refused without them.
    let pages: &[&str] = if options.huge_pages { &["--in-memory"] } else { &["--no-huge", "--no-shconf"] };
    list.extend(pages.iter().map(|&argument| argument.to_owned()));
    let pci: Vec<_> = ports.iter().filter_map(|port| pci_device(&port.kind)).collect();
    if pci.is_empty() {
        // Without this, every card bound to a user-space driver would be taken.
        list.push("--no-pci".to_owned());
    }
    for device in pci {
        list.extend(["-a".to_owned(), device]);
    }
    list.extend(
        ports
            .iter()
            .enumerate()
            .filter_map(|(index, port)| {
                let queues = surroundings.queues.get(index).copied().unwrap_or(1);
                let mtu_bytes = surroundings.mtus_bytes.get(index).copied().flatten();
                virtual_device(&port.kind, index, queues, mtu_bytes)
            })
            .map(|device| format!("--vdev={device}")),
    );
    list.extend(options.further.iter().cloned());
    list
}

/// EAL's threads and their CPUs, the first worker's first.
fn lcores(first: u32, further: &[u32]) -> String {
    let cpus = std::iter::once(&first).chain(further).enumerate();
    let threads: Vec<_> = cpus.map(|(thread, cpu)| format!("{thread}@{cpu}")).collect();
    format!("--lcores={}", threads.join(","))
}

/// The name by which DPDK knows the port's device.
pub(super) fn device_name(kind: &PortKind, index: usize) -> String {
    match kind {
        PortKind::Pci { address, .. } => address.clone(),
        kind => {
            let device = virtual_device(kind, index, 1, None).unwrap_or_default();
            device.split(',').next().unwrap_or_default().to_owned()
        }
    }
}

fn pci_device(kind: &PortKind) -> Option<String> {
    match kind {
        PortKind::Pci { address, devargs } if devargs.is_empty() => Some(address.clone()),
        PortKind::Pci { address, devargs } => Some(format!("{address},{devargs}")),
        _ => None,
    }
}

/// How the ring of a packet socket is divided: a frame of the interface's MTU must have room.
fn packet_ring(mtu_bytes: Option<u32>) -> String {
    match mtu_bytes.and_then(packet_room_bytes) {
        None => "framecnt=4096".into(),
        Some(room) => format!("blocksz={room},framesz={room},framecnt=2048"),
    }
}

fn virtual_device(kind: &PortKind, index: usize, queues: u32, mtu_bytes: Option<u32>) -> Option<String> {
    match kind {
        PortKind::AfXdp { device, queue, xdp_program } => {
            let program = xdp_program.as_ref().map(|file| format!(",xdp_prog={file}")).unwrap_or_default();
            Some(format!("net_af_xdp{index},iface={device},start_queue={queue},queue_count={queues}{program}"))
        }
        PortKind::AfPacket { device } => {
            let pairs = if queues > 1 { format!(",qpairs={queues}") } else { String::new() };
            Some(format!("eth_af_packet{index},iface={device},qdisc_bypass=1,{}{pairs}", packet_ring(mtu_bytes)))
        }
        // Two sockets: one that received both ways would see what was sent.
        PortKind::Pcap { device } => Some(format!("net_pcap{index},rx_iface_in={device},tx_iface={device}")),
        // The driver would otherwise receive zeros without end.
        PortKind::Null => Some(format!("net_null{index},no-rx=1")),
        PortKind::Ring => Some(format!("net_ring{index}")),
        PortKind::Vdev { vdev, .. } => Some(vdev.clone()),
        PortKind::Pci { .. } => None,
    }
}

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;
