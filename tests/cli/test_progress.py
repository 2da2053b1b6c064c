"""What a user sees while a run goes on."""

from __future__ import annotations

import io
import re
import threading

import pytest
from rich.console import Console
from rich.live import Live

from nicbench.cli import progress
from nicbench.cli.output import say
from nicbench.cli.progress import LiveView, make_progress
from nicbench.core.events import (
    CeilingFound,
    IntervalsChecked,
    Note,
    RunFinished,
    StageStarted,
    TestStarted,
    TrialFinished,
    TrialStarted,
    TurnStarted,
)
from nicbench.core.judging import Finding, Reason, Verdict
from nicbench.core.reading import Counts
from nicbench.core.result import ResultVerdict
from nicbench.core.trial import Health, Purpose, Reading, Trial, TrialRequest
from nicbench.stats.activity import TimeLeft

PLANNED = [("throughput", 60.0), ("latency", 20.0)]
CALIBRATING = StageStarted(stage="calibration", text="calibrating without a DUT: all of it")
FIRST_TEST = TestStarted(test="throughput", method="throughput", points=1, estimate_s=60.0)
SECOND_TEST = TestStarted(test="latency", method="latency", points=1, estimate_s=20.0)


def trial_started(duration_s: float = 28.0) -> TrialStarted:
    return TrialStarted(
        test="throughput",
        parameters={"frame_bytes": 64},
        purpose="search",
        load_frames_per_s=412_000.0,
        duration_s=duration_s,
        repeat=0,
    )


def trial_finished(number: int = 1, *, unsent: bool = False) -> TrialFinished:
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
    words = f"{number} % of the frames were not sent"
    finding = Finding(reason=Reason.UNSENT, threshold="unsent_share", value=number / 100, limit=0.001, text=words)
    return TrialFinished(
        trial=Trial(
            id=f"t{number:04}",
            key=f"throughput/64/{number}",
            test="throughput",
            configuration="default",
            parameters={"frame_bytes": 64},
            repeat=0,
            request=request,
            reading=reading,
            verdict=Verdict(findings=(finding,) if unsent else ()),
        )
    )


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> io.StringIO:
    """What stderr would show; a terminal where the test is marked so by its parameter."""
    shown = io.StringIO()
    terminal = request.param
    monkeypatch.setenv("TERM", "xterm" if terminal else "dumb")  # whatever the terminal of whoever runs the tests
    console = Console(file=shown, force_terminal=terminal, width=120, color_system=None, legacy_windows=False)
    monkeypatch.setattr(progress, "messages", lambda: console)
    return shown


@pytest.mark.parametrize("screen", [True], indirect=True)
def test_a_terminal_shows_test_size_trial_load_and_time_left(screen: io.StringIO) -> None:
    with make_progress(PLANNED, enabled=True) as display:
        display.show(FIRST_TEST)
        display.show(trial_started())
    for text in ("throughput", "64 bytes", "trial 1", "412.0 kpps", "about 80 s left"):
        assert text in screen.getvalue()


@pytest.mark.parametrize("screen", [True], indirect=True)
def test_nothing_runs_or_draws_while_a_short_trial_runs(screen: io.StringIO) -> None:
    threads = threading.active_count()
    with make_progress(PLANNED, enabled=True) as display:
        display.show(FIRST_TEST)
        display.show(trial_started(duration_s=2.0))
        assert threading.active_count() == threads


@pytest.mark.parametrize("screen", [True], indirect=True)
def test_what_looks_at_the_clock_during_a_long_trial_ends_with_it(screen: io.StringIO) -> None:
    def looking() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name == "time left"]

    with make_progress(PLANNED, enabled=True) as display:
        display.show(FIRST_TEST)
        display.show(trial_started())
        (first,) = looking()
        display.show(Note(level="info", text="a note within the trial"))
        assert looking() == [first]
        display.show(trial_finished())
        first.join(10)
        assert not looking()


def test_the_time_left_moves_within_a_trial_and_what_reads_the_same_is_not_drawn_again() -> None:
    shown, now = io.StringIO(), [0.0]
    console = Console(file=shown, force_terminal=True, width=120, color_system=None, legacy_windows=False)
    with Live(console=console, auto_refresh=False) as live:
        view = LiveView(live, TimeLeft(PLANNED), clock=lambda: now[0])
        for event in (FIRST_TEST, trial_started()):
            view.show(event)
        before = len(shown.getvalue())
        now[0] = 0.2
        view.look()
        assert len(shown.getvalue()) == before
        now[0] = 14.0
        view.look()
        assert "about 66 s left" in shown.getvalue()[before:]
        view.close()


