//! `configure`: from a request to ports and a worker over them.

use std::rc::Rc;

#[cfg(any(feature = "dpdk", feature = "xdp"))]
use nicbench_protocol::WorkerRequest;
use nicbench_protocol::{
    CardClock, ClockSource, Configure, ConfigureReply, PortKind, PortReply, PortRequest, SimulatedDut, Timestamps,
};

use crate::addresses::{mac_text, parse_mac};
use crate::clock::{TscClock, VirtualClock};
#[cfg(feature = "dpdk")]
use crate::core_watch::CoreWatch;
use crate::error::{EngineError, ErrorKind};
use crate::port::{Clock, Port, PortFacts};
use crate::sim::{self, SimulatedPortOptions};
use crate::snapshot::Snapshot;
use crate::stamps::{StampFacts, check_sources};
use crate::sys::thread;
use crate::tester::Tester;
use crate::traffic::answering_port::AnsweringPort;
use crate::traffic::neighbours::Addresses;
#[cfg(any(feature = "dpdk", feature = "xdp"))]
use crate::trial_part::Roles;
use crate::wire::ethernet::SHORTEST_FRAME_BYTES;
use crate::worker::Worker;
#[cfg(feature = "dpdk")]
use crate::worker_group::WorkerGroup;

const MAXIMUM_PORTS: usize = 64;
/// As many queues as the shim has room for.
const MAXIMUM_WORKERS: usize = 64;
const MAXIMUM_DESCRIPTORS: u32 = 1 << 20;
/// Ethernet's smallest frame, and jumbo frames of 9000 bytes with header and FCS.
const SIMULATED_FRAME_BYTES: (u32, u32) = (SHORTEST_FRAME_BYTES, 9018);
/// Rates of a simulated device, in frames per second.
const SIMULATED_RATES: std::ops::RangeInclusive<f64> = 1e-3..=1e9;
const LONGEST_PAUSE_NS: u64 = 3_600_000_000_000;
/// A frame that is under way for longer may have the age of one that was for a moment.
const LONGEST_WAY_NS: u64 = 1_000_000_000_000;

#[cfg(feature = "dpdk")]
mod dpdk;
mod remote;
#[cfg(feature = "xdp")]
mod xdp;

/// The version of DPDK, where it is built in.
pub fn dpdk_version() -> Option<String> {
    #[cfg(feature = "dpdk")]
    return Some(crate::sys::dpdk::version());
    #[cfg(not(feature = "dpdk"))]
    None
}

/// The names of the network drivers that are linked.
pub fn drivers() -> Vec<String> {
    #[cfg(feature = "dpdk")]
    return crate::sys::dpdk::drivers();
    #[cfg(not(feature = "dpdk"))]
    Vec::new()
}

/// Refuses what cannot be configured, before anything is opened; returns the run key.
pub fn check(configure: &Configure) -> Result<u64, EngineError> {
    let run_key = u64::from_str_radix(&configure.run_key, 16)
        .ok()
        .filter(|_| configure.run_key.len() == 16 && configure.run_key.bytes().all(|digit| digit.is_ascii_hexdigit()));
    let run_key = run_key.ok_or_else(|| bad_request("run_key is not 16 hex digits", "give 64 bits in hexadecimal"))?;
    if configure.ports.is_empty() || configure.ports.len() > MAXIMUM_PORTS {
        return Err(bad_request(
            &format!("there are {} ports", configure.ports.len()),
            &format!("configure 1 to {MAXIMUM_PORTS} ports"),
        ));
    }
    for port in &configure.ports {
        check_port(port, configure.ports.len())?;
    }
    check_workers(configure)?;
    check_sources(configure.timestamps, &configure.ports)?;
    remote::check(configure)?;
    let simulated = configure.ports.iter().filter(|port| is_simulated(port)).count();
    if simulated != 0 && simulated != configure.ports.len() {
        let next = "make all ports simulated, or none";
        return Err(bad_request("some ports are simulated and some are not", next));
    }
    if simulated == 0 && configure.clock == ClockSource::Virtual {
        return Err(bad_request("the clock is virtual and the ports are not", "use the clock `tsc` with real ports"));
    }
    Ok(run_key)
}

