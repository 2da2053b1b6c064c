//! What the faulty path does to frames, by their numbers.

use super::*;
use crate::sys::pool::FramePool;

const INTERVAL_PS: u64 = 1_000;

/// Frames numbered from 0, every `INTERVAL_PS`: when, which and how each leaves; and the path.
fn departures(faults: Faults, frames: u64) -> (Vec<Departure<u64>>, FaultyPath<u64>) {
    let mut pool = FramePool::default();
    let mut path = FaultyPath::new(faults, RateLimit::Unlimited);
    assert!(path.begin_trial(1, 1).is_empty());
    for number in 0..frames {
        let mut frame = pool.take(60);
        frame.bytes_mut().fill(0);
        let place = |_: &[u8]| Some(SignaturePlace { signature: 42, end: 60, udp_length: Some(38) });
        let _ = path.forward(number * INTERVAL_PS, frame, number, &mut pool, place);
    }
    path.release_overdue(u64::MAX);
    let left: Vec<_> = std::iter::from_fn(|| path.next_departure(u64::MAX)).collect();
    assert!(left.windows(2).all(|pair| pair[0].time_ps <= pair[1].time_ps), "frames leave in order of time");
    assert_eq!(path.under_way(), 0);
    (left, path)
}

fn numbers(left: &[Departure<u64>]) -> Vec<u64> {
    left.iter().map(|departure| departure.note).collect()
}

#[test]
fn a_reordered_frame_leaves_after_as_many_others_as_asked() {
    let (left, path) = departures(Faults { reorder: 0.1, reorder_by: 3, ..Faults::default() }, 200);
    let overtaken = left.windows(2).filter(|pair| pair[0].note > pair[1].note).count() as u64;
    assert!(path.counts().reordered > 5);
    assert!(overtaken > 0 && overtaken <= path.counts().reordered);
    assert_eq!(left.len(), 200);
}

#[test]
fn a_frame_that_nobody_overtakes_leaves_after_a_millisecond() {
    let (left, path) = departures(Faults { reorder: 1.0, ..Faults::default() }, 1);
    assert_eq!((left[0].time_ps, path.counts().reordered), (HOLD_PS, 0));
}

#[test]
fn a_frame_is_overtaken_by_as_many_as_asked_at_any_rate() {
    for (interval_ps, burst) in [(1_000, 1), (20_000_000_000, 1), (400_000_000_000, 1), (300_000_000_000, 6)] {
        let mut pool = FramePool::default();
        let mut path = FaultyPath::new(Faults { reorder_by: 3, ..Faults::default() }, RateLimit::Unlimited);
        path.begin_trial(1, 1);
        for number in 0..60 {
            path.faults.reorder = if number == 30 { 1.0 } else { 0.0 };
            path.odds = Odds::new(&path.faults);
            let time_ps = number / burst * burst * interval_ps + number % burst * 1_000;
            path.release_overdue(time_ps);
            let _ = path.forward(time_ps, pool.take(60), number, &mut pool, |_| None);
        }
        let left: Vec<_> = std::iter::from_fn(|| path.next_departure(u64::MAX)).collect();
        let expected: Vec<_> = (0..30).chain([31, 32, 33, 30]).chain(34..60).collect();
        assert_eq!(numbers(&left), expected, "every {interval_ps} ps in bursts of {burst}");
        assert_eq!(path.counts().reordered, 1);
    }
}

#[test]
fn a_frame_with_fewer_behind_it_than_asked_leaves_behind_them_all() {
    let mut pool = FramePool::default();
    let faults = Faults { reorder: 1.0, reorder_by: 100, ..Faults::default() };
    let mut path = FaultyPath::new(faults, RateLimit::Unlimited);
    path.begin_trial(1, 1);
    let _ = path.forward(0, pool.take(60), 0, &mut pool, |_| None);
    path.faults.reorder = 0.0;
    path.odds = Odds::new(&path.faults);
    for number in 1..4 {
        let _ = path.forward(number * HOLD_PS, pool.take(60), number, &mut pool, |_| None);
    }
    path.release_overdue(5 * HOLD_PS);
    let left: Vec<_> = std::iter::from_fn(|| path.next_departure(u64::MAX)).collect();
    assert_eq!((numbers(&left), path.counts().reordered), (vec![1, 2, 3, 0], 1));
}

#[test]
fn jitter_delays_and_does_not_overtake() {
    let (left, _) = departures(Faults { delay_ns: 10, jitter_ns: 100, ..Faults::default() }, 100);
    assert_eq!(numbers(&left), (0..100).collect::<Vec<_>>());
    assert!(left.iter().all(|departure| departure.time_ps >= departure.note * INTERVAL_PS + 10 * PS_PER_NS));
}

#[test]
fn every_frame_leaves_once_twice_or_never_and_the_counts_say_so() {
    let faults = Faults { loss: 0.1, duplicate: 0.1, corrupt_payload: 0.1, corrupt_length: 0.1, ..Faults::default() };
    let (left, path) = departures(faults, 1000);
    let changed = |change| left.iter().filter(|departure| departure.change == change).count() as u64;
    let counts = path.counts();
    assert_eq!(left.len() as u64, 1000 - counts.lost + counts.duplicated);
    assert_eq!(changed(Change::Copy), counts.duplicated);
    assert_eq!(changed(Change::CorruptedPayload) + changed(Change::CorruptedLength), counts.corrupted);
    assert!(counts.lost > 50 && counts.duplicated > 50 && changed(Change::CorruptedLength) > 50);
}

#[test]
fn no_more_frames_are_under_way_than_asked() {
    let (left, path) = departures(Faults { delay_ns: 1_000_000, held_frames: 16, ..Faults::default() }, 100);
    assert_eq!((left.len(), path.counts().dropped_held_full), (16, 84));
}

#[test]
fn equal_seeds_do_the_same_and_others_do_not() {
    let run = |seed| numbers(&departures(Faults { seed, loss: 0.3, ..Faults::default() }, 100).0);
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_new_trial_gets_back_what_was_under_way() {
    let mut pool = FramePool::default();
    let mut path = FaultyPath::new(Faults { delay_ns: 5, ..Faults::default() }, RateLimit::Unlimited);
    path.forward(0, pool.take(60), 7, &mut pool, |_| None).unwrap();
    let under_way = path.begin_trial(2, 0);
    assert_eq!(under_way.iter().map(|(_, number)| *number).collect::<Vec<_>>(), [7]);
    assert_eq!(path.under_way(), 0);
}

#[test]
fn an_outage_lasts_from_the_last_frame_that_came_too_fast() {
    let mut pool = FramePool::default();
    let faults = Faults { outage_ns: 100, ..Faults::default() };
    // One frame every 10 ns, and two at once.
    let mut path = FaultyPath::new(faults, RateLimit::bucket(1e8, 2));
    let mut passed = Vec::new();
    for time_ns in [0, 1, 2, 3, 50, 102, 103, 113] {
        let frame = pool.take(60);
        if path.forward(time_ns * PS_PER_NS, frame, time_ns, &mut pool, |_| None).is_ok() {
            passed.push(time_ns);
        }
    }
    assert_eq!(passed, [0, 1, 103, 113]);
    assert_eq!(path.counts().dropped_rate, 4);
    let _ = path.begin_trial(2, 0);
    assert!(path.forward(0, pool.take(60), 0, &mut pool, |_| None).is_ok(), "no outage outlives its trial");
}
