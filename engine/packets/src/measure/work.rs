//! The work that is measured, on a stretch of packets that lie in the cache.

use std::hint::black_box;

use hdrhistogram::Histogram;

use super::{BURST, PACKETS, expect_one_stream, request};
use crate::analyser::{Analyser, Detail, Expected};
use crate::error::{EngineError, ErrorKind};
use crate::faults::Random;
use crate::flows::FlowLine;
use crate::frame_writer::{Cursor, FrameWriter};
use crate::latency::LatencyCounts;
use crate::port::Frame;
use crate::signature::{Signature, Signer};
use crate::sys::pool::FramePool;
use crate::template::Template;
use nicbench_protocol::StreamRequest;

const SHORTEST_LATENCY_NS: u64 = 2_000;
const LATENCIES_NS: u64 = 60_000;

/// One kind of work, done to stretch after stretch.
pub trait Work {
    /// Does what comes before a stretch and is not measured.
    fn prepare(&mut self) {}

    /// Does the work to a stretch.
    fn work(&mut self);
}

/// The receiver's judgement on a stretch of frames, each of them the next of its flow.
pub struct Analysis {
    template: Template,
    signer: Signer,
    flows: u32,
    analyser: Analyser,
    frames: Vec<Frame>,
    _pool: FramePool,
    /// Frames made so far.
    made: u64,
    now_ns: u64,
    random: Random,
}

impl Analysis {
    pub fn new(flows: u32, frame_bytes: u32, flow_groups: u32) -> Result<Self, EngineError> {
        let template = Template::new(&request(frame_bytes, flows)?)?;
        let signer = Signer::new(1, 1);
        let expected =
            Expected { template: template.clone(), sent: None, receive_port: 0, first_flow: 0, flows, copy_of: None };
        let detail = Detail { flow_groups, flow_histograms: false, ..Detail::default() };
        let analyser = Analyser::with_detail(signer, vec![expected], 1, detail)?;
        let mut pool = FramePool::default();
        let mut frames: Vec<Frame> = (0..PACKETS).map(|_| pool.take(template.length())).collect();
        frames.iter_mut().for_each(|frame| template.write_constant(frame.bytes_mut()));
        let random = Random::seeded(1, 1, 1);
        Ok(Self { template, signer, flows, analyser, frames, _pool: pool, made: 0, now_ns: 0, random })
    }

    /// # Errors
    /// Where a frame was not judged right.
    pub fn expect_all(&self, name: &str) -> Result<(), EngineError> {
        expect_one_stream(name, &self.analyser, self.made, 0)
    }
}

impl Work for Analysis {
    /// Writes signatures, so that every frame is new to its flow.
    fn prepare(&mut self) {
        self.now_ns = 1_000_000 + self.made * 100;
        for frame in &mut self.frames {
            let time_ns = self.now_ns - SHORTEST_LATENCY_NS - self.random.below(LATENCIES_NS);
            let flows = u64::from(self.flows);
            let (flow, sequence) = ((self.made % flows) as u32, (self.made / flows) as u32);
            if let Some(place) = frame.bytes_mut()[self.template.signature_offset()..].first_chunk_mut() {
                self.signer.write(place, Signature { flow, sequence, time_ns });
            }
            self.made += 1;
        }
    }

    fn work(&mut self) {
        for burst in self.frames.chunks(BURST) {
            self.analyser.analyse_burst(0, burst, self.now_ns);
        }
    }
}

/// Latencies of an even spread, as many as a stretch has packets.
fn latencies() -> Vec<u64> {
    let mut random = Random::seeded(2, 2, 2);
    (0..PACKETS).map(|_| SHORTEST_LATENCY_NS + random.below(LATENCIES_NS)).collect()
}

/// Recording latencies in a flow's line and in a histogram.
pub struct Recording {
    latencies: Vec<u64>,
    line: FlowLine,
    counts: LatencyCounts,
}

impl Recording {
    pub fn new() -> Self {
        Self { latencies: latencies(), line: FlowLine::default(), counts: LatencyCounts::new() }
    }
}

impl Work for Recording {
    fn work(&mut self) {
        for latency_ns in black_box(&self.latencies) {
            self.line.record(*latency_ns);
            self.counts.record(*latency_ns);
        }
        black_box((&self.line, &self.counts));
    }
}

/// The same by the hdrhistogram crate, without minimum, maximum and sum.
pub struct HistogramRecording {
    latencies: Vec<u64>,
    histogram: Histogram<u64>,
}

impl HistogramRecording {
    pub fn new() -> Result<Self, EngineError> {
        let histogram = Histogram::new_with_bounds(1, 100_000_000_000, 3).map_err(|error| {
            EngineError::new(ErrorKind::SelfCheck, format!("{error:?}"), "report this as a fault of nicbench-packets")
        })?;
        Ok(Self { latencies: latencies(), histogram })
    }
}

impl Work for HistogramRecording {
    fn work(&mut self) {
        for latency_ns in black_box(&self.latencies) {
            self.histogram.saturating_record(*latency_ns);
        }
        black_box(&self.histogram);
    }
}

/// The sender's work on buffers, without a port: constant bytes where a buffer has none, its flow's, and the stamp.
pub struct Writing {
    writer: FrameWriter,
    frames: Vec<Frame>,
    _pool: FramePool,
    cursor: Cursor,
    now_ns: u64,
}

impl Writing {
    /// Of buffers that hold the constant bytes already, where `is_prefilled`.
    pub fn new(stream: &StreamRequest, is_prefilled: bool) -> Result<Self, EngineError> {
        let template = Template::new(stream)?;
        let mut pool = FramePool::default();
        let mut frame = || {
            let mut frame = pool.take(template.length());
            template.write_constant(frame.bytes_mut());
            if is_prefilled { frame.as_prefilled() } else { frame }
        };
        let frames = (0..PACKETS).map(|_| frame()).collect();
        let writer = FrameWriter::new(template, Signer::new(1, 1), 0, stream.flows, 1);
        Ok(Self { writer, frames, _pool: pool, cursor: Cursor::default(), now_ns: 0 })
    }
}

impl Work for Writing {
    fn work(&mut self) {
        for burst in self.frames.chunks_mut(BURST) {
            let now_ns = self.now_ns;
            self.writer.write(burst, 0, self.cursor, || now_ns);
            self.cursor.advance(burst.len(), self.writer.flows());
            self.now_ns += 1_000;
        }
        black_box(&self.frames);
    }
}
