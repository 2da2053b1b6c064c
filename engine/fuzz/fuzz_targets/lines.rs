//! `cargo fuzz run lines`; the tests run the same harness.
#![no_main]

#[path = "../../packets/tests/fuzz_corpus/lines.rs"]
mod lines;
#[path = "../../packets/tests/fuzz_corpus/sending.rs"]
mod sending;

libfuzzer_sys::fuzz_target!(|input: &[u8]| lines::judge(input));
