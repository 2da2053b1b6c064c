use nicbench_protocol::StreamRequest;

use super::*;
use crate::error::ErrorKind;
use crate::frame_writer::FrameWriter;
use crate::template::Template;

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
    with_flows(trial, 1, Detail::default())
}

fn with_flows(trial: u32, flows: u32, detail: Detail) -> Analyser {
    Analyser::with_detail(Signer::new(RUN_KEY, trial), vec![expected(1, 0, flows, None)], 2, detail).unwrap()
}

/// Two streams between the same addresses, to port 1.
fn twins() -> Analyser {
    let expected = |first_flow| expected(1, first_flow, 1, None);
    Analyser::new(Signer::new(RUN_KEY, 2), vec![expected(0), expected(1)], 2).unwrap()
}

/// A stream to port 1 whose frames arrive at port 0 too.
fn copied() -> Analyser {
    let streams = vec![expected(1, 0, 2, None), expected(0, 2, 2, Some(0))];
    Analyser::new(Signer::new(RUN_KEY, 2), streams, 3).unwrap()
}

fn expected(receive_port: usize, first_flow: u32, flows: u32, copy_of: Option<usize>) -> Expected {
    Expected { template: template(128), sent: None, receive_port, first_flow, flows, copy_of }
}

/// With a bit of the signature flipped.
fn unsigned(sequence: u32) -> Vec<u8> {
    let mut broken = frame(2, 0, sequence, 0);
    broken[43] ^= 1;
    broken
}

/// With a bit of the payload flipped.
fn broken(sequence: u32) -> Vec<u8> {
    let mut broken = frame(2, 0, sequence, 0);
    broken[100] ^= 1;
    broken
}

fn frame(trial: u32, flow: u32, sequence: u32, time_ns: u64) -> Vec<u8> {
    let template = template(128);
    let mut frame = template.constant().to_vec();
    let writer = FrameWriter::new(template, Signer::new(RUN_KEY, trial), 0, 1, 1);
    writer.patch(&mut frame, 0, Signature { flow, sequence, time_ns });
    frame
}