fn check_workers(configure: &Configure) -> Result<(), EngineError> {
    let workers = &configure.workers;
    if workers.len() > MAXIMUM_WORKERS {
        let next = format!("configure at most {MAXIMUM_WORKERS} workers");
        return Err(bad_request(&format!("there are {} workers", workers.len()), &next));
    }
    if !workers.is_empty() && configure.ports.iter().any(is_simulated) {
        return Err(bad_request("simulated ports have one worker", "leave `workers` out"));
    }
    if let Some(port) = configure
        .ports
        .iter()
        .find(|port| workers.len() > 1 && !port.addresses.is_empty() && !matches!(port.kind, PortKind::Xdp { .. }))
    {
        // One that only receives has no queue to answer by.
        let message = format!("port {} has addresses to answer for, and there are several workers", port.name);
        return Err(bad_request(
            &message,
            "leave `workers` out, or `addresses`, and give the neighbours fixed entries",
        ));
    }
    let ports = configure.ports.len();
    for (index, worker) in workers.iter().enumerate() {
        if let Some(port) = worker.transmit.iter().chain(&worker.receive).find(|port| **port >= ports) {
            let message = format!("worker {index} serves port {port}, and there are {ports} ports");
            return Err(bad_request(&message, "use a port's number, from 0"));
        }
        if workers[..index].iter().any(|other| other.cpu == worker.cpu) {
            let message = format!("two workers share CPU {}", worker.cpu);
            return Err(bad_request(&message, "give each worker a CPU of its own"));
        }
    }
    Ok(())
}

fn is_simulated(port: &PortRequest) -> bool {
    matches!(port.kind, PortKind::Simulated { .. })
}

fn check_port(port: &PortRequest, ports: usize) -> Result<(), EngineError> {
    let refuse = |what: String, next: &str| Err(bad_request(&format!("port {}: {what}", port.name), next));
    for (field, value) in
        [("transmit_descriptors", port.transmit_descriptors), ("receive_descriptors", port.receive_descriptors)]
    {
        if !(1..=MAXIMUM_DESCRIPTORS).contains(&value) {
            return refuse(format!("{field} is {value}"), "give a value from 1 to 1048576");
        }
    }
    let PortKind::Simulated { link_bits_per_s, sends_to, mac, dut, egress, card_clock } = &port.kind else {
        return Ok(());
    };
    if let Some(what) = card_clock.as_ref().and_then(find_impossible_clock_option) {
        return refuse(format!("card_clock.{what}"), "compare the request with protocol/examples/README.md");
    }
    if !(1e3..=1e13).contains(link_bits_per_s) {
        return refuse(format!("link_bits_per_s is {link_bits_per_s}"), "give a value from 1e3 to 1e13");
    }
    if *sends_to >= ports {
        return refuse(format!("sends_to is {sends_to}, and there are {ports} ports"), "use a port's number, from 0");
    }
    if let Some(mac) = mac {
        parse_mac(mac, &format!("port {}: mac", port.name))?;
    }
    if egress.capacity_frames_per_s.is_some_and(|rate| !SIMULATED_RATES.contains(&rate)) {
        return refuse("egress.capacity_frames_per_s is out of range".into(), "give a value from 1e-3 to 1e9");
    }
    if let Some(what) = find_impossible_option(dut) {
        return refuse(format!("dut.{what}"), "compare the request with protocol/examples/README.md");
    }
    Ok(())
}

