//! What the fuzzer `files` of `engine/fuzz` found worth keeping, tried again.

mod files;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

#[test]
fn no_file_of_the_kernel_makes_a_sample_that_cannot_be() {
    let corpus = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/files.txt")).expect("it");
    for (number, line) in corpus.lines().enumerate() {
        let input = STANDARD.decode(line).expect("base64");
        let outcome = std::panic::catch_unwind(|| files::judge(&input));
        assert!(outcome.is_ok(), "line {}", number + 1);
    }
    files::clean();
}
