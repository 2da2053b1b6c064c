//! What frames hold: nothing that compresses or occurs twice, computed from seed, frame and place, so that a read can
//! tell.
//!
//! A block of 4096 bytes begins with a stamp of 32 (mark, seed, frame, offset in the frame) and goes on with random
//! words of the seed, each combined (exclusive or) with a word of this seed, frame and block. That costs about what
//! copying within the processor's cache costs. Where only stamps are to differ, or only those of a frame's first block,
//! that word is of the place within 1 MiB alone, so that a buffer that was filled once needs new stamps only. A frame's
//! last block is cut off where the frame ends.

use nicbench_protocol::{FramesContent, Verify};

use crate::sys::wide;

/// Content is computed, and stamped, by blocks of this size.
pub const BLOCK_BYTES: usize = 4096;
/// The bytes of the stamp at the beginning of each block.
pub const STAMP_BYTES: usize = 32;
/// The first eight bytes of each block.
pub const MARK: [u8; 8] = *b"NBFRAME1";

/// `Stamped` content is, but for the stamps, the same after so many bytes.
const PERIOD_BYTES: u64 = 1 << 20;
const WORDS: usize = BLOCK_BYTES / 8;

/// The content of one seed.
#[derive(Debug, Clone)]
pub struct Content {
    kind: FramesContent,
    seed: u64,
    base: Box<[u8; BLOCK_BYTES]>,
}

/// What a buffer was last filled with, stamps apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holds {
    phase: u64,
    bytes: usize,
}

/// The first place at which what was read is not what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mismatch {
    /// The offset of the first wrong block in the frame.
    pub offset: u64,
    pub found: Found,
}

/// What was read in place of what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// A block of zeros: a hole, most often.
    Zeros,
    /// A block of another frame, seed or offset.
    Other { seed: u64, frame: u64, offset: u64 },
    /// The right stamp, and behind it wrong bytes, the first of them this one of the frame.
    Changed { at: u64 },
    /// Bytes that we did not write.
    Foreign,
}

impl Content {
    pub fn new(kind: FramesContent, seed: u64) -> Self {
        let mut base = Box::new([0; BLOCK_BYTES]);
        for (word, index) in base.chunks_exact_mut(8).zip(0..) {
            word.copy_from_slice(&mix(mix(seed).wrapping_add(index)).to_le_bytes());
        }
        Self { kind, seed, base }
    }

    /// Fills `bytes` with what the frame holds from `offset` on, which is a multiple of the block.
    pub fn fill(&self, frame: u64, offset: u64, bytes: &mut [u8]) {
        wide::run(
            #[inline(always)]
            || {
                for (block, at) in bytes.chunks_mut(BLOCK_BYTES).zip((offset..).step_by(BLOCK_BYTES)) {
                    self.fill_block(frame, at, block);
                }
            },
        );
    }

    /// As [`Self::fill`], for a buffer of which is known what it holds already.
    pub fn fill_again(&self, frame: u64, offset: u64, bytes: &mut [u8], holds: &mut Option<Holds>) {
        let wanted = Holds { phase: offset % PERIOD_BYTES, bytes: bytes.len() };
        match holds {
            Some(there) if there.phase == wanted.phase && there.bytes >= wanted.bytes => {
                let stamps = if self.kind == FramesContent::Same { 1 } else { usize::MAX };
                for (block, at) in bytes.chunks_mut(BLOCK_BYTES).zip((offset..).step_by(BLOCK_BYTES)).take(stamps) {
                    self.stamp_block(frame, at, block);
                }
            }
            _ => {
                self.fill(frame, offset, bytes);
                *holds = (self.kind != FramesContent::Unique).then_some(wanted);
            }
        }
    }

    #[inline(always)]
    fn stamp_block(&self, frame: u64, offset: u64, block: &mut [u8]) {
        let length = block.len().min(STAMP_BYTES);
        block[..length].copy_from_slice(&self.stamp(frame, offset)[..length]);
    }

    #[inline(always)]
    fn fill_block(&self, frame: u64, offset: u64, block: &mut [u8]) {
        let key = self.key(frame, offset);
        if let Ok(whole) = <&mut [u8; BLOCK_BYTES]>::try_from(&mut *block) {
            for (index, place) in whole.chunks_exact_mut(8).enumerate() {
                place.copy_from_slice(&(word(&self.base, index) ^ key).to_ne_bytes());
            }
        } else {
            let key = key.to_ne_bytes();
            for (index, byte) in block.iter_mut().enumerate() {
                *byte = self.base[index] ^ key[index % 8];
            }
        }
        self.stamp_block(frame, offset, block);
    }

