//! Which frames of a stream are lost: what was sent and has no other fate.
//!
//! For every stream sent = received + late + corrupted + unattributed + lost. A frame whose signature is broken cannot
//! say whose it was; its addresses can, as a rule. It is counted as unattributed only where a frame is missing:
//! somebody else's frame between our addresses makes no loss undone that it cannot explain.

use super::{Analyser, StreamTally};

/// Frames of one stream that did not arrive whole and in time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Losses {
    pub lost: u64,
    /// Arrived with a broken signature.
    pub unattributed: u64,
}

impl Analyser {
    /// In the order of the streams, as `sent` is.
    pub fn losses(&self, sent: &[u64]) -> Vec<Losses> {
        let missing = |(tally, sent): (&StreamTally, &u64)| {
            let lost = sent.saturating_sub(tally.received + tally.late + tally.corrupted);
            let unattributed = lost.min(tally.unattributed);
            Losses { lost: lost - unattributed, unattributed }
        };
        let mut losses: Vec<Losses> = self.streams().iter().zip(sent).map(missing).collect();
        for (port, tally) in self.ports().iter().enumerate() {
            let here =
                || self.receive_ports().enumerate().filter(|(_, receive)| *receive == port).map(|(index, _)| index);
            let placed: u64 = here().map(|index| losses[index].unattributed).sum();
            // Streams between the same addresses: the first that misses frames gets them.
            let mut rest = tally.corrupted_unattributed.saturating_sub(placed);
            for index in here() {
                let more = rest.min(losses[index].lost);
                losses[index].lost -= more;
                losses[index].unattributed += more;
                rest -= more;
            }
        }
        losses
    }

    fn receive_ports(&self) -> impl Iterator<Item = usize> + '_ {
        self.expected.iter().map(|stream| stream.receive_port)
    }
}
