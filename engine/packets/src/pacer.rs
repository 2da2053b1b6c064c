//! When frames are due: an exact rational schedule in ticks that never drifts.
//!
//! Frame k is due at the first tick not before k / rate. After a gap at most `catch_up` frames are made good; older ones
//! are given up and counted. Rate 0 means that a frame is always due.

/// Rates are kept in millionths of a frame per second, so that rates that are no whole number are exact too.
const RATE_SCALE: f64 = 1e6;

/// A place in the schedule: the tick at which a frame is due, and the part of a tick beyond it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    tick: u64,
    remainder: u64,
}

/// The schedule of one stream.
#[derive(Debug, Clone)]
pub struct Pacer {
    /// Ticks between frames: `whole + numerator / denominator`.
    whole: u64,
    numerator: u64,
    denominator: u64,
    next: Place,
    /// Frames passed, sent or given up.
    position: u64,
    /// `None`: as fast as the port takes them.
    intended: Option<u64>,
    catch_up_frames: u64,
    catch_up_ticks: u64,
}

impl Pacer {
    /// A schedule from tick 0 on.
    pub fn new(rate_frames_per_s: f64, duration_s: f64, catch_up_s: f64, hz: f64) -> Self {
        let rate_scaled = (rate_frames_per_s * RATE_SCALE).round() as u64;
        let hz_scaled = (hz.round() as u128) * RATE_SCALE as u128;
        let denominator = rate_scaled.max(1);
        Self {
            whole: (hz_scaled / u128::from(denominator)) as u64,
            numerator: (hz_scaled % u128::from(denominator)) as u64,
            denominator,
            next: Place { tick: 0, remainder: 0 },
            position: 0,
            intended: (rate_scaled > 0).then(|| intended_frames(rate_frames_per_s, duration_s)),
            // At least one frame, else a slow stream would never send one that is late by a single iteration.
            catch_up_frames: ((rate_frames_per_s * catch_up_s) as u64).max(1),
            catch_up_ticks: (catch_up_s * hz) as u64,
        }
    }

    /// rate x duration, rounded down; `None` where the rate is 0.
    pub fn intended(&self) -> Option<u64> {
        self.intended
    }

    /// Whether nothing is left to send.
    pub fn finished(&self) -> bool {
        self.intended.is_some_and(|intended| self.position >= intended)
    }

    /// The tick of the next frame; `None` where none is left or the rate is 0.
    pub fn next_tick(&self) -> Option<u64> {
        (self.intended.is_some() && !self.finished()).then_some(self.next.tick)
    }

    /// How many frames are due at `now`, `most` at most.
    pub fn due(&self, now: u64, most: usize) -> usize {
        let Some(intended) = self.intended else { return most };
        let left = usize::try_from(intended - self.position.min(intended)).unwrap_or(usize::MAX).min(most);
        let mut place = self.next;
        let mut count = 0;
        while count < left && place.tick <= now {
            count += 1;
            place = self.after(place);
        }
        count
    }

    /// The ticks at which the next frames are due, in order.
    pub fn ticks(&self) -> impl Iterator<Item = u64> + '_ {
        std::iter::successors(Some(self.next), |place| Some(self.after(*place))).map(|place| place.tick)
    }

    /// `count` frames went out.
    pub fn advance(&mut self, count: usize) {
        self.position += count as u64;
        if self.intended.is_some() {
            for _ in 0..count {
                self.next = self.after(self.next);
            }
        }
    }

    /// Gives up what is too late to be made good; returns how many frames.
    pub fn give_up_late(&mut self, now: u64) -> u64 {
        let Some(intended) = self.intended else { return 0 };
        if self.position >= intended || now.saturating_sub(self.next.tick) <= self.catch_up_ticks {
            return 0;
        }
        let interval = u128::from(self.whole) * u128::from(self.denominator) + u128::from(self.numerator);
        let scheduled = u128::from(now) * u128::from(self.denominator) / interval.max(1) + 1;
        let scheduled = u64::try_from(scheduled).unwrap_or(u64::MAX).min(intended);
        let skipped = scheduled.saturating_sub(self.position).saturating_sub(self.catch_up_frames);
        if skipped > 0 {
            self.position += skipped;
            self.next = self.place_of(self.position);
        }
        skipped
    }

    fn after(&self, place: Place) -> Place {
        let mut tick = place.tick + self.whole;
        let mut remainder = place.remainder + self.numerator;
        if remainder >= self.denominator {
            remainder -= self.denominator;
            tick += 1;
        }
        Place { tick, remainder }
    }

    fn place_of(&self, position: u64) -> Place {
        let fractions = u128::from(position) * u128::from(self.numerator);
        let carried = fractions / u128::from(self.denominator);
        let tick = u128::from(position) * u128::from(self.whole) + carried;
        Place { tick: tick as u64, remainder: (fractions % u128::from(self.denominator)) as u64 }
    }
}

