//! Forwarding with faults: every frame goes the faulty path, and its fate is noted where a log is kept.
//!
//! A frame that the path lets go is never lost here: what the transmit ring refuses is offered again, and nothing more
//! is received until it is taken.

use nicbench_protocol::{DirectionStats, Faults, ReflectMode};

use super::log::{Fate, FateLog, Record};
use super::plain::change;
use crate::faults::{Buffers, Departure, FaultyPath, PS_PER_NS, RateLimit, SignaturePlace};
use crate::port::{Clock, Frame, MAXIMUM_BURST, Port};
use crate::signature::{Owner, SIGNATURE_BYTES, Signer};

/// What is noted of a frame when it is received.
#[derive(Debug, Clone, Copy)]
struct Note {
    owner: Owner,
    received_ns: u64,
}

/// The log and what is needed to read whose a frame is.
#[derive(Debug)]
pub struct Journal {
    pub signer: Signer,
    pub trial: u32,
    pub log: FateLog,
}

/// One direction through the forwarder, with faults.
#[derive(Debug)]
pub struct Faulty {
    pub from: usize,
    pub to: usize,
    direction: u8,
    path: FaultyPath<Note>,
    /// The frames that leave, in order, and that the transmit ring has not taken yet.
    leaving: Vec<Departure<Note>>,
    received: u64,
    sent: u64,
    dropped_at_end: u64,
}

/// What one turn of the loop works with.
pub struct Turn<'a> {
    pub ports: &'a mut [Box<dyn Port>],
    pub journal: &'a mut Option<Journal>,
    pub mode: ReflectMode,
    pub burst: usize,
    pub clock: &'a dyn Clock,
    /// The tick at which the loop began.
    pub origin: u64,
}

impl Turn<'_> {
    /// The time since the loop began.
    fn now_ns(&self) -> u64 {
        self.clock.nanoseconds(self.clock.now() - self.origin)
    }
}

impl Faulty {
    pub fn new(from: usize, to: usize, direction: u8, faults: &Faults) -> Self {
        let rate = faults.rate_frames_per_s;
        let rate_limit = match (rate, faults.rate_queue_frames) {
            (None, _) => RateLimit::Unlimited,
            (Some(rate), None) => RateLimit::bucket(rate, faults.rate_burst_frames),
            (Some(rate), Some(frames)) => RateLimit::queue(rate, frames),
        };
        let path = FaultyPath::new(faults.clone(), rate_limit);
        Self { from, to, direction, path, leaving: Vec::new(), received: 0, sent: 0, dropped_at_end: 0 }
    }

    /// Receives a burst and sends what is due; returns how many frames moved.
    pub fn step(&mut self, turn: &mut Turn<'_>, frames: &mut [Frame; MAXIMUM_BURST]) -> usize {
        if !self.leaving.is_empty() {
            let sent = self.send(turn, turn.now_ns());
            if !self.leaving.is_empty() {
                return sent;
            }
        }
        let count = turn.ports[self.from].receive(&mut frames[..turn.burst]);
        self.received += count as u64;
        // Read after they were received: no frame may seem to have come before it did, or its delay would be short.
        let now_ns = turn.now_ns();
        change(&mut frames[..count], turn.mode);
        for frame in &frames[..count] {
            self.take(turn, *frame, now_ns);
        }
        let now_ps = now_ns * PS_PER_NS;
        self.path.release_overdue(now_ps);
        while self.leaving.len() < turn.burst {
            let Some(departure) = self.path.next_departure(now_ps) else { break };
            self.leaving.push(departure);
        }
        count + if self.leaving.is_empty() { 0 } else { self.send(turn, now_ns) }
    }

