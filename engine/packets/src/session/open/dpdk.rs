//! Real ports: the request in the words of `sys::dpdk`.

use nicbench_protocol::{Configure, PortKind as Asked, PortRequest};

use super::RealPorts;
use crate::error::{EngineError, ErrorKind};
use crate::sys::dpdk::{self, EalOptions, PortKind, PortOptions};

/// Starts EAL and opens the ports.
pub fn open(configure: &Configure) -> Result<RealPorts, EngineError> {
    let options = EalOptions {
        worker_cpu: configure.worker_cpu,
        huge_pages: configure.huge_pages,
        memory_mib: configure.memory_mib,
        further: configure.eal.clone(),
    };
    let ports = configure.ports.iter().map(port_options).collect::<Result<Vec<_>, _>>()?;
    let arguments = dpdk::eal_arguments(&options, &ports);
    Ok((dpdk::start(&options, &ports)?, arguments))
}

fn port_options(port: &PortRequest) -> Result<PortOptions, EngineError> {
    let kind = match port.kind.clone() {
        Asked::AfXdp { device, queue, xdp_program } => PortKind::AfXdp { device, queue, xdp_program },
        Asked::AfPacket { device } => PortKind::AfPacket { device },
        Asked::Null => PortKind::Null,
        Asked::Ring => PortKind::Ring,
        Asked::Pci { address, devargs } => PortKind::Pci { address, devargs },
        Asked::Vdev { vdev } => PortKind::Vdev { vdev },
        Asked::Simulated { .. } => {
            let message = format!("port {}: simulated ports cannot be mixed with real ones", port.name);
            return Err(EngineError::new(ErrorKind::BadRequest, message, "make all ports simulated, or none"));
        }
    };
    Ok(PortOptions {
        name: port.name.clone(),
        kind,
        transmit_descriptors: port.transmit_descriptors,
        receive_descriptors: port.receive_descriptors,
        lossless: port.lossless,
        send_buffer_bytes: port.send_buffer_bytes,
    })
}
