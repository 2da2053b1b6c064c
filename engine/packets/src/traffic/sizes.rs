//! The sizes of a stream's frames, and which frame has which: one, all in turn, or a mix in exact proportions.

use nicbench_protocol::{SizeSweep, StreamRequest, WeightedSize};

use crate::error::{EngineError, ErrorKind};
use crate::signature::scramble;

const MOST_SIZES: usize = 16_384;
const MOST_WEIGHT: u64 = 65_536;

/// The sizes of a stream's frames, FCS included, ascending and distinct, and their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sizes {
    pub frame_bytes: Vec<u32>,
    /// One period of a mix: indices of `frame_bytes`. Empty where all sizes come in turn.
    period: Vec<u32>,
    seed: u64,
}

/// What is wrong with sizes, and what to do instead.
pub type Refused = (String, &'static str);

impl Sizes {
    /// What `request` asks for; whether a port can send them is checked elsewhere.
    pub fn of(request: &StreamRequest) -> Result<Self, EngineError> {
        let sizes = match request.size_sweep {
            Some(_) if !request.sizes.is_empty() => {
                Err(("size_sweep stands beside sizes".into(), "give `sizes` or `size_sweep`"))
            }
            Some(sweep) => Self::sweep(sweep),
            None if request.sizes.is_empty() => Ok(Self::one(request.frame_bytes)),
            None => Self::mix(&request.sizes, request.size_seed),
        };
        sizes.map_err(|(what, next)| {
            EngineError::new(ErrorKind::BadRequest, format!("stream {}: {what}", request.name), next)
        })
    }

    /// All frames are alike.
    pub fn one(frame_bytes: u32) -> Self {
        Self { frame_bytes: vec![frame_bytes], period: Vec::new(), seed: 0 }
    }

    /// Every size in turn.
    pub fn sweep(sweep: SizeSweep) -> Result<Self, Refused> {
        let count = (u64::from(sweep.to) + 1).saturating_sub(sweep.from.into()).div_ceil(sweep.step.max(1).into());
        if sweep.step == 0 || count == 0 || count > MOST_SIZES as u64 {
            let what = format!("size_sweep from {} to {} in steps of {}", sweep.from, sweep.to, sweep.step);
            return Err((what, "give `from` not above `to`, a `step` from 1, and at most 16384 sizes"));
        }
        let frame_bytes = (sweep.from..=sweep.to).step_by(sweep.step as usize).collect();
        Ok(Self { frame_bytes, period: Vec::new(), seed: 0 })
    }

    /// A mix in the proportions of the weights.
    pub fn mix(weighted: &[WeightedSize], seed: u64) -> Result<Self, Refused> {
        let mut sizes = weighted.to_vec();
        sizes.sort_by_key(|size| size.frame_bytes);
        if let Some(pair) = sizes.windows(2).find(|pair| pair[0].frame_bytes == pair[1].frame_bytes) {
            return Err((format!("sizes name {} bytes twice", pair[0].frame_bytes), "add the weights up"));
        }
        let divisor = sizes.iter().fold(0, |divisor, size| greatest_common_divisor(divisor, size.weight)).max(1);
        let sum: u64 = sizes.iter().map(|size| u64::from(size.weight / divisor)).sum();
        if sizes.iter().any(|size| size.weight == 0) || sum == 0 || sum > MOST_WEIGHT {
            let next = "give weights from 1, adding up to at most 65536";
            return Err((format!("weights of sizes add up to {sum}"), next));
        }
        let mut period: Vec<u32> = Vec::with_capacity(sum as usize);
        for (index, size) in sizes.iter().enumerate() {
            period.extend(std::iter::repeat_n(index as u32, (size.weight / divisor) as usize));
        }
        shuffle(&mut period, seed);
        Ok(Self { frame_bytes: sizes.iter().map(|size| size.frame_bytes).collect(), period, seed })
    }

    /// The same order of sizes, each larger by so many bytes.
    pub fn grown(mut self, bytes: i32) -> Self {
        self.frame_bytes.iter_mut().for_each(|size| *size = size.saturating_add_signed(bytes));
        self
    }

    /// The index of the size of the frame at `position` of the stream.
    #[inline]
    pub fn index(&self, position: u64) -> usize {
        if self.frame_bytes.len() == 1 {
            return 0;
        }
        if self.period.is_empty() {
            return (position % self.frame_bytes.len() as u64) as usize;
        }
        // Each period begins somewhere else in the order, so that no flow gets one size for ever.
        let length = self.period.len() as u64;
        let turned = scramble(self.seed ^ (position / length)) % length;
        self.period[((position + turned) % length) as usize] as usize
    }

    /// The indices of `frame_bytes` in the order of a period, and the seed by which each period begins elsewhere in it.
    pub fn order(&self) -> (Vec<u32>, Option<u64>) {
        match self.period.len() {
            0 => ((0..self.frame_bytes.len() as u32).collect(), None),
            _ => (self.period.clone(), Some(self.seed).filter(|_| self.frame_bytes.len() > 1)),
        }
    }

    pub fn largest(&self) -> u32 {
        self.frame_bytes.last().copied().unwrap_or(0)
    }

    pub fn smallest(&self) -> u32 {
        self.frame_bytes.first().copied().unwrap_or(0)
    }
}

fn greatest_common_divisor(left: u32, right: u32) -> u32 {
    if right == 0 { left } else { greatest_common_divisor(right, left % right) }
}

/// Shuffles a period (Fisher and Yates).
fn shuffle(period: &mut [u32], seed: u64) {
    for index in (1..period.len()).rev() {
        let drawn = scramble(seed ^ scramble(index as u64));
        let other = ((u128::from(drawn) * (index as u128 + 1)) >> 64) as usize;
        period.swap(index, other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(change: serde_json::Value) -> Result<Sizes, EngineError> {
        let mut request = serde_json::json!({
            "name": "mix", "transmit_port": 0, "receive_port": 1, "rate_frames_per_s": 1, "frame_bytes": 64});
        request.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        Sizes::of(&serde_json::from_value(request).unwrap())
    }

    fn imix() -> serde_json::Value {
        serde_json::json!({"sizes": [{"frame_bytes": 1518, "weight": 1}, {"frame_bytes": 64, "weight": 7},
            {"frame_bytes": 570, "weight": 4}]})
    }

    #[test]
    fn a_mix_has_exact_proportions_in_every_period() {
        let sizes = sizes(imix()).unwrap();
        assert_eq!((sizes.smallest(), sizes.largest()), (64, 1518));
        for period in 0..100 {
            let mut counts = [0; 3];
            (0..12).for_each(|index| counts[sizes.index(period * 12 + index)] += 1);
            assert_eq!(counts, [7, 4, 1]);
        }
    }

    #[test]
    fn no_flow_has_one_size_for_ever_though_flows_and_sizes_take_turns() {
        let sizes = sizes(imix()).unwrap();
        for flow in 0..12 {
            let mut seen: Vec<usize> = (0..200).map(|turn| sizes.index(turn * 12 + flow)).collect();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen, [0, 1, 2], "flow {flow}");
        }
    }

    #[test]
    fn another_seed_gives_another_order_and_the_same_seed_the_same() {
        let order = |seed: u64| {
            let mut request = imix();
            request["size_seed"] = seed.into();
            let sizes = sizes(request).unwrap();
            (0..48).map(|position| sizes.index(position)).collect::<Vec<_>>()
        };
        assert_eq!(order(5), order(5));
        assert_ne!(order(5), order(6));
    }

    #[test]
    fn a_sweep_goes_through_every_size_and_begins_again() {
        let sizes = sizes(serde_json::json!({"size_sweep": {"from": 64, "to": 70, "step": 3}})).unwrap();
        assert_eq!(sizes.frame_bytes, [64, 67, 70]);
        assert_eq!((0..4).map(|position| sizes.index(position)).collect::<Vec<_>>(), [0, 1, 2, 0]);
    }

    #[test]
    fn sizes_that_cannot_be_are_refused() {
        for (change, word) in [
            (serde_json::json!({"size_sweep": {"from": 70, "to": 64}}), "70"),
            (serde_json::json!({"size_sweep": {"from": 64, "to": 70, "step": 0}}), "0"),
            (serde_json::json!({"size_sweep": {"from": 0, "to": 4294967295u32}}), "4294967295"),
            (serde_json::json!({"sizes": [{"frame_bytes": 64, "weight": 0}]}), "weights"),
            (
                serde_json::json!({"sizes": [{"frame_bytes": 64, "weight": 1}, {"frame_bytes": 64, "weight": 1}]}),
                "twice",
            ),
        ] {
            let error = sizes(change).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("mix"), "{error}");
        }
    }
}
