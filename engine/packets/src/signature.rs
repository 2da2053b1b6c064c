//! The signature: 16 bytes at the front of each payload that say whose frame it is and check themselves.
//!
//! Layout, little endian: check (32 bits), flow (24), time bits 32..40 (8), sequence (32), time bits 0..32 (32).
//! The check is a keyed mix of the other 12 bytes, XORed with a mark of the trial. The mark can be undone, so a frame
//! of an earlier trial is recognised in constant time; a flipped bit anywhere gives a random mark instead.

/// Bytes of a signature.
pub const SIGNATURE_BYTES: usize = 16;

/// Flows are numbered in 24 bits.
pub const MAXIMUM_FLOWS: u64 = 1 << 24;

/// Times are kept in 40 bits.
pub const TIME_MASK: u64 = (1 << 40) - 1;

/// A frame arrives at most so long before it was sent, 69 s by clocks that disagree; ages are read up to 1030 s.
pub const EARLIEST_NS: u64 = 1 << 36;

/// A trial this much older than the present one is no longer recognised: its frames are long gone, and a broken
/// signature looks like one of so many trials in one case of four million.
const EARLIER_TRIALS: u32 = 1 << 10;

/// Numbers from here on are of learning frames between trials: to every trial they are earlier.
const LEARNING: u32 = 1 << 30;

const MARK_FACTOR: u32 = 0x9E37_79B1;

/// What a valid signature says of its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature {
    pub flow: u32,
    /// The lower 32 bits of the flow's sequence.
    pub sequence: u32,
    /// Nanoseconds since the trial began, 40 bits.
    pub time_ns: u64,
}

/// Which trial sent a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// This trial.
    Ours(Signature),
    /// An earlier trial of this run.
    EarlierTrial,
    /// No trial of this run, or the signature is broken.
    Unknown,
}

/// Writes and checks the signatures of one trial.
#[derive(Debug, Clone, Copy)]
pub struct Signer {
    first_key: u64,
    second_key: u64,
    trial: u32,
    mark: u32,
}

impl Signer {
    pub fn new(run_key: u64, trial: u32) -> Self {
        let first_key = scramble(run_key);
        let second_key = scramble(first_key ^ 0x6E69_6362_656E_6368);
        Self { first_key, second_key, trial, mark: mark_of(trial) }
    }

    /// The two keys and the mark of the trial, for programs in the kernel.
    pub fn keys(&self) -> (u64, u64, u32) {
        (self.first_key, self.second_key, self.mark)
    }

    /// Writes the signature into the first 16 bytes of `payload`.
    #[inline]
    pub fn write(&self, payload: &mut [u8; SIGNATURE_BYTES], signature: Signature) {
        let [front, lower] = self.words(signature);
        payload[..8].copy_from_slice(&front.to_le_bytes());
        payload[8..].copy_from_slice(&lower.to_le_bytes());
    }

    /// The signature as two little-endian words.
    #[inline(always)]
    pub fn words(&self, signature: Signature) -> [u64; 2] {
        let time = signature.time_ns & TIME_MASK;
        let upper = (signature.flow & 0x00FF_FFFF) | ((time >> 32) as u32) << 24;
        let lower = u64::from(signature.sequence) | time << 32;
        let check = self.mix(upper, lower) ^ self.mark;
        [u64::from(check) | u64::from(upper) << 32, lower]
    }

    /// The signature at the front of `payload`, if it is one of this trial. Short enough for many at once.
    #[inline(always)]
    pub fn open(&self, payload: &[u8; SIGNATURE_BYTES]) -> Option<Signature> {
        let (mark, signature) = self.parse(payload);
        (mark == self.mark).then_some(signature)
    }

    /// Reads the signature at the front of `payload`.
    #[inline]
    pub fn read(&self, payload: &[u8; SIGNATURE_BYTES]) -> Owner {
        let (mark, signature) = self.parse(payload);
        if mark == self.mark {
            return Owner::Ours(signature);
        }
        let trial = trial_of(mark);
        let is_before = trial >= 1 && trial < self.trial && self.trial - trial <= EARLIER_TRIALS;
        if is_before || trial.wrapping_sub(LEARNING) < EARLIER_TRIALS {
            return Owner::EarlierTrial;
        }
        Owner::Unknown
    }

