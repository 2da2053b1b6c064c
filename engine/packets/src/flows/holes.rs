//! How far frames were overtaken: the reordering extent of RFC 4737 4.2, exactly, without keeping every arrival.
//!
//! A frame's extent counts the arrivals from the first one with a greater sequence up to the frame itself. That first one
//! is what jumped over the frame's place, so it is enough to keep, for each jump, its range and the number of its arrival.
//! Nothing here is touched while frames come in order.

const HEADER_WORDS: usize = 4;
const SMALLEST_HOLES: usize = 5;
const LARGEST_HOLES: usize = 4096;
/// Holes that all flows together may have before each keeps the fewest.
const HOLE_BUDGET: usize = 1 << 16;
/// RFC 4737 5.3: three are what makes TCP send again.
const N: u64 = 3;

/// What reordering did to one stream or flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reordering {
    pub maximum_extent: u64,
    pub extent_sum: u64,
    /// Reordered frames whose extent is known: so far back that its hole was forgotten it is not.
    pub measured: u64,
    /// Right after three or more frames with greater sequences (RFC 4737 5.3, n = 3).
    pub by_three_or_more: u64,
}

impl Reordering {
    pub fn merge(&mut self, other: &Self) {
        self.maximum_extent = self.maximum_extent.max(other.maximum_extent);
        self.extent_sum += other.extent_sum;
        self.measured += other.measured;
        self.by_three_or_more += other.by_three_or_more;
    }
}

/// The holes of all flows. Zero at first, so flows without holes cost no memory.
///
/// Words of a flow: holes so far; the last three reordered arrivals (arrival, sequence); then a ring of holes, two words
/// each: first sequence and length, arrival. Arrivals and sequences are kept in 32 bits, counted from 1, so that 0 is none.
#[derive(Debug, Default, Clone)]
pub struct Holes {
    words: Vec<u64>,
    stride: usize,
    capacity: usize,
}

impl Holes {
    pub fn new(flows: usize) -> Self {
        let share = (HOLE_BUDGET / flows.max(1)).clamp(SMALLEST_HOLES, LARGEST_HOLES);
        let stride = (HEADER_WORDS + 2 * share).next_multiple_of(2);
        Self { words: vec![0; flows * stride], stride, capacity: share }
    }

    /// Bytes of one flow, where it uses them.
    pub fn bytes_per_flow(&self) -> usize {
        self.stride * size_of::<u64>()
    }

    /// The arrival with this number jumped over `length` sequences from `first` on.
    #[cold]
    pub fn add(&mut self, flow: usize, first: u64, length: u64, arrival: u64) {
        let capacity = self.capacity;
        let Some(words) = self.words.get_mut(flow * self.stride..(flow + 1) * self.stride) else { return };
        let place = HEADER_WORDS + 2 * (words[0] as usize % capacity);
        words[place] = u64::from(first as u32) << 32 | length.min(u64::from(u32::MAX));
        words[place + 1] = arrival + 1;
        words[0] += 1;
    }

    /// A reordered frame: `arrival` is its number. Gives what it adds to the reordering of its stream.
    #[cold]
    pub fn fill(&mut self, flow: usize, sequence: u64, arrival: u64) -> Reordering {
        let capacity = self.capacity;
        let nothing = Reordering::default();
        let Some(words) = self.words.get_mut(flow * self.stride..(flow + 1) * self.stride) else { return nothing };
        let Some(opened) = opened_at(words, capacity, sequence) else {
            remember(words, arrival, sequence);
            return nothing;
        };
        let extent = arrival.saturating_sub(opened);
        let behind_greater =
            extent >= N && !words[1..HEADER_WORDS].iter().any(|word| is_smaller(*word, arrival, sequence));
        remember(words, arrival, sequence);
        Reordering {
            maximum_extent: extent,
            extent_sum: extent,
            measured: 1,
            by_three_or_more: u64::from(behind_greater),
        }
    }
}

/// Holes lie in rising order of sequence and arrival, so the ring is searched by halves.
fn opened_at(words: &[u64], capacity: usize, sequence: u64) -> Option<u64> {
    let written = words[0] as usize;
    let (mut low, mut high) = (written.saturating_sub(capacity), written);
    while low < high {
        let middle = low + (high - low) / 2;
        let place = HEADER_WORDS + 2 * (middle % capacity);
        let (first, length) = (words[place] >> 32, words[place] & 0xFFFF_FFFF);
        let distance = (sequence as u32).wrapping_sub(first as u32);
        if u64::from(distance) < length {
            return Some(words[place + 1] - 1);
        }
        if (distance as i32) < 0 {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    None
}

/// The last three reordered arrivals, in a ring.
fn remember(words: &mut [u64], arrival: u64, sequence: u64) {
    words.copy_within(1..HEADER_WORDS - 1, 2);
    words[1] = u64::from((arrival + 1) as u32) << 32 | u64::from(sequence as u32);
}

/// Whether it is one of the three arrivals right before `arrival`, with a smaller sequence. Others of them that came in
/// order are greater: they are beyond the hole.
fn is_smaller(word: u64, arrival: u64, sequence: u64) -> bool {
    let ago = ((arrival + 1) as u32).wrapping_sub((word >> 32) as u32);
    word >> 32 != 0 && (1..=N as u32).contains(&ago) && (word as u32).wrapping_sub(sequence as u32) as i32 <= 0
}
