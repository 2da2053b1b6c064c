//! Counts of whole trials on simulated ports, against the faults that were really made.

mod conversation;

use conversation::{Engine, count, counter, port, start};
use serde_json::{Value, json};

fn reading(dut: Value, start: Value) -> Value {
    reading_with_drain(dut, start, 0.05)
}

fn reading_with_drain(dut: Value, start: Value, drain_s: f64) -> Value {
    let mut engine = Engine::with_ports("virtual", json!([port("t0", 1, dut), port("t1", 0, json!({}))]));
    let (reading, _) = engine.trial_with_drain(start, drain_s);
    assert_eq!(engine.finish(), Some(0));
    let names = ["sent", "unsent_tester", "unsent_backpressure"];
    assert_eq!(count(&reading, "intended"), names.iter().map(|name| count(&reading, name)).sum::<u64>(), "{reading}");
    let fates = ["received", "late", "corrupted", "unattributed", "lost"];
    assert_eq!(count(&reading, "sent"), fates.iter().map(|name| count(&reading, name)).sum::<u64>(), "{reading}");
    reading
}

#[test]
fn an_undisturbed_trial_sends_and_receives_exactly_what_was_intended() {
    let reading = reading(json!({"delay_ns": 10_000}), start(1, 123_456.7, 64));
    assert_eq!((count(&reading, "intended"), count(&reading, "sent")), (12_345, 12_345));
    assert_eq!((count(&reading, "received"), count(&reading, "lost")), (12_345, 0));
    assert_eq!((count(&reading, "maximum_burst"), count(&reading, "reordered")), (1, 0));
}

#[test]
fn lost_corrupted_duplicated_and_reordered_frames_are_counted_exactly() {
    let dut = json!({"seed": 11, "loss": 0.01, "corrupt": 0.01, "duplicate": 0.01, "reorder": 0.01});
    let reading = reading(dut, start(1, 200_000.0, 128));
    for fault in ["lost", "corrupted", "duplicated", "reordered"] {
        let made = counter(&reading, 0, &format!("simulated_{fault}"));
        assert_eq!(count(&reading, fault), made, "{fault}");
        assert!(made > 100, "{fault} was tried");
    }
    assert_eq!(count(&reading, "received") + count(&reading, "lost") + count(&reading, "corrupted"), 20_000);
}

#[test]
fn a_frame_is_overtaken_by_as_many_as_asked_however_slowly_they_come() {
    for rate_frames_per_s in [100.0, 2_000.0, 100_000.0] {
        let mut start = start(1, rate_frames_per_s, 64);
        start["duration_s"] = 2.0.into();
        let reading = reading(json!({"seed": 3, "reorder": 0.02, "swap": 20}), start);
        let made = counter(&reading, 0, "simulated_reordered");
        assert!(made > 0 && count(&reading, "reordered") == made, "{rate_frames_per_s}: {reading}");
        assert_eq!(count(&reading, "lost"), 0);
    }
}

#[test]
fn a_latency_of_minutes_is_read_whole() {
    let mut start = start(1, 10.0, 64);
    start["duration_s"] = 20.into();
    for delay_s in [550_u64, 990] {
        let reading = reading_with_drain(json!({"delay_ns": delay_s * 1_000_000_000}), start.clone(), 1000.0);
        assert_eq!(count(&reading, "received"), 200);
        let latency = &reading["streams"][0]["latency"];
        let seconds = |name: &str| latency[name].as_f64().unwrap() / 1e9;
        assert!((seconds("minimum_ns") - delay_s as f64).abs() < 0.001, "{latency}");
        assert!((seconds("maximum_ns") - delay_s as f64).abs() < 0.001, "{latency}");
    }
}

#[test]
fn a_queue_that_overflows_loses_exactly_what_it_dropped() {
    let reading = reading(json!({"capacity_frames_per_s": 50_000, "queue_frames": 64}), start(1, 80_000.0, 64));
    assert_eq!(count(&reading, "lost"), counter(&reading, 0, "simulated_queue_dropped"));
    assert!((2_900..=3_000).contains(&count(&reading, "lost")), "{reading}");
}

