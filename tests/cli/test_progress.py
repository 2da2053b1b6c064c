"""What a user sees while a run goes on."""

from __future__ import annotations

import io
import threading
from typing import Any

import pytest
from rich.console import Console

from nicbench.cli import progress
from nicbench.cli.progress import TimeLeft, make_progress
from nicbench.core.events import (
    CeilingFound,
    IntervalsChecked,
    Note,
    RoundFinished,
    StageStarted,
    TestStarted,
    TrialFinished,
    TrialStarted,
    TurnStarted,
)
from nicbench.core.reading import Counts
from nicbench.core.round import Round, RoundRequest
from nicbench.core.trial import Health, Purpose, Reading, Trial, TrialRequest
from nicbench.core.verdict import Verdict

PLANNED = [("throughput", 60.0), ("latency", 20.0)]
CALIBRATING = StageStarted(stage="calibration", text="calibrating without a DUT: all of it")
FIRST_TEST = TestStarted(test="throughput", method="throughput", points=1, estimate_s=60.0)
SECOND_TEST = TestStarted(test="latency", method="latency", points=1, estimate_s=20.0)


def trial_started() -> TrialStarted:
    return TrialStarted(
        test="throughput",
        parameters={"frame_bytes": 64},
        purpose="search",
        load_frames_per_s=412_000.0,
        duration_s=28.0,
        repeat=0,
    )


