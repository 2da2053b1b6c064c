//! When frames are due: an exact rational schedule in ticks that never drifts.
//!
//! Frame k is due at the first tick not before k / rate. After a gap at most `catch_up` frames are made good; older
//! ones are given up and counted. Rate 0 means that a frame is always due. Frames may be due in bursts: then all of a
//! burst are due with its first, and the mean rate holds.

/// Rates are kept in millionths of a frame per second, so that rates that are no whole number are exact too.
const RATE_SCALE: f64 = 1e6;

/// A place in the schedule: the tick at which a frame is due, the part of a tick beyond it, and how many are due with
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    tick: u64,
    remainder: u64,
    left_in_burst: u64,
}

/// A schedule as numbers; see the fields of [`Pacer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    pub next_tick: u64,
    pub remainder: u64,
    pub left_in_burst: u64,
    /// Ticks between bursts: `whole + numerator / denominator`.
    pub whole: u64,
    pub numerator: u64,
    pub denominator: u64,
    pub burst_frames: u64,
    pub intended: Option<u64>,
    pub is_paced: bool,
    pub catch_up_ticks: u64,
}

/// Says when each frame of one stream is due.
#[derive(Debug, Clone)]
pub struct Pacer {
    /// Ticks between bursts (of one frame, where nobody asks for more): `whole + numerator / denominator`.
    whole: u64,
    numerator: u64,
    denominator: u64,
    /// When the first frame is due.
    first: Place,
    next: Place,
    /// Frames passed, sent or given up.
    position: u64,
    burst_frames: u64,
    /// Whether there is a rate; without one frames are sent as fast as the port takes them.
    is_paced: bool,
    /// Frames to be sent; `None`: as many as the port takes.
    intended: Option<u64>,
    catch_up_frames: u64,
    catch_up_ticks: u64,
}

impl Pacer {
    /// A schedule that begins at tick 0.
    pub fn new(rate_frames_per_s: f64, duration_s: f64, catch_up_s: f64, hz: f64) -> Self {
        Self::in_bursts(1, rate_frames_per_s, duration_s, catch_up_s, hz)
    }

    /// A schedule by which `burst_frames` frames are due at once.
    pub fn in_bursts(burst_frames: u32, rate_frames_per_s: f64, duration_s: f64, catch_up_s: f64, hz: f64) -> Self {
        let rate_scaled = (rate_frames_per_s * RATE_SCALE).round() as u64;
        let burst_frames = u64::from(burst_frames.max(1));
        let hz_scaled = (hz.round() as u128) * RATE_SCALE as u128 * u128::from(burst_frames);
        // A long burst takes its time on the wire: what waits for it is not late before the next is due.
        let burst_s = if burst_frames > 1 { burst_frames as f64 / rate_frames_per_s.max(1e-6) } else { 0.0 };
        let catch_up_s = catch_up_s.max(burst_s);
        let denominator = rate_scaled.max(1);
        Self {
            whole: (hz_scaled / u128::from(denominator)) as u64,
            numerator: (hz_scaled % u128::from(denominator)) as u64,
            denominator,
            first: Place { tick: 0, remainder: 0, left_in_burst: burst_frames - 1 },
            next: Place { tick: 0, remainder: 0, left_in_burst: burst_frames - 1 },
            position: 0,
            burst_frames,
            is_paced: rate_scaled > 0,
            intended: (rate_scaled > 0).then(|| intended_frames(rate_frames_per_s, duration_s)),
            // At least one frame, else a slow stream would never send one that is late by a single iteration.
            catch_up_frames: ((rate_frames_per_s * catch_up_s) as u64).max(burst_frames),
            catch_up_ticks: (catch_up_s * hz) as u64,
        }
    }

    /// Limits the schedule to this many frames.
    pub fn with_frame_limit(mut self, frames: Option<u64>) -> Self {
        if let Some(frames) = frames {
            self.intended = Some(self.intended.map_or(frames, |intended| intended.min(frames)));
        }
        self
    }

    /// Moves the schedule, so that the first frame is due at this tick.
    pub fn starting_at(mut self, tick: u64) -> Self {
        self.first.tick = tick;
        self.next = self.first;
        self
    }

    /// The part of the schedule that sender `index` of `count` sends: every `count`th frame, or burst, so that the
    /// parts together are the whole, frame by frame.
    pub fn part(&self, index: u64, count: u64) -> Self {
        let fractions = u128::from(self.numerator) * u128::from(count);
        let first = self.place_of(index * self.burst_frames);
        let of_part = |intended: u64| {
            let (bursts, rest) = (intended / self.burst_frames, intended % self.burst_frames);
            let whole_bursts = bursts.saturating_sub(index).div_ceil(count);
            whole_bursts * self.burst_frames + if bursts % count == index { rest } else { 0 }
        };
        Self {
            whole: self.whole * count + (fractions / u128::from(self.denominator)) as u64,
            numerator: (fractions % u128::from(self.denominator)) as u64,
            first,
            next: first,
            intended: self.intended.map(of_part),
            catch_up_frames: (self.catch_up_frames / count).max(self.burst_frames),
            ..*self
        }
    }

