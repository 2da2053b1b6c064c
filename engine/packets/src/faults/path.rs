//! The way of frames through a device with faults: what comes in leaves later, changed, twice, or never.

use std::collections::VecDeque;

use nicbench_protocol::Faults;

use super::PS_PER_NS;
use super::corruption::corrupt;
use super::fate::{Fate, Odds};
use super::random::Random;
use super::rate_limit::RateLimit;
use super::signature_place::SignaturePlace;
use crate::port::Frame;

/// A frame that waits to be overtaken leaves all the same once no frame has come for this long and a usual gap.
const HOLD_PS: u64 = 1_000_000_000;

/// The longest gap for which it waits: the rate of frames that overtake is 1 frame/s or more.
const LONGEST_GAP_PS: u64 = 1_000_000_000_000;

/// Where buffers of frames come from and go back to.
pub trait Buffers {
    /// Copies a frame, where there is room for a copy.
    fn copy(&mut self, frame: &Frame) -> Option<Frame>;

    fn give(&mut self, frame: &Frame);
}

/// How a frame that leaves differs from the one that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    None,
    /// It is the second of two copies.
    Copy,
    CorruptedPayload,
    CorruptedSignature,
    CorruptedLength,
}

/// Why a frame was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    Lost,
    /// It exceeded the rate, or came in the outage that followed.
    Rate,
    /// Too many frames were under way.
    HeldFull,
}

/// A frame that leaves the path, with its owner's note.
#[derive(Debug, Clone, Copy)]
pub struct Departure<M> {
    pub time_ps: u64,
    pub frame: Frame,
    pub note: M,
    pub change: Change,
}

#[derive(Debug)]
struct Held<M> {
    overtakers_left: u32,
    frame: Frame,
    note: M,
}

/// The faults made so far, which tests compare with what was measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub lost: u64,
    pub dropped_rate: u64,
    pub dropped_held_full: u64,
    pub duplicated: u64,
    pub reordered: u64,
    pub corrupted: u64,
}

/// A path that delays, loses, duplicates, reorders and corrupts frames.
#[derive(Debug)]
pub struct FaultyPath<M> {
    faults: Faults,
    odds: Odds,
    rate_limit: RateLimit,
    random: Random,
    last_departure_ps: u64,
    /// The end of the outage that a frame beyond the rate began.
    down_until_ps: u64,
    held: Vec<Held<M>>,
    /// When held frames leave, unless another frame comes before.
    held_until_ps: u64,
    last_admitted_ps: Option<u64>,
    /// The longest of the latest gaps between frames that come.
    gap_ps: u64,
    /// The frames that will leave, in order of time.
    departures: VecDeque<Departure<M>>,
    counts: Counts,
}

