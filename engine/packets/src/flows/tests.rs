use super::*;

/// What an arrival is, without its extent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    InOrder,
    Reordered,
    Duplicate,
    Impossible,
}
use Kind::{Duplicate, Impossible, InOrder};

/// Observes, and counts as the analyser does.
fn kind(table: &mut FlowTable, flow: u32, sequence: u32) -> Kind {
    let arrival = table.observe(flow, sequence);
    let new = !matches!(arrival, Arrival::Duplicate | Arrival::Impossible);
    if let Some(line) = table.line_mut(flow).filter(|_| new) {
        line.record(1);
    }
    match arrival {
        Arrival::Next | Arrival::Ahead(_) => InOrder,
        Arrival::BehindBroken | Arrival::Reordered(_) => Kind::Reordered,
        Arrival::Duplicate => Duplicate,
        Arrival::Impossible => Impossible,
    }
}

fn extents(arrivals: &[u32]) -> Vec<Overtaken> {
    overtaken(arrivals, 3)
}

fn overtaken(arrivals: &[u32], counted: usize) -> Vec<Overtaken> {
    let mut table = FlowTable::new(1, counted);
    let of = |sequence: &u32| {
        let arrival = table.observe(0, *sequence);
        table.line_mut(0).unwrap().record(1);
        if let Arrival::Reordered(overtaken) = arrival { Some(overtaken) } else { None }
    };
    arrivals.iter().filter_map(of).collect()
}

#[test]
fn frames_in_order_are_in_order_for_many_laps_of_the_ring() {
    let mut table = FlowTable::new(8192, 3);
    for sequence in 0..10_000 {
        assert_eq!(table.observe(8191, sequence), Arrival::Next);
    }
}

#[test]
fn a_copy_is_a_duplicate_and_an_overtaken_frame_is_reordered_once() {
    let mut table = FlowTable::new(1 << 20, 3);
    let arrivals: Vec<_> = [0, 1, 1, 4, 2, 2, 3, 5].map(|sequence| kind(&mut table, 3, sequence)).into();
    let reordered = Kind::Reordered;
    assert_eq!(arrivals, [InOrder, InOrder, Duplicate, InOrder, reordered, Duplicate, reordered, InOrder]);
}

#[test]
fn a_jump_says_how_many_are_missing() {
    let mut table = FlowTable::new(1, 3);
    assert_eq!(table.observe(0, 3), Arrival::Ahead(3));
    assert_eq!(table.observe(0, 200), Arrival::Ahead(196));
    assert_eq!(table.lines()[0].next, 201);
}

#[test]
fn lost_frames_leave_no_trace_of_an_earlier_lap() {
    let mut table = FlowTable::new(1 << 20, 3);
    for sequence in 0..300 {
        kind(&mut table, 0, sequence);
    }
    assert_eq!(kind(&mut table, 0, 600), InOrder);
    for sequence in 450..600 {
        assert_eq!(kind(&mut table, 0, sequence), Kind::Reordered, "{sequence}");
        assert_eq!(kind(&mut table, 0, sequence), Duplicate, "{sequence}");
    }
}

#[test]
fn every_arrival_of_a_shuffled_flow_is_judged_as_a_full_record_would() {
    let mut random = crate::faults::Random::seeded(7, 1, 1);
    for flows in [1, 1 << 20] {
        let mut table = FlowTable::new(flows, 3);
        let (mut seen, mut greatest) = (std::collections::HashSet::new(), None);
        for step in 0..20_000u32 {
            let back = random.below(200) as u32;
            let sequence = (step + 2 * (random.below(8) as u32)).saturating_sub(if back < 20 { back * 9 } else { 0 });
            let expected = match (seen.insert(sequence), greatest.is_none_or(|greatest| sequence > greatest)) {
                (false, _) => Duplicate,
                (true, true) => InOrder,
                (true, false) => Kind::Reordered,
            };
            assert_eq!(kind(&mut table, 0, sequence), expected, "step {step}, sequence {sequence}");
            greatest = greatest.max(Some(sequence));
        }
    }
}