/// Describes an option of a simulated card's clock that is impossible, if there is one.
fn find_impossible_clock_option(clock: &CardClock) -> Option<String> {
    if !(1e3..=1e10).contains(&clock.hz) {
        return Some(format!("hz is {}, and a clock makes 1e3 to 1e10 ticks in a second", clock.hz));
    }
    if !(28..=64).contains(&clock.bits) {
        return Some(format!("bits is {}, and a count has 28 to 64", clock.bits));
    }
    if clock.ppm.is_nan() || clock.ppm.abs() > 1e5 {
        return Some(format!("ppm is {}, which is out of range (-1e5 to 1e5)", clock.ppm));
    }
    for (name, value) in [("bad_reads", clock.bad_reads), ("unstamped", clock.unstamped)] {
        if !(0.0..=1.0).contains(&value) {
            return Some(format!("{name} is {value}, and a probability is from 0 to 1"));
        }
    }
    None
}

/// Describes an option of a simulated device that is impossible, if there is one.
fn find_impossible_option(dut: &SimulatedDut) -> Option<String> {
    let probabilities =
        [("loss", dut.loss), ("duplicate", dut.duplicate), ("reorder", dut.reorder), ("corrupt", dut.corrupt)];
    for (name, value) in probabilities {
        if !(0.0..=1.0).contains(&value) {
            return Some(format!("{name} is {value}, and a probability is from 0 to 1"));
        }
    }
    if probabilities.iter().map(|(_, value)| value).sum::<f64>() > 1.0 + 1e-9 {
        return Some("loss + duplicate + reorder + corrupt is more than 1, and a frame has one fate".into());
    }
    let rates = [
        ("capacity_frames_per_s", dut.capacity_frames_per_s),
        ("tester_ceiling_frames_per_s", dut.tester_ceiling_frames_per_s),
        ("foreign_frames_per_s", (dut.foreign_frames_per_s != 0.0).then_some(dut.foreign_frames_per_s)),
    ];
    for (name, rate) in rates {
        if rate.is_some_and(|rate| !SIMULATED_RATES.contains(&rate)) {
            return Some(format!("{name} is out of range (1e-3 to 1e9)"));
        }
    }
    if dut.pause_every_s.is_some_and(|seconds| !(1e-6..=86_400.0).contains(&seconds)) {
        return Some("pause_every_s is out of range (1e-6 to 86400)".into());
    }
    let way_ns = dut.delay_ns.saturating_add(dut.jitter_ns);
    let limits = [("pause_ns", dut.pause_ns, LONGEST_PAUSE_NS), ("delay_ns + jitter_ns", way_ns, LONGEST_WAY_NS)];
    let over = limits.into_iter().find(|(_, value, most)| value > most);
    over.map(|(name, value, most)| format!("{name} is {value}, and at most {most}"))
}

/// Opens the ports. The calling thread becomes the worker's.
pub fn open(configure: &Configure, snapshot: &Snapshot) -> Result<(Box<dyn Tester>, ConfigureReply), EngineError> {
    #[cfg(feature = "xdp")]
    if configure.ports.iter().any(|port| matches!(port.kind, PortKind::Xdp { .. })) {
        return xdp::open(configure);
    }
    if !configure.ports.iter().all(is_simulated) {
        return open_real(configure, snapshot);
    }
    let watched = configure.watch_cpus.clone();
    Ok(match configure.clock {
        ClockSource::Virtual => {
            let clock = Rc::new(VirtualClock::default());
            let ports = wrap_answering_ports(configure, sim::open(clock.clone(), simulated_port_options(configure)))?;
            reply(Worker::new(clock, ports, watched), Vec::new())?
        }
        ClockSource::Tsc => {
            pin(configure.worker_cpu)?;
            let clock = Rc::new(TscClock::calibrated());
            let ports = wrap_answering_ports(configure, sim::open(clock.clone(), simulated_port_options(configure)))?;
            reply(Worker::new(clock, ports, watched), Vec::new())?
        }
    })
}

