"""Runs made of results: whose run it is, which target it had, and what is known of it."""

from __future__ import annotations

import pytest

from nicbench.core.result import Result, Value
from nicbench.stats.frames import Target, TriedPoint, group_by_point


def result(
    number: int | None, *, run: int | None = 1, instances: int = 2, warm_up: bool = False, **values: Value
) -> Result:
    """Of an instance, or of all of them; measured."""
    part = {"part": "runs"} if number is None else {"part": "instances", "instance": number}
    return Result(
        id=f"frames/{run}/{number}",
        method="frames",
        run=run,
        warm_up=warm_up,
        parameters={**part, "direction": "read", "instances": instances},
        values=values,
    )


def only(*results: Result, default: Target | None = None) -> TriedPoint:
    (one,) = group_by_point(results, default).values()
    return one


def test_a_measured_result_says_itself_whose_run_it_is_and_one_that_warms_up_is_left_out() -> None:
    found = only(
        result(None, run=1, warm_up=True, sum_frames_per_s=1.0),
        result(None, run=3, sum_frames_per_s=3.0),
        result(None, run=2, sum_frames_per_s=2.0),
    )
    assert [(ran.run, ran.figures.sum_frames_per_s) for ran in found.runs] == [(2, 2.0), (3, 3.0)]


@pytest.mark.parametrize(
    "stated",
    [
        result(None, sum_frames_per_s=50.0, target_frames_per_s=60.0, tolerance_percent=5.0),
        result(1, frames_per_s=25.0, target_frames_per_s=30.0, tolerance_percent=5.0),
    ],
    ids=["of all together", "of one"],
)
def test_the_target_is_that_of_the_results(stated: Result) -> None:
    found = only(stated, default=Target())
    assert found.target == Target(30.0, 0.05)
    assert not found.is_assumed


@pytest.mark.parametrize("wrong", [0.0, -24.0, float("inf"), None])
def test_without_a_target_in_what_was_measured_there_is_none(wrong: float | None) -> None:
    found = only(result(None, sum_frames_per_s=50.0, target_frames_per_s=wrong), default=Target())
    assert found.target is None


def test_what_is_known_of_instances_comes_before_their_sum() -> None:
    found = only(
        result(None, sum_frames_per_s=50.0, bytes_per_s=5e8),
        result(1, frames_per_s=20.0, bytes_per_s=2e8),
        result(2, frames_per_s=24.0, bytes_per_s=3e8),
    )
    (ran,) = found.runs
    assert ran.figures.sum_frames_per_s == 44.0
    assert ran.bytes_per_s == 5e8
    assert ran.whole is not None
    assert [one is not None for one in ran.instances] == [True, True]


def test_bytes_of_some_instances_are_not_those_of_all() -> None:
    some = only(result(1, frames_per_s=20.0, bytes_per_s=2e8), result(2, frames_per_s=24.0))
    every = only(result(1, frames_per_s=20.0, bytes_per_s=2e8), result(2, frames_per_s=24.0, bytes_per_s=3e8))
    assert [some.runs[0].bytes_per_s, every.runs[0].bytes_per_s] == [None, 5e8]


def test_a_measured_run_of_which_nothing_is_known_met_nothing() -> None:
    found = only(result(None, sum_frames_per_s=None, target_frames_per_s=48.0))
    assert (found.over.runs, found.over.runs_known, found.over.runs_met) == (1, 0, 0)
