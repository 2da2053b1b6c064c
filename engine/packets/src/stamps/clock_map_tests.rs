//! A clock whose truth is known, read by one that is held up now and then.

use super::*;
use crate::faults::Random;

/// Of the worker, as fast as a TSC.
const HZ: f64 = 2.5e9;
const MS: u64 = 2_500_000;

/// A clock that stamps, and the worker's moment.
struct Lab {
    random: Random,
    now: u64,
    bits: u32,
    hz: f64,
    offset: u64,
    ppm: f64,
    /// Change of `ppm` in a second.
    wander: f64,
    stepped_ns: f64,
    map: ClockMap,
}

impl Lab {
    fn new(seed: u64) -> Self {
        let map = ClockMap::new(HZ, 64);
        let random = Random::seeded(seed, 1, 1);
        let (hz, offset) = (1e9, 1 << 60);
        Self { random, now: 1 << 50, bits: 64, hz, offset, ppm: 0.0, wander: 0.0, stepped_ns: 0.0, map }
    }

    /// The true count at a tick.
    fn stamp_at(&self, tick: u64) -> u64 {
        let seconds = (tick - (1 << 50)) as f64 / HZ;
        // The frequency at that time, and its integral.
        let fast = (self.ppm + self.wander * seconds / 2.0) * 1e-6;
        let counted = ((seconds * (1.0 + fast) + self.stepped_ns * 1e-9) * self.hz).floor();
        self.offset.wrapping_add_signed(counted as i64) & (u64::MAX >> (64 - self.bits))
    }

    /// A reading takes 40 to 200 ns, and one in sixteen is interrupted, before or after the look, for up to 50 us.
    fn read(&mut self) -> Reading {
        let before = self.now;
        let mut part =
            || 50 + self.random.below(200) + if self.random.below(32) == 0 { self.random.below(125_000) } else { 0 };
        let (early, late) = (part(), part());
        let stamp = self.stamp_at(before + early);
        self.now = before + early + late;
        Reading { before, stamp, after: self.now }
    }

    fn read_every_ms(&mut self, count: usize) -> Vec<Reading> {
        let mut reading = || {
            self.now += MS;
            self.read()
        };
        (0..count).map(|_| reading()).collect()
    }

    fn calibrated(mut self) -> Self {
        self.map = ClockMap::new(HZ, self.bits);
        let readings = self.read_every_ms(50);
        self.map.calibrate(&readings);
        self
    }

    fn follow(&mut self, readings: usize) {
        for reading in self.read_every_ms(readings) {
            self.map.observe(reading);
        }
    }

    /// How far a stamp made now is from its place, in nanoseconds.
    fn error_ns(&self) -> f64 {
        let given = self.map.tick_at(self.stamp_at(self.now)).expect("a calibrated clock");
        (given.wrapping_sub(self.now) as i64) as f64 * 1e9 / HZ
    }
}

fn worst_ns(map: &ClockMap) -> f64 {
    map.counts().worst_ticks.expect("readings") * 1e9 / HZ
}

#[test]
fn offset_and_frequency_are_found_and_the_error_stays_within_what_is_said() {
    for seed in 1..=20 {
        let mut lab = Lab { ppm: 87.0, ..Lab::new(seed) }.calibrated();
        for _ in 0..200 {
            lab.follow(10);
            let (error, worst) = (lab.error_ns().abs(), worst_ns(&lab.map));
            assert!(error <= worst && worst < 1_000.0, "seed {seed}: {error} ns where {worst} ns are said");
        }
        let ppm = (lab.map.stamp_hz().unwrap() / 1e9 - 1.0) * 1e6;
        assert!((ppm - 87.0).abs() < 0.5, "seed {seed}: {ppm} ppm");
        assert_eq!(lab.map.counts().steps, 0, "seed {seed}");
    }
}

#[test]
fn a_frequency_that_wanders_is_followed() {
    let mut lab = Lab { ppm: -20.0, wander: 1.0, ..Lab::new(2) }.calibrated();
    for _ in 0..300 {
        lab.follow(10);
        assert!(lab.error_ns().abs() < 1_000.0, "{} ns", lab.error_ns());
    }
    assert_eq!((lab.map.counts().steps, lab.map.counts().outliers), (0, 0));
}

#[test]
fn a_coarse_clock_is_known_to_its_own_tick() {
    let mut lab = Lab { hz: 1e6, ppm: 30.0, ..Lab::new(3) }.calibrated();
    lab.follow(1000);
    assert!(lab.error_ns().abs() < 2_000.0, "{} ns", lab.error_ns());
    assert_eq!(lab.map.counts().steps, 0);
}