#[cfg(feature = "dpdk")]
fn open_real(configure: &Configure, snapshot: &Snapshot) -> Result<(Box<dyn Tester>, ConfigureReply), EngineError> {
    let (mut workers, eal_arguments) = dpdk::open_workers(&remote::without(configure))?;
    let clock = TscClock::calibrated().with_error(configure.clock_error.unwrap_or_default());
    let watched = configure.watch_cpus.clone();
    if configure.workers.len() < 2 {
        let ports = workers.remove(0).into_iter().map(|port| port as Box<dyn Port>).collect();
        let ports = remote::with(configure, ports);
        let ports = wrap_answering_ports(configure, ports)?;
        let worker = match configure.workers.first() {
            Some(only) => {
                let core_watch = CoreWatch::start(&watched, clock.hz());
                Worker::with_roles(Rc::new(clock), ports, roles(only), watched, core_watch)
            }
            None => Worker::new(Rc::new(clock), ports, watched),
        };
        return reply(worker, eal_arguments);
    }
    // Looks at a CPU would hold up the worker there.
    let is_free = |cpu: &u32| configure.workers.iter().all(|worker| worker.cpu != *cpu);
    let core_watch = CoreWatch::start(&watched.iter().copied().filter(is_free).collect::<Vec<_>>(), clock.hz());
    let roles = configure.workers.iter().map(roles).collect();
    let mut workers_on_cores = WorkerGroup::new(clock, workers, roles, watched, core_watch, snapshot)?;
    let reply = port_replies(workers_on_cores.lead_mut(), eal_arguments)?;
    Ok((Box::new(workers_on_cores), reply))
}

#[cfg(any(feature = "dpdk", feature = "xdp"))]
fn roles(worker: &WorkerRequest) -> Roles {
    Roles { transmit: worker.transmit.clone(), receive: worker.receive.clone() }
}

/// Ports that have addresses answer those who look for them.
fn wrap_answering_ports(configure: &Configure, ports: Vec<Box<dyn Port>>) -> Result<Vec<Box<dyn Port>>, EngineError> {
    let is_limited = configure.clock == ClockSource::Tsc;
    let wrap = |(request, port): (&PortRequest, Box<dyn Port>)| -> Result<Box<dyn Port>, EngineError> {
        if request.addresses.is_empty() {
            return Ok(port);
        }
        let addresses = Addresses::new(&request.name, port.facts().mac, &request.addresses)?;
        Ok(Box::new(AnsweringPort::new(port, addresses, is_limited)))
    };
    configure.ports.iter().zip(ports).map(wrap).collect()
}

/// Ports, and the arguments that EAL was given.
type RealPorts = (Vec<Box<dyn Port>>, Vec<String>);

/// Starts EAL and opens ports that are not simulated.
#[cfg(feature = "dpdk")]
pub fn real_ports(configure: &Configure) -> Result<RealPorts, EngineError> {
    dpdk::open(configure)
}

#[cfg(not(feature = "dpdk"))]
fn open_real(_configure: &Configure, _snapshot: &Snapshot) -> Result<(Box<dyn Tester>, ConfigureReply), EngineError> {
    Err(without_dpdk())
}

/// Starts EAL and opens ports that are not simulated.
#[cfg(not(feature = "dpdk"))]
pub fn real_ports(_configure: &Configure) -> Result<RealPorts, EngineError> {
    Err(without_dpdk())
}

#[cfg(not(feature = "dpdk"))]
fn without_dpdk() -> EngineError {
    let message = "this engine was built without DPDK, so it has simulated ports only";
    EngineError::new(ErrorKind::Eal, message, "build it with the feature `dpdk`")
}

fn pin(cpu: Option<u32>) -> Result<(), EngineError> {
    let Some(cpu) = cpu else { return Ok(()) };
    thread::pin_to(cpu).map_err(|error| {
        bad_request(&format!("worker_cpu {cpu}: {error}"), "name a CPU that this process may use, or null")
    })
}

