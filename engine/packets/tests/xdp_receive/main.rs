//! The receiver in the kernel counts what the analyser counts: the same frames at the same times go to both, and every
//! count must be the same. The program runs by BPF_PROG_TEST_RUN, so no interface is touched; it needs root, and says
//! so where it did nothing.
//!
//! `NICBENCH_FUZZ_CASES=5000` makes more cases, `NICBENCH_FUZZ_SEED` begins elsewhere.
#![cfg(feature = "xdp")]

mod frames;

use std::io::Write;

use frames::Case;
use nicbench_packets::analyser::{Analyser, Detail, Expected};
use nicbench_packets::capture::Capture;
use nicbench_packets::faults::Random;
use nicbench_packets::frame_writer::FrameWriter;
use nicbench_packets::latency::Stamping;
use nicbench_packets::signature::{Signature, Signer};
use nicbench_packets::stamps::StampedLine;
use nicbench_packets::sys::pool::FramePool;
use nicbench_packets::template::Template;
use nicbench_packets::xdp::Receiver;
use nicbench_protocol::CaptureRequest;
use serde_json::json;

const RUN_KEY: u64 = 77;
const TRIAL: u32 = 1000;
const EPOCH_NS: u64 = 5_000_000_000;
const PORT: usize = 1;
const USUAL_CASES: u64 = 10;
const STAMPING: Stamping = Stamping { source: "software", received_by: "tsc", resolution_ns: 1.0, uncertainty_ns: 1.0 };

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn receiver() -> Option<Receiver> {
    match Receiver::for_test(PORT) {
        Ok(receiver) => Some(receiver),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "nothing was tested: {error}");
            None
        }
    }
}

#[test]
fn the_kernel_counts_what_the_analyser_counts() {
    let Some(mut receiver) = receiver() else { return };
    let first = number("NICBENCH_FUZZ_SEED").unwrap_or(1);
    let cases = number("NICBENCH_FUZZ_CASES").unwrap_or(USUAL_CASES);
    let mut frames = 0;
    for seed in first..first + cases {
        frames += compare(&mut receiver, seed);
    }
    let _ = writeln!(std::io::stderr(), "{cases} cases from seed {first}, {frames} frames");
    assert_eq!(receiver.counters()["events_lost"], 0);
}

/// One case; returns how many frames it had.
fn compare(receiver: &mut Receiver, seed: u64) -> u64 {
    let mut random = Random::seeded(seed, 1, 1);
    let mut case = Case::new(&mut random);
    let signer = Signer::new(RUN_KEY, TRIAL);
    let detail = Detail {
        flow_groups: 1 + random.below(64) as u32,
        flow_histograms: random.below(8) == 0 && case.flows() < 100,
        reordering_n: 3 + random.below(20) as u32,
        traffic_classes: false,
    };
    let kept = Some(random.below(20) as u32 + 1);
    let (frames, around_loss) = if random.below(2) == 0 { (kept, None) } else { (None, kept) };
    let request = CaptureRequest { path: String::new(), frames, around_loss };
    let capture = (random.below(4) == 0).then(|| Capture::new(&request));
    let mut analyser = Analyser::with_detail(signer, case.expected.clone(), 64, detail).expect("an analyser");
    analyser.set_capture(capture.clone());
    analyser.set_watched(true);
    receiver.begin(TRIAL, &signer, &case.expected, detail, 20_000_000_000, capture).expect("a trial");
    receiver.set_epoch(EPOCH_NS);
    let arrivals = 100 + random.below(500);
    let drained = arrivals * (6 + random.below(5)) / 10;
    let mut now_ns = random.below(1_000_000);
    let mut last_slow_ns = None;
    let mut pool = FramePool::default();
    for arrived in 0..arrivals {
        if arrived == drained {
            check_sum(&receiver.analyser().expect("an analyser"), arrived);
            analyser.end_drain();
            receiver.end_drain();
        }
        now_ns += random.below(case.greatest_gap_ns);
        if random.below(50) == 0 {
            last_slow_ns = Some(now_ns);
            receiver.set_last_slow(EPOCH_NS + now_ns);
        }
        let frame = case.arrival(&mut random, now_ns);
        analyser.set_quiet_ns(last_slow_ns.map_or(u64::MAX, |slow_ns| now_ns - slow_ns));
        let mut burst = [pool.take(frame.len())];
        burst[0].bytes_mut().copy_from_slice(&frame);
        analyser.analyse_burst(PORT, &burst, now_ns);
        pool.give(&burst[0]);
        receiver.run(&frame, EPOCH_NS + now_ns, 1).expect("a run");
        if std::env::var_os("NICBENCH_FUZZ_STEPS").is_some() {
            check(receiver, &analyser, &case, &format!("seed {seed}, frame {arrived}: {frame:02x?}"));
        }
    }
    check(receiver, &analyser, &case, &format!("seed {seed}"));
    arrivals
}

/// Every frame that came before the drain ended is in one count.
fn check_sum(kernel: &Analyser, arrived: u64) {
    let of_streams = kernel.streams().iter();
    let counted = of_streams.map(|tally| tally.received + tally.duplicated + tally.corrupted + tally.corrupted_copies);
    let of_ports = kernel
        .ports()
        .iter()
        .map(|tally| tally.foreign + tally.misdirected + tally.corrupted_unattributed + tally.stale);
    assert_eq!(counted.sum::<u64>() + of_ports.sum::<u64>(), arrived, "{kernel:?}");
    assert_eq!(kernel.ports()[PORT].arrived, arrived);
}