@pytest.mark.parametrize("screen", [False], indirect=True)
@pytest.mark.parametrize(("method", "bound"), [("latency", "about"), ("stream", "about")])
def test_a_test_of_tools_takes_about_so_long_and_one_of_frames_at_most(
    screen: io.StringIO, method: str, bound: str
) -> None:
    with make_progress(PLANNED, enabled=True) as display:
        display.show(TestStarted(test="mine", method=method, points=2, estimate_s=12.0))
    assert screen.getvalue() == f"test mine ({method}): 2 points, {bound} 12 s\n"


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
        "test throughput (throughput): 1 point, about 60 s",
        "  t0001  throughput  64 bytes  search  412.0 kpps  lost 10 of 1000  valid",
    ]


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
    assert "b, run 1 (turn 2 of 2)" in shown


@pytest.mark.parametrize("screen", [False], indirect=True)
def test_a_log_names_runs_that_warm_up_and_says_whether_the_runs_are_enough(screen: io.StringIO) -> None:
    with make_progress([("a/1/throughput", 60.0)], enabled=True) as display:
        display.show(TurnStarted(configuration="a", run=1, number=1, of=8, warm_up=True, at_most=True))
        display.show(IntervalsChecked(runs=2, reached=False, text="not reached: the interval is 8.1 % wide"))
    assert screen.getvalue().splitlines() == [
        "configuration a, run 1 (warm-up) (turn 1 of at most 8)",
        "precision of the mean: not reached: the interval is 8.1 % wide",
    ]


TWELVE_UNSENT = [FIRST_TEST, *(trial_finished(number, unsent=True) for number in range(1, 13))]


@pytest.mark.parametrize("screen", [False], indirect=True)
def test_a_log_has_the_first_of_trials_that_are_invalid_alike_and_counts_the_others(screen: io.StringIO) -> None:
    with make_progress(PLANNED, enabled=True) as display:
        for event in (*TWELVE_UNSENT, trial_finished(13), SECOND_TEST):
            display.show(event)
    assert screen.getvalue().splitlines() == [
        "test throughput (throughput): 1 point, about 60 s",
        "  t0001  throughput  64 bytes  search  412.0 kpps  lost 10 of 1000  invalid: unsent",
        "  t0013  throughput  64 bytes  search  412.0 kpps  lost 10 of 1000  valid",
        "  12 trials invalid: unsent, first at 64 bytes, 412.0 kpps (t0001)",
        "test latency (latency): 1 point, about 20 s",
    ]


@pytest.mark.parametrize("screen", [True, False], indirect=True)
def test_what_is_said_again_is_counted_until_the_test_ends(screen: io.StringIO) -> None:
    note = Note(level="warning", text="the monitor of dut is gone")
    with make_progress(PLANNED, enabled=True) as display:
        for event in (FIRST_TEST, note, note, note, SECOND_TEST, RunFinished(verdict=ResultVerdict.VALID)):
            display.show(event)
    assert screen.getvalue().count("warning: the monitor of dut is gone\n") == 1
    assert screen.getvalue().count("  said 2 times more: the monitor of dut is gone\n") == 1


@pytest.mark.parametrize("screen", [True], indirect=True)
def test_warnings_notes_and_what_others_say_stand_above_the_view_and_stay(screen: io.StringIO) -> None:
    with make_progress(PLANNED, enabled=True) as display:
        display.show(FIRST_TEST)
        display.show(Note(level="info", text="a [repeat] was due"))
        say("stopping: undoing all changes")
        display.show(trial_started())
    kept = kept_lines(screen.getvalue())
    assert kept == ["a [repeat] was due", "stopping: undoing all changes"]


def kept_lines(raw: str) -> list[str]:
    """What is left on a terminal, by the few sequences that a live view uses."""
    lines, at = [""], 0
    for part in re.split(r"(\r|\n|\x1b\[[0-9;?]*[A-Za-z])", raw):
        if part == "\n":
            at += 1
            lines += [""] * (at + 1 - len(lines))
        elif part == "\x1b[2K":
            lines[at] = ""
        elif part == "\x1b[1A":
            at -= 1
        elif part and part != "\r" and not part.startswith("\x1b"):
            lines[at] += part
    return [line for line in lines if line]


@pytest.mark.parametrize("screen", [True], indirect=True)
def test_the_cursor_is_shown_again_whatever_ends_the_run(screen: io.StringIO) -> None:
    def stop_a_run() -> None:
        with make_progress(PLANNED, enabled=True) as display:
            display.show(FIRST_TEST)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop_a_run()
    assert screen.getvalue().rindex("\x1b[?25h") > screen.getvalue().rindex("\x1b[?25l")


@pytest.mark.parametrize("screen", [True], indirect=True)
def test_a_terminal_that_moves_no_cursor_gets_lines(screen: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with make_progress(PLANNED, enabled=True) as display:
        display.show(FIRST_TEST)
    assert screen.getvalue() == "test throughput (throughput): 1 point, about 60 s\n"
