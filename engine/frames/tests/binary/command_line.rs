//! The binary as a person meets it: frames are written, read and removed, in every way there is.

use std::fs;
use std::process::Command;

use crate::common::{BINARY, Folder};
use serde_json::Value;

#[test]
fn every_engine_writes_what_every_other_one_reads() {
    let folder = Folder::new();
    for (writer, reader) in [("sync", "io-uring"), ("io-uring", "threads"), ("threads", "sync")] {
        for size in ["--frame-size 300k --request 64k", "--frame-size 5000", "--profile sd-exr"] {
            for streamed in ["", "--streamed"] {
                let written = folder.done("write", &format!("--frames 5 {size} {streamed} --engine {writer}"));
                let read = folder.done("read", &format!("--verify full --order random --threads 2 --engine {reader}"));
                for result in [&written, &read] {
                    assert_eq!((&result["frames"], &result["ended_by"]), (&5.into(), &"frames".into()), "{size}");
                    assert_eq!(result["open"].is_null(), !streamed.is_empty());
                    assert_eq!(result["completion"]["count"], 5);
                }
                assert_eq!(written["bytes"], read["bytes"]);
            }
        }
    }
}

#[test]
fn a_profile_has_its_size_and_names_are_as_asked_for() {
    let folder = Folder::new();
    let written = folder.done("prepare", "--profile hd --frames 2 --pattern shot_%04d.dpx --first 9 --sync frame");
    assert_eq!(folder.names(), ["nicbench-frames.json", "shot_0009.dpx", "shot_0010.dpx"]);
    assert_eq!(fs::metadata(folder.file("shot_0009.dpx")).unwrap().len(), 1920 * 1080 * 4 + 65_536);
    assert_eq!((&written["task"], &written["sync"]["count"]), (&"prepare".into(), &2.into()));
    assert_eq!(folder.done("read", "--order reverse")["frames"], 2);
}

#[test]
fn content_does_not_repeat_itself_and_depends_on_the_seed() {
    let folder = Folder::new();
    let content = |seed: &str| {
        folder.done("write", &format!("--frame-size 1m --frames 2 {seed}"));
        [0, 1].map(|frame| fs::read(folder.file(&format!("frame_{frame:06}.dpx"))).unwrap()).concat()
    };
    let (first, again, other) = (content("--seed 5"), content("--seed 5"), content("--seed 6"));
    assert!(first == again && first != other);
    let pieces: std::collections::HashSet<&[u8]> = first.chunks(512).collect();
    assert_eq!(pieces.len(), first.len() / 512);
}

#[test]
fn stamped_content_is_verified_too() {
    let folder = Folder::new();
    folder.done("write", "--frame-size 2500000 --frames 2 --content stamped --depth 2");
    assert_eq!(folder.done("read", "--verify full")["frames"], 2);
}

#[test]
fn direct_requests_fill_frames_up_and_read_them_again() {
    let folder = Folder::new();
    let ran = folder.run("write", "--frame-size 5000 --frames 3 --direct");
    if ran.status == Some(4) && ran.failure() == "unsupported" {
        println!("no direct I/O in {}: not tried", folder.0.display());
        return;
    }
    assert_eq!(ran.status, Some(0), "{}", ran.errors);
    assert_eq!(fs::metadata(folder.file("frame_000002.dpx")).unwrap().len(), 8192);
    for engine in ["sync", "threads", "io-uring"] {
        assert_eq!(folder.done("read", &format!("--direct --verify full --engine {engine}"))["frames"], 3);
    }
    // Sizes of somebody else are what they are.
    folder.done("write", "--frame-size 5000 --frames 3");
    assert_eq!(folder.done("read", "--direct --existing --pattern frame_%06d.dpx")["bytes"], 15_000);
}

#[test]
fn files_of_somebody_else_are_read_as_they_are_and_never_written_or_removed() {
    let folder = Folder::new();
    for (name, size) in [("b_0002.exr", 70_000), ("b_0010.exr", 0), ("b_0001.exr", 5), ("notes.txt", 100)] {
        fs::write(folder.file(name), vec![7; size]).unwrap();
    }
    let read = folder.done("read", "--existing --pattern b_%04d.exr --first 1");
    assert_eq!((&read["frames"], &read["bytes"]), (&3.into(), &70_005.into()));
    assert_eq!(folder.done("read", "--existing")["frames"], 4);
    let refused = folder.run("write", "--frame-size 10 --frames 9 --pattern b_%04d.exr");
    assert_eq!(refused.status, Some(3));
    assert!(refused.errors.contains("nicbench did not write it"), "{}", refused.errors);
    folder.done("write", "--frame-size 10 --frames 3");
    let cleaned = Command::new(BINARY).arg("clean").arg(&folder.0).output().unwrap();
    assert!(String::from_utf8(cleaned.stdout).unwrap().starts_with("3 files of 30 bytes removed"));
    assert_eq!(folder.names(), ["b_0001.exr", "b_0002.exr", "b_0010.exr", "notes.txt"]);
}

#[test]
fn a_limit_is_held_and_frames_that_miss_their_time_are_dropped_ones() {
    let folder = Folder::new();
    let held = folder.done("write", "--frame-size 4k --frames 50 --fps 100 --read-ahead 20");
    // Never faster, and on an idle machine exactly that.
    assert!(held["measured_ns"].as_u64().unwrap() >= 500_000_000 && held["frames_per_s"].as_f64().unwrap() <= 100.0);
    assert_eq!((held["frames"].as_u64(), held["lateness"]["count"].as_u64()), (Some(50), Some(50)));
    // A frame of 1 MB every microsecond is too much for any machine.
    let missed = folder.done("write", "--frame-size 1m --frames 20 --fps 1000000 --depth 1");
    assert!(missed["dropped"].as_u64().unwrap() >= 19);
    // Late by what the frames before it took, not by its own time alone.
    let late = missed["lateness"]["maximum_ns"].as_f64().unwrap();
    assert!(late > 5.0 * missed["completion"]["minimum_ns"].as_f64().unwrap());
    assert!(folder.done("read", "")["dropped"].is_null());
}