def trial_finished() -> TrialFinished:
    request = TrialRequest(
        frame_bytes=64,
        load_frames_per_s=412_000.0,
        duration_s=28.0,
        drain_s=1.0,
        settle_s=0.5,
        purpose=Purpose.SEARCH,
    )
    counts = Counts(intended=1000, sent=1000, received=990, lost=10)
    health = Health(longest_gap_ns=0, total_gap_ns=0, gap_floor_ns=100_000, gaps=0, iterations=1, idle_iterations=0)
    reading = Reading(transmit_ns=1, counts=counts, streams=(), ports=(), latency=None, health=health)
    return TrialFinished(
        trial=Trial(
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
    )


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> io.StringIO:
    """What stderr would show; a terminal where the test is marked so by its parameter."""
    shown = io.StringIO()
    terminal: bool = request.param
    monkeypatch.setenv("TERM", "xterm" if terminal else "dumb")  # whatever the terminal of whoever runs the tests
    console = Console(file=shown, force_terminal=terminal, width=120, color_system=None, legacy_windows=False)
    monkeypatch.setattr(progress, "messages", lambda: console)
    return shown


@pytest.mark.parametrize("screen", [True], indirect=True)
def test_a_terminal_shows_test_size_trial_load_and_time_left(screen: io.StringIO) -> None:
    with make_progress(PLANNED, enabled=True) as display:
        display.show(FIRST_TEST)
        display.show(trial_started())
    for text in ("throughput", "64 bytes", "trial 1", "412.0 kpps", "at most 80 s left"):
        assert text in screen.getvalue()


@pytest.mark.parametrize("screen", [True], indirect=True)
def test_nothing_runs_or_draws_while_a_trial_runs(screen: io.StringIO) -> None:
    threads = threading.active_count()
    with make_progress(PLANNED, enabled=True) as display:
        display.show(FIRST_TEST)
        display.show(trial_started())
        assert threading.active_count() == threads


@pytest.mark.parametrize("screen", [False], indirect=True)
def test_a_log_gets_one_plain_line_for_each_trial(screen: io.StringIO) -> None:
    with make_progress(PLANNED, enabled=True) as display:
        display.show(StageStarted(stage="testbed", text="making the testbed"))
        display.show(CALIBRATING)
        display.show(CeilingFound(frame_bytes=64, ceiling_frames_per_s=1e6, calibrated=True, text="it sends 1 Mpps"))
        display.show(FIRST_TEST)
        display.show(trial_started())
        display.show(trial_finished())
    assert screen.getvalue().splitlines() == [
        "making the testbed",
        "calibrating without a DUT: all of it",
        "  it sends 1 Mpps",
        "test throughput (throughput): 1 points, at most 60 s",
        "  t0001  throughput  64 bytes  search  412.0 kpps  lost 10 of 1000  valid",
    ]


@pytest.mark.parametrize("screen", [False, True], indirect=True)
def test_estimates_of_rounds_are_no_bounds(screen: io.StringIO) -> None:
    with make_progress(PLANNED, enabled=True, bound="about") as display:
        display.show(FIRST_TEST)
    assert "about " in screen.getvalue()
    assert "at most" not in screen.getvalue()


@pytest.mark.parametrize("screen", [False], indirect=True)
def test_without_progress_only_warnings_are_said(screen: io.StringIO) -> None:
    with make_progress(PLANNED, enabled=False) as display:
        display.show(FIRST_TEST)
        display.show(trial_finished())
        display.show(Note(level="info", text="nothing of note"))
        display.show(Note(level="warning", text="a torn line [was] dropped"))
    assert screen.getvalue() == "warning: a torn line [was] dropped\n"


@pytest.mark.parametrize("screen", [True, False], indirect=True)
def test_whose_turn_it_is_is_said(screen: io.StringIO) -> None:
    with make_progress([("a/1/throughput", 60.0), ("b/1/throughput", 60.0)], enabled=True) as display:
        display.show(TurnStarted(configuration="b", run=1, number=2, of=2))
        display.show(FIRST_TEST)
        display.show(trial_started())
    shown = screen.getvalue()
    assert "configuration b, run 1 (turn 2 of 2)" in shown or "b, run 1  throughput  64 bytes  trial 1" in shown


def test_a_turn_that_begins_leaves_those_before_it_behind() -> None:
    """Also where a resumed run made none of their trials."""
    planned = [("a/1/throughput", 60.0), ("b/1/throughput", 60.0), ("b/2/throughput", 60.0), ("a/2/throughput", 60.0)]
    time_left = TimeLeft(planned)
    time_left.note(TurnStarted(configuration="b", run=2, number=3, of=4))
    assert time_left.text() == "at most 2 min left"
    time_left.note(FIRST_TEST)
    time_left.note(trial_finished())
    assert time_left.text() == "at most 90 s left"
    time_left.note(TurnStarted(configuration="a", run=2, number=4, of=4))
    assert time_left.text() == "at most 60 s left"


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
    assert left_after(FIRST_TEST, RoundFinished(round=one)) == "at most 68 s left"


GROWING = [(f"{name}/{run}/throughput", 60.0) for run in (1, 2, 3, 4) for name in ("a", "b")]


def test_where_the_number_of_runs_grows_the_time_to_the_next_decision_and_to_the_cap_are_told() -> None:
    time_left = TimeLeft(GROWING, ends=[4, 8])
    time_left.note(TurnStarted(configuration="a", run=1, number=1, of=8, at_most=True))
    assert time_left.text() == "at most 4 min left (8 min with all runs)"
    time_left.note(TurnStarted(configuration="b", run=2, number=4, of=8, at_most=True))
    assert time_left.text() == "at most 60 s left (5 min with all runs)"
    time_left.note(TurnStarted(configuration="a", run=3, number=5, of=8, at_most=True))
    assert time_left.text() == "at most 4 min left"


@pytest.mark.parametrize("screen", [False], indirect=True)
def test_a_log_names_runs_that_warm_up_and_says_whether_the_runs_are_enough(screen: io.StringIO) -> None:
    with make_progress(GROWING, enabled=True) as display:
        display.show(TurnStarted(configuration="a", run=1, number=1, of=8, warm_up=True, at_most=True))
        display.show(IntervalsChecked(runs=2, reached=False, text="not reached: the interval is 8.1 % wide"))
    assert screen.getvalue().splitlines() == [
        "configuration a, run 1 (warm-up) (turn 1 of at most 8)",
        "precision of the mean: not reached: the interval is 8.1 % wide",
    ]


def left_after(*events: Any, calibration_s: float = 0.0) -> str:
    time_left = TimeLeft([("calibration", calibration_s), *PLANNED])
    for event in events:
        time_left.note(event)
    return time_left.text()


def test_a_finished_trial_shortens_what_is_left() -> None:
    assert left_after(FIRST_TEST, trial_finished()) == "at most 50 s left"


def test_the_calibration_has_a_share_of_its_own_and_gives_back_what_it_did_not_use() -> None:
    assert left_after(StageStarted(stage="tester", text=""), CALIBRATING, calibration_s=40.0) == "at most 2 min left"
    assert left_after(CALIBRATING, trial_finished(), calibration_s=40.0) == "at most 90 s left"
    assert left_after(CALIBRATING, FIRST_TEST, calibration_s=40.0) == "at most 80 s left"


def test_a_test_that_ends_early_gives_its_time_back() -> None:
    assert left_after(FIRST_TEST, trial_finished(), SECOND_TEST) == "at most 20 s left"


def test_repeats_never_make_a_test_look_more_than_finished() -> None:
    assert left_after(FIRST_TEST, *[trial_finished()] * 5) == "at most 20 s left"
