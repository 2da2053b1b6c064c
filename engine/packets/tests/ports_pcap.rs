//! net_pcap over a veth pair, whose frames bear the kernel's time stamps, in a network namespace of this test's own
//! that ends with it. Needs root; without, it says that it did nothing. EAL starts once in a process: one test of
//! several steps.
#![cfg(feature = "dpdk")]
#![allow(unsafe_code)]

use std::process::Command;
use std::time::{Duration, Instant};

use nicbench_packets::clock::TscClock;
use nicbench_packets::port::{Frame, MAXIMUM_BURST, NO_STAMP, Port};
use nicbench_packets::stamps::{Reading, Stamper};
use nicbench_packets::sys::dpdk::{EalOptions, PortKind, PortOptions, start};
use nicbench_packets::sys::tsc::ticks;
use nicbench_protocol::Timestamps;

fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split_whitespace()).output().expect("the program ip");
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

fn enter_lab() {
    // SAFETY: no pointers; it moves this thread, and the threads and programs it starts later, to a new namespace.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0, "a network namespace of our own");
    std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").expect("IPv6 off");
    ip("link add t0 type veth peer name t1");
    ip("link set t0 up");
    ip("link set t1 up");
}

fn port(device: &str) -> PortOptions {
    PortOptions {
        name: device.into(),
        kind: PortKind::Pcap { device: device.into() },
        transmit_descriptors: 512,
        receive_descriptors: 512,
        lossless: false,
        send_buffer_bytes: None,
        timestamps: Timestamps::Kernel,
    }
}

/// One frame to everybody; the moments before and after.
fn send(port: &mut dyn Port) -> (u64, u64) {
    let mut frames = [Frame::empty()];
    assert_eq!(port.allocate(&mut frames, 60), 1);
    let bytes = frames[0].bytes_mut();
    bytes.fill(0);
    bytes[..14].copy_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
    let before = ticks();
    assert_eq!(port.send(&frames), 1);
    (before, ticks())
}

/// The stamps of the frames that come within a second, until `count` are there.
fn stamps(port: &mut dyn Port, count: usize) -> Vec<u64> {
    let (mut all, end) = (Vec::new(), Instant::now() + Duration::from_secs(1));
    while all.len() < count && Instant::now() < end {
        let mut frames = [Frame::empty(); MAXIMUM_BURST];
        let mut stamps = [NO_STAMP; MAXIMUM_BURST];
        let received = port.receive(&mut frames);
        port.stamps(&frames[..received], &mut stamps[..received]);
        port.free(&frames[..received]);
        all.extend_from_slice(&stamps[..received]);
    }
    all
}

#[test]
fn the_kernel_s_stamps_are_placed_in_the_worker_s_time() {
    // SAFETY: no arguments, cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("not tested: libpcap needs root");
        return;
    }
    enter_lab();
    let eal = EalOptions { worker_cpu: None, huge_pages: false, memory_mib: 512, further: Vec::new() };
    let mut ports = start(&eal, &[port("t0"), port("t1")]).expect("two ports by libpcap").into_iter();
    let (mut t0, mut t1) = (ports.next().expect("a port"), ports.next().expect("a port"));
    let facts = t1.facts().stamps.clone().expect("time stamps");
    assert_eq!((facts.source, facts.clock, facts.resolution_ns), (Timestamps::Kernel, "CLOCK_REALTIME", Some(1000.0)));
    assert!(!facts.transmit_samples);

    let clock = TscClock::calibrated();
    let mut readings: Vec<Reading> = Vec::new();
    for _ in 0..50 {
        readings.extend(Stamper::look(&mut *t1, &clock));
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(readings.len(), 50);
    let mut stamper = Stamper::new(facts, 1e9);
    stamper.calibrate(&readings);
    assert!(stamper.is_calibrated());

    // The kernel of a veth hands a frame over while it is being sent, or shortly after.
    let sent: Vec<(u64, u64)> = (0..100).map(|_| send(&mut *t0)).collect();
    let came = stamps(&mut *t1, 100);
    assert_eq!(came.len(), 100);
    let mut times_ns = [0; 100];
    // With an epoch of 0 and a clock of one nanosecond a tick, times are ticks.
    stamper.place(&came, ticks(), 0, &nicbench_packets::clock::VirtualClock::default(), &mut times_ns);
    let tally = stamper.tally();
    assert_eq!((tally.stamped, tally.unstamped, tally.implausible), (100, 0, 0));
    // Half a microsecond of the stamp, and what the mapping may err by; in ticks of at most 5 a nanosecond.
    let margin = 5 * 500 + tally.map.worst_ticks.expect("readings") as u64 + 1;
    for (time, (before, _)) in times_ns.iter().zip(&sent) {
        assert!(time + margin >= *before, "stamped {} ticks before it was sent", before - time);
    }
    assert!(times_ns.windows(2).all(|pair| pair[0] <= pair[1]), "in the order in which they came");
}
