//! What the fuzzer `manifests` of `engine/fuzz` found worth keeping, tried again.

mod manifests;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

#[test]
fn no_manifest_removes_what_is_not_ours_or_takes_all_memory() {
    let corpus = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/manifests.txt"));
    for (number, line) in corpus.expect("the corpus").lines().enumerate() {
        let input = STANDARD.decode(line).expect("base64");
        let outcome = std::panic::catch_unwind(|| manifests::judge(&input));
        assert!(outcome.is_ok(), "line {}", number + 1);
    }
}
