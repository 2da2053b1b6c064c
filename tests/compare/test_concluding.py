"""What results come to over the runs, ended or not."""

from __future__ import annotations

import pytest

from nicbench.compare.matching import summarise_points, unfinished_summary
from nicbench.compare.points import seed_of
from nicbench.core.result import Bounded, Result, ResultVerdict, Spread
from nicbench.core.turn import ONCE

RATES = (2.0e6, 2.2e6, 2.4e6, 2.6e6)


def results(rates: tuple[float, ...] = RATES) -> tuple[Result, ...]:
    return tuple(
        Result(
            id=f"default/{run}/throughput/64",
            test="throughput",
            method="throughput",
            run=run,
            parameters={"frame_bytes": 64},
            values={"ndr_frames_per_s": Bounded(value=rate, lower=rate, upper=rate + 1), "line_rate_frames_per_s": 1e7},
        )
        for run, rate in enumerate(rates, start=1)
    )


def spread(found: tuple[Result, ...]) -> Spread:
    (over,) = found
    value = over.values["ndr_frames_per_s"]
    assert isinstance(value, Spread)
    return value


def test_main_values_have_statistics_and_the_seed_follows_from_the_run() -> None:
    found = spread(summarise_points(results(), ONCE, "a-run")).statistics
    assert found is not None
    assert (found.n, found.mean, found.median) == (4, pytest.approx(2.3e6), pytest.approx(2.3e6))
    assert found.median_interval.seed == seed_of("a-run")
    assert summarise_points(results(), ONCE, "a-run")[0].values["line_rate_frames_per_s"] == 1e7


def test_a_main_value_that_never_differs_has_them_too() -> None:
    value = spread(summarise_points(results((2e6, 2e6, 2e6)), ONCE, "a-run"))
    assert (value.minimum, value.maximum, value.n, value.runs) == (2e6, 2e6, 3, 3)
    assert value.statistics is not None
    assert value.statistics.sample_standard_deviation == 0.0


def test_a_run_that_goes_on_has_its_runs_so_far() -> None:
    summary = unfinished_summary(results(), None, "a-run", "A run")
    assert summary.verdict is ResultVerdict.INCOMPLETE
    assert spread(summary.over_runs) == spread(summarise_points(results(), ONCE, "a-run"))
