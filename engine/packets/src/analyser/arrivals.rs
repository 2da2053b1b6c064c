//! When each stream's frames arrived: the first, the last, and the longest silence between.
//!
//! Frames of a burst arrive together, so this is done once a burst.

/// When the frames of one stream arrived; times since the trial began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Arrivals {
    /// Frames received when it was last looked at; 0: none yet.
    pub(super) received: u64,
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
    pub(super) silence: Option<Silence>,
}

/// A time during which nothing arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silence {
    pub from_ns: u64,
    pub to_ns: u64,
}

impl Silence {
    fn length_ns(self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

impl Arrivals {
    /// Notes how many frames have been received by now.
    #[inline(always)]
    pub fn look(&mut self, received: u64, now_ns: u64) {
        if received == self.received {
            return;
        }
        if self.received == 0 {
            self.first_ns = now_ns;
        } else if now_ns.saturating_sub(self.last_ns) > self.silence.map_or(0, Silence::length_ns) {
            self.silence = Some(Silence { from_ns: self.last_ns, to_ns: now_ns });
        }
        (self.received, self.last_ns) = (received, now_ns);
    }

    /// The times of the first and the last arrival; `None` where nothing arrived.
    pub fn times(&self) -> Option<(u64, u64)> {
        (self.received > 0).then_some((self.first_ns, self.last_ns))
    }

    pub fn silence(&self) -> Option<Silence> {
        self.silence
    }

    /// Adds what another receiver saw of the stream. Its silence is what both have in common: where their longest ones
    /// have nothing in common, that of the stream is not known.
    pub fn merge(&mut self, other: &Self) {
        if other.received == 0 {
            return;
        }
        if self.received == 0 {
            *self = *other;
            return;
        }
        self.received += other.received;
        self.first_ns = self.first_ns.min(other.first_ns);
        self.last_ns = self.last_ns.max(other.last_ns);
        let common = self.silence.zip(other.silence).map(|(ours, theirs)| Silence {
            from_ns: ours.from_ns.max(theirs.from_ns),
            to_ns: ours.to_ns.min(theirs.to_ns),
        });
        self.silence = common.filter(|silence| silence.to_ns > silence.from_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(times_ns: &[u64]) -> Arrivals {
        let mut arrivals = Arrivals::default();
        times_ns.iter().zip(1..).for_each(|(now_ns, received)| arrivals.look(received, *now_ns));
        arrivals
    }

    #[test]
    fn the_longest_silence_is_between_two_arrivals() {
        let mut arrivals = seen(&[100, 110, 510, 520, 900]);
        arrivals.look(5, 5_000);
        assert_eq!(arrivals.times(), Some((100, 900)));
        assert_eq!(arrivals.silence(), Some(Silence { from_ns: 110, to_ns: 510 }));
    }

    #[test]
    fn one_arrival_is_no_silence_and_none_no_time() {
        assert_eq!((seen(&[7]).times(), seen(&[7]).silence()), (Some((7, 7)), None));
        assert_eq!(seen(&[]).times(), None);
    }

    #[test]
    fn of_two_receivers_the_silence_is_what_both_have_in_common() {
        let mut one = seen(&[0, 100, 600, 700]);
        one.merge(&seen(&[50, 120, 650, 660]));
        assert_eq!(one.times(), Some((0, 700)));
        assert_eq!(one.silence(), Some(Silence { from_ns: 120, to_ns: 600 }));
        one.merge(&seen(&[700, 800, 1000]));
        assert_eq!(one.silence(), None);
        let mut none = seen(&[]);
        none.merge(&seen(&[3, 9]));
        assert_eq!(none, seen(&[3, 9]));
    }
}
