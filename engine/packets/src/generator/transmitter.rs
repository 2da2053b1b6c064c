//! One port's way out: of all its flows the frames that are due, in the order in which they are due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use nicbench_protocol::FlowState;

use super::flow::Flow;
use super::times::Times;
use crate::port::{Clock, Frame, MAXIMUM_BURST, Port};
use crate::signature::{Signature, Signer};
use crate::wire::ethernet::FCS_BYTES;

/// Frames that are handed to a port at once, at most.
const BURST: usize = 32;
/// An idle port is flushed this often.
const FLUSH_S: f64 = 20e-6;

/// When a flow's next frame is due; void where the flow has another plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    tick: u64,
    flow: u32,
    plan: u32,
}

/// A frame that the port has not taken yet.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    flow: u32,
    number: u64,
    due: u64,
}

/// What one port has to send.
#[derive(Debug)]
pub struct Transmitter {
    due: BinaryHeap<Reverse<Due>>,
    waiting: Vec<Waiting>,
    /// Of the first that wait: written, but for the time in their signature.
    frames: [Frame; MAXIMUM_BURST],
    written: usize,
    /// When the port last took less than was due; `None` where it took everything.
    refused_at: Option<u64>,
    next_flush: u64,
    pub sent: u64,
    /// With FCS.
    pub sent_bytes: u64,
}

impl Default for Transmitter {
    fn default() -> Self {
        Self {
            due: BinaryHeap::new(),
            waiting: Vec::with_capacity(BURST),
            frames: [Frame::empty(); MAXIMUM_BURST],
            written: 0,
            refused_at: None,
            next_flush: 0,
            sent: 0,
            sent_bytes: 0,
        }
    }
}

impl Transmitter {
    /// Plans the next frame of a flow.
    pub fn plan(&mut self, number: u32, flow: &Flow) {
        if let Some(tick) = flow.next_tick() {
            self.due.push(Reverse(Due { tick, flow: number, plan: flow.plan }));
        }
    }

    /// A flow was stopped: its frames that wait are not sent.
    pub fn forget(&mut self, number: u32, port: &mut dyn Port) {
        let (mut kept, mut written) = (0, 0);
        for place in 0..self.waiting.len() {
            let is_written = place < self.written;
            if self.waiting[place].flow == number {
                if is_written {
                    port.free(&self.frames[place..=place]);
                }
                continue;
            }
            self.waiting[kept] = self.waiting[place];
            self.frames[kept] = self.frames[place];
            kept += 1;
            written += usize::from(is_written);
        }
        self.waiting.truncate(kept);
        self.written = written;
    }

    /// The tick of the next frame, where the port is not full; a plan that is void may come earlier.
    pub fn next_tick(&self) -> Option<u64> {
        let next = self.due.peek().map(|Reverse(due)| due.tick);
        if self.waiting.is_empty() { next } else { None }
    }

    /// Whether the port took less than was due.
    pub fn is_refused(&self) -> bool {
        self.refused_at.is_some()
    }

    /// Offers what is due to the port; notes in `ended` which flows have sent all. Returns how many frames went.
    #[inline]
    pub fn send(
        &mut self,
        port: &mut dyn Port,
        flows: &mut [Flow],
        (signer, clock, times): (&Signer, &dyn Clock, &Times),
        ended: &mut Vec<u32>,
    ) -> usize {
        let now = clock.now();
        self.gather(flows, now, self.refused_at.filter(|_| port.facts().lossless), ended);
        if self.waiting.is_empty() {
            self.refused_at = None;
            if now >= self.next_flush {
                self.next_flush = now + (FLUSH_S * clock.hz()) as u64;
                port.flush();
            }
            return 0;
        }
        self.write(port, flows, signer, times.since_begin_ns(now));
        let accepted = if self.written == 0 { 0 } else { port.send(&self.frames[..self.written]) };
        self.refused_at = (accepted < self.waiting.len()).then_some(now);
        if accepted == 0 {
            port.flush();
            return 0;
        }
        self.note(accepted, flows, now, ended);
        accepted
    }

    /// Takes what is due, the earliest first.
    fn gather(&mut self, flows: &mut [Flow], now: u64, refused_at: Option<u64>, ended: &mut Vec<u32>) {
        while self.waiting.len() < BURST {
            let Some(mut top) = self.due.peek_mut() else { return };
            let Reverse(due) = &mut *top;
            if due.tick > now {
                return;
            }
            let Some(flow) = flows.get_mut(due.flow as usize).filter(|flow| flow.plan == due.plan) else {
                PeekMut::pop(top);
                continue;
            };
            flow.give_up_late(now, refused_at);
            if let Some(tick) = flow.next_tick().filter(|tick| *tick <= now) {
                self.waiting.push(Waiting { flow: due.flow, number: flow.take(), due: tick });
            }
            match flow.next_tick() {
                Some(tick) => due.tick = tick,
                None => {
                    let number = PeekMut::pop(top).0.flow;
                    end_if_finished(flow, number, ended);
                }
            }
        }
    }

    /// Writes the frames that wait, as far as the port has buffers. Those that were written before get a new time.
    fn write(&mut self, port: &mut dyn Port, flows: &[Flow], signer: &Signer, time_ns: u64) {
        let words = |flow: &Flow, number: u64| {
            let signature = Signature { flow: flow.signature_number, sequence: number as u32, time_ns };
            if flow.program.is_signed() { signer.words(signature) } else { [0; 2] }
        };
        for (frame, waiting) in self.frames[..self.written].iter_mut().zip(&self.waiting) {
            let flow = &flows[waiting.flow as usize];
            if flow.program.is_signed() {
                flow.program.finish(frame.bytes_mut(), words(flow, waiting.number));
            }
        }
        let fresh = &self.waiting[self.written..];
        let length = |waiting: &Waiting| flows[waiting.flow as usize].program.length(waiting.number);
        let Some(longest) = fresh.iter().map(length).max() else { return };
        let frames = &mut self.frames[self.written..self.waiting.len()];
        let allocated = port.allocate(frames, longest);
        for (frame, waiting) in frames[..allocated].iter_mut().zip(fresh) {
            let flow = &flows[waiting.flow as usize];
            frame.shorten(length(waiting));
            flow.program.write(waiting.number, frame.bytes_mut());
            flow.program.finish(frame.bytes_mut(), words(flow, waiting.number));
        }
        self.written += allocated;
    }

    /// The port took the first of those that wait.
    fn note(&mut self, accepted: usize, flows: &mut [Flow], now: u64, ended: &mut Vec<u32>) {
        for waiting in self.waiting.drain(..accepted) {
            let flow = &mut flows[waiting.flow as usize];
            let bytes = flow.program.length(waiting.number) as u64 + u64::from(FCS_BYTES);
            flow.note_sent(bytes, waiting.due, now);
            self.sent_bytes += bytes;
            end_if_finished(flow, waiting.flow, ended);
        }
        self.sent += accepted as u64;
        self.frames.copy_within(accepted..self.written, 0);
        self.written -= accepted;
    }

    /// Gives back what the port has not taken.
    pub fn finish(&mut self, port: &mut dyn Port) {
        port.free(&self.frames[..self.written]);
        self.written = 0;
        self.waiting.clear();
        self.due.clear();
    }
}

fn end_if_finished(flow: &mut Flow, number: u32, ended: &mut Vec<u32>) {
    // A flow may be paused with its last frames in hand: it ends all the same when they have gone.
    if flow.state != FlowState::Stopped && flow.is_finished() {
        flow.stop();
        ended.push(number);
    }
}
