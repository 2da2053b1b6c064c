//! Time stamps: by what received frames are stamped, and how well that clock is known.

use serde::{Deserialize, Serialize};

/// By what received frames are stamped. The sent ones bear the time-stamp counter's time in any case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timestamps {
    /// The processor's counter, read when a burst has been received.
    #[default]
    Tsc,
    /// The card, when a frame arrived at its port.
    Card,
    /// The kernel, when its driver handed a frame up.
    Kernel,
}

impl Timestamps {
    /// The name that the protocol uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tsc => "tsc",
            Self::Card => "card",
            Self::Kernel => "kernel",
        }
    }
}

/// A simulated card's clock, which counts from `offset` when the engine starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CardClock {
    /// Nominal ticks a second.
    pub hz: f64,
    /// Its count at the engine's time 0.
    pub offset: u64,
    /// How much faster it is than it says, in parts per million.
    pub ppm: f64,
    /// Bits of its count: it wraps around after them.
    pub bits: u32,
    /// It is set this long after the engine's time 0,
    pub step_after_s: Option<f64>,
    /// by so much.
    pub step_ns: i64,
    /// Probability that it is read wrong; drawn from the seed of the port's `dut`.
    pub bad_reads: f64,
    /// Probability that a frame bears no stamp.
    pub unstamped: f64,
}

impl Default for CardClock {
    fn default() -> Self {
        Self { hz: 1e9, offset: 0, ppm: 0.0, bits: 64, step_after_s: None, step_ns: 0, bad_reads: 0.0, unstamped: 0.0 }
    }
}

/// A clock that stamps received frames, as it was found before the first trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StampClockReply {
    /// `card` or `kernel`.
    pub source: String,
    /// How it is read.
    pub clock: String,
    /// Ticks a second, by the time-stamp counter's time.
    pub hz: f64,
    /// The resolution of a stamp.
    pub resolution_ns: f64,
    /// Within which stamps were placed in the time-stamp counter's time.
    pub uncertainty_ns: f64,
    /// Whether the port can say when it sent a frame, one at a time.
    pub transmit_samples: bool,
}

/// How the clock that stamps what arrives at a port fared over a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StampReading {
    /// `card` or `kernel`.
    pub source: String,
    /// Ticks a second, by the time-stamp counter's time, over the last half second; `None` where unknown.
    pub clock_hz: Option<f64>,
    /// The resolution of a stamp; `None` where unknown.
    pub resolution_ns: Option<f64>,
    /// No stamp was placed worse than this in the time-stamp counter's time; `None` where the clock was not read.
    pub uncertainty_ns: Option<f64>,
    /// Readings of the clock during the trial.
    pub readings: u64,
    /// Readings that were not believed: they contradict the ones before and after them.
    pub outliers: u64,
    /// Changes of the clock beyond any drift: stamps around them are wrong.
    pub steps: u64,
    /// Frames that bore a stamp.
    pub stamped: u64,
    /// Frames that bore none: the time-stamp counter's time was taken.
    pub unstamped: u64,
    /// Frames whose stamp cannot be a time of this trial: the time-stamp counter's time was taken.
    pub implausible: u64,
    /// Frames whose stamp is later than the moment at which they had been received.
    pub early: u64,
    /// The greatest of these differences.
    pub early_maximum_ns: u64,
    /// From the software's stamp until frames left the port; `None` where the port cannot tell.
    pub transmit_delay: Option<TransmitDelayReading>,
}

/// How long sampled frames took from their stamp in software until they left the port, by the card's clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TransmitDelayReading {
    /// Frames whose time of leaving was asked for.
    pub asked: u64,
    /// Of those, whose time was told.
    pub count: u64,
    /// Exact; `None` where no time was told. Negative where the clocks' uncertainty exceeds the delay.
    pub minimum_ns: Option<i64>,
    /// The exact value.
    pub mean_ns: Option<f64>,
    /// The exact value.
    pub maximum_ns: Option<i64>,
}
