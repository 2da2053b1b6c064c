//! How loop and machine fared over a transmission: from the start of a flow while none transmitted until the last has ended.

use nicbench_protocol::{CpuTimes, HealthReading};

use super::Bench;
use crate::clock::simultaneous;
use crate::gaps::{GAP_FLOOR_NS, Gaps};
use crate::health::{HealthChange, HealthProbe};
use crate::port::Clock;

/// How long frames may be under way after the last one was sent, before the machine's state is read.
const UNDER_WAY_S: f64 = 0.01;

/// What is known of the last transmission.
#[derive(Debug, Default)]
pub struct Watch {
    gaps: Gaps,
    iterations: u64,
    idle_iterations: u64,
    /// Flows that transmit or pause.
    transmitting: usize,
    probe: Option<HealthProbe>,
    /// The tick at which the transmission began.
    epoch: u64,
    /// When the machine's state is to be read again.
    reads_at: Option<u64>,
    change: HealthChange,
    has_begun: bool,
}

impl Watch {
    /// So many flows are about to be started.
    pub fn begin(&mut self, flows: usize, bench: &Bench<'_>) {
        if self.transmitting == 0 && flows > 0 {
            let clock = bench.clock;
            *self = Self { has_begun: true, ..Self::default() };
            // Computed time says nothing of the machine.
            self.probe = (!clock.is_virtual()).then(|| HealthProbe::start(clock, bench.watched_cpus));
            self.epoch = clock.now();
            bench.core_watch.begin();
            self.gaps = Gaps::new(clock.now(), (GAP_FLOOR_NS as f64 * clock.hz() / 1e9) as u64);
        }
        self.transmitting += flows;
    }

    /// So many flows have ended.
    pub fn end(&mut self, flows: usize, clock: &dyn Clock) {
        self.transmitting = self.transmitting.saturating_sub(flows);
        if self.transmitting == 0 {
            self.reads_at = Some(clock.now() + (UNDER_WAY_S * clock.hz()) as u64);
        }
    }

    /// A turn of the loop begins.
    #[inline]
    pub fn turn(&mut self, bench: &Bench<'_>) {
        let clock = bench.clock;
        if self.transmitting > 0 {
            self.iterations += 1;
            self.gaps.observe(clock.now());
        } else if self.reads_at.is_some_and(|tick| tick <= clock.now()) {
            self.reads_at = None;
            let Some(probe) = self.probe.take() else { return };
            self.change = probe.finish(clock);
            let (ticks, monotonic_ns) = simultaneous();
            let since_begin_ns = clock.nanoseconds(ticks.saturating_sub(self.epoch));
            bench.core_watch.finish(&mut self.change.cpus, monotonic_ns.saturating_sub(since_begin_ns));
        }
    }

    /// Whether the last flow has ended, and the machine's state is about to be read.
    pub fn is_settling(&self) -> bool {
        self.reads_at.is_some() && self.probe.is_some()
    }

    /// The turn moved no frame.
    #[inline]
    pub fn note_idle(&mut self) {
        self.idle_iterations += u64::from(self.transmitting > 0);
    }

    /// Computed time jumped: that is no gap.
    pub fn resume(&mut self, now: u64) {
        self.gaps.resume(now);
    }

    /// `None` before the first transmission. What only the end tells is unknown until then. Looks are long: they are told
    /// where they are asked for.
    pub fn reading(&self, clock: &dyn Clock, with_looks: bool) -> Option<HealthReading> {
        let cpus = self.change.cpus.iter().map(|cpu| match with_looks {
            true => cpu.clone(),
            false => CpuTimes { looks: None, ..cpu.clone() },
        });
        self.has_begun.then(|| HealthReading {
            longest_gap_ns: clock.nanoseconds(self.gaps.longest()),
            total_gap_ns: clock.nanoseconds(self.gaps.total()),
            gap_floor_ns: GAP_FLOOR_NS,
            gaps: self.gaps.count(),
            iterations: self.iterations,
            idle_iterations: self.idle_iterations,
            voluntary_switches: self.change.voluntary_switches,
            involuntary_switches: self.change.involuntary_switches,
            clock_step_ns: self.change.clock_step_ns,
            core_clock_hz: self.change.core_clock_hz,
            cpus: cpus.collect(),
            workers: Vec::new(),
        })
    }
}