#[test]
fn each_port_counts_its_own_copy_of_a_frame() {
    let mut analyser = copied();
    for (port, flow, sequence) in [(1, 0, 0), (0, 0, 0), (1, 1, 0), (0, 0, 0), (2, 1, 0)] {
        analyser.analyse(port, &frame(2, flow, sequence, 0), 10);
    }
    let seen: Vec<_> = analyser.streams().iter().map(|tally| (tally.received, tally.duplicated)).collect();
    assert_eq!(seen, [(2, 0), (1, 1)]);
    assert_eq!(analyser.ports().iter().map(|tally| tally.misdirected).collect::<Vec<_>>(), [0, 0, 1]);
    assert_eq!(analyser.losses(&[2, 2]).iter().map(|losses| losses.lost).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn an_intact_frame_is_received_with_its_latency() {
    let mut analyser = analyser(2);
    analyser.analyse(1, &frame(2, 0, 0, 1000), 1750);
    let latency = analyser.outcome(0).latency;
    assert_eq!((analyser.streams()[0].received, latency.minimum_ns, latency.maximum_ns), (1, 750, 750));
}

#[test]
fn a_frame_of_a_sender_whose_clock_gains_has_the_latency_by_that_clock() {
    let mut analyser = analyser(2);
    analyser.set_sender_drifts(vec![100e-6]);
    // After a second of this clock the sender's shows 100 us more; of a clock that loses it would be less.
    analyser.analyse(1, &frame(2, 0, 0, 1_000_090_000), 1_000_000_000);
    assert_eq!(analyser.outcome(0).latency.minimum_ns, 10_000);
    analyser.set_sender_drifts(vec![-100e-6]);
    analyser.analyse(1, &frame(2, 0, 1, 999_890_000), 1_000_000_000);
    assert_eq!(analyser.outcome(0).latency.maximum_ns, 10_000);
}

#[test]
fn a_frame_that_was_under_way_while_the_core_was_shared_is_counted_apart_too() {
    let mut analyser = analyser(2);
    for (sequence, quiet_ns, latency_ns) in [(0, u64::MAX, 900), (1, 300, 299), (2, 300, 300), (3, 0, 10)] {
        analyser.set_quiet_ns(quiet_ns);
        analyser.analyse(1, &frame(2, 0, sequence, 1000), 1000 + latency_ns);
    }
    assert!(analyser.outcome(0).shared_counts.is_none(), "nobody looked");
    analyser.set_watched(true);
    let outcome = analyser.outcome(0);
    assert_eq!((outcome.counts.total(), outcome.shared_counts.map(|counts| counts.total())), (4, Some(2)));
    let latency = analyser.reading(0, 4, STAMPING).unwrap().latency.unwrap();
    assert_eq!((latency.count, latency.shared_core.map(|shared| shared.count)), (4, Some(2)));
}

#[test]
fn a_latency_over_the_wrap_of_the_40_bit_time_is_right() {
    let mut analyser = analyser(2);
    analyser.analyse(1, &frame(2, 0, 0, TIME_MASK - 99), TIME_MASK + 1 + 400);
    analyser.analyse(1, &frame(2, 0, 1, 0), 1_030_000_000_000);
    let latency = analyser.outcome(0).latency;
    assert_eq!((latency.minimum_ns, latency.maximum_ns), (500, 1_030_000_000_000));
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
    assert_eq!(analyser.ports()[1], PortTally { arrived: 1, corrupted_unattributed: 1, ..PortTally::default() });
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
fn frames_of_an_earlier_trial_are_stale_and_neither_received_nor_foreign() {
    let mut analyser = analyser(9);
    analyser.analyse(1, &frame(8, 0, 0, 0), 1);
    let stale = PortTally { arrived: 1, stale: 1, ..PortTally::default() };
    assert_eq!((analyser.streams()[0].received, analyser.ports()[1]), (0, stale));
    analyser.end_drain();
    analyser.analyse(1, &frame(8, 0, 0, 0), 2);
    assert_eq!(analyser.ports()[1], stale);
}

#[test]
fn a_frame_at_the_wrong_port_is_misdirected_and_one_of_an_unknown_flow_foreign() {
    let mut analyser = analyser(2);
    analyser.analyse(0, &frame(2, 0, 0, 0), 1);
    analyser.analyse(1, &frame(2, 5, 0, 0), 1);
    assert_eq!(analyser.ports()[0], PortTally { arrived: 1, misdirected: 1, ..PortTally::default() });
    assert_eq!(analyser.ports()[1], PortTally { arrived: 1, foreign: 1, ..PortTally::default() });
    analyser.end_drain();
    analyser.analyse(0, &frame(2, 0, 1, 0), 2);
    assert_eq!(analyser.ports()[0].misdirected, 1);
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

#[test]
fn a_broken_signature_is_not_lost_and_a_stranger_between_our_addresses_undoes_no_loss_twice() {
    let mut analyser = analyser(2);
    (0..7).for_each(|sequence| analyser.analyse(1, &frame(2, 0, sequence, 0), 1));
    (7..9).for_each(|sequence| analyser.analyse(1, &unsigned(sequence), 1));
    assert_eq!(analyser.losses(&[10]), [Losses { lost: 1, unattributed: 2 }]);
    assert_eq!(analyser.losses(&[8]), [Losses { lost: 0, unattributed: 1 }]);
    assert_eq!(analyser.losses(&[7]), [Losses { lost: 0, unattributed: 0 }]);
}

#[test]
fn broken_signatures_of_streams_between_the_same_addresses_go_to_those_that_miss_frames() {
    let mut analyser = twins();
    analyser.analyse(1, &frame(2, 0, 0, 0), 1);
    (0..3).for_each(|sequence| analyser.analyse(1, &unsigned(sequence), 1));
    let losses = analyser.losses(&[2, 4]);
    assert_eq!(losses, [Losses { lost: 0, unattributed: 1 }, Losses { lost: 2, unattributed: 2 }]);
}

#[test]
fn of_a_broken_and_a_whole_copy_the_first_decides_and_a_broken_one_is_no_duplicate() {
    for broken_first in [true, false] {
        let mut analyser = analyser(2);
        let mut both = [broken(0), frame(2, 0, 0, 0)];
        if !broken_first {
            both.reverse();
        }
        both.iter().for_each(|frame| analyser.analyse(1, frame, 1));
        let tally = &analyser.streams()[0];
        assert_eq!((tally.corrupted, tally.received), if broken_first { (1, 0) } else { (0, 1) });
        assert_eq!((tally.duplicated, tally.corrupted_copies), if broken_first { (1, 0) } else { (0, 1) });
        assert_eq!(analyser.losses(&[1])[0].lost, 0);
    }
}

/// With other addresses and ports, as somebody who scrambles headers leaves it, or a device that translates them.
fn readdressed(sequence: u32) -> Vec<u8> {
    let mut other = frame(2, 0, sequence, 0);
    other[26..38].iter_mut().for_each(|byte| *byte ^= 0x55);
    other
}

#[test]
fn a_second_frame_with_addresses_that_nobody_sent_is_no_duplicate() {
    let mut analyser = analyser(2);
    for frame in [frame(2, 0, 0, 0), readdressed(0), frame(2, 0, 0, 0), frame(2, 0, 1, 0), readdressed(1)] {
        analyser.analyse(1, &frame, 1);
    }
    let tally = &analyser.streams()[0];
    assert_eq!((tally.received, tally.duplicated, tally.corrupted_copies), (2, 1, 2));
    assert_eq!(analyser.ports()[1], PortTally { arrived: 5, ..PortTally::default() });
}

#[test]
fn copies_that_a_device_makes_of_frames_whose_addresses_it_translates_are_duplicates() {
    let mut analyser = analyser(2);
    (0..3).for_each(|_| analyser.analyse(1, &readdressed(0), 1));
    let tally = &analyser.streams()[0];
    assert_eq!((tally.received, tally.duplicated, tally.corrupted_copies), (1, 2, 0));
}

#[test]
fn a_signature_is_found_where_the_header_says_even_if_the_last_one_was_elsewhere() {
    let mut analyser = analyser(2);
    analyser.offset = 70;
    analyser.analyse(1, &frame(2, 0, 0, 0), 1);
    assert_eq!((analyser.streams()[0].received, analyser.offset), (1, 42));
}

#[test]
fn a_frame_whose_header_is_broken_is_corrupted_because_its_signature_is_ours() {
    let mut analyser = analyser(2);
    for position in [12, 14, 17, 23, 39] {
        let mut broken = frame(2, 0, position as u32, 0);
        broken[position] ^= 0x10;
        analyser.analyse(1, &broken, 1);
    }
    assert_eq!(
        (analyser.streams()[0].corrupted, analyser.ports()[1]),
        (5, PortTally { arrived: 5, ..PortTally::default() })
    );
}

#[test]
fn variation_is_that_of_frames_that_follow_one_another() {
    let mut analyser = analyser(2);
    // Latencies by sequence: 100, 130, (lost), 400, 395; sequence 3 arrives late and has none.
    for (sequence, latency_ns) in [(0, 100), (1, 130), (4, 400), (3, 900), (5, 395)] {
        analyser.analyse(1, &frame(2, 0, sequence, 1000), 1000 + latency_ns);
    }
    let outcome = analyser.outcome(0);
    assert_eq!((outcome.tally.pairs(), outcome.variation_sum_ns), (2, 30 + 5));
    assert_eq!(outcome.tally.variation_maximum_ns, 30);
    assert_eq!((outcome.tally.reordered, outcome.tally.reordering.maximum_extent), (1, 1));
}

#[test]
fn groups_of_flows_have_histograms_of_their_own_that_add_up() {
    let mut analyser = with_flows(2, 100, Detail { flow_groups: 64, flow_histograms: false, ..Detail::default() });
    for flow in 0..100 {
        analyser.analyse(1, &frame(2, flow, 0, 0), 1000 + u64::from(flow));
    }
    let groups: Vec<_> = analyser.groups(0).collect();
    assert_eq!((groups.len(), groups[3].first_flow, groups[3].flows), (50, 6, 2));
    assert_eq!((groups[3].latency.minimum_ns, groups[3].latency.maximum_ns, groups[3].counts.total()), (1006, 1007, 2));
    assert_eq!(analyser.outcome(0).counts.total(), 100);
}

#[test]
fn histograms_of_single_flows_are_refused_over_their_limit_with_the_memory_they_need() {
    let expected =
        Expected { template: template(128), sent: None, receive_port: 1, first_flow: 0, flows: 20_000, copy_of: None };
    let detail = Detail { flow_groups: 1, flow_histograms: true, ..Detail::default() };
    let error = Analyser::with_detail(Signer::new(1, 1), vec![expected], 2, detail).unwrap_err();
    assert!(error.kind == ErrorKind::BadRequest && error.message.contains("1024 MiB"), "{error}");
    assert_eq!(with_flows(2, 3, detail).groups(0).count(), 3);
}

#[test]
fn each_flow_knows_its_own_loss() {
    let mut analyser = with_flows(2, 3, Detail::default());
    for (flow, sequence) in [(0, 0), (0, 2), (1, 0), (1, 1)] {
        analyser.analyse(1, &frame(2, flow, sequence, 0), 1);
    }
    let lost: Vec<u64> = analyser.flows_of(0, 8).map(|flow| flow.lost).collect();
    assert_eq!(lost, [1, 1, 2]);
    let flows = analyser.reading(0, 8, STAMPING).unwrap().flows;
    assert_eq!((flows.flows, flows.silent, flows.with_loss, flows.most_lost), (3, 1, 3, Some((2, 2))));
}

const STAMPING: crate::latency::Stamping =
    crate::latency::Stamping { source: "software", received_by: "tsc", resolution_ns: 1.0, uncertainty_ns: 1.0 };

#[test]
fn frames_that_arrive_before_they_were_sent_are_counted_and_their_latency_is_0() {
    let mut analyser = analyser(2);
    for (sequence, time_ns) in [(0, 5_000), (1, 4_000), (2, 6_000)] {
        analyser.analyse(1, &frame(2, 0, sequence, 5_000), time_ns);
    }
    // A time before the trial began wraps around.
    analyser.analyse(1, &frame(2, 0, 3, 500), 700u64.wrapping_neg());
    let latency = analyser.reading(0, 4, STAMPING).unwrap().latency.unwrap();
    assert_eq!((latency.negative, latency.negative_maximum_ns), (2, 1_200));
    assert_eq!((latency.count, latency.minimum_ns, latency.maximum_ns), (4, 0, 1_000));
}

#[test]
fn frames_with_stamps_are_judged_by_them_and_not_by_the_moment_of_receipt() {
    let mut analyser = analyser(2);
    let mut pool = crate::sys::pool::FramePool::default();
    let frames: Vec<Frame> = (0..40)
        .map(|sequence| {
            let bytes = frame(2, 0, sequence, 1_000);
            let mut taken = pool.take(bytes.len());
            taken.bytes_mut().copy_from_slice(&bytes);
            taken
        })
        .collect();
    let times: Vec<u64> = (0..40).map(|number| 3_000 + number * 10).collect();
    analyser.analyse_stamped(1, &frames, 900_000, &times);
    let latency = analyser.reading(0, 40, STAMPING).unwrap().latency.unwrap();
    assert_eq!((latency.count, latency.minimum_ns, latency.maximum_ns), (40, 2_000, 2_390));
}

#[test]
fn latencies_too_long_for_a_flows_line_keep_their_exact_extremes() {
    let mut analyser = analyser(2);
    analyser.analyse(1, &frame(2, 0, 0, 0), 7_000_000_000);
    analyser.analyse(1, &frame(2, 0, 1, 0), 9_000_000_000);
    let reading = analyser.reading(0, 2, STAMPING).unwrap().latency.unwrap();
    assert_eq!((reading.minimum_ns, reading.maximum_ns, reading.mean_ns), (7_000_000_000, 9_000_000_000, 8e9));
}

#[test]
fn two_receivers_of_one_trial_add_up_to_one() {
    let flows = 16;
    let detail = Detail { flow_groups: 4, flow_histograms: false, ..Detail::default() };
    let (mut whole, mut one, mut two) =
        (with_flows(2, flows, detail), with_flows(2, flows, detail), with_flows(2, flows, detail));
    for number in 0..4_000u32 {
        let (flow, sequence) = (number % flows, number / flows);
        let now_ns = u64::from(number) * 100_000;
        let bytes = match number % 97 {
            3 if !(2_000..2_300).contains(&number) => broken(sequence),
            5 => continue,
            // Nothing arrives at either for 30 ms: the longest silence of both is that of the stream.
            _ if (2_000..2_300).contains(&number) => continue,
            _ => frame(2, flow, sequence, now_ns.saturating_sub(u64::from(number % 31) * 1000)),
        };
        let flow = if number % 97 == 3 { 0 } else { flow };
        for receiver in [&mut whole, if flow % 2 == 0 { &mut one } else { &mut two }] {
            receiver.analyse(1, &bytes, now_ns);
            receiver.analyse(0, &[0; 60], now_ns);
        }
    }
    one.merge(two);
    assert_eq!(one.flows.lines(), whole.flows.lines());
    assert_eq!(one.ports(), whole.ports());
    let sent = 4_000;
    let (ours, theirs) = (one.reading(0, sent, STAMPING).unwrap(), whole.reading(0, sent, STAMPING).unwrap());
    assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
    let silence = ours.arrivals.unwrap().silence.unwrap();
    assert!(silence.from_ns < 200_000_000 && silence.to_ns >= 230_000_000, "{silence:?}");
    assert_eq!(one.losses(&[sent]), whole.losses(&[sent]));
}
