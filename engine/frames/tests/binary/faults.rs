//! Frames that cannot be written or read: each fault is told with the frame's file, and what was measured before it is
//! not lost.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};

use crate::common::{BINARY, Folder, Ran};

const ENGINES: [&str; 3] = ["sync", "threads", "io-uring"];

/// Runs it in a file system of 8 MiB of its own, which is gone afterwards. `None` where this user may not mount.
fn in_small_file_system(folder: &Folder, task: &str, arguments: &str) -> Option<Ran> {
    let script = "mount -t tmpfs -o size=8m tmpfs \"$0\" || exit 77; exec \"$@\"";
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script])
        .args([&folder.0.display().to_string(), BINARY, task, &folder.0.display().to_string(), "--json"])
        .args(arguments.split_whitespace())
        .output()
        .unwrap();
    if output.status.code() == Some(77) || String::from_utf8_lossy(&output.stderr).contains("unshare failed") {
        println!("this user may not mount: not tried");
        return None;
    }
    Some(Ran::of(output))
}

#[test]
fn a_full_disk_ends_it_at_a_named_frame_and_keeps_what_was_measured() {
    for engine in ENGINES {
        let folder = Folder::new();
        let arguments = format!("--frame-size 1m --frames 20 --ignore-space --engine {engine}");
        let Some(ran) = in_small_file_system(&folder, "write", &arguments) else { return };
        assert_eq!(ran.failure(), "disk_full");
        let frame = ran.result["failure"]["frame"].as_u64().unwrap();
        assert!((6..=8).contains(&frame) && ran.result["frames"].as_u64().unwrap() >= 5, "{engine}: {}", ran.result);
        assert!(
            ran.errors.contains(&format!("frame_{frame:06}.dpx")) && ran.errors.contains("clean"),
            "{}",
            ran.errors
        );
    }
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_written() {
    let folder = Folder::new();
    let Some(ran) = in_small_file_system(&folder, "write", "--frame-size 1m --frames 20") else { return };
    assert_eq!(ran.status, Some(3));
    assert!(ran.errors.contains("20971520 bytes") && ran.errors.contains("room for"), "{}", ran.errors);
}

#[test]
fn a_frame_that_was_cut_is_a_short_read() {
    for engine in ENGINES {
        let folder = Folder::new();
        folder.done("prepare", "--frame-size 3m --frames 5");
        OpenOptions::new().write(true).open(folder.file("frame_000003.dpx")).unwrap().set_len(1_500_000).unwrap();
        let ran = folder.run("read", &format!("--engine {engine} --depth 2"));
        assert_eq!(ran.failure(), "short_read", "{engine}");
        // With two requests under way the frame before it may not have ended yet.
        assert!((2..=3).contains(&ran.result["frames"].as_u64().unwrap()), "{engine}: {}", ran.result["frames"]);
        assert!(ran.errors.contains("frame_000003.dpx") && ran.errors.contains("1500000 of 3145728"), "{}", ran.errors);
    }
}

#[test]
fn a_flipped_bit_is_found_where_every_byte_is_compared() {
    let folder = Folder::new();
    folder.done("prepare", "--frame-size 3m --frames 5");
    let file = OpenOptions::new().read(true).write(true).open(folder.file("frame_000002.dpx")).unwrap();
    let mut byte = [0];
    file.read_at(&mut byte, 2_000_000).unwrap();
    file.write_at(&[byte[0] ^ 1], 2_000_000).unwrap();
    for engine in ENGINES {
        let ran = folder.run("read", &format!("--verify full --engine {engine}"));
        assert_eq!((ran.failure(), &ran.result["failure"]["frame"]), ("wrong_content", &2.into()));
        assert!(ran.errors.contains("the byte at offset 2000000 was changed"), "{}", ran.errors);
    }
    // The stamps are right.
    assert_eq!(folder.done("read", "--verify blocks")["frames"], 5);
}

#[test]
fn a_hole_and_a_frame_in_anothers_place_are_found_by_the_stamps() {
    let folder = Folder::new();
    folder.done("prepare", "--frame-size 1m --frames 4");
    let hole = OpenOptions::new().write(true).open(folder.file("frame_000001.dpx")).unwrap();
    hole.write_at(&[0; 4096], 8192).unwrap();
    let ran = folder.run("read", "");
    assert_eq!(ran.failure(), "wrong_content");
    assert!(ran.errors.contains("block at offset 8192 there are zeros"), "{}", ran.errors);
    fs::rename(folder.file("frame_000003.dpx"), folder.file("frame_000001.dpx")).unwrap();
    let ran = folder.run("read", "");
    assert!(ran.errors.contains("there is the block of frame 3, offset 0, seed 1"), "{}", ran.errors);
}

#[test]
fn a_directory_that_vanishes_ends_it_with_what_was_measured() {
    for (task, engine) in [("read", "io-uring"), ("write", "sync"), ("write", "threads")] {
        let folder = Folder::new();
        folder.done("prepare", "--frame-size 4k --frames 2000");
        let mut child = folder
            .command(task, &format!("--fps 200 --frames 2000 --frame-size 4k --engine {engine}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The plan, and a second of work.
        let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
        assert!(errors.next().unwrap().unwrap().contains("2000 frames"));
        assert!(errors.next().unwrap().unwrap().contains("frames/s"));
        let away = folder.0.with_extension("away");
        fs::rename(&folder.0, &away).unwrap();
        let output = child.wait_with_output().unwrap();
        fs::rename(&away, &folder.0).unwrap();
        let (rest, said) =
            (errors.map(Result::unwrap).collect::<Vec<_>>().join("\n"), String::from_utf8(output.stdout));
        assert_eq!(output.status.code(), Some(4), "{rest}");
        assert!(rest.contains("No such file") && rest.contains("is gone"), "{rest}");
        assert!(said.unwrap().contains("it failed"));
    }
}

#[test]
fn two_that_write_into_one_directory_are_one_too_many() {
    let folder = Folder::new();
    let mut first =
        folder.command("write", "--frame-size 4k --frames 1000 --fps 10").stderr(Stdio::null()).spawn().unwrap();
    while !folder.file("frame_000000.dpx").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let second = folder.run("write", "--frame-size 4k --frames 10");
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!(second.status, Some(3));
    assert!(second.errors.contains("another nicbench-frames"), "{}", second.errors);
    // What was killed is found and removed by the next.
    assert_eq!(folder.done("write", "--frame-size 4k --frames 1")["frames"], 1);
    assert_eq!(folder.names(), ["frame_000000.dpx", "nicbench-frames.json"]);
}

#[test]
fn what_was_measured_survives_a_kill() {
    let folder = Folder::new();
    let samples = folder.file("samples");
    let mut child = folder
        .command("write", &format!("--frame-size 4k --frames 5000 --fps 100 --samples {}", samples.display()))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The plan, and a second of work.
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    let _ = (said.next(), said.next());
    child.kill().unwrap();
    child.wait().unwrap();
    let bytes = fs::read(samples).unwrap();
    let records = (bytes.len() - 64) / 96;
    assert!(records >= 1 && bytes.len() == 64 + records * 96, "{records}");
}
