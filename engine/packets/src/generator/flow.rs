//! One flow as its port sends it: how far it is, when it goes on, and what was sent.

use nicbench_protocol::{FlowRequest, FlowState};

use super::program::Program;
use super::schedule::Schedule;
use crate::error::EngineError;
use crate::port::PortFacts;

/// What was sent of a flow since it was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SentCounts {
    pub frames: u64,
    /// With FCS.
    pub bytes: u64,
    /// Given up because they were late: by the tester's fault, and by that of a lossless port which refused them.
    pub unsent_tester: u64,
    pub unsent_backpressure: u64,
    /// The longest time from when a frame was due until the port took it.
    pub late_ticks: u64,
    /// When the first and the last one were taken.
    pub first: Option<u64>,
    pub last: Option<u64>,
}

/// One flow's sending side.
#[derive(Debug)]
pub struct Flow {
    pub transmit_port: usize,
    pub program: Program,
    pub rate_frames_per_s: f64,
    pub delay_s: f64,
    pub is_in_bursts: bool,
    pub state: FlowState,
    /// What its frames' signatures say.
    pub signature_number: u32,
    /// Rises whenever what was planned before is void.
    pub plan: u32,
    pub sent: SentCounts,
    /// As it is at the start.
    whole_schedule: Schedule,
    schedule: Schedule,
    /// The number of the next frame.
    number: u64,
    began: u64,
    paused_at: u64,
    /// Frames that are planned, and that the port has not taken yet.
    in_hand: usize,
}

impl Flow {
    pub fn of(request: &FlowRequest, port: &PortFacts, hz: f64) -> Result<Self, EngineError> {
        let schedule = Schedule::of(request, hz)?;
        Ok(Self {
            transmit_port: request.transmit_port,
            program: Program::of(request, port)?,
            rate_frames_per_s: request.rate_frames_per_s,
            delay_s: request.delay_s,
            is_in_bursts: request.burst.is_some(),
            state: FlowState::Stopped,
            signature_number: 0,
            plan: 0,
            sent: SentCounts::default(),
            whole_schedule: schedule.clone(),
            schedule,
            number: 0,
            began: 0,
            paused_at: 0,
            in_hand: 0,
        })
    }

    /// Frames in all; `None` where it does not end by itself.
    pub fn intended(&self) -> Option<u64> {
        self.schedule.intended()
    }

    /// Begins anew at tick `now`, and `offset` ticks later than it would alone.
    pub fn start(&mut self, now: u64, offset: u64, signature_number: u32) {
        self.schedule = self.whole_schedule.clone();
        self.schedule.delay(offset);
        (self.number, self.began, self.in_hand) = (0, now, 0);
        (self.sent, self.signature_number) = (SentCounts::default(), signature_number);
        self.change(FlowState::Started);
    }

    pub fn stop(&mut self) {
        self.in_hand = 0;
        self.change(FlowState::Stopped);
    }

    pub fn pause(&mut self, now: u64) {
        self.paused_at = now;
        self.change(FlowState::Paused);
    }

    pub fn resume(&mut self, now: u64) {
        self.schedule.delay(now.saturating_sub(self.paused_at));
        self.change(FlowState::Started);
    }

    fn change(&mut self, state: FlowState) {
        self.state = state;
        self.plan = self.plan.wrapping_add(1);
    }

    /// The tick at which the next frame is due; `None` where none is left.
    #[inline]
    pub fn next_tick(&self) -> Option<u64> {
        self.schedule.next_tick().map(|tick| self.began.saturating_add(tick))
    }

    /// Gives up what is too late, where that may be. A lossless port that refused at tick `refused_at` explains what
    /// was due until then; what fell due after it is the tester's, which was away.
    #[inline]
    pub fn give_up_late(&mut self, now: u64, refused_at: Option<u64>) {
        let now = now.saturating_sub(self.began);
        if let Some(refused_at) = refused_at {
            let until = self.schedule.too_late_at(refused_at.saturating_sub(self.began));
            self.sent.unsent_backpressure += self.schedule.give_up_late(now.min(until));
        }
        self.sent.unsent_tester += self.schedule.give_up_late(now);
    }

    /// Takes the next frame in hand; returns its number.
    #[inline]
    pub fn take(&mut self) -> u64 {
        let number = self.number;
        self.number += 1;
        self.in_hand += 1;
        self.schedule.advance();
        number
    }

    /// The port took a frame of `bytes`, with FCS, that was due at tick `due`.
    #[inline]
    pub fn note_sent(&mut self, bytes: u64, due: u64, now: u64) {
        let sent = &mut self.sent;
        sent.frames += 1;
        sent.bytes += bytes;
        sent.late_ticks = sent.late_ticks.max(now.saturating_sub(due));
        sent.first = sent.first.or(Some(now));
        sent.last = Some(now);
        self.in_hand = self.in_hand.saturating_sub(1);
    }

    /// Whether it has sent, or given up, everything.
    #[inline]
    pub fn is_finished(&self) -> bool {
        self.in_hand == 0 && self.schedule.next_tick().is_none()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::generator::program::tests::port;

    const HZ: f64 = 1e9;
    const MS: u64 = 1_000_000;

    #[test]
    fn a_refusal_explains_only_what_was_due_before_it() {
        let request = json!({"name": "f", "transmit_port": 0, "template": "0200000000020200000000010800",
            "sizes": {"fixed": 64}, "rate_frames_per_s": 1000, "exact": false, "signature": false});
        let mut flow = Flow::of(&serde_json::from_value(request).unwrap(), &port(), HZ).unwrap();
        flow.start(0, 0, 0);
        // Refused at 100 ms, away until 1 s.
        flow.give_up_late(1000 * MS, Some(100 * MS));
        let (tester, port) = (flow.sent.unsent_tester, flow.sent.unsent_backpressure);
        assert!((100..=101).contains(&port) && (897..=900).contains(&tester), "{port} and {tester}");
        // Refused again and again until 2 s: none of these is the tester's.
        flow.give_up_late(2000 * MS, Some(2000 * MS));
        assert_eq!(flow.sent.unsent_tester, tester);
        assert!((1099..=1101).contains(&flow.sent.unsent_backpressure), "{:?}", flow.sent);
    }
}