#[test]
fn sequences_go_on_over_the_32_bit_wrap() {
    let mut table = FlowTable::new(1, 3);
    let step = 1 << 30;
    for sequence in [0u32, step, 2 * step, 3 * step, u32::MAX - 1] {
        assert_eq!(kind(&mut table, 0, sequence), InOrder);
    }
    let arrivals: Vec<_> = [0, u32::MAX, u32::MAX, 1, 1].map(|sequence| kind(&mut table, 0, sequence)).into();
    assert_eq!(arrivals, [InOrder, Kind::Reordered, Duplicate, InOrder, Duplicate]);
    assert_eq!(table.lines()[0].next, (1 << 32) + 2);
}

#[test]
fn few_flows_remember_further_back() {
    let mut table = FlowTable::new(1, 3);
    for sequence in (0..200_000).filter(|sequence| *sequence != 5) {
        kind(&mut table, 0, sequence);
    }
    assert_eq!((kind(&mut table, 0, 5), kind(&mut table, 0, 5)), (Kind::Reordered, Duplicate));
}

#[test]
fn a_flow_or_sequence_that_cannot_be_is_impossible() {
    let mut table = FlowTable::new(2, 3);
    assert_eq!(kind(&mut table, 2, 0), Impossible);
    assert_eq!(kind(&mut table, 0, u32::MAX), Impossible);
    assert_eq!(kind(&mut table, u32::MAX, 7), Impossible);
}

/// The examples of RFC 4737 7, whose packets count from 1.
#[test]
fn extents_are_those_of_rfc_4737() {
    let of = |arrivals: &[u32]| extents(arrivals).iter().map(|found| found.extent).collect::<Vec<_>>();
    // 7.1: packet 4 arrives behind packet 8.
    assert_eq!(of(&[1, 2, 3, 5, 6, 7, 8, 4, 9, 10]), [4]);
    // 7.2: packets 5 and 6 arrive behind packet 7.
    assert_eq!(of(&[1, 2, 3, 4, 7, 5, 6, 8, 9, 10]), [1, 2]);
    // 7.3: three in a row are late; each is one further from the first greater one.
    assert_eq!(of(&[1, 2, 3, 7, 8, 9, 10, 4, 5, 6, 11]), [4, 5, 6]);
    // 7.4: two discontinuities.
    assert_eq!(of(&[1, 2, 3, 6, 7, 4, 5, 8, 9, 10, 12, 13, 11, 14, 15, 16]), [2, 3, 2]);
}

#[test]
fn an_extent_counts_from_the_first_greater_frame_and_lost_ones_do_not_count() {
    let found = extents(&[0, 5, 9, 3, 12, 8, 1]);
    assert_eq!(found.iter().map(|found| found.extent).collect::<Vec<_>>(), [2, 3, 5]);
}

#[test]
fn a_frame_is_reordered_by_as_many_greater_ones_as_it_comes_right_behind() {
    let behind = |arrivals: &[u32]| extents(arrivals).iter().map(|found| found.behind).collect::<Vec<_>>();
    assert_eq!(behind(&[0, 2, 3, 4, 1]), [3]);
    // RFC 4737 5.3 and 7.2.
    assert_eq!(behind(&[1, 2, 3, 7, 8, 9, 4, 5, 6]), [3, 0, 0]);
    assert_eq!(behind(&[1, 2, 3, 4, 7, 5, 6, 8, 9, 10]), [1, 0]);
    assert_eq!(behind(&[0, 2, 3, 1]), [2]);
    // 4 comes right behind 1, which is smaller.
    assert_eq!(behind(&[0, 5, 6, 7, 1, 4]), [3, 0]);
    // 1 comes right behind 4, which is greater though it was late itself.
    assert_eq!(behind(&[0, 5, 6, 4, 1]), [2, 3]);
    // More are not counted than was asked for.
    assert_eq!(behind(&[0, 2, 3, 4, 5, 6, 1]), [3]);
}

