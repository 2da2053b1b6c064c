//! When the frames of a sender are due: at an even pace, or when those of a capture were.

use std::sync::Arc;

use crate::pacer::Pacer;

/// When the frames of a sender are due.
#[derive(Debug, Clone)]
pub enum Pace {
    Even(Pacer),
    Recorded(Recorded),
}

/// Each frame at its own time. None is given up, however late it is.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// In ticks since the trial began, ascending.
    due: Arc<[u64]>,
    /// Frames that were sent.
    position: usize,
}

impl Recorded {
    /// Frames that are due so many nanoseconds after the trial began, for a clock of so many ticks a second.
    pub fn new(due_ns: &[u64], frames: Option<u64>, hz: f64) -> Self {
        let most = frames.map_or(usize::MAX, |frames| usize::try_from(frames).unwrap_or(usize::MAX));
        let ticks = |ns: &u64| (u128::from(*ns) * (hz.round() as u128) / 1_000_000_000) as u64;
        Self { due: due_ns.iter().take(most).map(ticks).collect(), position: 0 }
    }

    fn left(&self) -> &[u64] {
        &self.due[self.position..]
    }

    /// How late the next `frames` frames are at `now`: since each was due, in ticks.
    pub fn late(&self, now: u64, frames: usize) -> impl Iterator<Item = u64> + '_ {
        self.left().iter().take(frames).map(move |due| now.saturating_sub(*due))
    }

    /// The times asked for before each of the next `frames` frames, in ticks; the first frame of all has none.
    pub fn gaps(&self, frames: usize) -> impl Iterator<Item = Option<u64>> + '_ {
        let range = self.position..(self.position + frames).min(self.due.len());
        range.map(|index| index.checked_sub(1).map(|before| self.due[index] - self.due[before]))
    }

    /// When the next frames are due, in order.
    pub fn ticks(&self) -> impl Iterator<Item = u64> + '_ {
        self.left().iter().copied()
    }
}

impl Pace {
    /// How many frames are to be sent; `None` where the port says how many.
    pub fn intended(&self) -> Option<u64> {
        match self {
            Self::Even(pacer) => pacer.intended(),
            Self::Recorded(recorded) => Some(recorded.due.len() as u64),
        }
    }

    /// Whether nothing is left to send.
    pub fn is_finished(&self) -> bool {
        match self {
            Self::Even(pacer) => pacer.is_finished(),
            Self::Recorded(recorded) => recorded.left().is_empty(),
        }
    }

    /// The tick of the next frame; `None` where none is left or there is no pace.
    pub fn next_tick(&self) -> Option<u64> {
        match self {
            Self::Even(pacer) => pacer.next_tick(),
            Self::Recorded(recorded) => recorded.left().first().copied(),
        }
    }

    /// How many frames are due at `now`, `most` at most.
    pub fn due(&self, now: u64, most: usize) -> usize {
        match self {
            Self::Even(pacer) => pacer.due(now, most),
            Self::Recorded(recorded) => recorded.left().iter().take(most).take_while(|due| **due <= now).count(),
        }
    }

    /// Notes that `count` frames were sent.
    pub fn advance(&mut self, count: usize) {
        match self {
            Self::Even(pacer) => pacer.advance(count),
            Self::Recorded(recorded) => recorded.position += count,
        }
    }

    /// Gives up what is too late to be made good; returns how many frames.
    pub fn give_up_late(&mut self, now: u64) -> u64 {
        match self {
            Self::Even(pacer) => pacer.give_up_late(now),
            Self::Recorded(_) => 0,
        }
    }

    /// The tick at which what is due at `tick` is too late.
    #[inline]
    pub fn too_late_at(&self, tick: u64) -> u64 {
        match self {
            Self::Even(pacer) => tick.saturating_add(pacer.catch_up_ticks()),
            Self::Recorded(_) => u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_frame_is_due_at_its_own_time_and_none_is_given_up() {
        let mut pace = Pace::Recorded(Recorded::new(&[0, 10, 10, 500], None, 2e9));
        assert_eq!((pace.intended(), pace.next_tick(), pace.due(19, 32)), (Some(4), Some(0), 1));
        pace.advance(1);
        assert_eq!((pace.next_tick(), pace.due(20, 32), pace.due(20, 1)), (Some(20), 2, 1));
        assert_eq!(pace.give_up_late(1 << 40), 0);
        let Pace::Recorded(recorded) = &pace else { panic!("another pace") };
        assert_eq!(recorded.late(25, 3).collect::<Vec<_>>(), [5, 5, 0]);
        assert_eq!(recorded.gaps(9).collect::<Vec<_>>(), [Some(20), Some(0), Some(980)]);
        pace.advance(3);
        assert!(pace.is_finished() && pace.next_tick().is_none());
    }

    #[test]
    fn a_limit_of_frames_cuts_the_capture_short() {
        assert_eq!(Pace::Recorded(Recorded::new(&[0, 10, 20], Some(2), 1e9)).intended(), Some(2));
    }
}
