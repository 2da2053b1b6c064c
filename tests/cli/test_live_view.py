"""What the live view looks like, at the widths of terminals that people have.

The screens are files of ``golden``; NICBENCH_WRITE_GOLDEN=1 writes them anew, for a diff to be read.
"""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from rich.cells import cell_len
from rich.console import Console

from nicbench.cli.progress import view
from nicbench.core.events import (
    BoundsNarrowed,
    Event,
    GoalBounds,
    ResultReady,
    RoundBegun,
    RoundFinished,
    StageStarted,
    TestStarted,
    TrialFinished,
    TrialStarted,
    TurnStarted,
    Waiting,
)
from nicbench.core.judging import Finding, Reason, Verdict
from nicbench.core.reading import Counts, HealthEvent, HealthLevel, MachineHealth, Measure
from nicbench.core.result import Result, ResultVerdict
from nicbench.core.round import Figures, Flow, Job, JobOutcome, JobSpec, MachineCpu, Round, RoundRequest
from nicbench.core.trial import CpuTime, Health, PortReading, Purpose, Reading, Trial, TrialRequest
from nicbench.methods.agreement import Agreement
from nicbench.methods.base import Method
from nicbench.methods.soak import Soak
from nicbench.methods.throughput import Throughput
from nicbench.stats.activity import Activity, TimeLeft

GOLDEN: Final = Path(__file__).parent / "golden"
ROOT: Final = Path(__file__).parents[2]
S: Final = 1_000_000_000
SEARCH: Final = TestStarted(test="throughput", method="throughput", points=7, results=7, estimate_s=600.0)
GOALS: Final = ("NDR", "PDR")


def began(load: float, repeat: int = 0) -> TrialStarted:
    return TrialStarted(
        test="throughput",
        parameters={"frame_bytes": 64},
        purpose="search",
        load_frames_per_s=load,
        duration_s=10.0,
        repeat=repeat,
        bidirectional=True,
    )


def finished(number: int, load: float, lost: int, *findings: Finding, **reading: Any) -> TrialFinished:
    counts = Counts(intended=4_000_000, sent=4_000_000, received=4_000_000 - lost, lost=lost)
    known = {"ports": (), "health": Health(), **reading}
    return TrialFinished(
        trial=Trial(
            id=f"t{number:04}",
            key=f"throughput/0/{number}",
            test="throughput",
            configuration="default",
            parameters={"frame_bytes": 64},
            repeat=0,
            request=TrialRequest(
                frame_bytes=64,
                load_frames_per_s=load,
                duration_s=10.0,
                drain_s=0.5,
                settle_s=0.25,
                purpose=Purpose.SEARCH,
            ),
            reading=Reading(transmit_ns=10 * S, counts=counts, streams=(), latency=None, **known),
            verdict=Verdict(findings=findings),
        )
    )


def bounds(trials: int, *sides: tuple[float | None, float | None]) -> BoundsNarrowed:
    return BoundsNarrowed(
        test="throughput",
        parameters={"frame_bytes": 64},
        bounds=tuple(
            GoalBounds(goal=goal, passing_frames_per_s=low, failing_frames_per_s=high)
            for goal, (low, high) in zip(GOALS, sides, strict=True)
        ),
        trials=trials,
        maximum_trials=30,
    )


A_SEARCH = (
    TurnStarted(configuration="kernel-6.1", run=2, number=3, of=8, at_most=True),
    StageStarted(stage="testbed", text="making the testbed"),
    SEARCH,
    began(14.88e6),
    finished(1, 14.88e6, 3_000_000),
    bounds(1, (None, 14.88e6), (None, 14.88e6)),
    began(3.9e6),
    finished(2, 3.9e6, 2),
    bounds(2, (None, 3.9e6), (3.9e6, 14.88e6)),
    began(3.8e6),
    finished(3, 3.8e6, 0),
    bounds(3, (3.8e6, 3.9e6), (3.9e6, 14.88e6)),
    began(4.0e6),
)