fn check(receiver: &mut Receiver, analyser: &Analyser, case: &Case, place: &str) {
    let mut kernel = receiver.analyser().expect("an analyser");
    kernel.set_watched(true);
    let text = |analyser: &Analyser| format!("{:#?}", analyser.streams());
    assert_eq!(text(&kernel), text(analyser), "{place}: streams");
    assert_eq!(kernel.ports(), analyser.ports(), "{place}: ports");
    assert_eq!(kernel.flow_table().lines(), analyser.flow_table().lines(), "{place}: flows");
    let sent = vec![900; case.expected.len()];
    assert_eq!(kernel.losses(&sent), analyser.losses(&sent), "{place}: losses");
    for index in 0..case.expected.len() {
        let (ours, theirs) = (kernel.outcome(index), analyser.outcome(index));
        assert_eq!((&ours.series, ours.interval_ns), (&theirs.series, theirs.interval_ns), "{place}: series {index}");
        assert_eq!(ours.arrivals, theirs.arrivals, "{place}: arrivals {index}");
        assert_eq!(
            (ours.latency, ours.variation_sum_ns),
            (theirs.latency, theirs.variation_sum_ns),
            "{place}: {index}"
        );
        assert!(ours.counts == theirs.counts, "{place}: latencies {index}");
        assert!(ours.shared_counts == theirs.shared_counts, "{place}: latencies while the core was shared {index}");
        for (ours, theirs) in kernel.groups(index).zip(analyser.groups(index)) {
            assert_eq!(ours.latency, theirs.latency, "{place}: group {} of {index}", ours.first_flow);
            assert!(ours.counts == theirs.counts, "{place}: group {} of {index}", ours.first_flow);
        }
        let reading = |analyser: &Analyser| format!("{:?}", analyser.reading(index, 900, STAMPING));
        assert_eq!(reading(&kernel), reading(analyser), "{place}: reading {index}");
    }
    let captured = |analyser: &Analyser| analyser.capture().map(|capture| capture.frames().to_vec());
    assert_eq!(captured(&kernel), captured(analyser), "{place}: capture");
    assert_eq!(receiver.received(), analyser.streams().iter().map(|tally| tally.received).collect::<Vec<_>>());
}

/// A card's clock that is 40 us a second too fast: a frame's latency ends where the card stamped it, however long it
/// then waited for the program.
#[test]
fn a_card_s_stamp_says_when_a_frame_arrived() {
    const PER_STAMP: f64 = 1.0 / (1.0 + 40e-6);
    let line = StampedLine { stamp: 7_000_000_000, tick: EPOCH_NS, ticks_per_stamp: PER_STAMP };
    let Ok(mut receiver) = Receiver::for_stamped_test(PORT, line) else { return };
    let stamp_at = |time_ns: u64| line.stamp + (time_ns as f64 / PER_STAMP).round() as u64;
    let request = json!({"name": "s", "transmit_port": 0, "receive_port": PORT, "rate_frames_per_s": 1, "ip": 4,
        "source_mac": "02:00:00:00:00:01", "destination_mac": "02:00:00:00:00:02", "frame_bytes": 64, "flows": 1,
        "source_address": "198.18.0.2", "destination_address": "198.19.0.2"});
    let template = Template::new(&serde_json::from_value(request).expect("a stream")).expect("a template");
    let expected = [Expected {
        template: template.clone(),
        sent: None,
        receive_port: PORT,
        first_flow: 0,
        flows: 1,
        copy_of: None,
    }];
    let signer = Signer::new(RUN_KEY, TRIAL);
    receiver.begin(TRIAL, &signer, &expected, Detail::default(), 20_000_000_000, None).expect("a trial");
    receiver.set_epoch(EPOCH_NS);
    let writer = FrameWriter::new(template.clone(), signer, 0, 1, 9);
    // Sent a second after the epoch; on the wire until the stamp; seen by the program at last.
    let sent_ns = 1_000_000_000;
    let cases = [
        (Some(sent_ns + 1500), sent_ns + 90_000, 1500),
        (Some(sent_ns + 2500), sent_ns + 2400, 2500), // A stamp just after the receipt: the clocks are not that exact.
        (None, sent_ns + 3500, 3500),
        (Some(sent_ns + 50_000_000_000), sent_ns + 4500, 4500), // A time that cannot be.
    ];
    for (sequence, (stamped_ns, seen_ns, _)) in cases.into_iter().enumerate() {
        let mut frame = template.constant().to_vec();
        writer.patch(&mut frame, 0, Signature { flow: 0, sequence: sequence as u32, time_ns: sent_ns });
        receiver.stamp(stamped_ns.map_or(0, stamp_at));
        receiver.run(&frame, EPOCH_NS + seen_ns, 1).expect("a run");
    }
    assert_eq!(receiver.stamp_counts(), [2, 1, 1, 1]);
    let analyser = receiver.analyser().expect("an analyser");
    let line = &analyser.flow_table().lines()[0];
    let wanted: u64 = cases.iter().map(|(.., latency_ns)| latency_ns).sum();
    // Stamps are whole counts.
    assert!(line.received == 4 && line.latency_sum_ns.abs_diff(wanted) <= 2, "{line:?}, {wanted} ns");
    assert!(line.latency_minimum_ns.abs_diff(1500) <= 1 && line.latency_maximum_ns == 4500, "{line:?}");
}
