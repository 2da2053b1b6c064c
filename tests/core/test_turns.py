"""The order in which configurations take turns."""

from __future__ import annotations

import random
from statistics import fmean

import pytest

from nicbench.core.turn import ALONE, Runs, Turn, interleave_turns


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
