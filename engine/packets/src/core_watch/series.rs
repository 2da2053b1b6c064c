//! The looks of one trial in the order of their time: a slot for each period, with the speed that was found in it.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use nicbench_protocol::LooksReading;

use super::speeds::Speed;

/// More slots than these are joined two by two: over four minutes at the period of the looks.
const MOST_SLOTS: u64 = 1 << 16;

/// Speeds by slot; `None` where nobody could look.
#[derive(Debug, Clone)]
pub struct Series {
    slot_ns: u64,
    /// Counted from time 0 of the monotonic clock.
    first_slot: u64,
    slots: Vec<Option<Speed>>,
}

impl Series {
    pub fn new(slot_ns: u64) -> Self {
        Self { slot_ns, first_slot: 0, slots: Vec::new() }
    }

    /// Keeps a look at this time of the monotonic clock; of several in a slot the first.
    pub fn add(&mut self, now_ns: u64, speed: Speed) {
        if self.slots.is_empty() {
            self.first_slot = now_ns / self.slot_ns;
        }
        while (now_ns / self.slot_ns).saturating_sub(self.first_slot) >= MOST_SLOTS {
            self.join_slots();
        }
        let index = (now_ns / self.slot_ns).saturating_sub(self.first_slot) as usize;
        if index >= self.slots.len() {
            self.slots.resize(index + 1, None);
        }
        self.slots[index].get_or_insert(speed);
    }

    fn join_slots(&mut self) {
        // Slots stay at multiples of their length.
        if self.first_slot % 2 == 1 {
            self.slots.insert(0, None);
        }
        self.slots = self.slots.chunks(2).map(|pair| pair.iter().flatten().next().copied()).collect();
        self.first_slot /= 2;
        self.slot_ns *= 2;
    }

    /// The reading, in which times count from `epoch_ns` of the monotonic clock; `None` where there was no look.
    pub fn reading(&self, epoch_ns: u64, best: Speed) -> Option<LooksReading> {
        let shares: Vec<u8> = self.slots.iter().map(|slot| slot.map_or(0, |speed| speed.hundredths_of(best))).collect();
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&shares).ok()?;
        let compressed = encoder.finish().ok()?;
        (!shares.is_empty()).then(|| LooksReading {
            begins_ns: (self.first_slot * self.slot_ns) as i64 - epoch_ns as i64,
            slot_ns: self.slot_ns,
            shares: STANDARD.encode(compressed),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::ZlibDecoder;

    use super::*;

    const SLOT_NS: u64 = 1000;

    fn shares(reading: &LooksReading) -> Vec<u8> {
        let mut bytes = Vec::new();
        ZlibDecoder::new(STANDARD.decode(&reading.shares).unwrap().as_slice()).read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn each_look_stands_in_its_slot_and_a_slot_without_one_is_empty() {
        let mut series = Series::new(SLOT_NS);
        for (time_ns, speed) in [(5_020, 0.5), (6_999, 0.25), (9_000, 0.5), (9_500, 0.1)] {
            series.add(time_ns, Speed::new(speed));
        }
        let reading = series.reading(5_500, Speed::new(0.5)).unwrap();
        assert_eq!((reading.begins_ns, reading.slot_ns), (-500, SLOT_NS));
        assert_eq!(shares(&reading), [100, 50, 0, 0, 100]);
    }

    #[test]
    fn no_look_is_no_series() {
        assert!(Series::new(SLOT_NS).reading(0, Speed::new(0.5)).is_none());
    }

    #[test]
    fn a_long_trial_keeps_every_second_look_and_stays_bounded() {
        let mut series = Series::new(SLOT_NS);
        let looks = 3 * MOST_SLOTS;
        (0..looks).for_each(|look| {
            let speed = if look / 64 % 4 == 0 { 0.25 } else { 0.5 };
            series.add((look + 7) * SLOT_NS, Speed::new(speed));
        });
        let reading = series.reading(0, Speed::new(0.5)).unwrap();
        let shares = shares(&reading);
        assert_eq!(reading.slot_ns, 4 * SLOT_NS);
        assert_eq!((reading.begins_ns as u64 / reading.slot_ns, shares.len() as u64), (1, looks / 4 + 1));
        let slow = shares.iter().filter(|share| **share < 80).count() as f64 / shares.len() as f64;
        assert!((slow - 0.25).abs() < 0.01, "{slow}");
    }
}
