//! Forwarding without faults: receive a burst, swap addresses where asked, send it. Nothing else is in this loop.

use nicbench_protocol::{DirectionStats, ReflectMode, WhenFull};

use crate::port::{Frame, MAXIMUM_BURST, Port};
use crate::wire::ethernet::swap_addresses;

/// One direction through the forwarder, without faults.
#[derive(Debug)]
pub struct Plain {
    pub from: usize,
    pub to: usize,
    /// Received and not yet taken by the transmit ring, from `first` on: only where frames wait.
    waiting: [Frame; MAXIMUM_BURST],
    first: usize,
    count: usize,
    received: u64,
    sent: u64,
    dropped: u64,
}

impl Plain {
    pub fn new(from: usize, to: usize) -> Self {
        let waiting = [Frame::empty(); MAXIMUM_BURST];
        Self { from, to, waiting, first: 0, count: 0, received: 0, sent: 0, dropped: 0 }
    }

    /// Moves one burst of at most `burst` frames; returns how many moved.
    #[inline]
    pub fn step(&mut self, ports: &mut [Box<dyn Port>], mode: ReflectMode, burst: usize, when_full: WhenFull) -> usize {
        if self.first == self.count {
            self.first = 0;
            self.count = ports[self.from].receive(&mut self.waiting[..burst]);
            if self.count == 0 {
                return 0;
            }
            self.received += self.count as u64;
            change(&mut self.waiting[..self.count], mode);
        }
        let accepted = ports[self.to].send(&self.waiting[self.first..self.count]);
        self.sent += accepted as u64;
        let moved = if self.first == 0 { self.count } else { accepted };
        self.first += accepted;
        if self.first < self.count && when_full == WhenFull::Drop {
            ports[self.to].free(&self.waiting[self.first..self.count]);
            self.dropped += (self.count - self.first) as u64;
            self.first = self.count;
        }
        moved
    }

    /// Gives the frames that wait back to their port.
    pub fn finish(&mut self, ports: &mut [Box<dyn Port>]) {
        ports[self.to].free(&self.waiting[self.first..self.count]);
        self.dropped += (self.count - self.first) as u64;
        self.first = self.count;
    }

    pub fn stats(&self) -> DirectionStats {
        DirectionStats {
            from_port: self.from,
            to_port: self.to,
            received: self.received,
            sent: self.sent,
            dropped_transmit_full: self.dropped,
            under_way: (self.count - self.first) as u64,
            ..DirectionStats::default()
        }
    }
}

/// Changes frames as `mode` says.
#[inline(always)]
pub fn change(frames: &mut [Frame], mode: ReflectMode) {
    if mode == ReflectMode::MacSwap {
        frames.iter_mut().for_each(|frame| swap_addresses(frame.bytes_mut()));
    }
}