#[test]
fn a_corrupted_signature_belongs_to_no_stream() {
    let mut start = start(1, 10_000.0, 82);
    let stream = &mut start["streams"][0];
    (stream["ip"], stream["source_address"]) = (6.into(), "2001:2::1".into());
    stream["destination_address"] = "2001:2::2".into();
    let reading = reading(json!({"corrupt": 0.05}), start);
    assert_eq!(reading["ports"][1]["corrupted_unattributed"], counter(&reading, 0, "simulated_corrupted"));
    assert_eq!((count(&reading, "corrupted"), count(&reading, "lost")), (0, 0));
    assert_eq!(reading["ports"][1]["corrupted_unattributed"], count(&reading, "unattributed"));
}

#[test]
fn foreign_frames_are_foreign_and_a_dead_device_loses_everything() {
    let reading = reading(json!({"dead": true, "foreign_frames_per_s": 1000}), start(1, 1000.0, 64));
    assert_eq!((count(&reading, "received"), count(&reading, "lost")), (0, 100));
    assert_eq!(reading["streams"][0]["latency"], Value::Null);
    assert_eq!(reading["ports"][1]["foreign"], 150);
}

#[test]
fn what_the_tester_cannot_send_is_unsent_by_the_tester_and_not_lost() {
    let reading = reading(json!({"tester_ceiling_frames_per_s": 50_000}), start(1, 80_000.0, 64));
    assert!((5_000..=5_150).contains(&count(&reading, "sent")), "{reading}");
    assert_eq!((count(&reading, "unsent_backpressure"), count(&reading, "lost")), (0, 0));
}

#[test]
fn frames_that_came_back_were_sent_though_most_of_their_port_never_left_it() {
    let mut first = port("t0", 1, json!({}));
    first["link_bits_per_s"] = 10_000.into(); // three frames of 64 bytes until the end of the drain
    let mut engine = Engine::with_ports("virtual", json!([first, port("t1", 0, json!({}))]));
    let mut start = start(1, 1000.0, 64);
    let mut second = start["streams"][0].clone();
    (second["name"], second["rate_frames_per_s"]) = ("second".into(), 700.into());
    start["streams"].as_array_mut().unwrap().push(second);
    let (reading, _) = engine.trial(start);
    let of = |stream: &Value, names: &[&str]| names.iter().map(|name| stream[*name].as_u64().unwrap()).sum::<u64>();
    let streams = reading["streams"].as_array().unwrap();
    assert!(streams.iter().all(|stream| stream["received"].as_u64().unwrap() > 0), "{reading}");
    for stream in streams {
        let fates = ["received", "late", "corrupted", "unattributed", "lost"];
        assert_eq!(of(stream, &["sent"]), of(stream, &fates), "{stream}");
        assert_eq!(
            of(stream, &["intended"]),
            of(stream, &["sent", "unsent_tester", "unsent_backpressure"]),
            "{stream}"
        );
    }
}

#[test]
fn what_a_lossless_port_refuses_is_backpressure() {
    let mut first = port("t0", 1, json!({"tester_ceiling_frames_per_s": 50_000}));
    first["lossless"] = true.into();
    let mut engine = Engine::with_ports("virtual", json!([first, port("t1", 0, json!({}))]));
    let (reading, _) = engine.trial(start(1, 80_000.0, 64));
    assert_eq!((count(&reading, "unsent_tester"), count(&reading, "lost")), (0, 0));
    assert_eq!(count(&reading, "unsent_backpressure"), 8_000 - count(&reading, "sent"));
}

#[test]
fn what_falls_due_while_the_worker_is_away_is_no_backpressure() {
    let refused = |pauses: Value| {
        let mut dut = json!({"tester_ceiling_frames_per_s": 90_000});
        pauses.as_object().unwrap().iter().for_each(|(key, value)| dut[key] = value.clone());
        let mut first = port("t0", 1, dut);
        first["lossless"] = true.into();
        let mut engine = Engine::with_ports("virtual", json!([first, port("t1", 0, json!({}))]));
        let (reading, _) = engine.trial(start(1, 100_000.0, 64));
        (count(&reading, "unsent_backpressure"), count(&reading, "unsent_tester"))
    };
    let (without, none) = refused(json!({}));
    assert_eq!(none, 0);
    // In the midst of the trial, and over its end, when the frames of a millisecond may still wait to be made good.
    for (every_s, pause_ns, least, waiting) in [(0.03, 10_000_000, 1_000, 20), (0.095, 20_000_000, 300, 100)] {
        let (with, tester) = refused(json!({"pause_every_s": every_s, "pause_ns": pause_ns}));
        assert!(with <= without + waiting, "{with} of {without}");
        assert!(tester > least, "{tester} of {least}");
    }
}

