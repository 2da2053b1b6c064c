//! Start, stop, pause and resume of single flows.

use std::collections::BTreeMap;

use nicbench_protocol::{Control, ControlReply, FlowAction, FlowState, Reply};

use super::{Bench, Generator};
use crate::error::EngineError;
use crate::sys::tsc::monotonic_ns;

impl Generator {
    /// Does what is asked to the flows, while others go on.
    pub fn control(&mut self, id: i64, request: &Control, bench: &mut Bench<'_>) {
        let result = self.try_control(request, bench);
        self.replies.reply_with(id, move || result.map(Reply::Control));
    }

    fn try_control(&mut self, request: &Control, bench: &mut Bench<'_>) -> Result<ControlReply, EngineError> {
        let named = self.numbers(request.flows.as_deref())?;
        let may_change = |state: FlowState| match request.action {
            FlowAction::Start => state == FlowState::Stopped,
            FlowAction::Stop => state != FlowState::Stopped,
            FlowAction::Pause => state == FlowState::Started,
            FlowAction::Resume => state == FlowState::Paused,
        };
        let mut changed: Vec<u32> =
            named.into_iter().filter(|number| may_change(self.flows[*number as usize].state)).collect();
        changed.sort_unstable();
        changed.dedup();
        let now = bench.clock.now();
        match request.action {
            FlowAction::Start => self.start(&changed, bench)?,
            FlowAction::Stop => changed.iter().for_each(|number| self.stop(*number, bench)),
            FlowAction::Pause => changed.iter().for_each(|number| self.flows[*number as usize].pause(now)),
            FlowAction::Resume => changed.iter().for_each(|number| {
                let flow = &mut self.flows[*number as usize];
                flow.resume(now);
                self.transmitters[flow.transmit_port].plan(*number, flow);
            }),
        }
        Ok(ControlReply { at_ns: monotonic_ns(), changed: changed.len() as u32 })
    }

    fn start(&mut self, numbers: &[u32], bench: &Bench<'_>) -> Result<(), EngineError> {
        let offsets = self.staggered(numbers, bench.clock.hz());
        let mut signatures = Vec::with_capacity(numbers.len());
        for number in numbers {
            signatures.push(self.receiver.start(*number, self.flows[*number as usize].signature_number)?);
        }
        self.watch.begin(numbers.len(), bench);
        // What was done so far took time.
        let now = bench.clock.now();
        for ((number, offset), signature) in numbers.iter().zip(offsets).zip(signatures) {
            let flow = &mut self.flows[*number as usize];
            flow.start(now, offset, signature);
            if flow.is_finished() {
                flow.stop();
                self.ended.push(*number);
            }
            self.transmitters[flow.transmit_port].plan(*number, flow);
        }
        Ok(())
    }

    fn stop(&mut self, number: u32, bench: &mut Bench<'_>) {
        let flow = &mut self.flows[number as usize];
        flow.stop();
        self.transmitters[flow.transmit_port].forget(number, &mut *bench.ports[flow.transmit_port]);
        self.ended.push(number);
    }

    /// How much later than now each flow begins, in ticks: flows of equal rate that begin together share an interval evenly,
    /// first those of each port, then the ports.
    fn staggered(&self, numbers: &[u32], hz: f64) -> Vec<u64> {
        let mut alike: BTreeMap<(u64, u64), BTreeMap<usize, Vec<usize>>> = BTreeMap::new();
        for (place, number) in numbers.iter().enumerate() {
            let flow = &self.flows[*number as usize];
            if !flow.is_in_bursts {
                let key = (flow.rate_frames_per_s.to_bits(), flow.delay_s.to_bits());
                alike.entry(key).or_default().entry(flow.transmit_port).or_default().push(place);
            }
        }
        let mut offsets = vec![0; numbers.len()];
        for ((rate, _), ports) in &alike {
            let interval_ticks = hz / f64::from_bits(*rate);
            for (rank, places) in ports.values().enumerate() {
                let of_port = rank as f64 / ports.len() as f64;
                for (turn, place) in places.iter().enumerate() {
                    offsets[*place] = ((turn as f64 + of_port) / places.len() as f64 * interval_ticks) as u64;
                }
            }
        }
        offsets
    }
}