    /// The whole schedule as numbers, for a sender that is no Rust code.
    pub fn schedule(&self) -> Schedule {
        Schedule {
            next_tick: self.next.tick,
            remainder: self.next.remainder,
            left_in_burst: self.next.left_in_burst,
            whole: self.whole,
            numerator: self.numerator,
            denominator: self.denominator,
            burst_frames: self.burst_frames,
            intended: self.intended,
            is_paced: self.is_paced,
            catch_up_ticks: self.catch_up_ticks,
        }
    }

    /// rate x duration, rounded down, or the number of frames asked for; `None` where there is neither.
    pub fn intended(&self) -> Option<u64> {
        self.intended
    }

    /// Whether nothing is left to send.
    pub fn is_finished(&self) -> bool {
        self.intended.is_some_and(|intended| self.position >= intended)
    }

    /// The tick of the next frame; `None` where none is left or the rate is 0.
    pub fn next_tick(&self) -> Option<u64> {
        (self.is_paced && !self.is_finished()).then_some(self.next.tick)
    }

    /// How many frames are due at `now`, `most` at most.
    pub fn due(&self, now: u64, most: usize) -> usize {
        let Some(intended) = self.intended else { return most };
        let left = usize::try_from(intended - self.position.min(intended)).unwrap_or(usize::MAX).min(most);
        if !self.is_paced {
            return left;
        }
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

    /// Notes that `count` frames were sent.
    pub fn advance(&mut self, count: usize) {
        self.position += count as u64;
        if self.is_paced {
            for _ in 0..count {
                self.next = self.after(self.next);
            }
        }
    }

    /// How late frames may be, in ticks.
    #[inline]
    pub fn catch_up_ticks(&self) -> u64 {
        self.catch_up_ticks
    }

    /// Gives up what is too late to be made good; returns how many frames.
    pub fn give_up_late(&mut self, now: u64) -> u64 {
        let Some(intended) = self.intended.filter(|_| self.is_paced) else { return 0 };
        if self.position >= intended || now.saturating_sub(self.next.tick) <= self.catch_up_ticks {
            return 0;
        }
        let interval = u128::from(self.whole) * u128::from(self.denominator) + u128::from(self.numerator);
        let since_first = u128::from(now - self.first.tick) * u128::from(self.denominator);
        let scheduled = since_first.saturating_sub(self.first.remainder.into()) / interval.max(1) + 1;
        let scheduled = scheduled * u128::from(self.burst_frames);
        let scheduled = u64::try_from(scheduled).unwrap_or(u64::MAX).min(intended);
        let skipped = scheduled.saturating_sub(self.position).saturating_sub(self.catch_up_frames);
        if skipped > 0 {
            self.position += skipped;
            self.next = self.place_of(self.position);
        }
        skipped
    }

    fn after(&self, place: Place) -> Place {
        if place.left_in_burst > 0 {
            return Place { left_in_burst: place.left_in_burst - 1, ..place };
        }
        let mut tick = place.tick + self.whole;
        let mut remainder = place.remainder + self.numerator;
        if remainder >= self.denominator {
            remainder -= self.denominator;
            tick += 1;
        }
        Place { tick, remainder, left_in_burst: self.burst_frames - 1 }
    }

    fn place_of(&self, position: u64) -> Place {
        let (burst, sent_of_burst) = (position / self.burst_frames, position % self.burst_frames);
        let fractions = u128::from(burst) * u128::from(self.numerator) + u128::from(self.first.remainder);
        let carried = fractions / u128::from(self.denominator);
        let tick = u128::from(self.first.tick) + u128::from(burst) * u128::from(self.whole) + carried;
        let remainder = (fractions % u128::from(self.denominator)) as u64;
        Place { tick: tick as u64, remainder, left_in_burst: self.burst_frames - 1 - sent_of_burst }
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
            assert!(pacer.is_finished());
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
    fn a_burst_is_due_at_once_and_the_mean_rate_holds() {
        let mut pacer = Pacer::in_bursts(10, 1000.0, 1.0, 0.001, 1e9);
        assert_eq!((pacer.intended(), pacer.due(0, 32)), (Some(1000), 10));
        pacer.advance(4);
        assert_eq!((pacer.due(9_999_999, 32), pacer.due(10_000_000, 32)), (6, 16));
        assert_eq!(pacer.ticks().take(8).collect::<Vec<_>>(), [0, 0, 0, 0, 0, 0, 10_000_000, 10_000_000]);
        for position in [4, 9, 10, 99, 100] {
            pacer.advance(position as usize - pacer.position as usize);
            assert_eq!(pacer.place_of(position), pacer.next);
        }
        let mut pacer = Pacer::in_bursts(10, 1000.0, 1.0, 0.001, 1e9);
        assert_eq!(run(&mut pacer, 1_000_000_000, 500_000), (1000, 0));
    }

    #[test]
    fn what_a_gap_leaves_of_bursts_is_given_up_but_for_one_burst() {
        let mut pacer = Pacer::in_bursts(10, 1000.0, 1.0, 0.001, 1e9);
        assert_eq!(pacer.give_up_late(205_000_000), 200);
        assert_eq!(pacer.due(205_000_000, 32), 10);
    }

    #[test]
    fn a_fixed_number_of_frames_is_sent_and_no_more() {
        for rate in [0.0, 1000.0] {
            let mut pacer = Pacer::new(rate, 1.0, 0.001, 1e9).with_frame_limit(Some(70));
            assert_eq!(pacer.intended(), Some(70));
            assert_eq!(run(&mut pacer, 1_000_000_000, 500_000), (70, 0));
            assert!(pacer.is_finished());
        }
        assert_eq!(Pacer::new(1000.0, 1.0, 0.001, 1e9).with_frame_limit(Some(5000)).intended(), Some(1000));
    }

    #[test]
    fn a_schedule_that_begins_later_is_the_same_one_later() {
        let begin = 5_000_000;
        let mut pacer = Pacer::new(1000.0, 0.01, 0.001, 1e9).starting_at(begin);
        assert_eq!((pacer.due(begin - 1, 32), pacer.give_up_late(begin - 1), pacer.next_tick()), (0, 0, Some(begin)));
        assert_eq!(run(&mut pacer.clone(), begin + 10_000_000, 500_000), (10, 0));
        assert_eq!(pacer.part(1, 2).next_tick(), Some(begin + 1_000_000));
        pacer.advance(3);
        assert_eq!((pacer.next_tick(), pacer.place_of(3)), (Some(begin + 3_000_000), pacer.next));
        assert_eq!(pacer.give_up_late(begin + 8_000_000), 9 - 3 - 1);
    }

    #[test]
    fn the_parts_of_a_schedule_are_the_whole_frame_by_frame() {
        let whole = Pacer::new(333_333.333_333, 0.001, 0.001, HZ);
        let mut parts: Vec<Pacer> = (0..4).map(|index| whole.part(index, 4)).collect();
        assert_eq!(parts.iter().map(|part| part.intended().unwrap()).sum::<u64>(), whole.intended().unwrap());
        for (index, tick) in whole.ticks().take(whole.intended().unwrap() as usize).enumerate() {
            let part = &mut parts[index % 4];
            assert_eq!(part.next_tick(), Some(tick), "frame {index}");
            part.advance(1);
        }
        assert!(parts.iter().all(Pacer::is_finished));
    }

    #[test]
    fn bursts_are_shared_whole() {
        let whole = Pacer::in_bursts(10, 1000.0, 0.095, 0.001, 1e9);
        let parts = [whole.part(0, 2), whole.part(1, 2)];
        assert_eq!(parts.each_ref().map(|part| part.intended().unwrap()), [50, 45]);
        assert_eq!(parts.each_ref().map(|part| part.due(0, 32)), [10, 0]);
        assert_eq!(parts[1].next_tick(), Some(10_000_000));
    }

    #[test]
    fn a_part_gives_up_what_it_missed_and_no_more() {
        let whole = Pacer::new(1_000_000.0, 1.0, 0.001, 1e9);
        let mut parts = [whole.part(0, 2), whole.part(1, 2)];
        let given_up: u64 = parts.iter_mut().map(|part| part.give_up_late(50_000_000)).sum();
        assert_eq!(given_up, 50_001 - 1000);
        assert_eq!(parts[0].due(50_000_000, 1000) + parts[1].due(50_000_000, 1000), 1000);
    }

    #[test]
    fn rate_zero_is_always_due_and_never_gives_up() {
        let mut pacer = Pacer::new(0.0, 1.0, 0.001, 1e9);
        assert_eq!((pacer.intended(), pacer.due(0, 32), pacer.give_up_late(u64::MAX)), (None, 32, 0));
        pacer.advance(32);
        assert!(!pacer.is_finished());
    }
}
