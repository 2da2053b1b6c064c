//! What a frame costs in the receiving program: the mean of many runs by BPF_PROG_TEST_RUN, without driver and DMA.
//! All runs have the same frame, which is a copy of the first: signature, payload and order are checked, and no latency
//! is recorded.

use std::io::Write;

use nicbench_packets::analyser::{Detail, Expected};
use nicbench_packets::frame_writer::FrameWriter;
use nicbench_packets::signature::{Signature, Signer};
use nicbench_packets::template::Template;
use serde_json::json;

use crate::{EPOCH_NS, PORT, RUN_KEY, TRIAL, receiver};

const REPEAT: u32 = 1_000_000;

fn expected(frame_bytes: u32, flows: u32) -> Expected {
    let request = json!({"name": "s", "transmit_port": 0, "receive_port": PORT, "rate_frames_per_s": 1, "ip": 4,
        "source_mac": "02:00:00:00:00:01", "destination_mac": "02:00:00:00:00:02", "flows": flows,
        "source_address": "198.18.0.2", "destination_address": "198.19.0.2", "frame_bytes": frame_bytes,
        "source_port_count": flows.min(50_000)});
    let template = Template::new(&serde_json::from_value(request).expect("a stream")).expect("a template");
    Expected { template, receive_port: PORT, first_flow: 0, flows }
}

#[test]
#[ignore = "a measurement"]
fn what_a_frame_costs() {
    let Some(mut receiver) = receiver() else { return };
    for (frame_bytes, flows) in [(64, 1), (64, 4096), (64, 1 << 20), (512, 1), (1518, 1)] {
        let stream = expected(frame_bytes, flows);
        let signer = Signer::new(RUN_KEY, TRIAL);
        let expected = std::slice::from_ref(&stream);
        let began = std::time::Instant::now();
        receiver.begin(TRIAL, &signer, expected, Detail::default(), 1_000_000_000, None).expect("a trial");
        let begin_ms = began.elapsed().as_millis();
        let frame = |trial: u32, sequence: u32| {
            let mut frame = stream.template.constant().to_vec();
            let writer = FrameWriter::new(stream.template.clone(), Signer::new(RUN_KEY, trial), 0, 1, 9);
            writer.patch(&mut frame, 0, Signature { flow: 0, sequence, time_ns: 0 });
            frame
        };
        let (earlier, ours) = (frame(TRIAL - 1, 0), frame(TRIAL, 0));
        let mut nothing = ours.clone();
        nothing[12] = 0x99;
        nothing[42..58].fill(0);
        // A frame of an earlier trial: the signature alone.
        let signature_ns = receiver.run(&earlier, EPOCH_NS, REPEAT).expect("a run").1;
        receiver.set_epoch(EPOCH_NS);
        let duplicate_ns = receiver.run(&ours, EPOCH_NS + 1000, REPEAT).expect("a run").1;
        let foreign_ns = receiver.run(&nothing, EPOCH_NS + 1000, REPEAT).expect("a run").1;
        let _ = writeln!(
            std::io::stderr(),
            "{frame_bytes} bytes, {flows} flows: signature {signature_ns} ns, checked and found a copy {duplicate_ns} ns, \
             foreign {foreign_ns} ns; made ready in {begin_ms} ms"
        );
    }
}
