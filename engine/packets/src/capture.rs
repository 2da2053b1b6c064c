//! Received frames kept for people to look at: the first ones of a trial, or those around losses.
//!
//! Frames are copied while the trial runs and written when it is over, so memory is bounded by count and by bytes. Only
//! trials that ask for a capture pay for it.

mod file;

use std::collections::VecDeque;

use nicbench_protocol::CaptureRequest;

pub use file::{Interface, write};

use crate::signature::Signature;

/// Most frames of one capture.
pub const MAXIMUM_FRAMES: u32 = 65_536;
/// Most frames before and after a loss.
pub const MAXIMUM_AROUND: u32 = 4_096;
/// Most bytes of all frames of a capture.
const MAXIMUM_BYTES: usize = 64 << 20;

/// A frame as it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// Since the trial began.
    pub time_ns: u64,
    pub port: usize,
    pub bytes: Vec<u8>,
    /// What the frame showed, such as a gap before it.
    pub comment: Option<String>,
}

/// Frames kept for people to look at.
#[derive(Clone, Debug)]
pub struct Capture {
    kept: Vec<Captured>,
    kept_bytes: usize,
    most: usize,
    /// Frames around a jump; 0 for the first frames of a trial.
    around: usize,
    /// The last frames, which are kept if a jump follows.
    before: VecDeque<Captured>,
    after_left: usize,
    jumps: u64,
    truncated: bool,
}

impl Capture {
    pub fn new(request: &CaptureRequest) -> Self {
        let around = request.around_loss.unwrap_or(0) as usize;
        Self {
            kept: Vec::new(),
            kept_bytes: 0,
            most: request.frames.unwrap_or(MAXIMUM_FRAMES) as usize,
            around,
            before: VecDeque::with_capacity(around + 1),
            after_left: if around == 0 { usize::MAX } else { 0 },
            jumps: 0,
            truncated: false,
        }
    }

    /// How many of a trial's first frames are asked for; `None` where those around losses are.
    pub fn most_of_first(&self) -> Option<u32> {
        (self.around == 0).then_some(self.most as u32)
    }

    /// How many frames before and after each jump are asked for; 0 where the first ones of the trial are.
    pub fn around(&self) -> u32 {
        self.around as u32
    }

    /// The frames kept, in the order in which they were received.
    pub fn frames(&self) -> &[Captured] {
        &self.kept
    }

    pub fn jumps(&self) -> u64 {
        self.jumps
    }

    /// Whether something was left out that was asked for.
    pub fn is_truncated(&self) -> bool {
        self.truncated
    }

    /// Takes a frame that was received.
    pub fn push(&mut self, port: usize, bytes: &[u8], time_ns: u64) {
        if self.is_full(bytes.len()) {
            // The first frames are all that was asked for; of losses there may be more to see.
            self.truncated |= self.around > 0 && self.after_left > 0 || self.kept.len() < self.most && self.around == 0;
            return;
        }
        // The oldest frame's memory serves the newest.
        let recycled = if self.before.len() > self.around { self.before.pop_front() } else { None };
        let mut frame = recycled.unwrap_or_else(|| Captured { time_ns, port, bytes: Vec::new(), comment: None });
        (frame.time_ns, frame.port, frame.comment) = (time_ns, port, None);
        frame.bytes.clear();
        frame.bytes.extend_from_slice(bytes);
        if self.after_left > 0 {
            self.after_left -= 1;
            return self.keep(frame);
        }
        self.before.push_back(frame);
    }

    /// Keeps the frames around the one pushed last, which jumped over `jumped` sequences of its flow.
    pub fn trigger(&mut self, signature: Signature, jumped: u64) {
        if self.around == 0 {
            return;
        }
        self.jumps += 1;
        while let Some(frame) = self.before.pop_front() {
            if self.is_full(frame.bytes.len()) {
                self.truncated = true;
                return self.before.clear();
            }
            self.keep(frame);
        }
        self.after_left = self.around;
        if let Some(last) = self.kept.last_mut().filter(|last| last.comment.is_none()) {
            let Signature { flow, sequence, .. } = signature;
            last.comment = Some(format!("flow {flow}, sequence {sequence}: {jumped} missing before it"));
        }
    }

    /// Adds another receiver's frames, in the order of time.
    pub fn merge(&mut self, other: Self) {
        self.jumps += other.jumps;
        self.truncated |= other.truncated;
        self.kept.extend(other.kept);
        self.kept.sort_by_key(|frame| frame.time_ns);
        if self.kept.len() > self.most {
            self.truncated |= self.around > 0;
            self.kept.truncate(self.most);
        }
    }

    fn is_full(&self, more_bytes: usize) -> bool {
        self.kept.len() >= self.most || self.kept_bytes + more_bytes > MAXIMUM_BYTES
    }

    fn keep(&mut self, frame: Captured) {
        self.kept_bytes += frame.bytes.len();
        self.kept.push(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(frames: Option<u32>, around_loss: Option<u32>) -> Capture {
        Capture::new(&CaptureRequest { path: String::new(), frames, around_loss })
    }

    const JUMP: Signature = Signature { flow: 3, sequence: 9, time_ns: 0 };

    fn times(capture: &Capture) -> Vec<u64> {
        capture.frames().iter().map(|frame| frame.time_ns).collect()
    }

    #[test]
    fn the_first_frames_are_kept_and_no_more() {
        let mut capture = capture(Some(3), None);
        (0..10).for_each(|time_ns| capture.push(0, &[7; 60], time_ns));
        assert_eq!((times(&capture), capture.is_truncated()), (vec![0, 1, 2], false));
    }

    #[test]
    fn the_frames_around_a_jump_are_kept_and_the_jump_is_marked() {
        let mut capture = capture(None, Some(2));
        for time_ns in 0..20 {
            capture.push(1, &[time_ns as u8; 60], time_ns);
            if time_ns == 10 {
                capture.trigger(JUMP, 4);
            }
        }
        assert_eq!(times(&capture), [8, 9, 10, 11, 12]);
        let jump = &capture.frames()[2];
        assert_eq!(jump.comment.as_deref(), Some("flow 3, sequence 9: 4 missing before it"));
        assert_eq!((jump.bytes.as_slice(), capture.jumps()), (&[10; 60][..], 1));
    }

    #[test]
    fn jumps_that_follow_one_another_share_their_frames() {
        let mut capture = capture(None, Some(3));
        for time_ns in 0..20 {
            capture.push(1, &[0; 60], time_ns);
            if time_ns == 5 || time_ns == 7 {
                capture.trigger(JUMP, 1);
            }
        }
        assert_eq!(times(&capture), [2, 3, 4, 5, 6, 7, 8, 9, 10]);
    }

    #[test]
    fn a_capture_takes_no_more_memory_than_its_limit() {
        let mut capture = capture(None, Some(4));
        let jumbo = vec![1; 9000];
        for time_ns in 0..20_000 {
            capture.push(0, &jumbo, time_ns);
            capture.trigger(JUMP, 1);
        }
        assert!(capture.kept_bytes <= MAXIMUM_BYTES && capture.is_truncated());
        assert!(capture.before.len() <= 5);
    }

    #[test]
    fn two_receivers_frames_are_in_the_order_of_time() {
        let (mut one, mut two) = (capture(Some(4), None), capture(Some(4), None));
        [1, 4, 6].iter().for_each(|time_ns| one.push(0, &[0; 60], *time_ns));
        [2, 3].iter().for_each(|time_ns| two.push(0, &[0; 60], *time_ns));
        one.merge(two);
        assert_eq!(times(&one), [1, 2, 3, 4]);
    }
}
