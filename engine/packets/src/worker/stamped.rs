//! Ports whose received frames bear stamps of a clock of their own, which the worker follows.

use super::Worker;
use crate::port::{Clock, MAXIMUM_BURST, NO_STAMP};
use crate::stamps::{CALIBRATION_READINGS, READING_INTERVAL_S, Reading, Stamper};
use crate::trial_part::TrialPart;

impl<C: Clock> Worker<C> {
    /// Finds the clocks of the ports that stamp; takes 50 ms, and nothing where the worker's own clock does.
    pub fn calibrate_clocks(&mut self) {
        if self.stampers.is_empty() {
            return;
        }
        let mut readings: Vec<Vec<Reading>> = vec![Vec::new(); self.ports.len()];
        for _ in 0..CALIBRATION_READINGS {
            let next = self.clock.now() + (READING_INTERVAL_S * self.clock.hz()) as u64;
            for (port, readings) in self.ports.iter_mut().zip(&mut readings) {
                readings.extend(Stamper::look(&mut **port, &*self.clock));
                // One that was asked for in an earlier trial.
                port.transmit_sample();
            }
            self.clock.wait_until(next);
        }
        self.stampers.iter_mut().zip(&readings).for_each(|(stamper, readings)| stamper.calibrate(readings));
    }

    /// Notes for the reading how the clocks fared so far.
    pub fn note_stamps(&self, part: &mut TrialPart) {
        part.stamps = self.stampers.iter().map(Stamper::tally).collect();
    }

    /// As `receive_unstamped`, where each frame bears its port's own stamp.
    #[inline(never)]
    pub(super) fn receive_stamped(&mut self, part: &mut TrialPart) -> usize {
        let mut total = 0;
        let now = self.clock.now();
        for index in self.roles.transmit.iter().chain(&self.roles.receive).copied() {
            self.stampers[index].follow(&mut *self.ports[index], &*self.clock, now, part.epoch);
        }
        for index in self.roles.receive.iter().copied() {
            let port = &mut self.ports[index];
            let count = port.receive(&mut self.frames);
            if count == 0 {
                continue;
            }
            let (now, frames) = (self.clock.now(), &self.frames[..count]);
            let (mut stamps, mut times_ns) = ([NO_STAMP; MAXIMUM_BURST], [0; MAXIMUM_BURST]);
            port.stamps(frames, &mut stamps[..count]);
            self.stampers[index].place(&stamps[..count], now, part.epoch, &*self.clock, &mut times_ns);
            let now_ns = self.clock.nanoseconds(now - part.epoch);
            part.analyser.set_quiet_ns(self.core_watch.quiet_ns(now, &*self.clock));
            part.analyser.analyse_stamped(index, frames, now_ns, &times_ns[..count]);
            port.free(frames);
            total += count;
        }
        total
    }
}
