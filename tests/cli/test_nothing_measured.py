"""A run to its end without a figure: never status 0, and why, or the tool's last words, are told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.methods.known import run
from tests.methods.round_contexts import Laboratory, streamed
from tests.methods.test_a_tester_that_sends_nothing import Nothing

from nicbench.bench_file import load
from nicbench.core.errors import HostError, NicbenchError, NothingMeasuredError, ToolsFailedError
from nicbench.core.events import RoundFinished
from nicbench.core.result import Bounded, ResultVerdict
from nicbench.core.round import Figures, Job, JobOutcome
from nicbench.methods.base import main_values
from nicbench.methods.impairments import Impairments
from nicbench.methods.stream import Stream
from nicbench.stages.turns import find_nothing_measured

BENCH = """\
nicbench: 1
title: Streams
lab: {kind: clients}
dut: {kind: server}
tests: [{name: all, method: stream}]
"""
FRAMES = """\
nicbench: 1
title: Frames
lab: {kind: simulated}
dut: {kind: simulated}
tests: [{name: loss, method: impairments, rate: highest}]
"""
Outcome = Callable[[int, Job], JobOutcome]


@pytest.fixture
def ended(tmp_path: Path) -> Callable[[Outcome], NicbenchError | None]:
    """The error of a run of streams whose tools said this."""
    path = tmp_path / "bench.yaml"
    path.write_text(BENCH)
    bench = load(path)

    def end(outcome: Outcome) -> NicbenchError | None:
        laboratory = Laboratory(outcome, ports=2)
        finished = []
        laboratory.bus.subscribe(finished.append)
        results = asyncio.run(Stream("all", Stream.Options(at_once=("port", "all"))).run(laboratory.context))
        rounds = {event.round.key: event.round for event in finished if isinstance(event, RoundFinished)}
        assert results
        assert rounds
        return find_nothing_measured(bench, results, rounds, "runs/x")

    return end


@pytest.mark.parametrize(
    "last_words", ["unable to connect: Connection refused", "figures that cannot be so, which are refused: nan Mb/s"]
)
def test_where_every_tool_failed_the_status_is_4_with_its_last_words(
    last_words: str, ended: Callable[[Outcome], NicbenchError | None]
) -> None:
    error = ended(lambda number, job: JobOutcome(failure=f"iperf3, client on {job.client}: {last_words}"))
    assert isinstance(error, ToolsFailedError)
    assert isinstance(error, HostError)
    assert error.exit_status == 4
    assert last_words in error.message
    assert "attempts of the tools failed" in error.message
    assert "runs there by hand" in str(error.next_step)


def test_tools_that_told_nothing_of_use_end_with_5(ended: Callable[[Outcome], NicbenchError | None]) -> None:
    error = ended(lambda number, job: JobOutcome(figures=Figures(), began_s=0.0, took_s=1.0))
    assert isinstance(error, NothingMeasuredError)
    assert error.exit_status == 5


def test_frames_of_which_no_result_has_a_figure_end_with_5_and_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "bench.yaml"
    path.write_text(FRAMES)
    method = Impairments("loss", Impairments.Options(rate="highest"))
    results = asyncio.run(run(method, Nothing(ceiling=0.0, throughput=1e5)))
    error = find_nothing_measured(load(path), results, {}, "runs/x")
    assert isinstance(error, NothingMeasuredError)
    assert error.exit_status == 5
    assert "no result has a figure: the tester sends no more than 0 pps" in error.message
    below = results[0].replace(values={main_values(results[0])[0]: Bounded(value=None, upper=5.0)})
    assert below.verdict is ResultVerdict.INCOMPLETE
    assert find_nothing_measured(load(path), [below], {}, "runs/x") is None


def test_one_figure_is_a_measurement(ended: Callable[[Outcome], NicbenchError | None]) -> None:
    assert ended(lambda number, job: streamed(90e6 if job.client == "c00" else None)) is None


def test_a_run_that_came_to_its_end_has_nothing_to_resume(
    nicbench: Callable,
    run_is: Callable[..., None],  # type: ignore[type-arg]
) -> None:
    async def fail(_bench: object, folder: object, *_: object) -> None:
        raise ToolsFailedError("nothing was measured", place="the run folder", next_step="see the peers")

    run_is(fail)
    ended = nicbench("run", "bench.yaml")
    assert ended.status == 4
    assert "next: see the peers" in ended.stderr
    assert "nicbench resume" not in ended.stderr