#[test]
fn what_is_late_does_not_begin_once_the_time_is_over() {
    let folder = Folder::new();
    // Ten thousand frames have their turn: far more than any machine writes in that time.
    let cut = folder.done("write", "--frame-size 4m --frames 10 --repeat --fps 100000 --seconds 0.1 --depth 2");
    assert_eq!(
        (&cut["ended_by"], &cut["measured_ns"], &cut["due"]),
        (&"duration".into(), &100_000_000.into(), &10_000.into())
    );
    assert!(cut["unmeasured_frames"].as_u64().unwrap() <= 2, "those that were in work: {}", cut["unmeasured_frames"]);
    assert_eq!(
        cut["missed"].as_u64().unwrap(),
        10_000 - (cut["frames"].as_u64().unwrap() - cut["dropped"].as_u64().unwrap())
    );
}

#[test]
fn time_ends_a_run_and_its_warm_up_is_not_measured() {
    let folder = Folder::new();
    folder.done("prepare", "--frame-size 64k --frames 5");
    let samples = folder.file("samples");
    let read = folder.done(
        "read",
        &format!("--repeat --warm-up 0.2 --seconds 0.3 --fps 100 --samples {0} --csv {0}.csv", samples.display()),
    );
    assert_eq!((&read["ended_by"], &read["measured_ns"]), (&"duration".into(), &300_000_000.into()));
    let count = |name: &str| read[name].as_u64().unwrap();
    assert!(count("unmeasured_frames") >= 1 && count("frames") + count("unmeasured_frames") == 50);
    assert_eq!(read["all_frames"], 50);
    let bytes = fs::read(&samples).unwrap();
    assert_eq!((&bytes[..8], bytes.len()), (&b"NBSAMPLE"[..], 64 + 50 * 96));
    let text = fs::read_to_string(folder.file("samples.csv")).unwrap();
    let measured = text.lines().skip(1).filter(|line| line.split(',').nth(3) == Some("1")).count();
    assert_eq!((text.lines().count(), measured as u64), (51, count("frames")));
    let of_intervals: u64 =
        read["intervals"].as_array().unwrap().iter().map(|each| each["frames"].as_u64().unwrap()).sum();
    assert_eq!(of_intervals, 50);
}

#[test]
fn it_begins_as_late_as_it_is_told_and_measures_no_less() {
    let folder = Folder::new();
    folder.done("prepare", "--frame-size 4k --frames 5");
    let called = std::time::Instant::now();
    let read = folder.done("read", "--repeat --after 0.4 --warm-up 0.1 --seconds 0.2 --fps 100");
    // The last of the 30 frames is due 0.29 s after the first.
    assert!(called.elapsed().as_secs_f64() >= 0.69);
    assert_eq!((&read["warm_up_ns"], &read["measured_ns"]), (&100_000_000.into(), &200_000_000.into()));
    assert_eq!(read["all_frames"], 30);
}

#[test]
fn a_signal_ends_it_and_what_was_measured_is_told() {
    let folder = Folder::new();
    let child = folder
        .command("write", "--frame-size 4k --frames 100000 --fps 50 --json")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    while !folder.file("frame_000003.dpx").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &result["ended_by"]), (Some(130), &"stopped".into()));
    assert!(result["frames"].as_u64().unwrap() >= 3);
}

#[test]
fn what_cannot_be_is_refused_with_a_next_step_before_anything_is_written() {
    let folder = Folder::new();
    for (task, arguments, status) in [
        ("write", "--frames 3 --profile 5k", 2),
        ("write", "", 2),
        ("write", "--frames 3 --threads 0", 2),
        ("write", "--frames 3 --pattern ../%d", 2),
        ("write", "--frames 900000000 --profile 8k", 3),
        ("write", "--frames 3 --depth 4096 --request 1g --frame-size 1g --ignore-space", 3),
        ("read", "", 3),
        ("read", "--existing", 3),
    ] {
        let refused = folder.run(task, arguments);
        assert_eq!(refused.status, Some(status), "{task} {arguments}: {}", refused.errors);
        assert!(refused.errors.contains("next: "), "{}", refused.errors);
    }
    assert!(!folder.names().iter().any(|name| name.starts_with("frame_")));
    let nowhere = Command::new(BINARY).args(["read", "/no/such/place"]).output().unwrap();
    assert_eq!(nowhere.status.code(), Some(3));
}

#[test]
fn threads_that_write_in_rotation_take_no_frame_of_their_own_for_a_strangers() {
    for _ in 0..10 {
        let folder = Folder::new();
        let written = folder.done("write", "--frame-size 64k --frames 4 --repeat --threads 8 --seconds 0.05");
        assert_eq!(written["ended_by"], "duration");
    }
}

#[test]
fn the_last_second_has_the_rate_of_the_others() {
    let folder = Folder::new();
    folder.done("prepare", "--frame-size 64k --frames 6");
    let read = folder.done("read", "--fps 4");
    let intervals = read["intervals"].as_array().unwrap();
    let rates =
        intervals.iter().map(|each| each["frames"].as_f64().unwrap() * 1e9 / each["interval_ns"].as_f64().unwrap());
    assert_eq!(rates.map(f64::round).collect::<Vec<_>>(), [4.0, 4.0]);
}