#[test]
fn as_fast_as_possible_intends_what_was_sent() {
    let reading = reading(json!({"tester_ceiling_frames_per_s": 50_000}), start(1, 0.0, 64));
    assert_eq!(count(&reading, "intended"), count(&reading, "sent"));
    assert_eq!(count(&reading, "maximum_burst"), 32);
}

#[test]
fn a_worker_that_is_held_up_has_gaps_and_unsent_frames() {
    let reading = reading(json!({"pause_every_s": 0.03, "pause_ns": 10_000_000}), start(1, 100_000.0, 64));
    assert!(reading["health"]["longest_gap_ns"].as_u64().unwrap() >= 10_000_000, "{reading}");
    assert!(reading["health"]["gaps"].as_u64().unwrap() >= 2);
    assert!(count(&reading, "unsent_tester") > 1_000);
    assert_eq!(count(&reading, "lost"), 0);
}

#[test]
fn a_receiver_that_pauses_reports_its_overrun() {
    let mut start = start(1, 500_000.0, 64);
    start["fault"] = json!({"pause_receive_after_s": 0.03, "pause_receive_s": 0.05});
    let reading = reading(json!({}), start);
    let overrun = reading["ports"][1]["receive_overrun"].as_u64().unwrap();
    assert_eq!(count(&reading, "lost"), overrun);
    assert!(overrun > 10_000);
}

#[test]
fn frames_after_the_drain_are_late() {
    let mut engine = Engine::with_ports(
        "virtual",
        json!([port("t0", 1, json!({"delay_ns": 70_000_000})), port("t1", 0, json!({}))]),
    );
    let (reading, late) = engine.trial(start(1, 1000.0, 64));
    let arrived_late = late["late"][0].as_u64().unwrap();
    assert_eq!(count(&reading, "received") + arrived_late, 100);
    assert!(arrived_late > 10);
}

#[test]
fn a_trial_does_not_depend_on_those_before_it() {
    let dut = json!({"seed": 5, "loss": 0.01, "reorder": 0.01, "jitter_ns": 5000, "capacity_frames_per_s": 90_000});
    let open = || Engine::with_ports("virtual", json!([port("t0", 1, dut.clone()), port("t1", 0, json!({}))]));
    let mut one = open();
    one.trial(start(1, 95_000.0, 64));
    one.trial(start(2, 0.0, 1518));
    let mut other = open();
    let (mut first, mut second) = (one.trial(start(3, 80_000.0, 64)).0, other.trial(start(3, 80_000.0, 64)).0);
    (first["id"], second["id"]) = (Value::Null, Value::Null);
    assert_eq!(first, second);
}

#[test]
fn both_directions_and_many_flows_are_kept_apart() {
    let mut engine =
        Engine::with_ports("virtual", json!([port("t0", 1, json!({"loss": 0.1})), port("t1", 0, json!({}))]));
    let mut start = start(1, 50_000.0, 64);
    start["streams"][0]["flows"] = 1000.into();
    start["streams"][0]["destination_address_count"] = 1000.into();
    let mut back = start["streams"][0].clone();
    (back["name"], back["transmit_port"], back["receive_port"]) = ("back".into(), 1.into(), 0.into());
    start["streams"].as_array_mut().unwrap().push(back);
    let (reading, _) = engine.trial(start);
    assert_eq!(count(&reading, "lost"), counter(&reading, 0, "simulated_lost"));
    assert_eq!((&reading["streams"][1]["received"], &reading["streams"][1]["lost"]), (&json!(5000), &json!(0)));
}