/// By the definition of RFC 4737 5.3, over every arrival.
fn n_by_definition(arrivals: &[u32], at: usize, counted: usize) -> u64 {
    arrivals[..at].iter().rev().take(counted).take_while(|before| **before > arrivals[at]).count() as u64
}

#[test]
fn n_reordering_is_that_of_the_definition_for_every_n_in_every_shuffle() {
    let mut random = crate::faults::Random::seeded(11, 1, 1);
    for counted in [3, 8, 64] {
        for _ in 0..200 {
            let mut arrivals: Vec<u32> = (0..300).filter(|_| random.below(20) > 0).collect();
            for _ in 0..random.below(60) {
                let from = random.below(arrivals.len() as u64) as usize;
                let to = (from + random.below(100) as usize).min(arrivals.len() - 1);
                let moved = arrivals.remove(from);
                arrivals.insert(to, moved);
            }
            let greatest = |at: usize| arrivals[..at].iter().max().is_some_and(|most| *most > arrivals[at]);
            let late = (0..arrivals.len()).filter(|at| greatest(*at));
            let expected: Vec<u64> = late.map(|at| n_by_definition(&arrivals, at, counted)).collect();
            let found: Vec<u64> = overtaken(&arrivals, counted).iter().map(|found| found.behind).collect();
            assert_eq!(found, expected, "{arrivals:?}");
        }
    }
}

#[test]
fn frames_n_reordered_are_those_behind_n_or_more_of_all_receivers() {
    let mut one = Reordering::default();
    let mut other = Reordering::default();
    for behind in [0, 1, 3, 3] {
        one.add(Overtaken { extent: 5, behind });
    }
    other.add(Overtaken { extent: 9, behind: 7 });
    other.add(Overtaken::default());
    one.merge(&other);
    assert_eq!((one.measured, one.maximum_extent, one.extent_sum), (5, 9, 29));
    assert_eq!([1, 2, 3, 4, 7, 8].map(|n| one.by_or_more(n)), [4, 3, 3, 1, 1, 0]);
}

#[test]
fn a_hole_that_was_forgotten_gives_no_extent() {
    let arrivals: Vec<u32> = (0..20_000).map(|number| number * 2 + 1).chain([0, 39_998]).collect();
    let found = extents(&arrivals);
    assert_eq!((found[0].extent, found[1].extent), (0, 2));
}

#[test]
fn a_million_flows_take_64_bytes_each_and_less_than_256_at_most() {
    let (least, most) = FlowTable::new(1 << 20, 3).bytes_per_flow();
    assert!(least == 64 && most <= 256, "{most}");
}

#[test]
fn a_broken_frame_is_seen_and_overtakes_nobody() {
    let mut table = FlowTable::new(2, 3);
    kind(&mut table, 1, 0);
    assert_eq!(table.observe_broken(1, 3), Arrival::Ahead(2));
    assert_eq!(table.observe_broken(1, 5), Arrival::Ahead(1));
    // 1 and 4 are behind broken frames only; then 2 is behind 4.
    assert_eq!((table.observe(1, 1), table.observe(1, 4)), (Arrival::BehindBroken, Arrival::BehindBroken));
    assert_eq!(kind(&mut table, 1, 2), Kind::Reordered);
    assert_eq!([3, 5, 4].map(|sequence| kind(&mut table, 1, sequence)), [Duplicate; 3]);
    assert_eq!((kind(&mut table, 1, 6), kind(&mut table, 1, 7)), (InOrder, InOrder));
    assert_eq!(table.observe_broken(0, 0), Arrival::Next);
    assert_eq!(table.observe_broken(7, 0), Arrival::Impossible);
}

#[test]
fn after_a_whole_frame_the_broken_one_before_it_is_forgotten() {
    let mut table = FlowTable::new(1, 3);
    table.observe_broken(0, 4);
    kind(&mut table, 0, 6);
    assert!(matches!(table.observe(0, 5), Arrival::Reordered(_)));
    assert!(matches!(table.observe(0, 1), Arrival::Reordered(_)));
}
