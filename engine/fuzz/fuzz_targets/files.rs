//! `cargo fuzz run files`; the tests run the same harness.
#![no_main]
#![allow(dead_code)]

#[path = "../../monitor/tests/fuzz_corpus/files.rs"]
mod files;

libfuzzer_sys::fuzz_target!(|input: &[u8]| files::judge(input));
