//! Counts frames that are lost, late, reordered, corrupted, misdirected or foreign: they are rare, and their code is
//! kept off the hot path.

use super::{Analyser, elapsed};
use crate::flows::Arrival;
use crate::signature::{Owner, SIGNATURE_BYTES, Signature, TIME_MASK};
use crate::template::signature_offset;

impl Analyser {
    /// Counts a frame that is not the next one of its flow. Returns whether it is ahead of all before it; `None` where
    /// it is not counted as received.
    #[cold]
    pub(super) fn count_irregular(
        &mut self,
        index: usize,
        (port, frame): (usize, &[u8]),
        signature: Signature,
        arrival: Arrival,
        now_ns: u64,
    ) -> Option<bool> {
        let tally = &mut self.streams[index];
        match arrival {
            Arrival::Next => Some(true),
            Arrival::Ahead(jumped) => {
                tally.jump(jumped, sent_ns(signature, now_ns));
                if let Some(capture) = &mut self.capture {
                    capture.trigger(signature, jumped);
                }
                Some(true)
            }
            Arrival::BehindBroken => {
                tally.missing -= 1;
                tally.unpaired += 1;
                Some(false)
            }
            Arrival::Reordered(overtaken) => {
                tally.missing -= 1;
                tally.reordered += 1;
                tally.reordering.add(overtaken);
                self.flows.count(signature.flow, |line| &mut line.reordered);
                Some(false)
            }
            Arrival::Duplicate if !tally.is_rewritten && !self.addresses[index].agree(frame) => {
                // No copy of what was sent: somebody took our signature for it.
                tally.corrupted_copies += 1;
                None
            }
            Arrival::Duplicate => {
                tally.duplicated += 1;
                self.flows.count(signature.flow, |line| &mut line.duplicated);
                None
            }
            Arrival::Impossible => {
                self.count_foreign(port);
                None
            }
        }
    }

    /// Counts a frame with an intact signature and other bytes that were changed. Its sequence counts as seen.
    #[cold]
    pub(super) fn count_corrupted(&mut self, index: usize, port: usize, signature: Signature, now_ns: u64) {
        if self.after_drain {
            return; // It stays lost.
        }
        let arrival = self.flows.observe_broken(signature.flow, signature.sequence);
        let tally = &mut self.streams[index];
        match arrival {
            Arrival::Duplicate => return tally.corrupted_copies += 1,
            Arrival::Impossible => return self.count_foreign(port),
            Arrival::Ahead(jumped) => tally.jump(jumped, sent_ns(signature, now_ns)),
            Arrival::BehindBroken | Arrival::Reordered(_) => tally.missing -= 1,
            Arrival::Next => {}
        }
        tally.corrupted += 1;
        self.flows.count(signature.flow, |line| &mut line.corrupted);
    }

    #[cold]
    pub(super) fn count_late(&mut self, index: usize, port: usize, signature: Signature) {
        match self.flows.observe(signature.flow, signature.sequence) {
            Arrival::Duplicate => {}
            Arrival::Impossible => self.count_foreign(port),
            _ => self.streams[index].late += 1,
        }
    }

    /// Notes of the first frame that a stream received whether its addresses are those that were sent.
    #[cold]
    pub(super) fn note_addresses(&mut self, index: usize, frame: &[u8]) {
        self.streams[index].is_rewritten = !self.addresses[index].agree(frame);
    }

    #[cold]
    fn count_stale(&mut self, port: usize) {
        if let Some(tally) = self.ports.get_mut(port).filter(|_| !self.after_drain) {
            tally.stale += 1;
        }
    }

    #[cold]
    pub(super) fn count_foreign(&mut self, port: usize) {
        if let Some(tally) = self.ports.get_mut(port).filter(|_| !self.after_drain) {
            tally.foreign += 1;
        }
    }

    /// Counts a frame of this trial at a port that is not its stream's: no proof that the stream's own port got it.
    #[cold]
    pub(super) fn count_misdirected(&mut self, port: usize) {
        if let Some(tally) = self.ports.get_mut(port).filter(|_| !self.after_drain) {
            tally.misdirected += 1;
        }
    }

    /// Judges a frame that has no signature where the last one was: it is in another place, of another trial, broken,
    /// or none of ours.
    #[cold]
    #[inline(never)]
    pub(super) fn analyse_irregular(&mut self, port: usize, frame: &[u8], now_ns: u64) {
        let owner = |offset: usize| {
            let payload = frame.get(offset..).and_then(|rest| rest.first_chunk::<SIGNATURE_BYTES>());
            payload.map_or(Owner::Unknown, |payload| self.signer.read(payload))
        };
        // Where the headers lead, where this trial's streams put theirs, and, if the headers are broken, where they
        // were.
        let led = signature_offset(frame).into_iter().chain(self.other_searches.offsets(frame));
        let places = led.chain(self.offsets.iter().copied());
        let read = places.map(|offset| (offset, owner(offset))).find(|(_, owner)| *owner != Owner::Unknown);
        match read {
            Some((offset, Owner::Ours(signature))) => {
                self.offset = offset;
                self.analyse_ours(port, frame, signature, now_ns);
            }
            Some(_) => self.count_stale(port),
            None => match self.recognise(port, frame, now_ns) {
                Some(signature) => self.analyse_ours(port, frame, signature, now_ns),
                None => self.analyse_unknown(port, frame),
            },
        }
    }

    /// What a frame that bears no signature would say of itself: its place in the stream, and when it was due.
    fn recognise(&self, port: usize, frame: &[u8], now_ns: u64) -> Option<Signature> {
        self.expected.iter().filter(|stream| stream.receive_port == port).find_map(|stream| {
            let captured = stream.template.captured().filter(|captured| captured.is_unsigned())?;
            let flow = stream.first_flow;
            let (position, due_ns) = captured.recognise(frame, self.flows.line(flow)?.next)?;
            Some(Signature { flow, sequence: position as u32, time_ns: due_ns.unwrap_or(now_ns) & TIME_MASK })
        })
    }

    fn analyse_unknown(&mut self, port: usize, frame: &[u8]) {
        match self.stream_addressed(port, frame) {
            None => self.count_foreign(port),
            Some(_) if self.after_drain => {}
            Some(index) => {
                self.streams[index].unattributed += 1;
                if let Some(tally) = self.ports.get_mut(port) {
                    tally.corrupted_unattributed += 1;
                }
            }
        }
    }
}

/// When it was sent, since the trial began; the signature alone knows no more than the last 18 minutes.
fn sent_ns(signature: Signature, now_ns: u64) -> u64 {
    match elapsed(signature.time_ns, now_ns) {
        Ok(age_ns) => now_ns.saturating_sub(age_ns),
        Err(early_ns) => now_ns + early_ns,
    }
}