    fn take(&mut self, turn: &mut Turn<'_>, frame: Frame, now_ns: u64) {
        let knows_owners = turn.journal.is_some();
        let (owner, place) = match turn.journal {
            Some(journal) => owner(frame.bytes(), &journal.signer),
            // Nobody knows whose it is, and it is not asked before a fault wants to know.
            None => (Owner::Unknown, None),
        };
        let place = |bytes: &[u8]| place.or_else(|| if knows_owners { None } else { SignaturePlace::usual(bytes) });
        let note = Note { owner, received_ns: now_ns };
        let mut buffers = PortBuffers(&mut *turn.ports[self.to]);
        if let Err(reason) = self.path.forward(now_ns * PS_PER_NS, frame, note, &mut buffers, place) {
            self.note(turn.journal, reason.into(), note, None);
        }
    }

    fn send(&mut self, turn: &mut Turn<'_>, now_ns: u64) -> usize {
        let mut offered = [Frame::empty(); MAXIMUM_BURST];
        let count = self.leaving.len().min(MAXIMUM_BURST);
        offered.iter_mut().zip(&self.leaving).for_each(|(slot, departure)| *slot = departure.frame);
        let accepted = turn.ports[self.to].send(&offered[..count]);
        self.sent += accepted as u64;
        for index in 0..accepted {
            let Departure { note, change, .. } = self.leaving[index];
            self.note(turn.journal, change.into(), note, Some(now_ns));
        }
        self.leaving.drain(..accepted);
        accepted
    }

    fn note(&self, journal: &mut Option<Journal>, fate: Fate, note: Note, sent_ns: Option<u64>) {
        let Some(journal) = journal else { return };
        let Note { owner, received_ns } = note;
        journal.log.add(Record { trial: journal.trial, direction: self.direction, fate, owner, received_ns, sent_ns });
    }

    /// Another trial begins, or none any more: what is under way is dropped, and said to be.
    pub fn begin_trial(&mut self, ports: &mut [Box<dyn Port>], journal: &mut Option<Journal>, trial: u32) {
        let leaving = self.leaving.drain(..).map(|departure| (departure.frame, departure.note));
        let rest: Vec<(Frame, Note)> = leaving.chain(self.path.begin_trial(trial, self.direction.into())).collect();
        for (frame, note) in rest {
            ports[self.to].free(&[frame]);
            self.dropped_at_end += 1;
            self.note(journal, Fate::DroppedAtEnd, note, None);
        }
    }

    pub fn stats(&self) -> DirectionStats {
        let counts = self.path.counts();
        DirectionStats {
            from_port: self.from,
            to_port: self.to,
            received: self.received,
            sent: self.sent,
            dropped_transmit_full: 0,
            lost: counts.lost,
            dropped_rate: counts.dropped_rate,
            dropped_held_full: counts.dropped_held_full,
            dropped_at_end: self.dropped_at_end,
            duplicated: counts.duplicated,
            reordered: counts.reordered,
            corrupted: counts.corrupted,
            under_way: (self.path.under_way() + self.leaving.len()) as u64,
        }
    }
}

/// Finds out which trial sent a frame, by its signature, and where that is.
fn owner(bytes: &[u8], signer: &Signer) -> (Owner, Option<SignaturePlace>) {
    let read = |place: SignaturePlace| {
        let signature = bytes.get(place.signature..)?.first_chunk::<SIGNATURE_BYTES>()?;
        Some((signer.read(signature), Some(place))).filter(|(owner, _)| *owner != Owner::Unknown)
    };
    SignaturePlace::all(bytes).find_map(read).unwrap_or((Owner::Unknown, None))
}

/// The buffers of the port that sends.
struct PortBuffers<'a>(&'a mut dyn Port);

impl Buffers for PortBuffers<'_> {
    fn copy(&mut self, frame: &Frame) -> Option<Frame> {
        let mut copy = [Frame::empty()];
        if self.0.allocate(&mut copy, frame.bytes().len()) == 0 {
            return None;
        }
        copy[0].bytes_mut().copy_from_slice(frame.bytes());
        Some(copy[0])
    }

    fn give(&mut self, frame: &Frame) {
        self.0.free(&[*frame]);
    }
}