#[test]
fn readings_that_are_wrong_are_counted_and_change_nothing() {
    let mut lab = Lab { ppm: 12.0, ..Lab::new(4) }.calibrated();
    let mut wrong = 0;
    for turn in 0..3000 {
        lab.now += MS;
        let mut reading = lab.read();
        if turn % 7 == 0 {
            reading.stamp = reading.stamp.wrapping_add(1_000_000 + lab.random.below(1 << 40));
            wrong += 1;
        }
        lab.map.observe(reading);
        assert!(lab.error_ns().abs() < 1_000.0, "turn {turn}: {} ns", lab.error_ns());
    }
    let counts = lab.map.counts();
    assert_eq!((counts.outliers, counts.steps, counts.readings), (wrong, 0, 3050));
}

#[test]
fn wrong_readings_among_the_first_do_not_spoil_the_line() {
    let mut lab = Lab { ppm: 12.0, ..Lab::new(5) };
    let mut readings = lab.read_every_ms(50);
    for place in [0, 11, 12, 30, 49] {
        readings[place].stamp ^= 1 << 35;
    }
    lab.map.calibrate(&readings);
    assert!(lab.error_ns().abs() < 1_000.0, "{} ns", lab.error_ns());
    assert_eq!(lab.map.counts().outliers, 5);
}

#[test]
fn a_step_is_noticed_after_three_readings_and_counted() {
    for step_ns in [50_000.0, -50_000.0, 3_600e9] {
        let mut lab = Lab { ppm: 40.0, ..Lab::new(6) }.calibrated();
        lab.follow(500);
        lab.stepped_ns = step_ns;
        lab.follow(2);
        assert!((lab.error_ns() - step_ns).abs() < 1_000.0 * step_ns.abs() / 50_000.0, "{} ns", lab.error_ns());
        lab.follow(100);
        assert!(lab.error_ns().abs() < 1_000.0, "{step_ns}: {} ns", lab.error_ns());
        assert_eq!(lab.map.counts().steps, 1, "{step_ns}");
    }
}

#[test]
fn a_frequency_that_jumps_is_found_again() {
    let mut lab = Lab { ppm: 0.0, ..Lab::new(7) }.calibrated();
    lab.follow(500);
    // From here on it is 2000 ppm fast: more than any clock that is merely slewed.
    let now_s = (lab.now - (1 << 50)) as f64 / HZ;
    lab.ppm = 2000.0;
    lab.stepped_ns = -now_s * 2000e-6 * 1e9;
    lab.follow(500);
    assert!(lab.error_ns().abs() < 1_000.0, "{} ns", lab.error_ns());
    assert!(lab.map.counts().steps >= 1);
}

#[test]
fn a_short_count_wraps_around_unseen() {
    // 32 bits of 1 GHz: every 4.3 s.
    let mut lab = Lab { bits: 32, offset: 0xFFFF_0000, ppm: 5.0, ..Lab::new(8) }.calibrated();
    for _ in 0..600 {
        lab.follow(20);
        assert!(lab.error_ns().abs() < 1_000.0, "{} ns", lab.error_ns());
    }
    assert_eq!((lab.map.counts().steps, lab.map.counts().outliers), (0, 0));
}

#[test]
fn after_a_pause_the_clock_is_found_anew() {
    let mut lab = Lab { ppm: -60.0, ..Lab::new(9) }.calibrated();
    lab.follow(100);
    lab.now += 30_000 * MS;
    lab.map.begin_trial();
    let readings = lab.read_every_ms(50);
    lab.map.calibrate(&readings);
    assert!(lab.error_ns().abs() < 1_000.0, "{} ns", lab.error_ns());
    assert_eq!((lab.map.counts().readings, lab.map.counts().steps), (50, 0));
}

#[test]
fn a_clock_that_stands_still_or_is_none_gives_no_ticks() {
    let standing: Vec<Reading> = (0..50).map(|n| Reading { before: n * MS, stamp: 7, after: n * MS + 100 }).collect();
    let mut random = Random::seeded(10, 1, 1);
    let noise = |n| Reading { before: n * MS, stamp: random.below(u64::MAX), after: n * MS + 100 };
    let noise: Vec<Reading> = (0..50).map(noise).collect();
    for readings in [standing, noise, Vec::new()] {
        let mut map = ClockMap::new(HZ, 64);
        map.calibrate(&readings);
        assert_eq!((map.tick_at(7), map.stamp_hz()), (None, None));
    }
}
