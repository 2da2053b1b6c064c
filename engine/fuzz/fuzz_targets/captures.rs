//! `cargo fuzz run captures`; the tests run the same harness.
#![no_main]
#![allow(dead_code)]

#[path = "../../packets/tests/fuzz_corpus/captures.rs"]
mod captures;
#[path = "../../packets/tests/fuzz_corpus/lines.rs"]
mod lines;
#[path = "../../packets/tests/fuzz_corpus/sending.rs"]
mod sending;

libfuzzer_sys::fuzz_target!(|input: &[u8]| captures::judge(input));
