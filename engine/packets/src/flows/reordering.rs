//! How far frames were overtaken: the reordering extent of RFC 4737 4.2, exactly, without keeping every arrival.
//!
//! A frame's extent counts the arrivals from the first one with a greater sequence up to the frame itself. That first
//! one is what jumped over the frame's place, so it is enough to keep, for each jump, its range and the number of its
//! arrival. Nothing here is touched while frames come in order.

const SMALLEST_HOLES: usize = 5;
const LARGEST_HOLES: usize = 4096;
/// Holes that all flows together may have before each keeps the fewest.
const HOLE_BUDGET: usize = 1 << 16;
/// RFC 4737 5.3: three are what makes TCP send again.
pub const FEWEST_COUNTED: usize = 3;

/// How a reordered frame was overtaken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Overtaken {
    /// Arrivals since the first with a greater sequence; 0 where it is so far back that its hole was forgotten.
    pub extent: u64,
    /// The number of arrivals right before it that had greater sequences, up to the number that is counted.
    pub behind: u64,
}

/// What reordering did to one stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reordering {
    pub maximum_extent: u64,
    pub extent_sum: u64,
    /// Reordered frames whose extent is known.
    pub measured: u64,
    /// Of those, by how many greater ones they came right behind, from 1 on.
    behind: Vec<u64>,
}

impl Reordering {
    /// Counts one more reordered frame.
    #[cold]
    pub fn add(&mut self, frame: Overtaken) {
        if frame.extent == 0 {
            return;
        }
        self.maximum_extent = self.maximum_extent.max(frame.extent);
        self.extent_sum += frame.extent;
        self.measured += 1;
        if let Some(place) = (frame.behind as usize).checked_sub(1) {
            self.behind.resize(self.behind.len().max(place + 1), 0);
            self.behind[place] += 1;
        }
    }

    pub fn merge(&mut self, other: &Self) {
        self.maximum_extent = self.maximum_extent.max(other.maximum_extent);
        self.extent_sum += other.extent_sum;
        self.measured += other.measured;
        self.behind.resize(self.behind.len().max(other.behind.len()), 0);
        self.behind.iter_mut().zip(&other.behind).for_each(|(count, more)| *count += more);
    }

    /// Frames right behind `n` or more with greater sequences: n-reordered ones (RFC 4737 5.3).
    pub fn by_or_more(&self, n: usize) -> u64 {
        self.behind.iter().skip(n.saturating_sub(1)).sum()
    }
}

/// The holes of all flows. Zero at first, so flows without holes cost no memory.
///
/// Words of a flow: holes so far; the last reordered arrivals, as many as are counted (arrival, sequence); then a ring
/// of holes, two words each: first sequence and length, arrival. Arrivals and sequences are kept in 32 bits, counted
/// from 1, so that 0 is none.
#[derive(Debug, Default, Clone)]
pub struct Holes {
    words: Vec<u64>,
    stride: usize,
    capacity: usize,
    /// Reordered arrivals that are remembered: so far back it is seen whether one was smaller.
    counted: usize,
}

impl Holes {
    /// n-reordering is counted up to `counted`.
    pub fn new(flows: usize, counted: usize) -> Self {
        let counted = counted.max(FEWEST_COUNTED);
        let share = (HOLE_BUDGET / flows.max(1)).clamp(SMALLEST_HOLES, LARGEST_HOLES);
        let stride = (1 + counted + 2 * share).next_multiple_of(2);
        Self { words: vec![0; flows * stride], stride, capacity: share, counted }
    }

    /// Up to which n n-reordering is counted.
    pub fn reordering_limit(&self) -> usize {
        self.counted
    }

    /// How many holes of each flow are remembered.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The bytes that one flow takes once it uses them.
    pub fn bytes_per_flow(&self) -> usize {
        self.stride * size_of::<u64>()
    }

    /// Nothing has come of this flow.
    pub fn forget(&mut self, flow: usize) {
        self.words[flow * self.stride..(flow + 1) * self.stride].fill(0);
    }

    /// The arrival with this number jumped over `length` sequences from `first` on.
    #[cold]
    pub fn add(&mut self, flow: usize, first: u64, length: u64, arrival: u64) {
        let (capacity, header) = (self.capacity, 1 + self.counted);
        let Some(words) = self.words.get_mut(flow * self.stride..(flow + 1) * self.stride) else { return };
        let place = header + 2 * (words[0] as usize % capacity);
        words[place] = u64::from(first as u32) << 32 | length.min(u64::from(u32::MAX));
        words[place + 1] = arrival + 1;
        words[0] += 1;
    }

    /// A reordered frame: `arrival` is its number.
    #[cold]
    pub fn fill(&mut self, flow: usize, sequence: u64, arrival: u64) -> Overtaken {
        let (capacity, header) = (self.capacity, 1 + self.counted);
        let Some(words) = self.words.get(flow * self.stride..(flow + 1) * self.stride) else {
            return Overtaken::default();
        };
        let opened = opened_at(words[0] as usize, &words[header..], capacity, sequence);
        self.fill_opened(flow, sequence, arrival, opened)
    }

    /// As [`Self::fill`], where it is known which arrival opened the frame's hole.
    #[cold]
    pub fn fill_opened(&mut self, flow: usize, sequence: u64, arrival: u64, opened: Option<u64>) -> Overtaken {
        let header = 1 + self.counted;
        let nothing = Overtaken::default();
        let Some(words) = self.words.get_mut(flow * self.stride..(flow + 1) * self.stride) else { return nothing };
        let remembered = &mut words[1..header];
        let overtaken = opened.map_or(nothing, |opened| {
            let extent = arrival.saturating_sub(opened);
            // Since the hole was opened, only other late frames can have been smaller.
            let smaller = remembered.iter().filter_map(|word| smaller_ago(*word, arrival, sequence)).min();
            let greater = smaller.map_or(u64::MAX, |ago| ago - 1);
            Overtaken { extent, behind: extent.min(greater).min(remembered.len() as u64) }
        });
        remember(remembered, arrival, sequence);
        overtaken
    }
}

/// Holes lie in rising order of sequence and arrival, so the ring is searched by halves.
fn opened_at(written: usize, ring: &[u64], capacity: usize, sequence: u64) -> Option<u64> {
    let (mut low, mut high) = (written.saturating_sub(capacity), written);
    while low < high {
        let middle = low + (high - low) / 2;
        let place = 2 * (middle % capacity);
        let (first, length) = (ring[place] >> 32, ring[place] & 0xFFFF_FFFF);
        let distance = (sequence as u32).wrapping_sub(first as u32);
        if u64::from(distance) < length {
            return Some(ring[place + 1] - 1);
        }
        if (distance as i32) < 0 {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    None
}

/// The last reordered arrivals, the newest first.
fn remember(words: &mut [u64], arrival: u64, sequence: u64) {
    words.copy_within(..words.len() - 1, 1);
    words[0] = u64::from((arrival + 1) as u32) << 32 | u64::from(sequence as u32);
}

/// How many arrivals before `arrival` this one came, where it has a smaller sequence.
fn smaller_ago(word: u64, arrival: u64, sequence: u64) -> Option<u64> {
    let ago = ((arrival + 1) as u32).wrapping_sub((word >> 32) as u32);
    let is_smaller = word >> 32 != 0 && (word as u32).wrapping_sub(sequence as u32) as i32 <= 0;
    (is_smaller && ago > 0).then_some(ago.into())
}
