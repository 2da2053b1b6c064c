//! `cargo +nightly fuzz run receive`: what the receiver makes of any frames. The tests run the same harness.
#![no_main]

#[path = "../../packets/tests/hostile_frames/harness.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    harness::judge(input);
});
