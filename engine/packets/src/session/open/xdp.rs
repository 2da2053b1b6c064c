//! Ports of the tester inside the kernel.

use nicbench_protocol::{Configure, ConfigureReply, PortKind, PortReply, StampClockReply, Timestamps, WorkerRequest};

use super::{bad_request, facts_reply, pin, roles};
use crate::clock::TscClock;
use crate::error::EngineError;
use crate::tester::Tester;
use crate::trial_part::Roles;
use crate::xdp::{Generator, Lane, XdpPort, XdpTester};

/// The CPU of the worker that receives at a port and sends nowhere. Of other workers' ports the frames are judged where
/// the driver's poll runs.
fn receiving_processor(workers: &[WorkerRequest], port: usize, name: &str) -> Result<Option<u32>, EngineError> {
    let receive: Vec<&WorkerRequest> = workers.iter().filter(|worker| worker.receive.contains(&port)).collect();
    let mut only: Vec<u32> = Vec::new();
    only.extend(receive.iter().filter(|worker| worker.transmit.is_empty()).map(|worker| worker.cpu));
    match only.as_slice() {
        [] => Ok(None),
        [cpu] if receive.len() == 1 => Ok(Some(*cpu)),
        _ => {
            let message = format!(
                "port {name}: of the {} workers that receive there {} send nothing, and the kernel's tester hands frames \
                 over to one",
                receive.len(),
                only.len()
            );
            Err(bad_request(&message, "let one worker alone receive there, or let each of them send too"))
        }
    }
}

/// Ports whose frames are made and checked in the kernel.
pub fn open(configure: &Configure) -> Result<(Box<dyn Tester>, ConfigureReply), EngineError> {
    let refuse = |message: &str, next: &str| Err(bad_request(message, next));
    let mut ports = Vec::new();
    for (number, request) in configure.ports.iter().enumerate() {
        let PortKind::Xdp { device } = &request.kind else {
            return refuse("some ports are of the kind `xdp` and some are not", "make all ports `xdp`, or none");
        };
        let processor = receiving_processor(&configure.workers, number, &request.name)?;
        if processor.is_some() && configure.timestamps == Timestamps::Card {
            let message = format!("port {}: a card's stamps are read where its driver polls", request.name);
            return refuse(&message, "let the workers that receive send too, or leave `timestamps` out");
        }
        ports.push(XdpPort::open(number, request, device, configure.timestamps, processor)?);
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
