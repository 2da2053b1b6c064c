//! Real ports: the request in the words of `sys::dpdk`.

use nicbench_protocol::{Configure, PortKind as Asked, PortRequest, Timestamps, WorkerRequest};

use super::RealPorts;
use crate::error::{EngineError, ErrorKind};
use crate::sys::dpdk::{
    self, EalOptions, PortKind, PortOptions, PortPart, QueueAssignment, QueuesOfWorker, WorkerPorts,
};

/// Each worker's ports, and the arguments that EAL was given.
type PortsOfWorkers = (Vec<WorkerPorts>, Vec<String>);

/// Starts EAL and opens the ports for one thread, which may send at any port what it received at another.
pub fn open(configure: &Configure) -> Result<RealPorts, EngineError> {
    let (options, ports) = options(configure)?;
    let arguments = dpdk::eal_arguments(&options, &ports, &QueueAssignment::alone(ports.len()));
    Ok((dpdk::start(&options, &ports)?, arguments))
}

/// Starts EAL and opens the ports for all workers.
pub fn open_workers(configure: &Configure) -> Result<PortsOfWorkers, EngineError> {
    let (options, ports) = options(configure)?;
    let assignment = assignment(configure);
    let arguments = dpdk::eal_arguments(&options, &ports, &assignment);
    Ok((dpdk::start_workers(&options, &ports, &assignment)?, arguments))
}

fn options(configure: &Configure) -> Result<(EalOptions, Vec<PortOptions>), EngineError> {
    let options = EalOptions {
        worker_cpu: configure.workers.first().map(|worker| worker.cpu).or(configure.worker_cpu),
        huge_pages: configure.huge_pages,
        memory_mib: configure.memory_mib,
        further: configure.eal.clone(),
    };
    let ports =
        configure.ports.iter().map(|port| port_options(port, configure.timestamps)).collect::<Result<Vec<_>, _>>()?;
    Ok((options, ports))
}

/// Queues are numbered at each port in the order of the workers that serve it.
fn assignment(configure: &Configure) -> QueueAssignment {
    if configure.workers.is_empty() {
        return QueueAssignment::alone(configure.ports.len());
    }
    let queue = |worker: usize, serves: &dyn Fn(&WorkerRequest) -> bool| {
        let workers = &configure.workers;
        serves(&workers[worker]).then(|| workers[..worker].iter().filter(|other| serves(other)).count() as u32)
    };
    let part = |worker: usize, port: usize| PortPart {
        transmit: queue(worker, &|request| request.transmit.contains(&port)),
        receive: queue(worker, &|request| request.receive.contains(&port)),
    };
    let parts = |worker: usize| (0..configure.ports.len()).map(|port| part(worker, port)).collect();
    QueueAssignment {
        other_cpus: configure.workers.iter().skip(1).map(|worker| worker.cpu).collect(),
        parts: (0..configure.workers.len()).map(parts).collect(),
    }
}

fn port_options(port: &PortRequest, timestamps: Timestamps) -> Result<PortOptions, EngineError> {
    let kind = match port.kind.clone() {
        Asked::AfXdp { device, queue, xdp_program } => PortKind::AfXdp { device, queue, xdp_program },
        Asked::AfPacket { device } => PortKind::AfPacket { device },
        Asked::Pcap { device } => PortKind::Pcap { device },
        Asked::Null => PortKind::Null,
        Asked::Ring => PortKind::Ring,
        Asked::Pci { address, devargs } => PortKind::Pci { address, devargs },
        Asked::Vdev { vdev, transmit_queues: transmit, receive_queues: receive } => {
            let most = 1..=dpdk::MOST_QUEUES;
            if !most.contains(&transmit) || !most.contains(&receive) {
                let message = format!("port {}: {transmit} transmit and {receive} receive queues", port.name);
                let next = format!("give 1 to {} of each", dpdk::MOST_QUEUES);
                return Err(EngineError::new(ErrorKind::BadRequest, message, next));
            }
            PortKind::Vdev { vdev, queues: QueuesOfWorker { transmit, receive } }
        }
        Asked::Xdp { .. } => {
            let message = format!("port {}: ports of the kind `xdp` cannot be mixed with others", port.name);
            return Err(EngineError::new(ErrorKind::BadRequest, message, "make all ports `xdp`, or none"));
        }
        Asked::Remote => {
            let message = format!("port {} is another engine's, and this one would open it", port.name);
            return Err(EngineError::new(ErrorKind::BadRequest, message, "configure it for trials only"));
        }
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
        timestamps,
    })
}
