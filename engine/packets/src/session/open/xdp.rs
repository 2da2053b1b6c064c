//! Ports of the tester inside the kernel.

use nicbench_protocol::{Configure, ConfigureReply, PortKind, PortReply, StampClockReply};

use super::{bad_request, facts_reply, pin, roles};
use crate::clock::TscClock;
use crate::error::EngineError;
use crate::tester::Tester;
use crate::trial_part::Roles;
use crate::xdp::{Generator, Lane, XdpPort, XdpTester};

/// Ports whose frames are made and checked in the kernel.
pub fn open(configure: &Configure) -> Result<(Box<dyn Tester>, ConfigureReply), EngineError> {
    let refuse = |message: &str, next: &str| Err(bad_request(message, next));
    let mut ports = Vec::new();
    for (number, request) in configure.ports.iter().enumerate() {
        let PortKind::Xdp { device } = &request.kind else {
            return refuse("some ports are of the kind `xdp` and some are not", "make all ports `xdp`, or none");
        };
        if !request.addresses.is_empty() {
            let message = format!("port {} has addresses to answer for, and its kernel answers itself", request.name);
            return refuse(&message, "leave `addresses` out");
        }
        ports.push(XdpPort::open(number, request, device, configure.timestamps)?);
    }
    let interfaces: Vec<u32> = ports.iter().map(XdpPort::interface).collect();
    let lane =
        |cpu, roles| -> Result<Lane, EngineError> { Ok(Lane { cpu, roles, generator: Generator::new(&interfaces)? }) };
    let lanes = match configure.workers.as_slice() {
        [] => vec![lane(configure.worker_cpu, Roles::all(ports.len()))?],
        workers => workers.iter().map(|worker| lane(Some(worker.cpu), roles(worker))).collect::<Result<_, _>>()?,
    };
    pin(lanes[0].cpu)?;
    let clocks: Vec<Option<StampClockReply>> = ports.iter().map(XdpPort::stamp_clock).collect();
    let tester = XdpTester::new(ports, lanes, configure.watch_cpus.clone(), TscClock::calibrated());
    let described = |(facts, timestamps)| PortReply { timestamps, ..facts_reply(facts) };
    let ports = tester.facts().iter().zip(clocks).map(described).collect();
    let reply = ConfigureReply { ports, clock: tester.clock_reply(), eal_arguments: Vec::new() };
    Ok((Box::new(tester), reply))
}
