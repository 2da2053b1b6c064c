//! From the clock that stamps frames to the worker's: offset and frequency, kept up to date by readings of both.
//!
//! A reading is the stamping clock's count between two of the worker's, so its moment is known within an interval. Of
//! the readings of 10 ms the one with the shortest interval is kept; the line through those of the last half second, in
//! which short intervals weigh most, gives each stamp its tick. A reading whose interval the line misses by more than a
//! drift explains is not believed; where three in a row agree on another line, the clock has stepped, and the line goes
//! there.

use std::collections::VecDeque;

/// One reading of both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Ticks of the worker's clock, right before.
    pub before: u64,
    /// The stamping clock's count.
    pub stamp: u64,
    /// Ticks of the worker's clock, right after.
    pub after: u64,
}

/// Of the readings within this time the best one is kept.
const GROUP_S: f64 = 0.01;
/// The line goes through this many readings.
const KEPT: usize = 50;
/// A shorter line says nothing of the frequency.
const SHORTEST_LINE_S: f64 = 0.02;
/// No clock's frequency changes by more at once: the kernel slews its own by up to 500 ppm (adjtimex(2)).
const DRIFT: f64 = 500e-6;
/// The line of the medians may be so far from the truth.
const MEDIAN_ERROR_S: f64 = 1e-6;
/// A clock does not change its frequency by more than this; readings that say so are wrong.
const GREATEST_CHANGE: f64 = 0.01;
/// So many contradictions in a row that agree with one another are a step.
const STEP_READINGS: usize = 3;

/// What became of the readings since [`ClockMap::begin_trial`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MapCounts {
    pub readings: u64,
    /// Readings that were not believed.
    pub outliers: u64,
    pub steps: u64,
    /// The true tick of a stamp was never farther from the one given, as far as kept readings can tell.
    pub worst_ticks: Option<f64>,
}

/// Maps the count of a stamping clock to ticks of the worker's clock, by a line through readings of both.
#[derive(Debug, Clone)]
pub struct ClockMap {
    /// The frequency of the worker's clock.
    hz: f64,
    /// By so many bits the stamping clock's count is shorter than 64.
    unused_bits: u32,
    line: Option<Line>,
    kept: VecDeque<KeptReading>,
    group: Option<Group>,
    /// Readings in a row that the line misses.
    contradictions: Vec<Reading>,
    counts: MapCounts,
}

/// The line: the count `stamp` is at `tick + rest`.
#[derive(Debug, Clone, Copy)]
struct Line {
    stamp: u64,
    tick: u64,
    rest: f64,
    ticks_per_stamp: f64,
}

#[derive(Debug, Clone, Copy)]
struct KeptReading {
    stamp: u64,
    tick: u64,
    half_width: f64,
}

#[derive(Debug, Clone, Copy)]
struct Group {
    best: KeptReading,
    until: u64,
}

/// The count `stamp` is at `tick`, each further one so many ticks later.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StampedLine {
    pub stamp: u64,
    pub tick: u64,
    pub ticks_per_stamp: f64,
}

impl Reading {
    fn midpoint(&self) -> KeptReading {
        let width = self.after.saturating_sub(self.before);
        KeptReading { stamp: self.stamp, tick: self.before + width / 2, half_width: width as f64 / 2.0 }
    }
}

impl ClockMap {
    /// Of a clock that counts with so many bits (2 to 64) and needs longer than a calibration to wrap around half, for
    /// a worker whose clock makes `hz` ticks in a second.
    pub fn new(hz: f64, bits: u32) -> Self {
        Self {
            hz,
            unused_bits: 64 - bits.clamp(2, 64),
            line: None,
            kept: VecDeque::with_capacity(KEPT + 1),
            group: None,
            contradictions: Vec::with_capacity(STEP_READINGS),
            counts: MapCounts::default(),
        }
    }

    /// The tick of a stamp; `None` where the clock is not known.
    #[inline]
    pub fn tick_at(&self, stamp: u64) -> Option<u64> {
        self.line.as_ref().map(|line| self.tick_on(line, stamp))
    }

    /// The line itself, for a program that places stamps; `None` where the clock is not known.
    pub fn line(&self) -> Option<StampedLine> {
        self.line.map(|line| StampedLine {
            stamp: line.stamp,
            tick: line.tick.wrapping_add_signed(line.rest.round() as i64),
            ticks_per_stamp: line.ticks_per_stamp,
        })
    }

