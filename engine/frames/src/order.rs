//! In which order frames are taken.

use nicbench_protocol::FrameOrder;

use crate::content::mix;

/// Positions 0.. to frames 0..count, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    Forward,
    Reverse { count: u64 },
    Shuffled(Vec<u32>),
}

impl Order {
    /// Of so many frames, less than 2^32.
    pub fn new(order: FrameOrder, count: u64, seed: u64) -> Self {
        match order {
            FrameOrder::Forward => Self::Forward,
            FrameOrder::Reverse => Self::Reverse { count },
            FrameOrder::Random => Self::Shuffled(shuffle(count as u32, seed)),
        }
    }

    /// The frame at this position.
    pub fn frame(&self, position: u64) -> u64 {
        match self {
            Self::Forward => position,
            Self::Reverse { count } => count - 1 - position,
            Self::Shuffled(frames) => frames[position as usize].into(),
        }
    }
}

/// Fisher and Yates.
fn shuffle(count: u32, seed: u64) -> Vec<u32> {
    let mut frames: Vec<u32> = (0..count).collect();
    for index in (1..frames.len()).rev() {
        let drawn = mix(mix(seed) ^ index as u64);
        frames.swap(index, ((u128::from(drawn) * (index as u128 + 1)) >> 64) as usize);
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(order: FrameOrder, seed: u64) -> Vec<u64> {
        let order = Order::new(order, 1000, seed);
        (0..1000).map(|position| order.frame(position)).collect()
    }

    #[test]
    fn every_frame_comes_once_in_the_order_asked_for() {
        assert!(taken(FrameOrder::Forward, 1).into_iter().eq(0..1000));
        assert!(taken(FrameOrder::Reverse, 1).into_iter().eq((0..1000).rev()));
        let mut random = taken(FrameOrder::Random, 1);
        assert_eq!(random, taken(FrameOrder::Random, 1));
        assert_ne!(random, taken(FrameOrder::Random, 2));
        let neighbours = random.windows(2).filter(|pair| pair[0] + 1 == pair[1]).count();
        assert!(neighbours < 10, "{neighbours}");
        random.sort_unstable();
        assert!(random.into_iter().eq(0..1000));
    }
}
