//! `cargo fuzz run wire`: what the parsers of headers make of any bytes. The tests run the same harness.
#![no_main]

#[path = "../../packets/tests/fuzz_corpus/wire.rs"]
mod wire;

libfuzzer_sys::fuzz_target!(|input: &[u8]| wire::judge(input));
