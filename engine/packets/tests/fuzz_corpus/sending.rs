//! Streams that the engine accepted: each frame that it would send is taken by the receiver as what it is.

use nicbench_packets::analyser::{Analyser, Expected};
use nicbench_packets::frame_writer::{Cursor, FrameWriter};
use nicbench_packets::port::Frame;
use nicbench_packets::signature::Signer;
use nicbench_packets::sys::pool::FramePool;

const FRAMES: u64 = 16;
/// Beyond these, tables of flows take more time than they find.
const MOST_FLOWS: u32 = 4096;

/// Sends the first frames of each stream straight to where it is received.
pub fn check_streams(expected: &[Expected]) {
    if expected.iter().any(|stream| stream.flows > MOST_FLOWS) {
        return;
    }
    let signer = Signer::new(7, 3);
    let ports = expected.iter().map(|stream| stream.receive_port + 1).max().unwrap_or(0);
    let mut analyser = Analyser::new(signer, expected.to_vec(), ports).expect("few flows need little memory");
    // A file with its own timing is sent once.
    let frames_of = |stream: &Expected| match stream.template.captured() {
        Some(captured) if captured.due_ns().is_some() => FRAMES.min(captured.count() as u64),
        _ => FRAMES,
    };
    for (stream, tag) in expected.iter().zip(1..) {
        let writer = FrameWriter::new(stream.sent().clone(), signer, stream.first_flow, stream.flows, tag);
        let mut pool = FramePool::default();
        let mut frames: Vec<Frame> = (0..frames_of(stream)).map(|_| pool.take(writer.length())).collect();
        writer.write(&mut frames, 0, Cursor::default(), || 5);
        analyser.analyse_burst(stream.receive_port, &frames, 1000);
    }
    for (tally, stream) in analyser.streams().iter().zip(expected) {
        let counts = (
            tally.received,
            tally.duplicated,
            tally.reordered,
            tally.corrupted + tally.corrupted_copies,
            tally.unattributed,
            tally.missing,
        );
        assert_eq!(counts, (frames_of(stream), 0, 0, 0, 0, 0), "{stream:?}");
    }
    let strays: u64 = analyser
        .ports()
        .iter()
        .map(|port| port.foreign + port.misdirected + port.stale + port.corrupted_unattributed)
        .sum();
    assert_eq!(strays, 0);
}