    /// The stamping clock's ticks in a second of the worker's clock.
    pub fn stamp_hz(&self) -> Option<f64> {
        self.line.map(|line| self.hz / line.ticks_per_stamp)
    }

    pub fn counts(&self) -> MapCounts {
        self.counts
    }

    /// Starts the counts of a trial at 0.
    pub fn begin_trial(&mut self) {
        self.counts = MapCounts::default();
    }

    /// Finds the line anew, in the order in which the readings were made; `None` is left where they are no clock's.
    pub fn calibrate(&mut self, readings: &[Reading]) {
        self.kept.clear();
        (self.group, self.line) = (None, self.median_line(readings));
        self.contradictions.clear();
        self.counts.readings += readings.len() as u64;
        let Some(line) = self.line else { return };
        let is_near = |reading: &&Reading| self.miss(&line, reading) <= MEDIAN_ERROR_S * self.hz;
        let believed: Vec<KeptReading> = readings.iter().filter(is_near).map(Reading::midpoint).collect();
        self.counts.outliers += (readings.len() - believed.len()) as u64;
        if believed.len() * 2 <= readings.len() {
            self.line = None;
            return;
        }
        for kept in believed {
            self.keep(kept);
        }
        self.close_group();
        // What the first line, of medians, missed is nobody's error.
        self.counts.worst_ticks = self.kept.iter().map(|kept| self.error(kept)).reduce(f64::max);
    }

    /// Takes one more reading.
    pub fn observe(&mut self, reading: Reading) {
        let Some(line) = self.line else { return };
        self.counts.readings += 1;
        if self.miss(&line, &reading) > self.drift(&reading, line.tick) {
            return self.contradict(&line, reading);
        }
        self.counts.outliers += self.contradictions.len() as u64;
        self.contradictions.clear();
        self.keep(reading.midpoint());
    }

    fn contradict(&mut self, line: &Line, reading: Reading) {
        self.contradictions.push(reading);
        if self.contradictions.len() < STEP_READINGS {
            return;
        }
        let Some(there) = self.line_of_contradictions(line) else {
            self.contradictions.remove(0);
            self.counts.outliers += 1;
            return;
        };
        self.counts.steps += 1;
        self.line = Some(there);
        let mut agreed = std::mem::take(&mut self.contradictions);
        self.kept.clear();
        self.group = None;
        self.kept.extend(agreed.drain(..).map(|reading| reading.midpoint()));
        self.contradictions = agreed;
        self.refit();
    }

    /// Where the clock went, if the contradictions agree: with the frequency it had, or with another not far from it.
    fn line_of_contradictions(&self, line: &Line) -> Option<Line> {
        let first = self.contradictions.first()?.midpoint();
        let with_old = Line { stamp: first.stamp, tick: first.tick, rest: 0.0, ticks_per_stamp: line.ticks_per_stamp };
        let agree =
            |reading: &Reading| self.miss(&with_old, reading) <= first.half_width + self.drift(reading, first.tick);
        if self.contradictions.iter().all(agree) {
            return Some(with_old);
        }
        let own = self.median_line(&self.contradictions)?;
        let change = (own.ticks_per_stamp / line.ticks_per_stamp - 1.0).abs();
        let agree = |reading: &Reading| self.miss(&own, reading) <= MEDIAN_ERROR_S * self.hz;
        (change <= GREATEST_CHANGE && self.contradictions.iter().all(agree)).then_some(own)
    }

    /// The line of the median slope and the median offset (Theil and Sen): up to a quarter of the readings may be
    /// wrong.
    fn median_line(&self, readings: &[Reading]) -> Option<Line> {
        let base = readings.first()?.midpoint();
        let points: Vec<(f64, f64)> = readings
            .iter()
            .map(Reading::midpoint)
            .map(|kept| (self.signed_distance(kept.stamp, base.stamp), kept.tick.wrapping_sub(base.tick) as i64 as f64))
            .collect();
        let pairs = points.iter().enumerate().flat_map(|(index, left)| {
            points[index + 1..].iter().map(move |right| (right.1 - left.1) / (right.0 - left.0))
        });
        let ticks_per_stamp = median(pairs)?;
        if !ticks_per_stamp.is_normal() || ticks_per_stamp <= 0.0 {
            return None; // It stands still, or runs backwards.
        }
        let rest = median(points.iter().map(|(stamp, tick)| tick - stamp * ticks_per_stamp))?;
        Some(Line { stamp: base.stamp, tick: base.tick, rest, ticks_per_stamp })
    }

