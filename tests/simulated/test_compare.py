"""The table of every search on the same DUTs (``compare.py``), a quarter as many: what must hold for any seed."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import pytest

from nicbench.core.registry import find
from nicbench.search.base import Search

from ._classes import CLASSES
from .compare import CONTESTANTS, ESTIMATE, FEWER, GOALS, MLR, PEERS, Row, compare, table

OF_EACH = 4
SEEDS = (1, 2, 3)
BY_CHANCE = ("rare loss", "bistable")
"""Chance decides what a trial of these sees, and so how many of them the worst of the class needs."""
CERTAIN = ("sharp knee", "rare loss", "tester saturates", "tester falls short")
"""Trials of these do not differ by chance, or seldom."""
NO_WORSE, NO_WORSE_BY_CHANCE = 1.2, 2.0
_rows: dict[int, list[Row]] = {}


@pytest.fixture
def rows(session_seed: int, record_property: Callable[[str, object], None]) -> list[Row]:
    """Made once in each process, and shown in the closing lines: every run of the tests has other DUTs."""
    if session_seed not in _rows:
        _rows[session_seed] = compare(session_seed, of_each=OF_EACH)
    record_property("shown", f"seed {session_seed}\n{table(_rows[session_seed])}")
    return _rows[session_seed]


def of(rows: list[Row], class_name: str, search: str) -> Row:
    return next(row for row in rows if (row.class_name, row.search) == (class_name, search))


def test_every_search_there_is_takes_part(rows: list[Row]) -> None:
    assert {contestant.search.kind for contestant in CONTESTANTS} == set(find("nicbench.search", Search))
    assert len(rows) == len(CLASSES) * len(CONTESTANTS)
    assert {len(row.traffic_s) for row in rows} == {OF_EACH, max(1, OF_EACH // FEWER)}


def test_mlr_needs_no_more_traffic_than_the_better_bisection(rows: list[Row]) -> None:
    """Over all DUTs of three classes: of the four of one class, chance may need two for longer."""

    def traffic_s(search: str) -> float:
        return sum(sum(of(rows, name, search).traffic_s) for name in ("sharp knee", "soft knee", "linear loss"))

    assert traffic_s(MLR.name) <= min(traffic_s(peer.name) for peer in PEERS), table(rows)


def test_every_search_answers_every_dut_with_an_interval_that_was_asked_for(rows: list[Row]) -> None:
    for row in rows:
        if row.class_name not in ("rare loss", "bistable"):
            assert row.unanswered == 0, table(rows)
            if row.search != ESTIMATE.name:
                assert row.unsettled == 0, table(rows)
            elif row.class_name in CERTAIN:
                # An estimate is as wide as its trials say; where these hardly differ, one of sixteen may be open.
                assert row.unsettled <= 1, table(rows)


@pytest.mark.parametrize("class_name", ["sharp knee", "tester saturates", "tester falls short"])
def test_where_a_rate_is_sharp_every_search_finds_it_within_the_precision(rows: list[Row], class_name: str) -> None:
    for contestant in CONTESTANTS:
        for goal in GOALS:
            assert max(of(rows, class_name, contestant.name).errors[goal.name]) <= 0.01, table(rows)


@pytest.mark.acceptance
@pytest.mark.parametrize("class_name", [name for name, _ in CLASSES])
def test_mlr_costs_hardly_more_than_bisection_on_any_class(
    class_name: str, record_property: Callable[[str, object], None]
) -> None:
    """Of the same 150 DUTs every time; the worst ones too, as far as chance leaves it to the search."""
    rows = [row for seed in SEEDS for row in compare(seed, (PEERS[-1], MLR), classes=class_name)]
    record_property("shown", table(rows))

    def costs(search: str) -> dict[str, list[float]]:
        own = [row for row in rows if row.search == search]
        return {
            "traffic": [seconds for row in own for seconds in row.traffic_s],
            "trials": [float(count) for row in own for count in row.trials],
        }

    peer, ours = costs(PEERS[-1].name), costs(MLR.name)
    for cost in ("traffic", "trials"):
        assert statistics.median(ours[cost]) <= NO_WORSE * statistics.median(peer[cost]), table(rows)
        allowed = NO_WORSE_BY_CHANCE if class_name in BY_CHANCE else NO_WORSE
        assert max(ours[cost]) <= allowed * max(peer[cost]), table(rows)
