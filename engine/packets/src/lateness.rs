//! How well a sender kept to the times of a capture: how late each frame was, and by how much the time since the frame
//! before it differs from what was asked for.

use nicbench_protocol::TransmitGapsReading;

use crate::error::EngineError;
use crate::pace::Recorded;
use crate::port::Clock;
use crate::transmit_gaps::TransmitGaps;

/// What was recorded of one sender.
#[derive(Debug, Clone)]
pub struct Lateness {
    late: TransmitGaps,
    gap_errors: TransmitGaps,
    /// When the port had taken the last frame, in ticks.
    last: Option<u64>,
}

impl Lateness {
    pub fn new() -> Result<Self, EngineError> {
        Ok(Self { late: TransmitGaps::new()?, gap_errors: TransmitGaps::new()?, last: None })
    }

    /// Records that the port had taken the next `frames` frames at tick `now`.
    pub fn record(&mut self, recorded: &Recorded, now: u64, frames: usize, clock: &impl Clock) {
        recorded.late(now, frames).for_each(|late| self.late.add(clock.nanoseconds(late)));
        for asked in recorded.gaps(frames) {
            let last = self.last.replace(now);
            if let (Some(last), Some(asked)) = (last, asked) {
                self.gap_errors.add(clock.nanoseconds((now - last).abs_diff(asked)));
            }
        }
    }

    /// Adds what another sender of the stream recorded.
    pub fn absorb(&mut self, other: &Self) -> Result<(), EngineError> {
        self.late.absorb(&other.late)?;
        self.gap_errors.absorb(&other.gap_errors)
    }

    /// How late frames were, and the errors of the times between them; `None` where nothing was recorded.
    pub fn readings(&self) -> Result<(Option<TransmitGapsReading>, Option<TransmitGapsReading>), EngineError> {
        Ok((self.late.reading()?, self.gap_errors.reading()?))
    }
}
