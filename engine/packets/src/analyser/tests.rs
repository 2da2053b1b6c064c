use nicbench_protocol::StreamRequest;

use super::*;
use crate::frame_writer::FrameWriter;

const RUN_KEY: u64 = 0x0123_4567_89AB_CDEF;

fn template(frame_bytes: u32) -> Template {
    let request: StreamRequest = serde_json::from_value(serde_json::json!({
        "name": "s", "transmit_port": 0, "receive_port": 1, "frame_bytes": frame_bytes, "rate_frames_per_s": 1,
        "source_mac": "02:00:00:00:00:01", "destination_mac": "02:00:00:00:00:02", "ip": 4,
        "source_address": "198.18.0.2", "destination_address": "198.19.0.2",
    }))
    .unwrap();
    Template::new(&request).unwrap()
}

fn analyser(trial: u32) -> Analyser {
    let expected = Expected { template: template(128), receive_port: 1, first_flow: 0, flows: 1 };
    Analyser::new(Signer::new(RUN_KEY, trial), vec![expected], 2).unwrap()
}

fn frame(trial: u32, flow: u32, sequence: u32, time_ns: u64) -> Vec<u8> {
    let template = template(128);
    let mut frame = template.constant().to_vec();
    let writer = FrameWriter::new(template, Signer::new(RUN_KEY, trial), 0, 1, 1);
    writer.patch(&mut frame, 0, Signature { flow, sequence, time_ns });
    frame
}

#[test]
fn an_intact_frame_is_received_with_its_latency() {
    let mut analyser = analyser(2);
    analyser.analyse(1, &frame(2, 0, 0, 1000), 1750);
    let reading = analyser.streams()[0].latency.reading(Default::default(), 1.0, 1.0).unwrap().unwrap();
    assert_eq!((analyser.streams()[0].received, reading.minimum_ns, reading.maximum_ns), (1, 750, 750));
}

#[test]
fn a_latency_over_the_wrap_of_the_40_bit_time_is_right() {
    let mut analyser = analyser(2);
    analyser.analyse(1, &frame(2, 0, 0, TIME_MASK - 99), TIME_MASK + 1 + 400);
    let reading = analyser.streams()[0].latency.reading(Default::default(), 1.0, 1.0).unwrap().unwrap();
    assert_eq!(reading.minimum_ns, 500);
}

#[test]
fn a_copy_is_counted_beside_its_original() {
    let mut analyser = analyser(2);
    for _ in 0..3 {
        analyser.analyse(1, &frame(2, 0, 0, 0), 1);
    }
    assert_eq!((analyser.streams()[0].received, analyser.streams()[0].duplicated), (1, 2));
}

#[test]
fn a_broken_pattern_or_length_is_corrupted_and_not_received() {
    let mut analyser = analyser(2);
    let mut broken = frame(2, 0, 0, 0);
    *broken.last_mut().unwrap() ^= 0x80;
    analyser.analyse(1, &broken, 1);
    analyser.analyse(1, &frame(2, 0, 1, 0)[..100], 1);
    let tally = &analyser.streams()[0];
    assert_eq!((tally.corrupted, tally.received, tally.duplicated), (2, 0, 0));
}

#[test]
fn a_broken_signature_between_our_addresses_is_corrupted_without_a_stream() {
    let mut analyser = analyser(2);
    let mut broken = frame(2, 0, 0, 0);
    broken[43] ^= 1;
    analyser.analyse(1, &broken, 1);
    assert_eq!(analyser.ports()[1], PortTally { foreign: 0, corrupted_unattributed: 1 });
}

#[test]
fn frames_that_nobody_of_ours_sent_are_foreign_however_short() {
    let mut analyser = analyser(2);
    let arp = [0xFF; 42];
    for length in 0..arp.len() {
        analyser.analyse(1, &arp[..length], 1);
    }
    assert_eq!(analyser.ports()[1].foreign, 42);
}

#[test]
fn frames_of_an_earlier_trial_are_neither_received_nor_foreign() {
    let mut analyser = analyser(9);
    analyser.analyse(1, &frame(8, 0, 0, 0), 1);
    assert_eq!((analyser.streams()[0].received, analyser.ports()[1]), (0, PortTally::default()));
}

#[test]
fn a_frame_at_the_wrong_port_or_of_an_unknown_flow_is_foreign() {
    let mut analyser = analyser(2);
    analyser.analyse(0, &frame(2, 0, 0, 0), 1);
    analyser.analyse(1, &frame(2, 5, 0, 0), 1);
    assert_eq!((analyser.ports()[0].foreign, analyser.ports()[1].foreign), (1, 1));
}

#[test]
fn after_the_drain_a_new_frame_is_late_and_a_copy_is_not() {
    let mut analyser = analyser(2);
    analyser.analyse(1, &frame(2, 0, 0, 0), 1);
    analyser.end_drain();
    analyser.analyse(1, &frame(2, 0, 0, 0), 2);
    analyser.analyse(1, &frame(2, 0, 1, 0), 2);
    let tally = &analyser.streams()[0];
    assert_eq!((tally.received, tally.late, tally.duplicated), (1, 1, 0));
}
