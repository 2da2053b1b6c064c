//! One stream's transmission: due frames are built, stamped and offered; what the port refuses is kept and offered
//! again.

use nicbench_protocol::LatencyFrom;

use crate::error::EngineError;
use crate::frame_writer::{Cursor, FrameWriter};
use crate::lateness::Lateness;
use crate::pace::Pace;
use crate::port::{Clock, Frame, MAXIMUM_BURST, Port};
use crate::transmit_gaps::TransmitGaps;

/// Settings that all streams of a trial share.
#[derive(Debug, Clone, Copy)]
pub struct Transmission {
    /// The tick at which the trial began.
    pub epoch: u64,
    pub burst: usize,
    pub latency_from: LatencyFrom,
}

impl SenderCounts {
    /// Adds the counts of another sender of the stream.
    pub fn add(&mut self, other: &Self) {
        self.accepted += other.accepted;
        self.unsent_tester += other.unsent_tester;
        self.unsent_backpressure += other.unsent_backpressure;
        self.maximum_burst = self.maximum_burst.max(other.maximum_burst);
        self.bursts += other.bursts;
        self.timed_bursts += other.timed_bursts;
        self.burst_ticks += other.burst_ticks;
    }
}

/// Of this many bursts one is timed.
const TIMED_EVERY: u64 = 16;

/// Sends the frames of one stream, or of one worker's part of it.
#[derive(Debug)]
pub struct Sender {
    /// The number of the stream in its trial.
    pub stream: usize,
    pub transmit_port: usize,
    pace: Pace,
    writer: FrameWriter,
    /// The place of the next frame that the port has not taken.
    cursor: Cursor,
    /// Written frames that the port has not taken.
    pending: [Frame; MAXIMUM_BURST],
    pending_count: usize,
    lossless: bool,
    /// Whether the port took less than it was offered last time, and when that was, in ticks since the trial began.
    refused: bool,
    offered_at: u64,
    counts: SenderCounts,
    gaps: TransmitGaps,
    lateness: Lateness,
}

/// What one stream has sent so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SenderCounts {
    /// Frames that the port has taken.
    pub accepted: u64,
    pub unsent_tester: u64,
    pub unsent_backpressure: u64,
    pub maximum_burst: u32,
    /// How often the port took frames.
    pub bursts: u64,
    /// Those that were timed, and the ticks they needed: reading the clock costs as much as several frames.
    pub timed_bursts: u64,
    pub burst_ticks: u64,
}

impl Sender {
    pub fn new(
        stream: usize,
        transmit_port: usize,
        writer: FrameWriter,
        pace: Pace,
        lossless: bool,
    ) -> Result<Self, EngineError> {
        Ok(Self {
            stream,
            transmit_port,
            pace,
            writer,
            cursor: Cursor::default(),
            pending: [Frame::empty(); MAXIMUM_BURST],
            pending_count: 0,
            lossless,
            refused: false,
            offered_at: 0,
            counts: SenderCounts::default(),
            gaps: TransmitGaps::new()?,
            lateness: Lateness::new()?,
        })
    }

    /// Its schedule and its frames, for a tester that is no Rust code; see [`Self::note`].
    pub fn plan(&self) -> (&Pace, &FrameWriter) {
        (&self.pace, &self.writer)
    }

    /// Notes what another tester has sent of this plan.
    pub fn note(&mut self, counts: SenderCounts, gaps: TransmitGaps) {
        (self.counts, self.gaps) = (counts, gaps);
    }

    /// What is left of the schedule is unsent. As in `give_up_late`, a refusal explains what was due until the last
    /// offer; the rest is the tester's.
    pub fn count_rest(&mut self) {
        let counted = self.counts.accepted + self.counts.unsent_tester + self.counts.unsent_backpressure;
        let rest = self.intended().saturating_sub(counted);
        let is_explained = self.lossless && self.refused;
        let refused = if is_explained { rest.min(self.pace.due(self.offered_at, usize::MAX) as u64) } else { 0 };
        self.counts.unsent_backpressure += refused;
        self.counts.unsent_tester += rest - refused;
    }

    /// The times between frames, as they were handed to the port.
    pub fn gaps(&self) -> &TransmitGaps {
        &self.gaps
    }

    /// How late the frames of a capture with its own timing were.
    pub fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    /// What was sent so far.
    pub fn counts(&self) -> SenderCounts {
        self.counts
    }

    /// Frames that were to be sent: rate x duration; at rate 0 as many as the port took.
    pub fn intended(&self) -> u64 {
        self.pace.intended().unwrap_or(self.counts.accepted)
    }