def invalid(reason: Reason, words: str) -> Finding:
    return Finding(reason=reason, threshold="any", value=1.0, limit=0.5, text=words)


def cpu(steal_ns: int, other_ns: int) -> CpuTime:
    return CpuTime(
        cpu=3,
        user_ns=0,
        nice_ns=0,
        system_ns=0,
        softirq_ns=8 * S,
        irq_ns=0,
        steal_ns=steal_ns,
        idle_ns=S,
        other_tasks_ns=other_ns,
        speed_samples=1000,
        slow_samples=21,
    )


HEALTH: Final = MachineHealth(
    levels=(
        HealthLevel(host="dut", where="module of enp3s0", value=71.4, unit="C", limit=75.0),
        HealthLevel(host="dut", where="processor (coretemp, 1)", value=78.0, unit="C", limit=100.0),
        HealthLevel(host="dut", where="package 0", value=190.0, unit="W"),
    ),
    events=(
        HealthEvent(
            host="dut", where="enp3s0", what="symbol errors", measure=Measure.SYMBOL_ERRORS, amount=12, unit="symbols"
        ),
    ),
)
DISTURBED = (
    SEARCH,
    *(
        event
        for number in range(1, 9)
        for event in (
            began(4e6, repeat=number - 1),
            finished(number, 4e6, 0, invalid(Reason.UNSENT, f"{number} % of the frames were not sent")),
        )
    ),
    finished(
        9,
        4e6,
        40,
        invalid(Reason.DUT_DISTURBED, "the hypervisor took 3.4 % of the DUT's core 3"),
        health=Health(cpus=(cpu(340_000_000, 120_000_000),)),
        machine=HEALTH,
    ),
    finished(
        10,
        4e6,
        70_000,
        invalid(Reason.LINK_CHANGED, "the link changed"),
        health=Health(cpus=(cpu(340_000_000, 120_000_000),)),
        machine=HEALTH,
        ports=(PortReading(name="p0", link_changed=True),),
    ),
    began(4e6, repeat=10),
)


def round_finished(number: int, gbits: float | None, *findings: Finding) -> RoundFinished:
    job = Job(workload="iperf3", client="client", server="server", ask=JobSpec(duration_s=10.0), port=5201)
    flow = Flow(direction="forward", received_bits_per_s=None if gbits is None else gbits * 1e9)
    outcome = JobOutcome(failure="refused") if gbits is None else JobOutcome(figures=Figures(flows=(flow,)))
    return RoundFinished(
        round=Round(
            id=f"r{number:04}",
            key=f"streams/{number}/0",
            test="streams",
            configuration="default",
            parameters={"mode": "iperf3 tcp, 4 streams", "write_bytes": 131072},
            repeat=0,
            request=RoundRequest(jobs=(job,), duration_s=10.0),
            outcomes=(outcome,),
            cpu=(MachineCpu(machine="server", steal=0.002, strangers=0.081),),
            verdict=Verdict(findings=findings),
        )
    )


STREAMS = (
    TestStarted(test="streams", method="stream", points=4, estimate_s=60.0),
    round_finished(1, 93.2),
    ResultReady(
        test="streams",
        result=Result(id="a", test="streams", method="stream", parameters={}, values={}, verdict=ResultVerdict.VALID),
    ),
    round_finished(2, None, invalid(Reason.PEER_FAILED, "iperf3 ended with status 1: connection refused")),
    RoundBegun(
        test="streams",
        parameters={"mode": "iperf3 tcp, 8 streams"},
        jobs=2,
        duration_s=10.0,
        repeat=0,
    ),
)
WAITING = (Waiting(text="/run/nicbench/queue: place 2 in the queue, behind run 2026-a of jane@lab (process 4711)"),)
PLANNED: Final = [
    *((f"kernel-6.1/{run}/throughput", 600.0) for run in (1, 2)),
    ("throughput", 600.0),
    ("streams", 60.0),
]


