//! DPDK's own ports that need neither privileges nor a network: everything but the kernel is real. EAL starts once in
//! a process, so that this file is one test of several steps.
#![cfg(feature = "dpdk")]

use nicbench_packets::error::ErrorKind;
use nicbench_packets::port::{Frame, MAXIMUM_BURST, Port};
use nicbench_packets::sys::dpdk::{EalOptions, PortKind, PortOptions, drivers, start, version};
use nicbench_protocol::Timestamps;

fn eal_options() -> EalOptions {
    EalOptions { worker_cpu: None, huge_pages: false, memory_mib: 256, further: Vec::new() }
}

fn port(name: &str, kind: PortKind) -> PortOptions {
    PortOptions {
        name: name.into(),
        kind,
        transmit_descriptors: 1024,
        receive_descriptors: 1024,
        lossless: name == "ring",
        send_buffer_bytes: None,
        timestamps: Timestamps::Tsc,
    }
}

/// Frames of `length` bytes, each filled with its place in the burst.
fn filled(port: &mut dyn Port, count: usize, length: usize) -> Vec<Frame> {
    let mut frames = vec![Frame::empty(); count];
    assert_eq!(port.allocate(&mut frames, length), count);
    for (place, frame) in frames.iter_mut().enumerate() {
        frame.bytes_mut().fill(place as u8);
    }
    frames
}

fn receive_all(port: &mut dyn Port) -> Vec<Frame> {
    let mut frames = vec![Frame::empty(); MAXIMUM_BURST];
    let count = port.receive(&mut frames);
    frames.truncate(count);
    frames
}

#[test]
fn ports_in_memory_carry_frames_as_the_trait_says() {
    an_interface_that_does_not_exist_is_found_before_eal_starts();

    let mut ports = start(&eal_options(), &[port("null", PortKind::Null), port("ring", PortKind::Ring)])
        .expect("two ports in memory");
    assert_eq!(ports.len(), 2);
    let mut ring = ports.pop().expect("the ring");
    let mut null = ports.pop().expect("the null port");

    facts_say_what_was_asked_for(null.as_ref(), ring.as_ref());
    the_null_port_takes_every_frame_and_returns_none(null.as_mut());
    the_ring_returns_frames_in_order_with_their_bytes(ring.as_mut());
    a_full_ring_leaves_the_rest_to_the_caller(ring.as_mut());
    a_frame_longer_than_a_buffer_is_not_allocated(ring.as_mut());
    buffers_come_back_after_many_rounds(ring.as_mut());
    a_buffer_is_prefilled_only_where_nothing_else_was_in_it(null.as_mut(), ring.as_mut());

    drop((null, ring));
    eal_does_not_start_twice();
}

fn an_interface_that_does_not_exist_is_found_before_eal_starts() {
    let absent = PortKind::AfXdp { device: "no-such-device".into(), queue: 0, xdp_program: None };
    let error = start(&eal_options(), &[port("p", absent)]).err().expect("an error");
    assert_eq!(error.kind, ErrorKind::Port);
    assert!(error.message.contains("no-such-device"), "{error}");
}

fn facts_say_what_was_asked_for(null: &dyn Port, ring: &dyn Port) {
    assert_eq!((null.facts().name.as_str(), null.facts().driver.as_str()), ("null", "net_null"));
    assert_eq!((ring.facts().name.as_str(), ring.facts().driver.as_str()), ("ring", "net_ring"));
    assert_eq!(ring.facts().mac, None, "a ring has no address");
    assert_eq!((ring.facts().minimum_frame_bytes, ring.facts().maximum_frame_bytes), (64, 1518));
    assert_eq!((ring.facts().transmit_descriptors, ring.facts().receive_descriptors), (1024, 1024));
    assert_eq!(ring.facts().send_buffer_bytes, None);
    assert!(ring.facts().lossless && !null.facts().lossless);
}

fn the_null_port_takes_every_frame_and_returns_none(null: &mut dyn Port) {
    let frames = filled(null, 32, 60);
    assert_eq!(null.send(&frames), 32);
    assert!(receive_all(null).is_empty());
    null.flush();
    let counters = null.counters();
    assert_eq!((counters.completed, counters.receive_overrun, counters.link_changes), (32, 0, 0));
    assert_eq!(counters.named["tx_packets"], 32);
}

