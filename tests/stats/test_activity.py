"""The statistics of the runs in summary.json: every figure against SciPy and NumPy, outliers by the run's number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy

from nicbench.core.events import RoundFinished, StageStarted, TestStarted, TrialFinished, TrialStarted, TurnStarted
from nicbench.core.judging import Verdict
from nicbench.core.reading import Counts
from nicbench.core.round import Round, RoundRequest
from nicbench.core.trial import Health, Purpose, Reading, Trial, TrialRequest
from nicbench.stats.activity import TimeLeft, duration_s
from nicbench.stats.bootstrap import IntervalSpec
from nicbench.stats.runs import describe_runs

RUNS = (1, 2, 3, 4, 5, 6, 7, 8, 9)
VALUES = (10.1, 10.4, 9.9, 10.0, 10.2, 10.3, 10.15, 10.05, 14.0)


def test_every_figure_is_that_of_scipy_and_numpy() -> None:
    found = describe_runs(RUNS, VALUES, IntervalSpec(seed=1))
    values = np.array(VALUES)
    assert (found.n, found.minimum, found.maximum) == (9, 9.9, 14.0)
    assert found.mean == pytest.approx(values.mean())
    assert found.median == np.median(values)
    assert found.sample_standard_deviation == pytest.approx(values.std(ddof=1))
    assert found.population_standard_deviation == pytest.approx(values.std(ddof=0))
    assert found.coefficient_of_variation == pytest.approx(values.std(ddof=1) / values.mean())


def test_the_interval_of_the_mean_is_that_of_scipy_within_the_noise_of_resampling() -> None:
    found = describe_runs(RUNS, VALUES, IntervalSpec(seed=1))
    whole = scipy.stats.bootstrap((VALUES,), np.mean, n_resamples=100_000, method="BCa", rng=np.random.default_rng(1))
    assert found.mean_interval.lower == pytest.approx(whole.confidence_interval.low, abs=0.02)
    assert found.mean_interval.upper == pytest.approx(whole.confidence_interval.high, abs=0.1)
    assert (found.mean_interval.seed, found.mean_interval.resamples) == (1, 10_000)
    assert found.median_interval.method == "BCa bootstrap"


def test_an_outlier_is_named_by_its_run_and_counts_all_the_same() -> None:
    found = describe_runs(RUNS, (None, *VALUES[1:]), IntervalSpec(seed=1))
    assert [(one.run, one.value) for one in found.outliers] == [(9, 14.0)]
    assert found.maximum == 14.0
    assert found.n == 8
    assert found.outlier_rule.startswith("Tukey's fences")


def test_one_run_has_no_spread_and_says_why() -> None:
    found = describe_runs((1,), (5.0,), IntervalSpec(seed=1))
    assert (found.sample_standard_deviation, found.median_interval.lower) == (None, None)
    assert found.median_interval.notes == ("one value alone says nothing of how it varies",)
    assert describe_runs((1, 2), (None, None), IntervalSpec(seed=1)) is None


# How much of a run is left, as far as that can be known.


PLANNED = [("throughput", 60.0), ("latency", 20.0)]
CALIBRATING = StageStarted(stage="calibration", text="calibrating without a DUT: all of it")
FIRST_TEST = TestStarted(test="throughput", method="throughput", points=1, estimate_s=60.0)
SECOND_TEST = TestStarted(test="latency", method="latency", points=1, estimate_s=20.0)


def trial_finished() -> TrialFinished:
    """A trial of 28 s, which takes 30 s."""
    return TrialFinished(trial=trial(28.0))


def trial(for_s: float) -> Trial:
    request = TrialRequest(
        frame_bytes=64, load_frames_per_s=1e3, duration_s=for_s, drain_s=1.0, settle_s=0.5, purpose=Purpose.SEARCH
    )
    counts = Counts(intended=1000, sent=1000, received=990, lost=10)
    reading = Reading(transmit_ns=1, counts=counts, streams=(), ports=(), latency=None, health=Health())
    return Trial(
        id="t0001",
        key="throughput/64/0",
        test="throughput",
        configuration="default",
        parameters={"frame_bytes": 64},
        repeat=0,
        request=request,
        reading=reading,
        verdict=Verdict(),
    )


def test_a_turn_that_begins_leaves_those_before_it_behind() -> None:
    """Also where a resumed run made none of their trials."""
    planned = [("a/1/throughput", 60.0), ("b/1/throughput", 60.0), ("b/2/throughput", 60.0), ("a/2/throughput", 60.0)]
    time_left = TimeLeft(planned)
    time_left.note(TurnStarted(configuration="b", run=2, number=3, of=4))
    assert time_left.estimate.text() == "about 2 min left"
    time_left.note(FIRST_TEST)
    time_left.note(trial_finished())
    assert time_left.estimate.text() == "about 90 s left"
    time_left.note(TurnStarted(configuration="a", run=2, number=4, of=4))
    assert time_left.estimate.text() == "about 60 s left"


def test_a_finished_round_of_workloads_shortens_what_is_left() -> None:
    one = Round(
        id="r0001",
        key="throughput/0/0",
        test="throughput",
        configuration="default",
        parameters={},
        repeat=0,
        request=RoundRequest(jobs=(), duration_s=12.0),
        outcomes=(),
        verdict=Verdict(),
    )
    assert left_after(FIRST_TEST, RoundFinished(round=one)) == "about 68 s left"


GROWING = [(f"{name}/{run}/throughput", 60.0) for run in (1, 2, 3, 4) for name in ("a", "b")]


def test_where_the_number_of_runs_grows_the_time_to_the_next_decision_and_to_the_cap_are_told() -> None:
    time_left = TimeLeft(GROWING, ends=[4, 8])
    time_left.note(TurnStarted(configuration="a", run=1, number=1, of=8, at_most=True))
    assert time_left.estimate.text() == "about 4 min left (8 min with all runs)"
    time_left.note(TurnStarted(configuration="b", run=2, number=4, of=8, at_most=True))
    assert time_left.estimate.text() == "about 60 s left (5 min with all runs)"
    time_left.note(TurnStarted(configuration="a", run=3, number=5, of=8, at_most=True))
    assert time_left.estimate.text() == "about 4 min left"


def left_after(*events: Any, calibration_s: float = 0.0) -> str | None:
    time_left = TimeLeft([("calibration", calibration_s), *PLANNED])
    for event in events:
        time_left.note(event)
    return time_left.estimate.text()


def test_a_finished_trial_shortens_what_is_left() -> None:
    assert left_after(FIRST_TEST, trial_finished()) == "about 50 s left"


def test_what_a_resumed_run_has_of_a_test_is_not_left_of_it() -> None:
    """Nine of ten intervals of a soak over ten hours."""
    time_left = TimeLeft([("soak", 36e3)])
    time_left.note(
        TestStarted(test="soak", method="soak", points=10, estimate_s=36e3, kept=9, kept_s=9 * duration_s(trial(3598)))
    )
    assert time_left.estimate.text() == "about 60 min left"
    assert time_left.estimate.share_done() == pytest.approx(0.9)
    assert left_after(FIRST_TEST.replace(kept=2, kept_s=60.0), SECOND_TEST) == "about 20 s left"


def test_the_calibration_has_a_share_of_its_own_and_gives_back_what_it_did_not_use() -> None:
    assert left_after(StageStarted(stage="tester", text=""), CALIBRATING, calibration_s=40.0) == "about 2 min left"
    assert left_after(CALIBRATING, trial_finished(), calibration_s=40.0) == "about 90 s left"
    assert left_after(CALIBRATING, FIRST_TEST, calibration_s=40.0) == "about 80 s left"


def test_a_test_that_ends_early_gives_its_time_back() -> None:
    assert left_after(FIRST_TEST, trial_finished(), SECOND_TEST) == "about 20 s left"


def test_a_test_that_takes_longer_than_planned_is_said_to() -> None:
    assert left_after(FIRST_TEST, *[trial_finished()] * 2) == "about 20 s left"
    assert left_after(FIRST_TEST, *[trial_finished()] * 5) == "about 20 s left after this test"


def test_nothing_is_said_where_nothing_is_known() -> None:
    assert left_after(FIRST_TEST, SECOND_TEST, trial_finished()) is None  # its 20 s are over, and it goes on
    assert TimeLeft([]).estimate.text() is None


def trial_started() -> TrialStarted:
    return TrialStarted(
        test="throughput",
        parameters={"frame_bytes": 64},
        purpose="search",
        load_frames_per_s=1e3,
        duration_s=28.0,
        repeat=0,
    )


def test_what_is_left_moves_while_a_trial_runs_and_no_further_than_to_its_end() -> None:
    time_left = TimeLeft(PLANNED)
    for event in (FIRST_TEST, trial_started()):
        time_left.note(event)
    estimate = time_left.estimate
    assert [estimate.text(since_s) for since_s in (-60.0, 0.0, 14.0, 28.0, 1e6)] == [
        "about 80 s left",
        "about 80 s left",
        "about 66 s left",
        "about 52 s left",
        "about 52 s left",
    ]
    assert [estimate.share_done(since_s) for since_s in (0.0, 14.0, 1e6)] == [0.0, 0.175, 0.35]
    time_left.note(trial_finished())
    assert time_left.estimate.text(1e6) == "about 50 s left"  # nothing moves between trials


def test_a_repeat_beyond_the_plan_is_said_to_be_one_while_it_runs() -> None:
    time_left = TimeLeft(PLANNED)
    for event in (FIRST_TEST, trial_finished(), trial_finished(), trial_started()):
        time_left.note(event)
    assert time_left.estimate.text(0.0) == "about 20 s left"
    assert time_left.estimate.text(10.0) == "about 20 s left after this test"
