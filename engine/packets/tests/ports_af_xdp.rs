//! AF_XDP ports over veth pairs, in a network namespace of this test's own that ends with it. Needs root; without, it
//! says that it did nothing. EAL starts once in a process, so that this file is one test of several steps.
#![cfg(feature = "dpdk")]
#![allow(unsafe_code)]

use std::process::Command;

use nicbench_packets::port::{Frame, MAXIMUM_BURST, Port};
use nicbench_packets::sys::dpdk::{EalOptions, PortKind, PortOptions, start};
use nicbench_protocol::Timestamps;

/// What net_af_xdp keeps in the fill ring: more frames than this cannot wait for a receiver that does not look.
const FILL_RING_BUFFERS: u64 = 2048;
const SEND_BUFFER_BYTES: u64 = 64 << 20;

fn ip(arguments: &str) -> String {
    let output = Command::new("ip").args(arguments.split_whitespace()).output().expect("the program ip");
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Two pairs, t0-d0 and t1-d1, in a namespace that no other interface or program shares.
fn enter_lab() {
    // SAFETY: no pointers; it moves this thread, and the threads and programs it starts later, to a new namespace.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0, "a network namespace of our own");
    // IPv6 would greet its neighbours, and the counts below are exact.
    std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").expect("IPv6 off");
    for pair in 0..2 {
        ip(&format!("link add t{pair} type veth peer name d{pair}"));
        ip(&format!("link set t{pair} up"));
        ip(&format!("link set d{pair} up"));
    }
}

fn kernel_received(device: &str) -> u64 {
    let reading: serde_json::Value =
        serde_json::from_str(&ip(&format!("-j -s link show {device}"))).expect("JSON of ip");
    reading[0]["stats64"]["rx"]["packets"].as_u64().expect("a count")
}

fn port(device: &str) -> PortOptions {
    PortOptions {
        name: device.into(),
        kind: PortKind::AfXdp { device: device.into(), queue: 0, xdp_program: None },
        transmit_descriptors: 2048,
        receive_descriptors: 8192,
        lossless: false,
        send_buffer_bytes: Some(SEND_BUFFER_BYTES),
        timestamps: Timestamps::Tsc,
    }
}

/// Sends one burst to everybody, marked with `number`; returns how many frames went.
fn send(port: &mut dyn Port, number: u64) -> u64 {
    let mut frames = [Frame::empty(); 32];
    let count = port.allocate(&mut frames, 60);
    for frame in &mut frames[..count] {
        let bytes = frame.bytes_mut();
        bytes.fill(0);
        bytes[..14].copy_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
        bytes[14..22].copy_from_slice(&number.to_be_bytes());
    }
    let sent = port.send(&frames[..count]);
    port.free(&frames[sent..count]);
    sent as u64
}

/// Takes what has arrived, and gives each frame's mark to `check`.
fn receive(port: &mut dyn Port, mut check: impl FnMut(u64)) -> u64 {
    let mut frames = [Frame::empty(); MAXIMUM_BURST];
    let count = port.receive(&mut frames);
    for frame in &frames[..count] {
        check(u64::from_be_bytes(frame.bytes()[14..22].try_into().expect("eight bytes")));
    }
    port.free(&frames[..count]);
    count as u64
}

/// Flushes until every accepted frame is completed.
fn settle(port: &mut dyn Port, accepted: u64) {
    for _ in 0..10_000 {
        port.flush();
        if port.counters().completed >= accepted {
            return;
        }
        std::thread::yield_now();
    }
    panic!("{} of {accepted} frames completed", port.counters().completed);
}

#[test]
fn af_xdp_ports_count_what_the_kernel_counts() {
    // SAFETY: no arguments, cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("not tested: AF_XDP needs root");
        return;
    }
    enter_lab();
    let eal = EalOptions { worker_cpu: None, huge_pages: false, memory_mib: 512, further: Vec::new() };
    let mut ports = start(&eal, &[port("t0"), port("t1"), port("d1")]).expect("three AF_XDP ports").into_iter();
    let mut next = || ports.next().expect("three ports");
    let (mut t0, mut t1, mut d1) = (next(), next(), next());

    facts_come_from_the_interface_and_its_socket(t0.as_ref());
    completed_frames_are_those_that_the_peer_received(t0.as_mut());
    a_receiver_that_looks_gets_every_frame_in_order(t1.as_mut(), d1.as_mut());
    frames_that_the_receiver_left_too_long_are_its_own_overrun(t1.as_mut(), d1.as_mut());
    a_link_that_goes_and_comes_back_changed_twice(t0.as_mut());
}

fn facts_come_from_the_interface_and_its_socket(port: &dyn Port) {
    let facts = port.facts();
    assert_eq!((facts.name.as_str(), facts.driver.as_str()), ("t0", "net_af_xdp"));
    assert_eq!(facts.send_buffer_bytes, Some(SEND_BUFFER_BYTES), "beyond the system's limit, and read back");
    assert_eq!((facts.minimum_frame_bytes, facts.maximum_frame_bytes), (64, 1518));
    assert_eq!((facts.link_up, facts.link_bits_per_s), (Some(true), Some(10_000_000_000)));
    assert_eq!((facts.receive_descriptors, facts.transmit_descriptors), (8192, 8192));
    assert!(facts.mac.is_some());
}

fn completed_frames_are_those_that_the_peer_received(port: &mut dyn Port) {
    let before = kernel_received("d0");
    let mut accepted = 0;
    while accepted < 50_000 {
        accepted += send(port, 0);
    }
    settle(port, accepted);
    assert_eq!(port.counters().completed, accepted);
    assert_eq!(kernel_received("d0") - before, accepted);
}

fn a_receiver_that_looks_gets_every_frame_in_order(sender: &mut dyn Port, receiver: &mut dyn Port) {
    let (mut sent, mut received, mut highest) = (0, 0, 0);
    for burst in 1..=1000 {
        sent += send(sender, burst);
        received += receive(receiver, |number| {
            assert!(number >= highest, "{number} came after {highest}");
            highest = number;
        });
    }
    settle(sender, sent);
    for _ in 0..1000 {
        received += receive(receiver, |_| ());
    }
    assert_eq!(received, sent);
    assert_eq!(receiver.counters().receive_overrun, 0);
}

fn frames_that_the_receiver_left_too_long_are_its_own_overrun(sender: &mut dyn Port, receiver: &mut dyn Port) {
    let completed = sender.counters().completed;
    let mut sent = 0;
    while sent < 5000 {
        sent += send(sender, 0);
    }
    settle(sender, completed + sent);
    let counters = receiver.counters();
    assert_eq!(counters.receive_overrun, sent - FILL_RING_BUFFERS);
    // The kernel counts such a frame under two names; it is one frame.
    assert_eq!(counters.named["xdp_rx_dropped"], counters.named["xdp_rx_fill_ring_empty_descs"]);
    let mut received = 0;
    for _ in 0..1000 {
        received += receive(receiver, |_| ());
    }
    assert_eq!(received + counters.receive_overrun, sent);
}

fn a_link_that_goes_and_comes_back_changed_twice(port: &mut dyn Port) {
    assert_eq!(port.counters().link_changes, 0);
    ip("link set d0 down");
    ip("link set d0 up");
    assert_eq!(port.counters().link_changes, 2);
}