fn simulated_port_options(configure: &Configure) -> Vec<SimulatedPortOptions> {
    let option = |(index, port): (usize, &PortRequest)| {
        let PortKind::Simulated { link_bits_per_s, sends_to, mac, dut, egress, card_clock } = &port.kind else {
            return None;
        };
        let card_clock = card_clock.clone().filter(|_| configure.timestamps == Timestamps::Card);
        let stamps = card_clock.as_ref().map(|clock| StampFacts {
            source: Timestamps::Card,
            clock: "simulated",
            bits: clock.bits,
            resolution_ns: None,
            transmit_samples: true,
        });
        // It was read before.
        let mac = mac.as_ref().and_then(|mac| parse_mac(mac, "mac").ok());
        let facts = PortFacts {
            name: port.name.clone(),
            driver: "simulated".into(),
            mac: mac.or(Some([0x02, 0, 0, 0, 0, index as u8])),
            link_bits_per_s: Some(*link_bits_per_s as u64),
            link_up: Some(true),
            minimum_frame_bytes: SIMULATED_FRAME_BYTES.0,
            maximum_frame_bytes: SIMULATED_FRAME_BYTES.1,
            tag_bytes: 0,
            maximum_burst: crate::port::MAXIMUM_BURST,
            transmit_descriptors: port.transmit_descriptors,
            receive_descriptors: port.receive_descriptors,
            send_buffer_bytes: None,
            transmit_budget_frames: None,
            numa_node: None,
            lossless: port.lossless,
            stamps,
        };
        let dut = SimulatedDut::clone(dut);
        let (link_bits_per_s, sends_to) = (*link_bits_per_s, *sends_to);
        Some(SimulatedPortOptions { facts, link_bits_per_s, sends_to, mac, dut, egress: *egress, card_clock })
    };
    configure.ports.iter().enumerate().filter_map(option).collect()
}

fn reply<C: Clock + 'static>(
    mut worker: Worker<C>,
    eal_arguments: Vec<String>,
) -> Result<(Box<dyn Tester>, ConfigureReply), EngineError> {
    let reply = port_replies(&mut worker, eal_arguments)?;
    Ok((Box::new(worker), reply))
}

fn port_replies<C: Clock>(worker: &mut Worker<C>, eal_arguments: Vec<String>) -> Result<ConfigureReply, EngineError> {
    worker.calibrate_clocks();
    let mut ports: Vec<PortReply> = worker.ports.iter().map(|port| port_reply(&**port)).collect();
    for (port, stamper) in ports.iter_mut().zip(worker.stampers()) {
        let unknown = || {
            let message = format!("port {}: the clock of its time stamps does not run evenly", port.name);
            EngineError::new(ErrorKind::Port, message, "use the time stamps `tsc`")
        };
        port.timestamps = Some(stamper.reply(&*worker.clock).ok_or_else(unknown)?);
    }
    Ok(ConfigureReply { ports, clock: worker.clock_reply(), eal_arguments })
}

/// Describes a port as replies do.
pub fn port_reply(port: &dyn Port) -> PortReply {
    facts_reply(port.facts())
}

fn facts_reply(facts: &PortFacts) -> PortReply {
    PortReply {
        name: facts.name.clone(),
        driver: facts.driver.clone(),
        mac: facts.mac.map(mac_text),
        link_bits_per_s: facts.link_bits_per_s,
        link_up: facts.link_up,
        max_frame_bytes: facts.maximum_frame_bytes,
        tag_bytes: facts.tag_bytes,
        min_frame_bytes: facts.minimum_frame_bytes,
        transmit_descriptors: facts.transmit_descriptors,
        receive_descriptors: facts.receive_descriptors,
        send_buffer_bytes: facts.send_buffer_bytes,
        transmit_budget_frames: facts.transmit_budget_frames,
        numa_node: facts.numa_node,
        lossless: facts.lossless,
        timestamps: None,
    }
}

fn bad_request(message: &str, next: &str) -> EngineError {
    EngineError::new(ErrorKind::BadRequest, message, next)
}
