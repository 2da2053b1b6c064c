//! `Port` over an `ethdev` of DPDK: one worker's queues, whole bursts at a time.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::device::{Accepted, Device};
use super::ffi::{self, RawQueue};
use super::parts::PortPart;
use crate::port::{Frame, MAXIMUM_BURST, NO_STAMP, Port, PortCounters, PortFacts};

/// A socket's 32-bit count of completions is read at least this often, in frames accepted.
const COMPLETIONS_READ_EVERY: u64 = 1 << 24;

/// What one worker has of a port. The first worker has the device too, which must go last.
pub(super) struct DpdkPort {
    queue: *mut RawQueue,
    part: PortPart,
    facts: PortFacts,
    accepted: u64,
    shared: Arc<Accepted>,
    completions_read_at: u64,
    sample: Option<Sample>,
    device: Option<Device>,
}

/// A frame whose time of leaving the card was asked for.
#[derive(Debug, Clone, Copy)]
struct Sample {
    sent: u64,
    /// How often the card was asked since.
    asked: u32,
}

/// So many times: at one a millisecond, ten times what any card needs.
const SAMPLE_PATIENCE: u32 = 100;

// SAFETY: the shim's structure belongs to no thread; whoever has this port has its queues alone.
unsafe impl Send for DpdkPort {}

impl DpdkPort {
    /// `queue` and `shared` are of `part`'s queues, and of the device.
    pub fn new((queue, shared): (*mut RawQueue, Arc<Accepted>), part: PortPart, facts: PortFacts) -> Self {
        Self { queue, part, facts, accepted: 0, shared, completions_read_at: 0, sample: None, device: None }
    }

    /// Makes this the part that reads the counters and closes the port.
    pub fn with_device(self, device: Device) -> Self {
        Self { device: Some(device), ..self }
    }
}

impl Port for DpdkPort {
    fn facts(&self) -> &PortFacts {
        &self.facts
    }

    fn allocate(&mut self, frames: &mut [Frame], length: usize) -> usize {
        self.allocate_prefilled(frames, length, 0)
    }

    fn allocate_prefilled(&mut self, frames: &mut [Frame], length: usize, tag: u64) -> usize {
        let Ok(length) = u32::try_from(length) else { return 0 };
        // SAFETY: the queue is open, and the shim fills at most `burst` places of `frames`.
        unsafe { ffi::nb_allocate(self.queue, frames.as_mut_ptr(), burst(frames), length, tag) as usize }
    }

    fn send(&mut self, frames: &[Frame]) -> usize {
        if self.part.transmit.is_none() {
            return 0;
        }
        // SAFETY: the queue is open; the frames came from a port of this process and are still the caller's, as `Port`
        // asks.
        let accepted = unsafe { ffi::nb_send(self.queue, frames.as_ptr(), burst(frames)) };
        self.count(accepted)
    }

    fn send_sampled(&mut self, frames: &[Frame], sent: u64) -> usize {
        let is_wanted =
            self.sample.is_none() && self.facts.stamps.as_ref().is_some_and(|stamps| stamps.transmit_samples);
        if !is_wanted || self.part.transmit.is_none() {
            return self.send(frames);
        }
        let mut sampled = 0;
        // SAFETY: as in `send`, and a place for the answer.
        let accepted = unsafe { ffi::nb_send_sampled(self.queue, frames.as_ptr(), burst(frames), &raw mut sampled) };
        self.sample = (sampled != 0).then_some(Sample { sent, asked: 0 });
        self.count(accepted)
    }

    fn transmit_sample(&mut self) -> Option<(u64, u64)> {
        let sample = self.sample.as_mut()?;
        let mut stamp = NO_STAMP;
        // SAFETY: the queue is open, and there is a place for the stamp.
        if unsafe { ffi::nb_transmit_stamp(self.queue, &raw mut stamp) } != 0 {
            sample.asked += 1;
            if sample.asked < SAMPLE_PATIENCE {
                return None;
            }
            stamp = NO_STAMP;
        }
        let sent = sample.sent;
        self.end_sample();
        Some((sent, stamp))
    }

    fn read_clock(&mut self) -> Option<u64> {
        let mut count = 0;
        // SAFETY: the queue is open, and there is a place for the count.
        (unsafe { ffi::nb_clock(self.queue, &raw mut count) } == 0).then_some(count)
    }

    fn stamps(&mut self, frames: &[Frame], stamps: &mut [u64]) {
        let count = burst(frames).min(stamps.len() as u32);
        // SAFETY: the queue is open; the frames were received here and are still the caller's, as `Port` asks; there
        // are places for so many stamps.
        unsafe { ffi::nb_stamps(self.queue, frames.as_ptr(), stamps.as_mut_ptr(), count) };
    }

    fn receive(&mut self, frames: &mut [Frame]) -> usize {
        if self.part.receive.is_none() {
            return 0;
        }
        // SAFETY: the queue is open, and the shim fills at most `burst` places of `frames`.
        unsafe { ffi::nb_receive(self.queue, frames.as_mut_ptr(), burst(frames)) as usize }
    }

    fn free(&mut self, frames: &[Frame]) {
        for part in frames.chunks(MAXIMUM_BURST) {
            // SAFETY: the frames came from a port of this process and are still the caller's, as `Port` asks.
            unsafe { ffi::nb_free(part.as_ptr(), burst(part)) };
        }
    }

    fn flush(&mut self) {
        if self.part.transmit.is_some() {
            // SAFETY: the queue is open.
            unsafe { ffi::nb_flush(self.queue) };
        }
    }

    fn counters(&mut self) -> PortCounters {
        self.device.as_mut().map(Device::counters).unwrap_or_default()
    }

    fn keep_up(&mut self) {
        if let Some(device) = &mut self.device {
            device.read_completions();
        }
    }
}

impl DpdkPort {
    /// Counts the frames that the port took.
    #[inline]
    fn count(&mut self, accepted: u32) -> usize {
        self.accepted += u64::from(accepted);
        self.shared.0.store(self.accepted, Ordering::Release);
        if self.accepted - self.completions_read_at >= COMPLETIONS_READ_EVERY {
            self.completions_read_at = self.accepted;
            self.keep_up();
        }
        accepted as usize
    }

    /// The card's place for such a stamp is free again.
    fn end_sample(&mut self) {
        if self.sample.take().is_some() {
            // SAFETY: the queue is open.
            unsafe { ffi::nb_sample_done(self.queue) };
        }
    }
}

fn burst(frames: &[Frame]) -> u32 {
    frames.len().min(MAXIMUM_BURST) as u32
}