fn the_ring_returns_frames_in_order_with_their_bytes(ring: &mut dyn Port) {
    let frames = filled(ring, 32, 1514);
    assert_eq!(ring.send(&frames), 32);
    let back = receive_all(ring);
    assert_eq!(back.len(), 32);
    for (place, frame) in back.iter().enumerate() {
        assert_eq!(frame.bytes(), vec![place as u8; 1514]);
    }
    ring.free(&back);
    assert_eq!(ring.counters().completed, 32);
    assert_eq!(ring.counters().named["rx_packets"], 32);
}

fn a_full_ring_leaves_the_rest_to_the_caller(ring: &mut dyn Port) {
    let completed = ring.counters().completed;
    let mut accepted = 0;
    loop {
        let frames = filled(ring, 32, 60);
        let sent = ring.send(&frames);
        accepted += sent;
        ring.free(&frames[sent..]);
        if sent < frames.len() {
            break;
        }
        assert!(accepted < 100_000, "a ring is not endless");
    }
    assert_eq!(ring.counters().completed - completed, accepted as u64);
    let mut returned = 0;
    loop {
        let back = receive_all(ring);
        ring.free(&back);
        returned += back.len();
        if back.is_empty() {
            break;
        }
    }
    assert_eq!(returned, accepted);
}

fn a_frame_longer_than_a_buffer_is_not_allocated(ring: &mut dyn Port) {
    let mut frames = [Frame::empty(); 4];
    assert_eq!(ring.allocate(&mut frames, 100_000), 0);
    assert_eq!(ring.allocate(&mut frames, 1514), 4);
    ring.free(&frames);
}

fn buffers_come_back_after_many_rounds(ring: &mut dyn Port) {
    // Three times as many frames as the pool has buffers: a leak would end it early.
    for _ in 0..3 * 16384 / 64 {
        let frames = filled(ring, 64, 60);
        assert_eq!(ring.send(&frames), 64);
        let back = receive_all(ring);
        assert_eq!(back.len(), 64);
        ring.free(&back);
    }
}

/// Allocates and sends a burst for the constant bytes that `tag` names; returns how many buffers still held them.
fn prefilled(port: &mut dyn Port, tag: u64) -> usize {
    let mut frames = [Frame::empty(); 32];
    assert_eq!(port.allocate_prefilled(&mut frames, 60, tag), frames.len());
    assert_eq!(port.send(&frames), frames.len());
    frames.iter().filter(|frame| frame.is_prefilled()).count()
}

fn a_buffer_is_prefilled_only_where_nothing_else_was_in_it(null: &mut dyn Port, ring: &mut dyn Port) {
    assert_eq!((prefilled(null, 7), prefilled(null, 7), prefilled(null, 8), prefilled(null, 8)), (0, 32, 0, 32));
    let plain = filled(null, 32, 60);
    null.free(&plain);
    assert_eq!(prefilled(null, 8), 0, "somebody else's bytes were in between");
    assert_eq!(prefilled(ring, 7), 0);
    let back = receive_all(ring);
    ring.free(&back);
    assert_eq!(prefilled(ring, 7), 0, "a received buffer may hold anything");
    let back = receive_all(ring);
    ring.free(&back);
}

fn eal_does_not_start_twice() {
    let error = start(&eal_options(), &[port("null", PortKind::Null)]).err().expect("an error");
    assert_eq!(error.kind, ErrorKind::Eal);
    assert!(error.next.contains("replace the process"), "{error}");
}

#[test]
fn the_program_names_its_drivers_and_its_dpdk() {
    let drivers = drivers();
    for wanted in ["net_af_packet", "net_af_xdp", "net_memif", "net_null", "net_ring"] {
        assert!(drivers.iter().any(|driver| driver == wanted), "{wanted} in {drivers:?}");
    }
    assert!(drivers.is_sorted());
    assert!(version().starts_with("DPDK "), "{}", version());
}
