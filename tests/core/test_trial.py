"""Counts of a trial that contradict themselves are found, whoever wrote them down."""

from __future__ import annotations

import random
from collections import Counter
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nicbench.core.pattern import Pattern, forward_of, frames_of_ways, share_of_load, times_load, way_of_stream, ways_of
from nicbench.core.reading import Counts
from nicbench.core.trial import Health, PortReading, Reading, StreamReading, contradiction_in, require_identities
from nicbench.core.turn import ALONE, Runs, Turn, interleave_turns

COUNTS = Counts(
    intended=10, sent=9, unsent_tester=1, received=6, lost=1, late=1, corrupted=1, duplicated=2, reordered=3
)


def reading(counts: Counts = COUNTS, total: Counts = COUNTS, **port: int | None) -> Reading:
    at_port = PortReading(**{"name": "t1", "arrived": 9, "foreign": 0, "misdirected": 0, "stale": 0, **port})  # type: ignore[arg-type]
    return Reading(
        transmit_ns=1,
        counts=total,
        streams=(StreamReading(name="0->1", counts=counts),),
        ports=(PortReading(name="t0"), at_port.replace(corrupted_unattributed=0)),
        latency=None,
        health=Health(),
    )


def test_counts_that_add_up_are_taken_as_they_are() -> None:
    require_identities(reading())
    require_identities(reading(COUNTS.replace(duplicated=None, reordered=None)))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"lost": -1}, "lost is -1: less than none"),
        ({"lost": 10**29}, "lost is 1.* more than can be counted"),
        ({"lost": 98_240}, "9 frames were sent, and 98248 are accounted for"),
        ({"received": 10**12}, "9 frames were sent"),
        ({"late": None}, "9 frames were sent, and 8 are accounted for"),
        ({"unattributed": 1}, "9 frames were sent"),
        ({"sent": 10}, "10 frames were intended, and 11 are"),
        ({"unsent_backpressure": 1}, "10 frames were intended"),
        ({"reordered": 7}, "7 frames are reordered, of 6 received"),
        ({"foreign": -1}, "foreign is -1"),
        ({"received": 0, "corrupted": 0, "late": 0, "lost": 9, "reordered": 0}, "2 frames came again, and none"),
    ],
)
def test_a_contradiction_is_named(changed: dict[str, int | None], said: str) -> None:
    wrong = COUNTS.replace(**changed)
    with pytest.raises(ValueError, match=f"^stream 0->1: {said}"):
        require_identities(reading(wrong))
    with pytest.raises(ValueError, match=f"^{said}"):
        require_identities(reading(total=wrong))
    assert contradiction_in(dict(wrong)) is not None


def test_sums_of_streams_and_arrivals_at_ports_are_held_against_each_other() -> None:
    with pytest.raises(ValueError, match=r"^received is 5, and 6 of all streams together"):
        require_identities(reading(total=COUNTS.replace(received=5, lost=2)))
    with pytest.raises(ValueError, match=r"^port t1: 10 frames arrived, and 9 are accounted for"):
        require_identities(reading(arrived=10))
    with pytest.raises(ValueError, match=r"^port t1: stale is -1"):
        require_identities(reading(stale=-1))
    require_identities(reading(arrived=10, foreign=None))


# Which port sends to which, what each way carries, and what rates are of: RFC 2285's patterns, between any ports.


ONE, MANY, SPREAD, HALVES, MESH, SAME = (
    Pattern.ONE_TO_ONE,
    Pattern.MANY_TO_ONE,
    Pattern.ONE_TO_MANY,
    Pattern.GROUP_TO_GROUP,
    Pattern.FULL_MESH,
    Pattern.SAME_PORT,
)


def test_two_ports_send_to_each_other_or_one_way() -> None:
    one, both = ways_of(ONE, 2), ways_of(ONE, 2, bidirectional=True)
    assert (one.loaded, one.every, one.basis) == (((0, 1),), ((0, 1), (1, 0)), "per port")
    assert (both.loaded, both.basis) == (((0, 1), (1, 0)), "per port of 2 that send at once")


def test_pairs_are_neighbours() -> None:
    assert ways_of(ONE, 4).forward == ((0, 1), (2, 3))
    assert ways_of(ONE, 4, bidirectional=True).loaded == ((0, 1), (2, 3), (1, 0), (3, 2))


def test_many_send_to_the_first_and_the_first_to_many() -> None:
    assert ways_of(MANY, 4).loaded == ((1, 0), (2, 0), (3, 0))
    assert ways_of(SPREAD, 4).loaded == ((0, 1), (0, 2), (0, 3))
    assert ways_of(MANY, 4).basis == "the sum of 3 ports that send to one"
    assert ways_of(SPREAD, 4).basis == "of the port that sends to 3 others"


def test_every_port_of_one_half_sends_to_every_port_of_the_other() -> None:
    assert ways_of(HALVES, 4).loaded == ((0, 2), (0, 3), (1, 2), (1, 3))
    both = ways_of(HALVES, 4, bidirectional=True)
    assert both.loaded[4:] == ((2, 0), (3, 0), (2, 1), (3, 1))
    assert both.times_load == 4
    with pytest.raises(ValueError, match="two halves of the ports, and 5 is odd"):
        ways_of(HALVES, 5)


def test_in_a_full_mesh_every_port_sends_to_every_other() -> None:
    ways = ways_of(MESH, 3)
    assert set(ways.loaded) == {(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)}
    assert (ways.bidirectional, ways.reverse) == (True, ())


