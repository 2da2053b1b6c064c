//! Packet I/O by DPDK's `ethdev`: every real port of the engine.
//!
//! A C shim (`shim.h`) wraps DPDK's inline functions in whole-burst calls over plain structs of ours. `args` computes
//! EAL's arguments, `eal` starts it once per process, `port` implements `Port`, and `xsk` (beside this folder) reads
//! what the kernel knows of the AF_XDP sockets DPDK opened.

mod args;
mod device;
mod eal;
mod ffi;
mod opening;
mod options;
mod packet_socket;
mod parts;
mod port;
#[cfg(feature = "xdp")]
mod redirection;
mod sizes;
mod thread;

pub use options::{EalOptions, PortKind, PortOptions, QueuesOfWorker};
pub use parts::{MOST_QUEUES, PortPart, QueueAssignment};
pub use thread::EalThread;

use nicbench_protocol::Timestamps;

use crate::error::{EngineError, ErrorKind};
use crate::port::{Port, PortFacts};
use crate::stamps;
use crate::sys::kernel_link::KernelLink;

/// The drivers of network ports linked into this program, sorted.
pub fn drivers() -> Vec<String> {
    let mut names: Vec<_> = env!("NICBENCH_DPDK_DRIVERS").split(',').map(str::to_owned).collect();
    names.sort();
    names
}

/// DPDK's version as it reports itself: `DPDK 22.11.11`.
pub fn version() -> String {
    ffi::version()
}

/// The MTU of the interface that a packet socket is on; what is wrong with the interface is told when it is opened.
fn mtu_bytes(port: &PortOptions) -> Option<u32> {
    let PortKind::AfPacket { device } = &port.kind else { return None };
    KernelLink::open(device).and_then(|link| link.state()).ok()?.mtu_bytes
}

/// The arguments that `start_workers` gives to EAL in this process, the program's name first.
pub fn eal_arguments(options: &EalOptions, ports: &[PortOptions], assignment: &QueueAssignment) -> Vec<String> {
    let queues = ports.iter().enumerate().map(|(index, port)| assignment.queues(index, port).receive).collect();
    let surroundings = args::Surroundings {
        process_id: std::process::id(),
        any_cpu: eal::first_allowed_cpu(),
        other_cpus: assignment.other_cpus.clone(),
        queues,
        mtus_bytes: ports.iter().map(mtu_bytes).collect(),
    };
    args::arguments(options, ports, &surroundings)
}

/// As [`start_workers`], for one worker, which may send at any port what it received at another.
pub fn start(options: &EalOptions, ports: &[PortOptions]) -> Result<Vec<Box<dyn Port>>, EngineError> {
    let workers = start_ports(options, ports, &QueueAssignment::alone(ports.len()), false)?;
    Ok(workers.into_iter().flatten().map(|port| port as Box<dyn Port>).collect())
}

/// A worker's ports.
pub type WorkerPorts = Vec<Box<dyn Port + Send>>;

/// Starts EAL and configures `ports`, in order; each worker of `assignment` gets its parts of them, to be dropped
/// before those of the first. Once per process: after any error but a wrong option (found before EAL starts), and
/// always after one of kind `eal`, the process must be replaced.
pub fn start_workers(
    options: &EalOptions,
    ports: &[PortOptions],
    assignment: &QueueAssignment,
) -> Result<Vec<WorkerPorts>, EngineError> {
    start_ports(options, ports, assignment, true)
}

fn start_ports(
    options: &EalOptions,
    ports: &[PortOptions],
    assignment: &QueueAssignment,
    own_buffers_only: bool,
) -> Result<Vec<WorkerPorts>, EngineError> {
    let kernel_links = ports.iter().map(check).collect::<Result<Vec<_>, _>>()?;
    ports.iter().enumerate().try_for_each(|(index, port)| assignment.check(index, port))?;
    #[cfg(feature = "xdp")]
    let (ports, _program) = redirection::add_program(ports).map_err(|error| {
        let message = format!("no file in memory for the program of AF_XDP: {error}");
        EngineError::new(ErrorKind::Port, message, "free memory")
    })?;
    #[cfg(feature = "xdp")]
    let ports = ports.as_slice();
    let arguments = eal_arguments(options, ports, assignment);
    eal::start(&arguments, options.worker_cpu.is_some())?;
    let mut workers: Vec<WorkerPorts> = assignment.parts.iter().map(|_| Vec::new()).collect();
    for (index, (options, kernel)) in ports.iter().zip(kernel_links).enumerate() {
        let name = args::device_name(&options.kind, index);
        let queues = parts::Queues { own_buffers_only, ..assignment.queues(index, options) };
        let (mut device, facts) = device::Device::open(options, &name, kernel, &queues)?;
        let mut opened = Vec::new();
        for worker in &assignment.parts {
            let queue = device.queue(worker[index]).ok_or_else(|| {
                let message = format!("port {}: no memory for its queues", options.name);
                EngineError::new(ErrorKind::Port, message, "give more memory_mib")
            })?;
            opened.push(port::DpdkPort::new(queue, worker[index], facts.clone()));
        }
        let mut opened = opened.into_iter();
        let first = opened.next().map(|port| port.with_device(device));
        workers.iter_mut().zip(first.into_iter().chain(opened)).for_each(|(worker, port)| worker.push(Box::new(port)));
    }
    check_stamps(ports, &workers[0])?;
    Ok(workers)
}

/// Names the ports that were to stamp what they receive, and turned out not to.
fn check_stamps(options: &[PortOptions], ports: &[Box<dyn Port + Send>]) -> Result<(), EngineError> {
    let wanted = options.first().map_or(Timestamps::Tsc, |port| port.timestamps);
    let is_without = |facts: &&PortFacts| facts.stamps.as_ref().is_none_or(|stamps| stamps.source != wanted);
    let facts = ports.iter().map(|port| port.facts());
    let without: Vec<String> = match wanted {
        Timestamps::Tsc => Vec::new(),
        _ => facts.filter(is_without).map(|facts| format!("{} ({})", facts.name, facts.driver)).collect(),
    };
    stamps::refuse(wanted, &without)
}

/// What can be known to be wrong before EAL starts; on the way the kernel's interface is opened, where there is one.
fn check(port: &PortOptions) -> Result<Option<KernelLink>, EngineError> {
    let fail =
        |what: String, next: &str| EngineError::new(ErrorKind::Port, format!("port {}: {what}", port.name), next);
    let (PortKind::AfXdp { device, .. } | PortKind::AfPacket { device } | PortKind::Pcap { device }) = &port.kind
    else {
        return Ok(None);
    };
    let kernel = KernelLink::open(device).map_err(|error| {
        fail(format!("interface {device}: {error}"), "check the name, and the network namespace (ip link)")
    })?;
    if let PortKind::AfXdp { xdp_program, .. } = &port.kind {
        if !port.receive_descriptors.is_power_of_two() {
            let what = format!(
                "receive_descriptors {} is no power of two, as AF_XDP's rings must be",
                port.receive_descriptors
            );
            return Err(fail(what, "give 2048, 4096 or 8192"));
        }
        if let Some(file) = xdp_program.as_ref().filter(|file| !std::path::Path::new(file).is_file()) {
            return Err(fail(format!("XDP program {file}: no such file"), "compile it, or leave xdp_program out"));
        }
    }
    Ok(Some(kernel))
}
