//! Packet I/O by DPDK's `ethdev`: every real port of the engine.
//!
//! A C shim (`shim.h`) wraps DPDK's inline functions in whole-burst calls over plain structs of ours. `args` computes
//! EAL's arguments, `eal` starts it once per process, `port` implements `Port`, and `xsk` (beside this folder) reads
//! what the kernel knows of the AF_XDP sockets DPDK opened.

mod args;
mod eal;
mod ffi;
mod kernel_link;
mod opening;
mod options;
mod packet_socket;
mod port;
mod sizes;

pub use options::{EalOptions, PortKind, PortOptions};

use crate::error::{EngineError, ErrorKind};
use crate::port::Port;
use kernel_link::KernelLink;

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

/// The arguments that `start` gives to EAL in this process, the program's name first.
pub fn eal_arguments(options: &EalOptions, ports: &[PortOptions]) -> Vec<String> {
    let surroundings = args::Surroundings { process_id: std::process::id(), any_cpu: eal::first_allowed_cpu() };
    args::arguments(options, ports, &surroundings)
}

/// Starts EAL and configures `ports`, in order. Once per process: after any error but a wrong option (found before
/// EAL starts), and always after one of kind `eal`, the process must be replaced.
pub fn start(options: &EalOptions, ports: &[PortOptions]) -> Result<Vec<Box<dyn Port>>, EngineError> {
    let kernel_links = ports.iter().map(check).collect::<Result<Vec<_>, _>>()?;
    let arguments = eal_arguments(options, ports);
    eal::start(&arguments, options.worker_cpu.is_some())?;
    let mut opened: Vec<Box<dyn Port>> = Vec::with_capacity(ports.len());
    for (index, (port, kernel)) in ports.iter().zip(kernel_links).enumerate() {
        let device = args::device_name(&port.kind, index);
        opened.push(Box::new(port::DpdkPort::open(port, &device, kernel)?));
    }
    Ok(opened)
}

/// What can be known to be wrong before EAL starts; on the way the kernel's interface is opened, where there is one.
fn check(port: &PortOptions) -> Result<Option<KernelLink>, EngineError> {
    let fail =
        |what: String, next: &str| EngineError::new(ErrorKind::Port, format!("port {}: {what}", port.name), next);
    let (PortKind::AfXdp { device, .. } | PortKind::AfPacket { device }) = &port.kind else { return Ok(None) };
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
