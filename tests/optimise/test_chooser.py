"""The search for the best settings on responses that are known: with noise, interactions and a cliff, and flat."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from nicbench.bench_file.optimised import Choice
from nicbench.optimise import Space, Tried, choose_best, choose_next, rank

pytest.importorskip("optuna")

VALUES = {
    "ring": ("256", "512", "1024", "2048", "4096"),
    "queues": ("1", "2", "4", "8"),
    "usecs": ("0", "8", "32", "128"),
    "mtu": ("1500", "4000", "9000"),
}
COMBINATIONS = 5 * 4 * 4 * 3
NOISE = 0.01
Response = Callable[[Choice], float]


def planted(seed: int) -> tuple[Response, Choice]:
    """A response whose optimum is known: each setting off it costs 6 % a step and more where two are off; beyond a
    cliff half is lost.
    """
    draw = random.Random(f"optimum {seed}")
    best = {name: draw.choice(values) for name, values in VALUES.items()}

    def response(choice: Choice) -> float:
        off = [abs(VALUES[name].index(choice[name]) - VALUES[name].index(best[name])) for name in VALUES]
        value = 1e6 * (1 - 0.06) ** sum(off) * (1 - 0.05 * (off[0] > 0 and off[1] > 0))
        cliff = (
            VALUES["usecs"].index(choice["usecs"]) > VALUES["usecs"].index(best["usecs"]) and choice["mtu"] == "9000"
        )
        return value * (0.5 if cliff else 1.0)

    return response, best


def search(response: Response, seed: int, *, trials: int, higher_is_better: bool = True) -> tuple[Tried, ...]:
    """Makes all trials of a search, each with noise."""
    space, noise = Space(VALUES, trials, seed, higher_is_better=higher_is_better), random.Random(f"noise {seed}")
    tried: tuple[Tried, ...] = ()
    while (choice := choose_next(space, tried)) is not None:
        value = response(choice) * (1 + noise.gauss(0.0, NOISE))
        tried = (*tried, Tried(choice=choice, run=f"{len(tried)}", value=value))
    return tried


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(10))
def test_a_planted_optimum_is_found_in_a_third_of_a_grids_trials(seed: int) -> None:
    response, best = planted(seed)
    tried = search(response, seed, trials=COMBINATIONS // 3)
    assert len(tried) == COMBINATIONS // 3
    assert choose_best(Space(VALUES, len(tried), seed), tried) == best


def test_least_is_found_as_most_is() -> None:
    response, best = planted(3)
    tried = search(lambda choice: 1e12 / response(choice), 3, trials=COMBINATIONS // 3, higher_is_better=False)
    assert choose_best(Space(VALUES, len(tried), 3, higher_is_better=False), tried) == best


def test_a_search_that_was_interrupted_goes_on_as_it_would_have() -> None:
    response, _ = planted(1)
    whole = search(response, 1, trials=20)
    space = Space(VALUES, 20, 1)
    assert all(choose_next(space, whole[:made]) == whole[made].choice for made in (0, 1, 7, 14, 19))
    assert choose_next(space, whole) is None


def test_the_first_values_come_first_and_leaders_are_tried_again() -> None:
    tried = search(planted(2)[0], 2, trials=40)
    assert tried[0].choice == {name: values[0] for name, values in VALUES.items()}
    assert len({tuple(one.choice.items()) for one in tried[:30]}) == 30
    assert all(one.choice in [each.choice for each in tried[:30]] for one in tried[30:])


def test_what_cannot_be_measured_is_not_tried_again_and_what_was_disturbed_says_nothing() -> None:
    space = Space({"a": ("1", "2"), "b": ("1", "2")}, 12, 1)
    tried: tuple[Tried, ...] = ()
    while (choice := choose_next(space, tried)) is not None:
        refused = choice["a"] == "2"
        value = None if refused or len(tried) == 1 else 1.0 + (choice["b"] == "2")
        why = "refused" if refused else "disturbed" if value is None else None
        tried = (*tried, Tried(choice=choice, run="", value=value, why=why, refused=refused))
    refusals = [one.choice for one in tried if one.refused]
    assert len(refusals) == 2
    assert choose_best(space, tried) == {"a": "1", "b": "2"}
    assert [choice for choice, _, _ in rank(space, tried)] == [{"a": "1", "b": "2"}, {"a": "1", "b": "1"}]


def test_without_any_value_there_is_no_best() -> None:
    tried = (Tried(choice={name: values[0] for name, values in VALUES.items()}, run="", why="disturbed"),)
    assert choose_best(Space(VALUES, 4, 1), tried) is None
