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

/// A frame that waits to be overtaken leaves after this long all the same.
const LONGEST_HOLD_PS: u64 = 1_000_000_000;

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
    until_ps: u64,
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
        let change = match fate {
            Fate::CorruptPayload => self.corrupt(&mut frame, Change::CorruptedPayload, place),
            Fate::CorruptSignature => self.corrupt(&mut frame, Change::CorruptedSignature, place),
            Fate::CorruptLength => self.corrupt(&mut frame, Change::CorruptedLength, place),
            Fate::Reorder => {
                let until_ps = departure_ps + LONGEST_HOLD_PS;
                self.held.push(Held { overtakers_left: self.faults.reorder_by, until_ps, frame, note });
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

    /// Lets frames leave that were held to be overtaken, and were not in time.
    pub fn release_overdue(&mut self, now_ps: u64) {
        while self.held.first().is_some_and(|held| held.until_ps <= now_ps) {
            let held = self.held.remove(0);
            let time_ps = held.until_ps.max(self.departures.back().map_or(0, |departure| departure.time_ps));
            self.depart(time_ps, held.frame, held.note, Change::None);
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
        self.next_departure_ps().into_iter().chain(self.held.first().map(|held| held.until_ps)).min()
    }
}

#[cfg(test)]
mod tests;
