//! `nicbench-packets measure receive`: what the receiving program in the kernel spends on a frame, by what it does. The
//! program runs by BPF_PROG_TEST_RUN, so driver and DMA are not in it, and a frame is in the cache.
//!
//! The same frame comes again and again, and the program takes it for the next one of the next flow: so each is new, and
//! has a latency of its own. Rows add to one another: what a step costs is the difference between two of them.

use super::{Report, Row, expect_one_stream, request, time_kernel_runs};
use crate::analyser::{Detail, Expected};
use crate::clock::{TscClock, simultaneous};
use crate::error::{EngineError, ErrorKind};
use crate::frame_writer::FrameWriter;
use crate::port::Clock;
use crate::signature::{SIGNATURE_BYTES, Signature, Signer};
use crate::template::Template;
use crate::xdp::Receiver;

/// Few long calls: before and after each the kernel waits until every CPU knows the program, which takes 20 ms.
const STRETCHES: usize = 15;
const FRAMES: u32 = 200_000;
const RUN_KEY: u64 = 1;
const TRIAL: u32 = 2;
const DURATION_NS: u64 = 60_000_000_000;
const TYPE_OF_NOBODY: [u8; 2] = [0x99, 0x99];
/// Later than any look: the DUT's core counts as shared.
const ALWAYS_NS: u64 = u64::MAX;

/// How far the program goes with a frame.
#[derive(Clone, Copy, PartialEq)]
enum Step {
    /// It is not ready yet.
    Call,
    /// An earlier trial's: the signature alone, without the clock and with it.
    Signature,
    Clock,
    /// Headers, payload and order as well: a frame after the drain.
    Checked,
    /// Everything: latency, its variation and histogram, arrivals.
    Received,
    /// And the histogram of frames while the DUT's core was shared.
    Shared,
    /// Not ours; the kernel gets it.
    Foreign,
}

/// Measures all steps; needs the rights to load a program.
pub fn run() -> Result<Report, EngineError> {
    let clock = TscClock::calibrated();
    let steps = [
        ("receive, call alone", Step::Call, 64, 1),
        ("receive, signature", Step::Signature, 64, 1),
        ("receive, signature and clock", Step::Clock, 64, 1),
        ("receive, checked and ordered", Step::Checked, 64, 1),
        ("receive, checked and ordered, 512 bytes", Step::Checked, 512, 1),
        ("receive, checked and ordered, 1518 bytes", Step::Checked, 1518, 1),
        ("receive, one flow", Step::Received, 64, 1),
        ("receive, one flow, 512 bytes", Step::Received, 512, 1),
        ("receive, one flow, 1518 bytes", Step::Received, 1518, 1),
        ("receive, one flow while the core is shared", Step::Shared, 64, 1),
        ("receive, 8192 flows", Step::Received, 64, 8192),
        ("receive, a million flows", Step::Received, 64, 1_000_000),
        ("receive, foreign", Step::Foreign, 64, 1),
    ];
    let rows = steps.map(|(name, step, frame_bytes, flows)| measure(&clock, name, step, frame_bytes, flows));
    Ok(Report { tsc_hz: clock.hz(), rows: rows.into_iter().collect::<Result<_, _>>()? })
}

fn measure(clock: &TscClock, name: &str, step: Step, frame_bytes: u32, flows: u32) -> Result<Row, EngineError> {
    let template = Template::new(&request(frame_bytes, flows)?)?;
    let expected = [Expected { template, sent: None, receive_port: 0, first_flow: 0, flows, copy_of: None }];
    let mut receiver = Receiver::for_measurement(0, step == Step::Signature)?;
    let frame = frame(step, &expected[0]);
    if step != Step::Call {
        receiver.begin(TRIAL, &Signer::new(RUN_KEY, TRIAL), &expected, Detail::default(), DURATION_NS, None)?;
        let (_, now_ns) = simultaneous();
        receiver.set_epoch(now_ns);
    }
    match step {
        Step::Shared => receiver.set_last_slow(ALWAYS_NS),
        Step::Checked => receiver.end_drain(),
        _ => {}
    }
    receiver.repeat_over(flows);
    let mut frames = 0;
    let row = time_kernel_runs(clock, name, FRAMES, STRETCHES, || {
        frames += u64::from(FRAMES);
        receiver.run(&frame, 0, FRAMES).map(|(_, ns)| ns).map_err(|error| {
            let message = format!("{name}: the kernel did not run the receiving program: {error}");
            EngineError::new(ErrorKind::Port, message, "look at the kernel's log (dmesg)")
        })
    })?;
    if step != Step::Call {
        let analyser = receiver.analyser()?;
        let (received, late) = match step {
            Step::Received | Step::Shared => (frames, 0),
            Step::Checked => (0, frames),
            _ => (0, 0),
        };
        expect_one_stream(name, &analyser, received, late)?;
    }
    Ok(Row { flows, frame_bytes, ..row })
}

/// The frame that comes again and again.
fn frame(step: Step, expected: &Expected) -> Vec<u8> {
    let trial = if matches!(step, Step::Signature | Step::Clock) { TRIAL - 1 } else { TRIAL };
    let mut frame = expected.template.constant().to_vec();
    let writer = FrameWriter::new(expected.template.clone(), Signer::new(RUN_KEY, trial), 0, expected.flows, 1);
    writer.patch(&mut frame, 0, Signature { flow: 0, sequence: 0, time_ns: 0 });
    if step == Step::Foreign {
        let end = expected.template.signature_offset() + SIGNATURE_BYTES;
        frame[12..14].copy_from_slice(&TYPE_OF_NOBODY);
        frame[expected.template.signature_offset()..end].fill(0);
    }
    frame
}