def screen(events: Sequence[Event], width: int, height: int = 24) -> str:
    """What a terminal of this size without colours shows after these events."""
    activity, left = Activity(), TimeLeft(PLANNED)
    for event in events:
        activity = activity.after(event)
        left.note(event)
    shown = io.StringIO()
    console = Console(file=shown, width=width, height=height, color_system=None, record=True)
    console.print(view(activity, left.estimate.text(), left.estimate.share_done(), width=width, height=height))
    return "".join(f"{line.rstrip()}\n" for line in shown.getvalue().splitlines())


@pytest.mark.parametrize("width", [80, 40])
@pytest.mark.parametrize(
    ("name", "events"), [("search", A_SEARCH), ("streams", STREAMS), ("waiting", WAITING), ("disturbed", DISTURBED)]
)
def test_the_screen_is_as_recorded(name: str, events: Sequence[Event], width: int) -> None:
    path = GOLDEN / f"live-{name}-{width}.txt"
    shown = screen(events, width)
    if os.environ.get("NICBENCH_WRITE_GOLDEN"):
        path.write_text(shown, encoding="utf-8")
    assert shown == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("height", [4, 8, 24])
@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("events", [A_SEARCH, STREAMS, WAITING, DISTURBED], ids=["search", "streams", "wait", "noise"])
def test_no_screen_is_wider_or_higher_than_its_terminal(events: Sequence[Event], width: int, height: int) -> None:
    lines = screen(events, width, height).splitlines()
    assert max(map(cell_len, lines)) <= min(width, 100)
    assert len(lines) < height


def test_the_next_frame_size_begins_without_the_bounds_of_the_last() -> None:
    other = began(1e6).replace(parameters={"frame_bytes": 128})
    assert "NDR" in screen(A_SEARCH, 80)
    assert "NDR" not in screen((*A_SEARCH, other), 80)


def test_more_results_than_there_are_points_are_never_told_as_a_part_of_them() -> None:
    """A soak has a result for each estimate of its critical load, a stream one for each group of ports."""

    def shown(method: Method) -> str:
        gives = method.points() if method.gives_points else None
        begun = TestStarted(test="it", method=method.kind, points=method.points(), results=gives, estimate_s=60.0)
        results = (
            Result(id=f"it/{number}", test="it", method=method.kind, parameters={}, values={}) for number in range(6)
        )
        return screen((begun, *(ResultReady(test="it", result=one) for one in results)), 80)

    critical = Soak.Options.model_validate({"critical_load": {}})
    assert "it (6 results so far)" in shown(Soak("it", critical))
    held = {"rate": "line_rate", "trial": {"duration": 540.0, "interval": 60.0}}
    assert "it (6 of 10 results)" in shown(Soak("it", Soak.Options.model_validate(held)))
    assert "it (6 results so far)" in shown(Agreement("it", Agreement.Options()))
    assert "it (6 of 7 results)" in shown(Throughput("it", Throughput.Options()))
    assert "so far" in shown(Throughput("it", Throughput.Options(frame_bytes=(64, 128))))


def test_what_is_waited_for_is_gone_when_the_run_goes_on() -> None:
    assert "place 2 in the queue" in screen(WAITING, 80)
    assert "queue" not in screen((*WAITING, StageStarted(stage="testbed", text="making the testbed")), 80)


def test_a_run_on_a_terminal_shows_the_bounds_of_its_search(tmp_path: Path) -> None:
    run = ("run", str(ROOT / "examples/simulated.yaml"), "--runs", str(tmp_path), "--no-report")
    shown = in_a_terminal((sys.executable, "-m", "nicbench", *run))
    assert "throughput, 64 bytes (0 of 2 results)" in shown
    assert "PDR:  passes 498.8 kpps  fails 503.5 kpps  0.943 % apart" in shown
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")


def in_a_terminal(command: Sequence[str]) -> str:
    """All that a command writes to a terminal of 80 columns and 24 lines."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "1"}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    written = bytearray()
    try:
        while chunk := os.read(ours, 65536):
            written += chunk
    except OSError:  # the other end is closed: the command has ended
        pass
    finally:
        os.close(ours)
    assert process.wait() == 0
    return written.decode()
