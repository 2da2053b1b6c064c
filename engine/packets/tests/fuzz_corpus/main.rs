//! What the fuzzers of `engine/fuzz` found worth keeping, tried again: inputs that reach far, and all that ever failed.

mod captures;
mod lines;
#[path = "../hostile_frames/harness.rs"]
mod receive;
mod sending;
mod wire;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Tries every input of the corpus of this name: one a line, in base64.
fn replay(target: &str, judge: impl Fn(&[u8])) {
    let path = format!("{}/../fuzz/corpus/{target}.txt", env!("CARGO_MANIFEST_DIR"));
    let corpus = std::fs::read_to_string(&path).expect("the corpus");
    for (number, line) in corpus.lines().enumerate() {
        let input = STANDARD.decode(line).expect("base64");
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| judge(&input)));
        assert!(outcome.is_ok(), "{path}:{}", number + 1);
    }
    assert!(corpus.lines().count() > 10, "{path}");
}

#[test]
fn every_frame_of_a_capture_that_is_sent_is_recognised() {
    replay("captures", captures::judge);
}

#[test]
fn every_line_is_refused_with_a_reason_or_obeyed() {
    replay("lines", lines::judge);
}

#[test]
fn every_frame_has_one_place_in_the_counts() {
    replay("receive", |input| {
        receive::judge(input);
    });
}

#[test]
fn headers_of_any_bytes_stay_within_them() {
    replay("wire", wire::judge);
}
