//! When the frames of one flow are due: the pacer's exact steps, with gaps between bursts and pauses in between.

use nicbench_protocol::FlowRequest;

use crate::error::{EngineError, ErrorKind};
use crate::pacer::Pacer;

/// A flow that is not exact gives up what is later than this.
const CATCH_UP_S: f64 = 0.001;
/// How long a flow without an end lasts: a hundred years.
const NO_END_S: f64 = 3.2e9;
const LONGEST_S: f64 = 86_400.0 * 365.0;
const RATES: std::ops::RangeInclusive<f64> = 1e-5..=1e9;

/// The schedule of a flow, in ticks from its start.
#[derive(Debug, Clone)]
pub struct Schedule {
    pacer: Pacer,
    /// What comes on top of the pacer's ticks: the delay, gaps between bursts, pauses.
    shift: i64,
    bursts: Option<Bursts>,
    is_exact: bool,
    has_end: bool,
}

#[derive(Debug, Clone, Copy)]
struct Bursts {
    packets: u64,
    /// From the last frame of a burst to the first of the next, beyond a frame's own interval.
    extra_ticks: i64,
    left: u64,
}

impl Schedule {
    /// A flow's schedule; `hz` are ticks per second.
    pub fn of(request: &FlowRequest, hz: f64) -> Result<Self, EngineError> {
        check(request)?;
        let ticks = |seconds: f64| (seconds * hz) as i64;
        let (gap_s, bursts) = match request.burst {
            None => (0.0, None),
            Some(burst) => {
                let extra_ticks = ticks(burst.gap_between_bursts_s) - ticks(burst.gap_between_packets_s);
                (burst.gap_between_packets_s, Some(Bursts { packets: burst.packets, extra_ticks, left: burst.packets }))
            }
        };
        let rate =
            if gap_s > 0.0 { 1.0 / (1.0 / request.rate_frames_per_s + gap_s) } else { request.rate_frames_per_s };
        let of_bursts = request.bursts.zip(request.burst).map(|(bursts, burst)| bursts.saturating_mul(burst.packets));
        let frames = [request.frames, of_bursts].into_iter().flatten().min();
        let duration_s = request.duration_s.unwrap_or(NO_END_S);
        let of_duration = match (request.duration_s, bursts) {
            (Some(duration_s), Some(bursts)) => Some(frames_of_bursts(duration_s, rate, bursts, hz)),
            _ => None,
        };
        let limit = [frames, of_duration].into_iter().flatten().min();
        Ok(Self {
            pacer: Pacer::new(rate, if bursts.is_some() { NO_END_S } else { duration_s }, CATCH_UP_S, hz)
                .with_frame_limit(limit),
            shift: ticks(request.delay_s),
            bursts,
            is_exact: request.exact,
            has_end: limit.is_some() || request.duration_s.is_some(),
        })
    }

    /// Moves what is left by so many ticks: flows of one rate are not to send at one time, and pauses take time.
    pub fn delay(&mut self, ticks: u64) {
        self.shift = self.shift.saturating_add_unsigned(ticks);
    }

    /// Frames in all; `None` where the flow has no end.
    pub fn intended(&self) -> Option<u64> {
        self.pacer.intended().filter(|_| self.has_end)
    }

    /// The tick at which the next frame is due; `None` where none is left.
    #[inline]
    pub fn next_tick(&self) -> Option<u64> {
        self.pacer.next_tick().map(|tick| tick.saturating_add_signed(self.shift))
    }

    /// Goes on to the next frame.
    #[inline]
    pub fn advance(&mut self) {
        self.pacer.advance(1);
        if let Some(bursts) = &mut self.bursts {
            bursts.left -= 1;
            if bursts.left == 0 {
                bursts.left = bursts.packets;
                self.shift = self.shift.saturating_add(bursts.extra_ticks);
            }
        }
    }

    /// The tick at which what is due at `tick` is too late.
    #[inline]
    pub fn too_late_at(&self, tick: u64) -> u64 {
        tick.saturating_add(self.pacer.catch_up_ticks())
    }

    /// Gives up what is too late, unless every frame is to be sent; returns how many frames.
    #[inline]
    pub fn give_up_late(&mut self, now: u64) -> u64 {
        if self.is_exact || self.bursts.is_some() {
            return 0;
        }
        self.pacer.give_up_late(now.saturating_add_signed(self.shift.saturating_neg()))
    }
}

/// Frames that are due within a duration.
fn frames_of_bursts(duration_s: f64, rate: f64, bursts: Bursts, hz: f64) -> u64 {
    let period_s = bursts.packets as f64 / rate + bursts.extra_ticks as f64 / hz;
    let whole = (duration_s / period_s).floor();
    let rest = ((duration_s - whole * period_s) * rate).ceil().clamp(0.0, bursts.packets as f64);
    (whole * bursts.packets as f64 + rest) as u64
}