/// rate x duration, rounded down, exact for rates in millionths and durations in nanoseconds.
fn intended_frames(rate_frames_per_s: f64, duration_s: f64) -> u64 {
    let rate_scaled = (rate_frames_per_s * RATE_SCALE).round() as u128;
    let duration_ns = (duration_s * 1e9).round() as u128;
    u64::try_from(rate_scaled * duration_ns / 1_000_000_000_000_000).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HZ: f64 = 2_595_999_873.0;

    /// Sends whatever is due every `step` ticks; returns sent and given up.
    fn run(pacer: &mut Pacer, until: u64, step: u64) -> (u64, u64) {
        let (mut sent, mut unsent, mut now) = (0, 0, 0);
        while now <= until {
            unsent += pacer.give_up_late(now);
            let due = pacer.due(now, 32);
            pacer.advance(due);
            sent += due as u64;
            now += step;
        }
        (sent, unsent)
    }

    #[test]
    fn exactly_the_intended_number_is_sent() {
        for (rate, duration, expected) in
            [(148_809.523_809, 1.0, 148_809), (0.29, 100.0, 29), (1000.0, 0.3, 300), (999_999.9, 0.1, 99_999)]
        {
            let mut pacer = Pacer::new(rate, duration, 0.001, HZ);
            assert_eq!(pacer.intended(), Some(expected));
            let (sent, unsent) = run(&mut pacer, (duration * HZ) as u64 + 1, 2000);
            assert_eq!((sent, unsent), (expected, 0), "{rate}");
            assert!(pacer.finished());
        }
    }

    #[test]
    fn the_schedule_does_not_drift_over_a_day() {
        let mut stepped = Pacer::new(333_333.333_333, 86_400.0, 0.001, HZ);
        for _ in 0..1_000_000 {
            stepped.advance(1);
        }
        let exact = (1_000_000.0 * HZ / 333_333.333_333) as u64;
        assert!(stepped.next.tick.abs_diff(exact) <= 1);
        assert_eq!(stepped.place_of(1_000_000), stepped.next);
    }

    #[test]
    fn a_frame_is_due_at_its_tick_and_not_before() {
        let mut pacer = Pacer::new(1000.0, 1.0, 0.001, 1e9);
        assert_eq!(pacer.due(0, 32), 1);
        pacer.advance(1);
        assert_eq!((pacer.due(999_999, 32), pacer.due(1_000_000, 32)), (0, 1));
        assert_eq!(pacer.ticks().take(3).collect::<Vec<_>>(), [1_000_000, 2_000_000, 3_000_000]);
    }

    #[test]
    fn after_a_gap_no_more_than_the_catch_up_is_made_good() {
        let mut pacer = Pacer::new(100_000.0, 1.0, 0.001, 1e9);
        assert_eq!(pacer.give_up_late(50_000_000), 5001 - 100);
        assert_eq!(pacer.due(50_000_000, 1000), 100);
        pacer.advance(100);
        assert_eq!(pacer.next_tick(), Some(50_010_000));
    }

    #[test]
    fn a_slow_stream_survives_a_late_iteration() {
        let mut pacer = Pacer::new(10.0, 1.0, 0.001, 1e9);
        pacer.advance(1);
        assert_eq!(pacer.give_up_late(102_000_000), 0);
        assert_eq!(pacer.due(102_000_000, 32), 1);
    }

    #[test]
    fn sent_and_given_up_add_up_to_the_intended() {
        let mut pacer = Pacer::new(1_000_000.0, 0.5, 0.001, 1e9);
        let (sent, unsent) = run(&mut pacer, 600_000_000, 5_000_000);
        assert_eq!(sent + unsent + pacer.intended().unwrap() - pacer.position, 500_000);
        assert!(unsent > 0);
    }

    #[test]
    fn rate_zero_is_always_due_and_never_gives_up() {
        let mut pacer = Pacer::new(0.0, 1.0, 0.001, 1e9);
        assert_eq!((pacer.intended(), pacer.due(0, 32), pacer.give_up_late(u64::MAX)), (None, 32, 0));
        pacer.advance(32);
        assert!(!pacer.finished());
    }
}