    /// The mark of the trial that the signature would be of, and what it would say.
    #[inline(always)]
    fn parse(&self, payload: &[u8; SIGNATURE_BYTES]) -> (u32, Signature) {
        let [a, b, c, d, e, f, g, h, rest @ ..] = *payload;
        let front = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        let lower = u64::from_le_bytes(rest);
        let upper = (front >> 32) as u32;
        let time_ns = lower >> 32 | u64::from(upper >> 24) << 32;
        let signature = Signature { flow: upper & 0x00FF_FFFF, sequence: lower as u32, time_ns };
        (front as u32 ^ self.mix(upper, lower), signature)
    }

    /// Two folded multiplications (as in wyhash): every input bit reaches every output bit.
    #[inline(always)]
    fn mix(&self, upper: u32, lower: u64) -> u32 {
        let inner = fold(lower ^ self.first_key, u64::from(upper) ^ self.second_key | 1 << 63);
        let outer = fold(inner ^ self.second_key, 0xE703_7ED1_A0B4_28DB ^ u64::from(upper) << 32);
        (outer ^ outer >> 32) as u32
    }
}

#[inline(always)]
fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    product as u64 ^ (product >> 64) as u64
}

/// SplitMix64's finaliser.
pub fn scramble(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

/// A bijection on 32 bits, so that marks of neighbouring trials differ in half of their bits.
fn mark_of(trial: u32) -> u32 {
    let mixed = trial.wrapping_mul(MARK_FACTOR);
    (mixed ^ mixed >> 16).wrapping_mul(MARK_FACTOR)
}

/// The inverse of [`mark_of`].
fn trial_of(mark: u32) -> u32 {
    let mixed = mark.wrapping_mul(MARK_INVERSE);
    (mixed ^ mixed >> 16).wrapping_mul(MARK_INVERSE)
}

const MARK_INVERSE: u32 = inverse(MARK_FACTOR);

/// The inverse of an odd number modulo 2^32, by Newton's iteration (each step doubles the correct bits).
const fn inverse(odd: u32) -> u32 {
    let mut result = odd;
    let mut step = 0;
    while step < 5 {
        result = result.wrapping_mul(2u32.wrapping_sub(odd.wrapping_mul(result)));
        step += 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: Signature = Signature { flow: 0x00AB_CDEF, sequence: 0xFFFF_FFFE, time_ns: 0xFE_DCBA_9876 };

    fn written(run_key: u64, trial: u32, signature: Signature) -> [u8; SIGNATURE_BYTES] {
        let mut payload = [0; SIGNATURE_BYTES];
        Signer::new(run_key, trial).write(&mut payload, signature);
        payload
    }

    #[test]
    fn what_is_written_is_read_back() {
        for signature in [SAMPLE, Signature { flow: 0, sequence: 0, time_ns: 0 }] {
            assert_eq!(Signer::new(7, 3).read(&written(7, 3, signature)), Owner::Ours(signature));
        }
    }

    #[test]
    fn a_flipped_bit_anywhere_breaks_the_signature() {
        let intact = written(7, 60_000, SAMPLE);
        for bit in 0..SIGNATURE_BYTES * 8 {
            let mut broken = intact;
            broken[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Signer::new(7, 60_000).read(&broken), Owner::Unknown, "bit {bit}");
        }
    }

    #[test]
    fn frames_of_earlier_trials_of_this_run_are_known_as_such() {
        for earlier in [1, 2, 99, LEARNING + 1] {
            assert_eq!(Signer::new(7, 100).read(&written(7, earlier, SAMPLE)), Owner::EarlierTrial);
        }
        assert_eq!(Signer::new(7, 100).read(&written(7, 101, SAMPLE)), Owner::Unknown);
    }

    #[test]
    fn frames_of_another_run_are_unknown() {
        assert_eq!(Signer::new(7, 100).read(&written(8, 100, SAMPLE)), Owner::Unknown);
        assert_eq!(Signer::new(7, 100).read(&[0; SIGNATURE_BYTES]), Owner::Unknown);
    }

    #[test]
    fn the_mark_of_a_trial_can_be_undone() {
        for trial in [0, 1, 2, 1000, u32::MAX] {
            assert_eq!(trial_of(mark_of(trial)), trial);
        }
    }
}
