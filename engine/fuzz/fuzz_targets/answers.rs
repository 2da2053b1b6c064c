//! `cargo fuzz run answers`; the tests run the same harness.
#![no_main]

#[path = "../../connections/tests/fuzz_corpus/answers.rs"]
mod answers;

libfuzzer_sys::fuzz_target!(|input: &[u8]| answers::judge(input));
