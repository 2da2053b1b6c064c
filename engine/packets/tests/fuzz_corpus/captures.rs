//! Any bytes as a capture that is sent: it is refused with a reason, or all of its frames are sent and recognised.

use std::path::PathBuf;

use nicbench_packets::plan;
use nicbench_protocol::Start;
use serde_json::json;

use crate::lines::ports;
use crate::sending::check_streams;

/// Tries `input` as a file.
pub fn judge(input: &[u8]) {
    let path = folder().join(format!("nicbench-fuzz-{}.pcap", std::process::id()));
    std::fs::write(&path, input).expect("a file in memory");
    let timing = json!({"speed": 2.5, "together": true});
    for change in [
        json!({}),
        json!({"signature_offset": 40}),
        json!({"timing": timing}),
        json!({"unsigned": true}),
        json!({"unsigned": true, "timing": timing}),
    ] {
        let mut stream = json!({
            "name": "s", "transmit_port": 0, "receive_port": 1, "rate_frames_per_s": 10, "pcap": path});
        stream.as_object_mut().expect("an object").extend(change.as_object().expect("an object").clone());
        let start: Start =
            serde_json::from_value(json!({"trial": 1, "duration_s": 1.0, "streams": [stream]})).expect("a request");
        match plan::check(&start, &ports()) {
            Ok(expected) => check_streams(&expected),
            Err(error) => assert!(!error.message.is_empty() && !error.next.is_empty(), "{error:?}"),
        }
    }
    let _ = std::fs::remove_file(&path);
}

/// In memory, where there is such a folder.
fn folder() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() { memory } else { std::env::temp_dir() }
}