    /// Compares what was read from `offset` on, which is a multiple of the block.
    pub fn check(&self, verify: Verify, frame: u64, offset: u64, bytes: &[u8]) -> Result<(), Mismatch> {
        let wrong = match verify {
            Verify::None => None,
            Verify::Blocks => (offset..).step_by(BLOCK_BYTES).zip(bytes.chunks(BLOCK_BYTES)).find(|(at, block)| {
                let length = block.len().min(STAMP_BYTES);
                block[..length] != self.stamp(frame, *at)[..length]
            }),
            Verify::Full => wide::run(
                #[inline(always)]
                || {
                    let mut blocks = (offset..).step_by(BLOCK_BYTES).zip(bytes.chunks(BLOCK_BYTES));
                    blocks.find(|(at, block)| !self.is_equal(frame, *at, block))
                },
            ),
        };
        wrong.map_or(Ok(()), |(at, block)| Err(Mismatch { offset: at, found: self.explain_mismatch(frame, at, block) }))
    }

    #[inline(always)]
    fn is_equal(&self, frame: u64, offset: u64, block: &[u8]) -> bool {
        let length = block.len().min(STAMP_BYTES);
        let key = self.key(frame, offset);
        let Ok(whole) = <&[u8; BLOCK_BYTES]>::try_from(block) else {
            return self.is_equal_slowly(frame, offset, block);
        };
        let mut difference = 0;
        for index in STAMP_BYTES / 8..WORDS {
            difference |= word(whole, index) ^ word(&self.base, index) ^ key;
        }
        difference == 0 && block[..length] == self.stamp(frame, offset)[..length]
    }

    fn is_equal_slowly(&self, frame: u64, offset: u64, block: &[u8]) -> bool {
        let mut expected = [0; BLOCK_BYTES];
        self.fill_block(frame, offset, &mut expected[..block.len()]);
        expected[..block.len()] == *block
    }

    fn explain_mismatch(&self, frame: u64, offset: u64, block: &[u8]) -> Found {
        let mut expected = [0; BLOCK_BYTES];
        let expected = &mut expected[..block.len()];
        self.fill_block(frame, offset, expected);
        let length = block.len().min(STAMP_BYTES);
        if block.iter().all(|byte| *byte == 0) {
            Found::Zeros
        } else if block[..length] == expected[..length] {
            let first = block.iter().zip(expected.iter()).position(|(found, expected)| found != expected);
            Found::Changed { at: offset + first.unwrap_or_default() as u64 }
        } else {
            match read_stamp(block) {
                Some((seed, frame, offset)) => Found::Other { seed, frame, offset },
                None => Found::Foreign,
            }
        }
    }

    #[inline(always)]
    fn key(&self, frame: u64, offset: u64) -> u64 {
        match self.kind {
            FramesContent::Unique => mix(mix(self.seed ^ mix(frame)) ^ offset),
            FramesContent::Stamped | FramesContent::Same => mix(mix(self.seed) ^ (offset % PERIOD_BYTES)),
        }
    }

    #[inline(always)]
    fn stamp(&self, frame: u64, offset: u64) -> [u8; STAMP_BYTES] {
        let (frame, offset) = match self.kind {
            FramesContent::Same if offset > 0 => (u64::MAX, offset % PERIOD_BYTES),
            _ => (frame, offset),
        };
        let mut stamp = [0; STAMP_BYTES];
        stamp[..8].copy_from_slice(&MARK);
        stamp[8..16].copy_from_slice(&self.seed.to_le_bytes());
        stamp[16..24].copy_from_slice(&frame.to_le_bytes());
        stamp[24..].copy_from_slice(&offset.to_le_bytes());
        stamp
    }
}

/// Reads the stamp of a block: seed, frame and offset; `None` where it has none of ours.
pub fn read_stamp(block: &[u8]) -> Option<(u64, u64, u64)> {
    let stamp: &[u8; STAMP_BYTES] = block.get(..STAMP_BYTES)?.try_into().ok()?;
    (stamp[..8] == MARK).then(|| {
        let number = |index: usize| u64::from_le_bytes(std::array::from_fn(|byte| stamp[8 * index + byte]));
        (number(1), number(2), number(3))
    })
}

#[inline(always)]
fn word(block: &[u8; BLOCK_BYTES], index: usize) -> u64 {
    u64::from_ne_bytes(std::array::from_fn(|byte| block[8 * index + byte]))
}

/// A step of splitmix64: every bit of the result depends on every bit of the number.
pub fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests;
