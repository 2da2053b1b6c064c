//! When frames have their turn, and when they are due: times since the first frame's turn, in nanoseconds.
//!
//! With a limit, frame k has its turn at k / rate, whatever became of those before it, and is due `read_ahead` frame
//! times later: a player asks for a frame that long before it shows it, a recorder has memory for that many. A late
//! frame delays no turn, so that lateness holds all the waiting. Without a limit a frame's turn is when a worker takes
//! it, and nothing is ever due.

/// The turns and due times of frames.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    limit: Option<Limit>,
    /// Where the measurement begins.
    pub warm_up_ns: u64,
    /// Where it ends; `None`: with the last frame.
    pub end_ns: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Limit {
    frames_per_s: f64,
    read_ahead: u32,
}

impl Schedule {
    pub fn new(frames_per_s: Option<f64>, read_ahead: u32, warm_up_s: f64, duration_s: Option<f64>) -> Self {
        Self {
            limit: frames_per_s.map(|frames_per_s| Limit { frames_per_s, read_ahead }),
            warm_up_ns: ns(warm_up_s),
            end_ns: duration_s.map(|duration_s| ns(warm_up_s + duration_s)),
        }
    }

    pub fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// The turn of the frame at this position; `None` without a limit.
    pub fn turn_ns(&self, position: u64) -> Option<u64> {
        self.limit.map(|limit| ns(position as f64 / limit.frames_per_s))
    }

    /// When it is due; `None` without a limit.
    pub fn due_ns(&self, position: u64) -> Option<u64> {
        self.limit.and_then(|limit| self.turn_ns(position + u64::from(limit.read_ahead)))
    }

    /// Whether a frame that would begin at this time comes too late to begin.
    pub fn is_over(&self, turn_ns: u64) -> bool {
        self.end_ns.is_some_and(|end| turn_ns >= end)
    }

    /// How many frames have their turn before the end; `None` without limit or end.
    pub fn frames(&self) -> Option<u64> {
        let (limit, end) = (self.limit?, self.end_ns?);
        // The last turn is strictly before the end.
        Some((end as f64 * 1e-9 * limit.frames_per_s - 1e-6).ceil() as u64)
    }

    /// Whether what is due then belongs to the measurement: what is due as it ends does, as its frame is part of it.
    pub fn is_due_within(&self, due_ns: u64) -> bool {
        due_ns > self.warm_up_ns && self.end_ns.is_none_or(|end| due_ns <= end)
    }

    /// How many of the first `positions` frames are due within the measurement; `None` without a limit.
    pub fn due_within(&self, positions: u64) -> Option<u64> {
        self.limit?;
        let due = (0..positions).map_while(|position| self.due_ns(position));
        let until_end = due.take_while(|due| self.end_ns.is_none_or(|end| *due <= end));
        Some(until_end.filter(|due| self.is_due_within(*due)).count() as u64)
    }

    /// Whether what completed then belongs to the measurement.
    pub fn is_measured(&self, completed_ns: u64) -> bool {
        completed_ns >= self.warm_up_ns && self.end_ns.is_none_or(|end| completed_ns < end)
    }

    /// Length of a measurement of which the last of `positions` frames completed at `last_ns`. The last frame's time is
    /// part of it, as that of every other: 24 frames at 24 frames/s take a second, also where the last one was read at
    /// once. `is_cut`: the time was over before the frames were.
    pub fn measured_ns(&self, positions: u64, last_ns: u64, is_cut: bool) -> u64 {
        let until = match self.end_ns {
            Some(end) if is_cut || last_ns >= end || self.turn_ns(positions).is_some_and(|turn| turn >= end) => end,
            _ => last_ns.max(self.turn_ns(positions).unwrap_or(0)),
        };
        until.saturating_sub(self.warm_up_ns)
    }
}

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_frames_are_due_as_the_rate_has_in_the_time_whatever_the_read_ahead() {
        for read_ahead in [1, 3, 40] {
            let schedule = Schedule::new(Some(24.0), read_ahead, 3.0, Some(20.0));
            assert_eq!(schedule.due_within(1000), Some(480));
        }
        let asked_early = Schedule::new(Some(24.0), 40, 3.0, Some(20.0));
        assert_eq!(asked_early.due_within(35), Some(2), "frame 33 is due at 73 / 24 s");
        assert_eq!(Schedule::new(Some(24.0), 1, 0.0, None).due_within(48), Some(48));
        assert_eq!(Schedule::new(None, 1, 0.0, Some(1.0)).due_within(48), None);
    }

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn turns_and_due_times_follow_from_the_position_alone() {
        let schedule = Schedule::new(Some(24.0), 2, 0.0, None);
        assert_eq!((schedule.turn_ns(0), schedule.turn_ns(24)), (Some(0), Some(SECOND)));
        assert_eq!(schedule.due_ns(22), Some(SECOND));
        // A day later no error has gathered.
        assert_eq!(schedule.turn_ns(24 * 86_400), Some(86_400 * SECOND));
        let free = Schedule::new(None, 2, 0.0, None);
        assert_eq!((free.turn_ns(5), free.due_ns(5), free.frames()), (None, None, None));
    }

    #[test]
    fn a_schedule_has_as_many_frames_as_begin_before_its_end() {
        for (rate, warm_up_s, duration_s, frames) in
            [(24.0, 3.0, 20.0, 552), (23.976, 0.0, 10.0, 240), (25.0, 0.0, 0.1, 3), (30.0, 1.0, 1.0, 60)]
        {
            let schedule = Schedule::new(Some(rate), 1, warm_up_s, Some(duration_s));
            assert_eq!(schedule.frames(), Some(frames), "{rate}");
            assert!(!schedule.is_over(schedule.turn_ns(frames - 1).unwrap()));
            assert!(schedule.is_over(schedule.turn_ns(frames).unwrap() + 1));
        }
    }

    #[test]
    fn the_last_frame_lasts_as_long_as_every_other() {
        let schedule = Schedule::new(Some(24.0), 1, 1.0, None);
        assert_eq!(schedule.measured_ns(48, SECOND * 47 / 24 + 5, false), SECOND);
        assert_eq!(schedule.measured_ns(48, 3 * SECOND, false), 2 * SECOND);
        assert_eq!(Schedule::new(None, 1, 0.5, None).measured_ns(9, 2 * SECOND, false), SECOND * 3 / 2);
        // Stopped in the middle, and run to its end.
        let timed = Schedule::new(Some(24.0), 1, 1.0, Some(2.0));
        assert_eq!(timed.measured_ns(36, SECOND * 3 / 2 - 9, false), SECOND / 2);
        assert_eq!(timed.measured_ns(72, 3 * SECOND - 9, false), 2 * SECOND);
        assert_eq!(timed.measured_ns(72, 4 * SECOND, false), 2 * SECOND);
        // A frame that was late, and the next of which could not begin any more.
        assert_eq!(timed.measured_ns(60, SECOND * 9 / 4, true), 2 * SECOND);
    }
}
