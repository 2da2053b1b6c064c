//! Floods one port and counts what arrives on another: `txflood SECONDS FRAME_BYTES huge|ordinary CPU KIND [KIND]`,
//! KIND being `null`, `ring`, `xdp:DEVICE[:PROGRAM]`, `packet:DEVICE`, `pci:ADDRESS`, or a vdev string. For
//! measurements beside `dpdk-testpmd`.

use std::time::{Duration, Instant};

use nicbench_packets::port::{Frame, MAXIMUM_BURST, Port};
use nicbench_packets::sys::dpdk::{EalOptions, PortKind, PortOptions, QueuesOfWorker, start};
use nicbench_packets::wire::{Ethernet, Header, ethernet, ethertype};
use nicbench_protocol::Timestamps;

const USAGE: &str = "usage: txflood SECONDS FRAME_BYTES huge|ordinary CPU KIND [KIND]";
const BURST: usize = 32;

fn kind(text: &str) -> PortKind {
    let parts: Vec<_> = text.split(':').map(str::to_owned).collect();
    match parts.as_slice() {
        [kind] if kind == "null" => PortKind::Null,
        [kind] if kind == "ring" => PortKind::Ring,
        [kind, device] if kind == "xdp" => PortKind::AfXdp { device: device.clone(), queue: 0, xdp_program: None },
        [kind, device, program] if kind == "xdp" => {
            PortKind::AfXdp { device: device.clone(), queue: 0, xdp_program: Some(program.clone()) }
        }
        [kind, device] if kind == "packet" => PortKind::AfPacket { device: device.clone() },
        [kind, ..] if kind == "pci" => PortKind::Pci { address: text[4..].to_owned(), devargs: String::new() },
        _ => PortKind::Vdev { vdev: text.to_owned(), queues: QueuesOfWorker::ONE },
    }
}

fn port(index: usize, text: &str) -> PortOptions {
    PortOptions {
        name: format!("port{index}"),
        kind: kind(text),
        transmit_descriptors: 2048,
        receive_descriptors: 8192,
        lossless: false,
        send_buffer_bytes: text.starts_with("xdp").then_some(64 << 20),
        timestamps: Timestamps::Tsc,
    }
}

/// Broadcast from a locally administered address, of the experimental type 0x88B5.
fn fill(frame: &mut Frame) {
    let bytes = frame.bytes_mut();
    bytes.fill(0);
    if let Some(mut header) = Ethernet::at_mut(bytes, 0) {
        header.set(ethernet::DESTINATION, ethernet::BROADCAST);
        header.set(ethernet::SOURCE, [2, 0, 0, 0, 0x10, 1]);
        header.set(ethernet::TYPE, ethertype::EXPERIMENTAL);
    }
}

/// Sends one burst; returns how many frames the port took.
fn send(port: &mut dyn Port, length: usize) -> u64 {
    let mut frames = [Frame::empty(); BURST];
    let allocated = port.allocate(&mut frames, length);
    frames[..allocated].iter_mut().for_each(fill);
    let sent = port.send(&frames[..allocated]);
    port.free(&frames[sent..allocated]);
    sent as u64
}

fn receive(port: &mut dyn Port) -> u64 {
    let mut frames = [Frame::empty(); MAXIMUM_BURST];
    let count = port.receive(&mut frames);
    port.free(&frames[..count]);
    count as u64
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [seconds, frame_bytes, pages, cpu, kinds @ ..] = arguments.as_slice() else { return Err(USAGE.into()) };
    let options = EalOptions {
        worker_cpu: Some(cpu.parse()?),
        huge_pages: pages == "huge",
        memory_mib: 512,
        further: Vec::new(),
    };
    let ports: Vec<_> = kinds.iter().enumerate().map(|(index, text)| port(index, text)).collect();
    let mut ports = start(&options, &ports)?;
    for port in &ports {
        println!("{:?}", port.facts());
    }
    let length = frame_bytes.parse::<usize>()? - ethernet::FCS_BYTES as usize;
    let duration = Duration::from_secs_f64(seconds.parse()?);
    let (mut sent, mut received) = (0, 0);
    let began = Instant::now();
    let last = ports.len() - 1;
    while began.elapsed() < duration {
        sent += send(ports[0].as_mut(), length);
        received += receive(ports[last].as_mut());
    }
    let took = began.elapsed().as_secs_f64();
    let drain = Instant::now();
    while drain.elapsed() < Duration::from_millis(200) {
        ports[0].flush();
        received += receive(ports[last].as_mut());
    }
    println!("sent {sent} received {received} in {took:.3} s: {:.0} frames/s", sent as f64 / took);
    for port in &mut ports {
        println!("{:?}", port.counters());
    }
    Ok(())
}