fn check(request: &FlowRequest) -> Result<(), EngineError> {
    let refuse = |what: String, next: &str| {
        Err(EngineError::new(ErrorKind::BadRequest, format!("flow {}: {what}", request.name), next))
    };
    if !RATES.contains(&request.rate_frames_per_s) {
        let what = format!("rate_frames_per_s is {}", request.rate_frames_per_s);
        return refuse(what, "give a rate from 0.00001 to 1e9");
    }
    let burst = request.burst.unwrap_or(nicbench_protocol::Burst {
        packets: 1,
        gap_between_packets_s: 0.0,
        gap_between_bursts_s: 0.0,
    });
    let times = [
        ("delay_s", request.delay_s),
        ("duration_s", request.duration_s.unwrap_or(0.0)),
        ("gap_between_packets_s", burst.gap_between_packets_s),
        ("gap_between_bursts_s", burst.gap_between_bursts_s),
    ];
    if let Some((name, value)) = times.into_iter().find(|(_, value)| !(0.0..=LONGEST_S).contains(value)) {
        return refuse(format!("{name} is {value}"), "give a time from 0 to a year, in seconds");
    }
    if burst.packets == 0 || burst.packets > 1 << 40 {
        return refuse(format!("a burst has {} packets", burst.packets), "give a burst at least one packet");
    }
    if request.bursts.is_some() && request.burst.is_none() {
        return refuse("`bursts` without `burst`".into(), "say what a burst is");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const HZ: f64 = 1e9;

    fn schedule(change: Value) -> Result<Schedule, EngineError> {
        let mut flow = json!({"name": "f", "transmit_port": 0, "template": "", "sizes": {"fixed": 64},
            "rate_frames_per_s": 1000});
        change.as_object().unwrap().iter().for_each(|(key, value)| flow[key] = value.clone());
        Schedule::of(&serde_json::from_value(flow).unwrap(), HZ)
    }

    fn ticks(schedule: &mut Schedule, most: usize) -> Vec<u64> {
        let next = || {
            let tick = schedule.next_tick()?;
            schedule.advance();
            Some(tick)
        };
        std::iter::from_fn(next).take(most).collect()
    }

    #[test]
    fn frames_are_due_one_interval_apart_from_the_delay_on() {
        let mut schedule = schedule(json!({"frames": 3, "delay_s": 0.5})).unwrap();
        assert_eq!(schedule.intended(), Some(3));
        assert_eq!(ticks(&mut schedule, 9), [500_000_000, 501_000_000, 502_000_000]);
    }

    #[test]
    fn bursts_have_gaps_between_packets_and_between_bursts() {
        let burst = json!({"packets": 2, "gap_between_packets_s": 0.001, "gap_between_bursts_s": 0.01});
        let mut both = schedule(json!({"burst": burst, "bursts": 2})).unwrap();
        assert_eq!(both.intended(), Some(4));
        assert_eq!(ticks(&mut both, 9), [0, 2_000_000, 13_000_000, 15_000_000]);
        let burst = json!({"packets": 3, "gap_between_bursts_s": 0.0});
        assert_eq!(ticks(&mut schedule(json!({"burst": burst})).unwrap(), 4), [0, 1_000_000, 2_000_000, 3_000_000]);
    }

    #[test]
    fn a_duration_of_bursts_ends_within_it() {
        let burst = json!({"packets": 2, "gap_between_bursts_s": 0.008});
        let mut schedule = schedule(json!({"burst": burst, "duration_s": 0.0205})).unwrap();
        assert_eq!(ticks(&mut schedule, 9), [0, 1_000_000, 10_000_000, 11_000_000, 20_000_000]);
    }

    #[test]
    fn only_what_has_an_end_has_a_number_of_frames() {
        assert_eq!(schedule(json!({})).unwrap().intended(), None);
        assert_eq!(schedule(json!({"duration_s": 2.5})).unwrap().intended(), Some(2500));
        assert_eq!(schedule(json!({"duration_s": 2.5, "frames": 7})).unwrap().intended(), Some(7));
        assert!(schedule(json!({})).unwrap().next_tick().is_some());
    }

    #[test]
    fn only_a_flow_that_is_not_exact_gives_frames_up() {
        let given_up = |exact: bool| schedule(json!({"exact": exact})).unwrap().give_up_late(1_000_000_000);
        assert_eq!((given_up(true), given_up(false)), (0, 1000));
    }

    #[test]
    fn impossible_schedules_are_refused() {
        for change in [
            json!({"rate_frames_per_s": 0}),
            json!({"rate_frames_per_s": 1e12}),
            json!({"delay_s": -1}),
            json!({"bursts": 3}),
            json!({"burst": {"packets": 0}}),
            json!({"burst": {"packets": 1, "gap_between_bursts_s": -1}}),
        ] {
            assert!(schedule(change.clone()).is_err(), "{change}");
        }
    }
}