#[test]
fn frames_around_losses_and_a_line_for_each_flow_are_written_where_start_says() {
    let folder = std::env::temp_dir().join(format!("nicbench-counts-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let mut start = start(1, 50_000.0, 64);
    start["streams"][0]["flows"] = 4.into();
    start["flow_groups"] = 64.into();
    start["capture"] = json!({"path": path("a.pcapng"), "around_loss": 2});
    start["flow_report"] = json!({"path": path("a.ndjson"), "histograms": true});
    let reading = reading(json!({"seed": 1, "loss": 0.002, "delay_ns": 10_000}), start);
    assert!(reading["capture"]["jumps"].as_u64().unwrap() > 2, "{reading}");
    assert!(std::fs::metadata(path("a.pcapng")).unwrap().len() > 60 * reading["capture"]["frames"].as_u64().unwrap());
    let lines = std::fs::read_to_string(path("a.ndjson")).unwrap();
    let lost: u64 = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|line| line["lost"].as_u64().unwrap())
        .sum();
    assert_eq!((lines.lines().count(), lost), (4, count(&reading, "lost")));
    assert_eq!(reading["streams"][0]["groups"].as_array().unwrap().len(), 4);
    assert_eq!(
        reading["streams"][0]["intervals"]["received"]
            .as_array()
            .unwrap()
            .iter()
            .map(|of| of.as_u64().unwrap())
            .sum::<u64>(),
        count(&reading, "received")
    );
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_file_that_cannot_be_written_is_refused_before_the_transmission() {
    let mut engine = Engine::with_ports("virtual", json!([port("t0", 1, json!({})), port("t1", 0, json!({}))]));
    let mut start = start(1, 1000.0, 64);
    start["capture"] = json!({"path": "/nowhere/at/all.pcapng", "frames": 10});
    let refused = engine.ask(start.clone());
    assert_eq!((&refused["ok"], &refused["error"]["kind"]), (&json!(false), &json!("bad_request")));
    start["capture"] = json!({"path": "/tmp/x", "frames": 10, "around_loss": 10});
    assert_eq!(engine.ask(start)["error"]["kind"], "bad_request");
}

/// Three ports send to the fourth, each at this rate for 0.1 s; the way out carries 60,000 frames/s.
#[test]
fn many_senders_share_one_ports_way_out_and_lose_exactly_what_it_dropped() {
    let mac = |index: usize| format!("02:00:00:00:0a:0{index}");
    let ports: Vec<Value> = (0..4)
        .map(|index| {
            let mut port = port(&format!("t{index}"), (index + 1) % 4, json!({}));
            port["mac"] = mac(index).into();
            port["egress"] = json!({"capacity_frames_per_s": 60_000, "queue_frames": 16});
            port
        })
        .collect();
    let mut start = start(1, 30_000.0, 64);
    let stream = start["streams"][0].clone();
    start["streams"] = (0..3)
        .map(|from| {
            let mut one = stream.clone();
            (one["transmit_port"], one["receive_port"]) = (from.into(), 3.into());
            one["destination_mac"] = mac(3).into();
            one
        })
        .collect();
    let mut engine = Engine::with_ports("virtual", json!(ports));
    let (reading, _) = engine.trial(start);
    assert_eq!(engine.finish(), Some(0));
    let sum = |name: &str| (0..3).map(|stream| reading["streams"][stream][name].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("sent"), sum("received") + sum("lost")), (9_000, 9_000));
    assert_eq!(sum("lost"), counter(&reading, 3, "simulated_egress_dropped"));
    // What it carries in 0.1 s, and what its queue held at the end.
    assert!((6_000..=6_018).contains(&sum("received")), "{reading}");
    assert_eq!((0..4).map(|port| reading["ports"][port]["foreign"].as_u64().unwrap()).sum::<u64>(), 0);
}

#[test]
fn frames_that_come_to_another_port_are_misdirected_there_and_lost_to_their_stream() {
    let mut engine = Engine::with_ports("virtual", json!([port("t0", 1, json!({})), port("t1", 0, json!({}))]));
    let mut start = start(1, 10_000.0, 64);
    start["streams"][0]["receive_port"] = 0.into(); // the wire leads to t1
    let (reading, _) = engine.trial(start);
    let counts =
        |port: usize| ["arrived", "misdirected", "foreign"].map(|name| reading["ports"][port][name].as_u64().unwrap());
    assert_eq!((counts(0), counts(1)), ([0, 0, 0], [1000, 1000, 0]));
    assert_eq!((count(&reading, "sent"), count(&reading, "lost")), (1000, 1000));
}
