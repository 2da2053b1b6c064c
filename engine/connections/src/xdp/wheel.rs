//! A wheel of timers: what is to be looked at again, in slots of 10 ms.

const SLOT_NS: u64 = 10_000_000;
const SLOTS: usize = 1024;

/// Entries by the moment when they are due, with the precision of a slot; one that is due later than the wheel reaches
/// comes early and is put back.
#[derive(Debug)]
pub struct Wheel<T> {
    slots: Vec<Vec<T>>,
    /// The slot that is looked at next.
    next: u64,
}

impl<T> Wheel<T> {
    /// An empty one that begins at this moment.
    pub fn new(now_ns: u64) -> Self {
        Self { slots: (0..SLOTS).map(|_| Vec::new()).collect(), next: now_ns / SLOT_NS }
    }

    /// Puts an entry in, to come out at this moment or up to a slot later.
    pub fn put(&mut self, at_ns: u64, entry: T) {
        let slot = (at_ns / SLOT_NS + 1).clamp(self.next, self.next + SLOTS as u64 - 1);
        self.slots[(slot % SLOTS as u64) as usize].push(entry);
    }

    /// Takes the entries of a slot that is over, if there is one.
    pub fn take(&mut self, now_ns: u64) -> Option<Vec<T>> {
        if self.next > now_ns / SLOT_NS {
            return None;
        }
        let slot = (self.next % SLOTS as u64) as usize;
        self.next += 1;
        Some(std::mem::take(&mut self.slots[slot]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_comes_after_its_moment_and_at_most_a_slot_later() {
        let mut wheel = Wheel::new(5 * SLOT_NS);
        wheel.put(7 * SLOT_NS + 1, "seven");
        wheel.put(5 * SLOT_NS, "five");
        let mut came = Vec::new();
        for now in 5..12 {
            while let Some(entries) = wheel.take(now * SLOT_NS) {
                came.extend(entries.into_iter().map(|entry| (now, entry)));
            }
        }
        assert_eq!(came, [(6, "five"), (8, "seven")]);
    }

    #[test]
    fn one_beyond_the_wheel_comes_early() {
        let mut wheel = Wheel::new(0);
        wheel.put(u64::MAX / 2, ());
        let came: usize = std::iter::from_fn(|| wheel.take(SLOTS as u64 * SLOT_NS)).map(|slot| slot.len()).sum();
        assert_eq!(came, 1);
    }
}
