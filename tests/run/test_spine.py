"""From a run to the journal is a short way, for trials and rounds the same, and nothing on it takes many arguments."""

from __future__ import annotations

import ast
import asyncio
import re
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import nicbench
from nicbench.bench_file import load
from nicbench.core.events import Bus, Event, TrialFinished
from nicbench.core.judging import Sample, Verdict, kind_of
from nicbench.core.result import Result
from nicbench.core.round import Round, RoundRequest
from nicbench.core.trial import Trial, TrialRequest
from nicbench.measure.frame_context import LiveFrameContext
from nicbench.run import run
from nicbench.stages import plan as plan_stage

from .simulated_bench import make_folder, nothing_told

SOURCE = Path(nicbench.__file__).parent
CONTRIBUTING = SOURCE.parents[1] / "CONTRIBUTING.md"
MOST_ARGUMENTS = 7
MOST_FILES = 11
MOST_ENTERED, MOST_HOPS = 33, 190
"""The files of ``src/nicbench`` that a trial enters, and its calls from one of them to another."""
BENCH = """
nicbench: 1
title: One trial
lab: {kind: simulated, capacity: 40 kpps, queue_frames: 16, delay: 20 us}
dut: {kind: simulated}
monitor: off
tests:
  - name: loss
    method: frame-loss
    frame_bytes: [64]
    of: 10 kpps
    trial: {duration: 50 ms, drain: 10 ms, settle: 5 ms}
"""


def constructors() -> Iterator[tuple[str, int]]:
    """Every ``__init__`` that is written out, and how many arguments it takes; data classes and models have none."""
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for each in ast.walk(ast.parse(text)) if "def __init__(" in text else ():
            if not isinstance(each, ast.ClassDef):
                continue
            for function in each.body:
                if isinstance(function, ast.FunctionDef) and function.name == "__init__":
                    taken = function.args
                    starred = (taken.vararg is not None) + (taken.kwarg is not None)
                    named = len(taken.posonlyargs) + len(taken.args) + len(taken.kwonlyargs)
                    yield f"{path.relative_to(SOURCE)}, {each.name}", named + starred - 1  # self


def test_no_constructor_takes_more_than_seven_arguments() -> None:
    crowded = {name: count for name, count in constructors() if count > MOST_ARGUMENTS}
    assert not crowded, "put what belongs together into a data class"


def described_ways() -> list[list[str]]:
    """The files of the section of CONTRIBUTING: the way of a trial, and of a round."""
    section = CONTRIBUTING.read_text().partition("## The way of one trial\n")[2].partition("\n## ")[0]
    of_trial, _, of_round = section.partition("A round of workloads")
    return [re.findall(r"^\d+\. `([\w/]+\.py)`", part, re.MULTILINE) for part in (of_trial, of_round)]


@pytest.mark.parametrize("files", described_ways(), ids=("trial", "round"))
def test_the_way_that_contributing_describes_is_of_at_most_eleven_files_that_are_there(files: list[str]) -> None:
    assert (files[0], files[-1]) == ("run.py", "store/journal.py")
    assert len(files) <= MOST_FILES
    assert not [name for name in files if not (SOURCE / name).is_file()]


def test_what_calls_the_journal_when_a_trial_ends_is_on_the_way_that_contributing_describes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_stage, "collect", nothing_told)
    folder, bus, callers = make_folder(tmp_path, BENCH), Bus(), list[str]()

    def journal(event: Event) -> None:
        if isinstance(event, TrialFinished) and event.trial.test == "loss":
            callers.extend(name for name in calling_files() if name not in callers)
        folder.journal.append(event)

    bus.subscribe(journal)
    asyncio.run(run(load(folder.path / "bench.yaml"), folder, bus))
    assert "measure/samples.py" in callers
    assert set(callers) <= set(described_ways()[0])


def test_a_trial_enters_few_files_between_its_method_and_its_line_in_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_stage, "collect", nothing_told)
    folder, bus = make_folder(tmp_path, BENCH), Bus()
    files, entered, hops = set[str](), set[FrameType](), 0

    def enter(frame: FrameType, event: str, _: object) -> None:
        nonlocal hops
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(SOURCE) and frame not in entered:  # a coroutine is entered again
            entered.add(frame)
            name, *callers = str(path.relative_to(SOURCE)), *calling_files(frame)
            files.add(name)
            hops += not callers or callers[0] != name

    measure = LiveFrameContext.measure

    async def profiled(self: LiveFrameContext, point: dict[str, Any], request: TrialRequest) -> tuple[Trial, bool]:
        entered.update(frame for frame, _ in traceback.walk_stack(sys._getframe()))
        sys.setprofile(enter)
        try:
            return await measure(self, point, request)
        finally:
            sys.setprofile(None)

    monkeypatch.setattr(LiveFrameContext, "measure", profiled)
    bus.subscribe(folder.journal.append)
    asyncio.run(run(load(folder.path / "bench.yaml"), folder, bus))
    trials = sum(isinstance(event, TrialFinished) for event in folder.journal.events())
    assert "store/journal.py" in files
    assert len(files) <= MOST_ENTERED, sorted(files)
    assert hops <= MOST_HOPS * trials


def calling_files(frame: FrameType | None = None) -> Iterator[str]:
    """The files of nicbench that have called whoever asks, from the inside out."""
    frame = frame or sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(SOURCE):
            yield str(path.relative_to(SOURCE))


def test_trials_and_rounds_are_one_kind_of_record_that_says_what_it_is() -> None:
    fields = {"key": "t/0/0", "test": "t", "configuration": "default", "parameters": {}, "repeat": 0}
    request = RoundRequest(jobs=(), duration_s=1.0, warm_up=True)
    one = Round(id=Round.id_of(3), **fields, request=request, verdict=Verdict(), outcomes=())
    assert isinstance(one, Sample)
    assert (one.kind, one.id, one.number, one.warm_up) == ("round", "r0003", 3, True)
    assert (Trial.kind, Trial.id_of(12)) == ("trial", "t0012")
    assert [kind_of(each) for each in ("t0001", "r0001", "7")] == ["trial", "round", None]
    result = Result(id="t/a", method="stream", parameters={}, values={}, trials=(one.id,))
    assert result.measured_by == "round"