    /// By how many ticks the line misses a reading's interval; both clocks count in whole ticks.
    fn miss(&self, line: &Line, reading: &Reading) -> f64 {
        let kept = reading.midpoint();
        let given = self.tick_on(line, reading.stamp);
        let distance = (given.wrapping_sub(kept.tick) as i64).unsigned_abs() as f64;
        (distance - kept.half_width - line.ticks_per_stamp - 1.0).max(0.0)
    }

    /// By how many ticks the clock may have drifted since tick `since`.
    fn drift(&self, reading: &Reading, since: u64) -> f64 {
        (reading.midpoint().tick.wrapping_sub(since) as i64).unsigned_abs() as f64 * DRIFT
    }

    fn keep(&mut self, kept: KeptReading) {
        match &mut self.group {
            Some(group) if kept.tick < group.until => {
                if kept.half_width < group.best.half_width {
                    group.best = kept;
                }
            }
            _ => {
                self.close_group();
                self.group = Some(Group { best: kept, until: kept.tick + (GROUP_S * self.hz) as u64 });
            }
        }
    }

    fn close_group(&mut self) {
        let Some(group) = self.group.take() else { return };
        let error = self.error(&group.best);
        self.counts.worst_ticks = Some(self.counts.worst_ticks.map_or(error, |worst| worst.max(error)));
        self.kept.push_back(group.best);
        // The short way around must be the right one.
        let reach = self.line.map_or(0.0, |line| (1u64 << (62 - self.unused_bits)) as f64 * line.ticks_per_stamp);
        while self.kept.len() > KEPT || self.span() > reach {
            self.kept.pop_front();
        }
        self.refit();
    }

    /// How far the true tick of a reading's stamp may be from the one given to it.
    fn error(&self, kept: &KeptReading) -> f64 {
        let given = self.tick_at(kept.stamp).unwrap_or(kept.tick);
        (given.wrapping_sub(kept.tick) as i64).unsigned_abs() as f64 + kept.half_width
    }

    /// Between the first and the last kept reading, in ticks.
    fn span(&self) -> f64 {
        match (self.kept.front(), self.kept.back()) {
            (Some(first), Some(last)) => last.tick.wrapping_sub(first.tick) as i64 as f64,
            _ => 0.0,
        }
    }

    /// Weighted least squares through what is kept; where that is too short, the frequency stays.
    fn refit(&mut self) {
        let (Some(line), Some(last)) = (self.line, self.kept.back().copied()) else { return };
        let points: Vec<(f64, f64, f64)> = self
            .kept
            .iter()
            .map(|kept| {
                let weight = (kept.half_width + 1.0).powi(-2);
                (weight, self.signed_distance(kept.stamp, last.stamp), kept.tick.wrapping_sub(last.tick) as i64 as f64)
            })
            .collect();
        let sum = |value: &dyn Fn(&(f64, f64, f64)) -> f64| points.iter().map(value).sum::<f64>();
        let weights = sum(&|(weight, ..)| *weight);
        let mean_stamp = sum(&|(weight, stamp, _)| weight * stamp) / weights;
        let mean_tick = sum(&|(weight, _, tick)| weight * tick) / weights;
        let mut ticks_per_stamp = line.ticks_per_stamp;
        if self.span() >= SHORTEST_LINE_S * self.hz {
            let spread = sum(&|(weight, stamp, _)| weight * (stamp - mean_stamp).powi(2));
            let common = sum(&|(weight, stamp, tick)| weight * (stamp - mean_stamp) * (tick - mean_tick));
            ticks_per_stamp = Some(common / spread).filter(|slope| slope.is_normal()).unwrap_or(ticks_per_stamp);
        }
        let rest = mean_tick - ticks_per_stamp * mean_stamp;
        self.line = Some(Line { stamp: last.stamp, tick: last.tick, rest, ticks_per_stamp });
    }

    #[inline]
    fn tick_on(&self, line: &Line, stamp: u64) -> u64 {
        let ticks = self.signed_distance(stamp, line.stamp) * line.ticks_per_stamp + line.rest;
        line.tick.wrapping_add_signed(ticks as i64)
    }

    /// From one count to another, the short way around.
    #[inline]
    fn signed_distance(&self, stamp: u64, base: u64) -> f64 {
        ((stamp.wrapping_sub(base) << self.unused_bits) as i64 >> self.unused_bits) as f64
    }
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    let middle = values.len() / 2;
    (!values.is_empty()).then(|| *values.select_nth_unstable_by(middle, f64::total_cmp).1)
}

#[cfg(test)]
#[path = "clock_map_tests.rs"]
mod tests;
