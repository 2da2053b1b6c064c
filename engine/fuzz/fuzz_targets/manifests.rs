//! `cargo fuzz run manifests`; the tests run the same harness.
#![no_main]
#![allow(dead_code)]

#[path = "../../frames/tests/fuzz_corpus/manifests.rs"]
mod manifests;

libfuzzer_sys::fuzz_target!(|input: &[u8]| manifests::judge(input));