    /// Whether every intended frame was sent or given up.
    pub fn is_finished(&self) -> bool {
        self.pace.is_finished()
    }

    /// The tick, since the trial began, at which the next frame is due.
    pub fn next_tick(&self) -> Option<u64> {
        self.pace.next_tick()
    }

    /// Whether a paced stream has frames left; a stream without a pace has none after the end.
    pub fn is_behind(&self) -> bool {
        self.next_tick().is_some()
    }

    /// Whether the port took less than was due: nothing will go before it has room.
    pub fn is_refused(&self) -> bool {
        self.refused
    }

    /// Sends what is due at `now` (ticks since the trial began); returns how many frames went.
    #[inline]
    pub fn transmit(&mut self, port: &mut dyn Port, clock: &impl Clock, now: u64, shared: &Transmission) -> usize {
        self.give_up_late(now);
        let due = self.pace.due(now, shared.burst);
        if due == 0 {
            return 0;
        }
        let offered = self.build(port, clock, now, due, shared);
        let accepted = if offered == 0 { 0 } else { self.send(port, clock, now, offered) };
        (self.refused, self.offered_at) = (accepted < due, now);
        if accepted == 0 {
            return 0;
        }
        self.counts.bursts += 1;
        self.gaps.record(clock.nanoseconds(now), accepted);
        self.counts.accepted += accepted as u64;
        self.counts.maximum_burst = self.counts.maximum_burst.max(accepted as u32);
        if let Pace::Recorded(recorded) = &self.pace {
            self.lateness.record(recorded, clock.now().saturating_sub(shared.epoch), accepted, clock);
        }
        self.pace.advance(accepted);
        self.cursor.advance(accepted, self.writer.flows());
        if accepted < self.pending_count {
            self.pending.copy_within(accepted..self.pending_count, 0);
        }
        self.pending_count -= accepted;
        accepted
    }

    #[inline]
    fn send(&mut self, port: &mut dyn Port, clock: &impl Clock, now: u64, offered: usize) -> usize {
        if self.counts.bursts % TIMED_EVERY != 0 {
            return port.send(&self.pending[..offered]);
        }
        let before = clock.now();
        let accepted = port.send_sampled(&self.pending[..offered], now);
        if accepted > 0 {
            self.counts.timed_bursts += 1;
            self.counts.burst_ticks += clock.now().saturating_sub(before);
        }
        accepted
    }

    /// Makes `due` frames ready where the port has buffers; returns how many are.
    #[inline]
    fn build(&mut self, port: &mut dyn Port, clock: &impl Clock, now: u64, due: usize, shared: &Transmission) -> usize {
        let kept = self.pending_count.min(due);
        let fresh = match due - kept {
            0 => 0,
            missing => {
                let free = &mut self.pending[kept..kept + missing];
                port.allocate_prefilled(free, self.writer.length(), self.writer.tag())
            }
        };
        let now_ns = clock.nanoseconds(now);
        let frames = &mut self.pending[..kept + fresh];
        match shared.latency_from {
            LatencyFrom::Software => self.writer.write(frames, kept, self.cursor, || now_ns),
            LatencyFrom::Scheduled => {
                let to_ns = |tick: Option<u64>| tick.map_or(now_ns, |tick| clock.nanoseconds(tick));
                match &self.pace {
                    Pace::Even(pacer) => {
                        let mut ticks = pacer.ticks();
                        self.writer.write(frames, kept, self.cursor, || to_ns(ticks.next()));
                    }
                    Pace::Recorded(recorded) => {
                        let mut ticks = recorded.ticks();
                        self.writer.write(frames, kept, self.cursor, || to_ns(ticks.next()));
                    }
                }
            }
        }
        self.pending_count = self.pending_count.max(kept + fresh);
        kept + fresh
    }

    /// The transmission is over: kept frames go back, and what is left of the schedule is unsent.
    pub fn finish(&mut self, port: &mut dyn Port) {
        port.free(&self.pending[..self.pending_count]);
        self.pending_count = 0;
        self.count_rest();
    }

    /// Gives up what is too late. A refusal explains what was due until the last offer; what fell due after it is the
    /// tester's, which was away.
    #[inline]
    fn give_up_late(&mut self, now: u64) {
        if self.lossless && self.refused {
            self.counts.unsent_backpressure += self.pace.give_up_late(now.min(self.pace.too_late_at(self.offered_at)));
        }
        self.counts.unsent_tester += self.pace.give_up_late(now);
    }
}
