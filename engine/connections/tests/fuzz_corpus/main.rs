//! What the fuzzer `answers` of `engine/fuzz` found worth keeping, tried again.

mod answers;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

#[test]
fn an_answer_is_the_same_in_one_piece_and_in_many() {
    let corpus =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/answers.txt")).expect("it");
    for (number, line) in corpus.lines().enumerate() {
        let input = STANDARD.decode(line).expect("base64");
        let outcome = std::panic::catch_unwind(|| answers::judge(&input));
        assert!(outcome.is_ok(), "line {}", number + 1);
    }
    assert!(corpus.lines().count() > 10);
}