impl<M: Copy> FaultyPath<M> {
    /// `rate_limit` takes the place of the faults' own rate.
    pub fn new(faults: Faults, rate_limit: RateLimit) -> Self {
        Self {
            odds: Odds::new(&faults),
            random: Random::seeded(faults.seed, 0, 0),
            faults,
            rate_limit,
            last_departure_ps: 0,
            down_until_ps: 0,
            held: Vec::new(),
            held_until_ps: 0,
            last_admitted_ps: None,
            gap_ps: 0,
            departures: VecDeque::new(),
            counts: Counts::default(),
        }
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Frames that have come and neither left nor been dropped.
    pub fn under_way(&self) -> usize {
        self.held.len() + self.departures.len()
    }

    /// Begins the random sequence afresh and hands out every frame under way; counters only rise.
    pub fn begin_trial(&mut self, trial: u32, load: u64) -> Vec<(Frame, M)> {
        self.random = Random::seeded(self.faults.seed, trial, load);
        self.rate_limit.reset();
        self.last_departure_ps = 0;
        self.down_until_ps = 0;
        self.last_admitted_ps = None;
        self.gap_ps = 0;
        let departing = self.departures.drain(..).map(|departure| (departure.frame, departure.note));
        departing.chain(self.held.drain(..).map(|held| (held.frame, held.note))).collect()
    }

    /// Takes a frame that comes at `time_ps`; `place` finds where it may be corrupted.
    pub fn forward(
        &mut self,
        time_ps: u64,
        mut frame: Frame,
        note: M,
        buffers: &mut impl Buffers,
        place: impl FnOnce(&[u8]) -> Option<SignaturePlace>,
    ) -> Result<(), Dropped> {
        let fate = self.odds.draw(&mut self.random);
        let departure_ps = match self.admit(fate, time_ps) {
            Ok(departure_ps) => departure_ps,
            Err(reason) => {
                buffers.give(&frame);
                return Err(reason);
            }
        };
        self.hold_until(departure_ps);
        let change = match fate {
            Fate::CorruptPayload => self.corrupt(&mut frame, Change::CorruptedPayload, place),
            Fate::CorruptSignature => self.corrupt(&mut frame, Change::CorruptedSignature, place),
            Fate::CorruptLength => self.corrupt(&mut frame, Change::CorruptedLength, place),
            Fate::Reorder => {
                self.held.push(Held { overtakers_left: self.faults.reorder_by, frame, note });
                return Ok(());
            }
            Fate::Duplicate => {
                let copy = buffers.copy(&frame);
                self.depart(departure_ps, frame, note, Change::None);
                if let Some(copy) = copy {
                    self.depart(departure_ps, copy, note, Change::Copy);
                    self.counts.duplicated += 1;
                }
                self.let_pass(departure_ps);
                return Ok(());
            }
            Fate::Pass | Fate::Lose => Change::None,
        };
        self.depart(departure_ps, frame, note, change);
        // The receiver cannot place a broken frame, so it overtakes nobody.
        if change == Change::None {
            self.let_pass(departure_ps);
        }
        Ok(())
    }

    /// Holds frames for others that come as the latest did. The gap shrinks slowly, so that it is that between bursts.
    fn hold_until(&mut self, departure_ps: u64) {
        let gap_ps = self.last_admitted_ps.map_or(0, |last_ps| departure_ps - last_ps);
        self.gap_ps = (self.gap_ps - self.gap_ps / 8).max(gap_ps.min(LONGEST_GAP_PS));
        self.last_admitted_ps = Some(departure_ps);
        self.held_until_ps = departure_ps + HOLD_PS + self.gap_ps;
    }

    /// Decides when the frame may leave, or why it never will.
    fn admit(&mut self, fate: Fate, time_ps: u64) -> Result<u64, Dropped> {
        if fate == Fate::Lose {
            self.counts.lost += 1;
            return Err(Dropped::Lost);
        }
        // In an outage frames are measured as ever, so that it lasts from the last that came too fast.
        let admitted = self.rate_limit.admit(time_ps);
        if admitted.is_none() && self.faults.outage_ns > 0 {
            self.down_until_ps = time_ps + self.faults.outage_ns * PS_PER_NS;
        }
        let Some(admitted_ps) = admitted.filter(|_| time_ps >= self.down_until_ps) else {
            self.counts.dropped_rate += 1;
            return Err(Dropped::Rate);
        };
        if self.under_way() >= self.faults.held_frames as usize {
            self.counts.dropped_held_full += 1;
            return Err(Dropped::HeldFull);
        }
        let jitter_ns = self.random.below(self.faults.jitter_ns + 1);
        // Jitter delays, it does not overtake.
        self.last_departure_ps =
            self.last_departure_ps.max(admitted_ps + (self.faults.delay_ns + jitter_ns) * PS_PER_NS);
        Ok(self.last_departure_ps)
    }

    fn corrupt(
        &mut self,
        frame: &mut Frame,
        wanted: Change,
        place: impl FnOnce(&[u8]) -> Option<SignaturePlace>,
    ) -> Change {
        let place = place(frame.bytes());
        let hit = place.and_then(|place| corrupt(frame.bytes_mut(), place, wanted, &mut self.random));
        self.counts.corrupted += u64::from(hit.is_some());
        hit.unwrap_or(Change::None)
    }

    fn depart(&mut self, time_ps: u64, frame: Frame, note: M, change: Change) {
        self.departures.push_back(Departure { time_ps, frame, note, change });
    }

    /// A whole frame leaves: those held back may have been overtaken often enough.
    fn let_pass(&mut self, time_ps: u64) {
        let mut index = 0;
        while index < self.held.len() {
            self.held[index].overtakers_left = self.held[index].overtakers_left.saturating_sub(1);
            if self.held[index].overtakers_left > 0 {
                index += 1;
                continue;
            }
            let held = self.held.remove(index);
            self.depart(time_ps, held.frame, held.note, Change::None);
            self.counts.reordered += 1;
        }
    }

    /// Lets frames leave that were held to be overtaken, where no more have come.
    pub fn release_overdue(&mut self, now_ps: u64) {
        if self.held_until_ps > now_ps {
            return;
        }
        for held in std::mem::take(&mut self.held) {
            self.counts.reordered += u64::from(held.overtakers_left < self.faults.reorder_by);
            self.depart(self.held_until_ps, held.frame, held.note, Change::None);
        }
    }

    /// Takes the next frame that leaves by now.
    pub fn next_departure(&mut self, now_ps: u64) -> Option<Departure<M>> {
        if self.departures.front()?.time_ps > now_ps {
            return None;
        }
        self.departures.pop_front()
    }

    /// When the next frame leaves, where one is on its way out.
    pub fn next_departure_ps(&self) -> Option<u64> {
        self.departures.front().map(|departure| departure.time_ps)
    }

    /// When the next frame leaves or is no longer held.
    pub fn next_event_ps(&self) -> Option<u64> {
        let held = (!self.held.is_empty()).then_some(self.held_until_ps);
        self.next_departure_ps().into_iter().chain(held).min()
    }
}

#[cfg(test)]
mod tests;