def test_one_port_alone_gets_its_frames_back() -> None:
    assert ways_of(ONE, 1).loaded == ((0, 0),)
    assert ways_of(SAME, 3).loaded == ((0, 0), (1, 1), (2, 2))


@pytest.mark.parametrize(
    ("pattern", "ports", "times"),
    [(ONE, 2, 1), (ONE, 6, 3), (MANY, 8, 1), (SPREAD, 8, 1), (HALVES, 8, 4), (MESH, 8, 8), (SAME, 4, 4)],
)
def test_what_goes_through_the_dut_in_loads(pattern: Pattern, ports: int, times: int) -> None:
    assert ways_of(pattern, ports).times_load == times


@pytest.mark.parametrize(("pattern", "most"), [(ONE, 1), (MANY, 3), (SPREAD, 1), (MESH, 1), (SAME, 1)])
def test_only_ports_that_send_to_one_can_offer_it_more_than_its_line_rate(pattern: Pattern, most: int) -> None:
    assert ways_of(pattern, 4).most_line_rates == most
    assert ways_of(pattern, 4, bidirectional=True).most_line_rates == 1  # the one that receives sends to all others


@given(st.sampled_from(Pattern), st.integers(3, 64), st.booleans())
def test_no_port_carries_more_than_the_load_in_a_direction_and_the_busiest_carries_it_all(
    pattern: Pattern, ports: int, bidirectional: bool
) -> None:
    ports += ports % 2
    ways = ways_of(pattern, ports, bidirectional=bidirectional)
    share = share_of_load(ways.loaded)
    assert len(set(ways.every)) == len(ways.every)
    sent = Counter(transmit for transmit, _ in ways.loaded)
    received = Counter(receive for _, receive in ways.loaded)
    busiest = max(*sent.values(), *received.values())
    assert busiest * share == pytest.approx(1.0)
    assert len(ways.loaded) * share == pytest.approx(times_load(ways.loaded))
    assert times_load(ways.loaded) == round(times_load(ways.loaded))


@given(st.sampled_from(Pattern), st.integers(3, 20), st.integers(1000, 10**8))
def test_a_number_of_frames_is_divided_among_the_ways_without_one_too_many_or_few(
    pattern: Pattern, ports: int, frames: int
) -> None:
    ways = ways_of(pattern, ports + ports % 2)
    parts = frames_of_ways(ways.loaded, frames)
    assert sum(parts) == frames * ways.times_load
    assert max(parts) - min(parts) <= 1


@pytest.mark.parametrize("pattern", [MANY, SPREAD, MESH])
def test_a_pattern_that_needs_three_ports_says_so(pattern: Pattern) -> None:
    with pytest.raises(ValueError, match=f"{pattern.value} needs 3 ports or more, not 2"):
        ways_of(pattern, 2)


def test_a_port_without_a_partner_is_refused() -> None:
    with pytest.raises(ValueError, match="3 is odd"):
        ways_of(ONE, 3)


def test_one_direction_is_known_by_the_order_of_the_ways() -> None:
    for pattern in (ONE, MANY, SPREAD, SAME):
        ways = ways_of(pattern, 4)
        assert forward_of(ways.every) == ways.forward


def test_a_stream_is_called_after_its_way() -> None:
    assert way_of_stream("0->12 voice") == (0, 12)
    assert way_of_stream("forward") is None


# The order in which configurations take turns.


def names(turns: tuple[Turn, ...]) -> list[tuple[int, str]]:
    return [(turn.run, turn.configuration) for turn in turns]


@pytest.mark.parametrize("configurations", ["ab", "abc", "abcde"])
def test_every_run_has_each_configuration_once(configurations: str, draw: random.Random) -> None:
    turns = interleave_turns(configurations, 5, draw.randrange(1000))
    for run in range(1, 6):
        assert sorted(turn.configuration for turn in turns if turn.run == run) == list(configurations)
    assert [turn.run for turn in turns] == sorted(turn.run for turn in turns)
    assert [(turn.number, turn.of) for turn in turns] == [(number, len(turns)) for number in range(1, len(turns) + 1)]


def test_a_steady_drift_shifts_no_configuration_against_another(draw: random.Random) -> None:
    turns = interleave_turns("abc", 4, draw.randrange(1000))
    places = {name: fmean(turn.number for turn in turns if turn.configuration == name) for name in "abc"}
    assert len(set(places.values())) == 1


def test_the_same_seed_gives_the_same_order_and_not_every_seed_does() -> None:
    assert interleave_turns("ab", 6, 7) == interleave_turns("ab", 6, 7)
    assert len({interleave_turns("ab", 6, seed) for seed in range(20)}) > 1


def test_keys_are_those_of_the_turn_and_one_turn_alone_leaves_them() -> None:
    assert ALONE.key("throughput/0/0") == "throughput/0/0"
    assert interleave_turns(["default"], 1, 1) == (ALONE,)
    assert interleave_turns(["default"], 2, 1)[1].key("throughput/0/0") == "default/2/throughput/0/0"


def test_runs_that_warm_up_come_first_and_change_nothing_in_the_order_of_the_pairs() -> None:
    asked = Runs(warm_up=1, at_least=4, at_most=4)
    warm = interleave_turns("abc", asked, 5)
    assert [turn.warm_up for turn in warm] == [True] * 3 + [False] * 12
    assert sorted(turn.configuration for turn in warm[:3]) == ["a", "b", "c"]
    assert [turn.configuration for turn in warm[3:]] == [turn.configuration for turn in interleave_turns("abc", 4, 5)]
    assert str(warm[0]).endswith(", run 1 (warm-up)")
    assert [turn.run for turn in warm[3:6]] == [2, 2, 2]
