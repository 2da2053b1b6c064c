"""The command line, with a stand-in for the run itself."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nicbench.bench_file import BenchFile
from nicbench.cli.app import make_whole_app
from nicbench.cli.main import main
from nicbench.core.events import Bus, ResultReady, RunFinished, RunStarted, TestStarted
from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict, Summary
from nicbench.store import manifest
from nicbench.store.files import write_atomically
from nicbench.store.folder import RunFolder

StandIn = Callable[[BenchFile, RunFolder, Bus], Awaitable[Summary]]

BENCH = """\
nicbench: 1
title: A bench file of the tests
lab: {kind: simulated}
dut: {kind: simulated}
tests:
  - {name: throughput, method: throughput, frame_bytes: [64], trial: {duration: 1 s, drain: 0 s, settle: 0 s}}
"""

RESULT = Result(
    id="throughput/64",
    method="throughput",
    scope="per port",
    parameters={"frame_bytes": 64},
    values={
        "ndr_frames_per_s": Bounded(value=4e5, lower=4e5, upper=4.1e5, limited_by=LimitedBy.DUT, n=3),
        "ndr_percent_of_line_rate": 2.69,
    },
)


@dataclass(frozen=True, slots=True)
class Ended:
    """A finished command."""

    status: int
    stdout: str
    stderr: str


Command = Callable[..., Ended]


@pytest.fixture
def nicbench(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Runs a command in an empty folder that holds ``bench.yaml``."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bench.yaml").write_text(BENCH)

    def command(*arguments: str) -> Ended:
        capsys.readouterr()
        status = main(arguments)
        output = capsys.readouterr()
        return Ended(status, output.out, output.err)

    return command


@pytest.fixture
def run_is(monkeypatch: pytest.MonkeyPatch) -> Callable[[StandIn], None]:
    """Puts a stand-in in the place of the run, and an empty page in the place of the report."""

    def build(folder: Path, layout: object = None) -> Path:
        write_atomically(folder / "report.html", b"<html></html>")
        return folder / "report.html"

    def build_formats(folder: Path, *_: object) -> dict[str, Path]:
        return {"html": build(folder)}

    # Loads every command, and what a run needs of the command line, before it is asked for: stand-ins are no packages.
    make_whole_app()
    import_module("nicbench.cli.running")

    def replace(stand_in: StandIn) -> None:
        async def run(bench: BenchFile, folder: RunFolder, bus: Bus, **_: object) -> Summary:
            return await stand_in(bench, folder, bus)

        monkeypatch.setitem(sys.modules, "nicbench.run", SimpleNamespace(run=run))
        monkeypatch.setitem(sys.modules, "nicbench.report", SimpleNamespace(build=build, build_formats=build_formats))

    return replace


async def good_run(bench: BenchFile, folder: RunFolder, bus: Bus) -> Summary:
    """One result, as a run gives it."""
    publish_result(bench, folder, bus)
    summary = Summary(title=bench.title, verdict=ResultVerdict.VALID, results=(RESULT,))
    bus.publish(RunFinished(verdict=summary.verdict))
    folder.finish(summary)
    return summary


def publish_result(bench: BenchFile, folder: RunFolder, bus: Bus) -> None:
    """The events of a run that has one result."""
    started = {"run_id": folder.run_id, "title": bench.title, "nicbench_version": "0", "seed": 1}
    bus.publish(RunStarted(**started, wall_time="2026-01-31T12:00:00+00:00"))
    bus.publish(TestStarted(test="throughput", method="throughput", points=1, estimate_s=60.0))
    bus.publish(ResultReady(test="throughput", result=RESULT))


@pytest.fixture
def finished_run() -> StandIn:
    """A run that goes well."""
    return good_run


@pytest.fixture
def one_result() -> Callable[[BenchFile, RunFolder, Bus], None]:
    """Publishes the events of a run up to its first result."""
    return publish_result


def result_json(size: int, rate: float, verdict: str = "valid", **more: Any) -> dict[str, Any]:
    """A result of a throughput test, as a summary holds it."""
    interval = {"value": rate, "lower": rate, "upper": rate * 1.01, "limited_by": "dut", "n": 3}
    return {
        "id": f"throughput/{size}",
        "test": "throughput",
        "method": "throughput",
        "scope": "per port",
        "parameters": {"frame_bytes": size},
        "values": {"ndr_frames_per_s": interval, "ndr_percent_of_line_rate": 50.0},
        "verdict": verdict,
        "disturbances": ["held up for 31 ms"] if verdict == "disturbed" else [],
        **more,
    }


def make_run(
    name: str,
    results: Sequence[dict[str, Any]],
    plan: dict[str, Any],
    options: dict[str, Any],
    *,
    kernel: str = "6.1",
    cpu: str | None = None,
    finished: bool = True,
    **summary: Any,
) -> RunFolder:
    """A run folder under ``runs``, of one test with these options; ``plan`` and ``summary`` have what is beside."""
    path = Path("runs") / f"2026-01-{name}"
    path.mkdir(parents=True)
    test = {"name": "throughput", "method": "throughput", "description": "", "points": 1, "estimate_s": 1.0}
    whole = {
        "run_id": path.name,
        "title": "t",
        "nicbench_version": "0",
        "seed": 1,
        "tests": [{**test, "options": options}],
        **plan,
    }
    if names := whole.get("compared"):
        whole |= {"configuration": names[0], "others": [{**whole, "configuration": names[1]}]}
    files = {
        "plan.json": whole,
        "inventory.json": {"dut": {"kernel": {"release": kernel}, "cpu": {"model": cpu}}},
        "summary.json": {"format": "1.7", "title": whole["title"], "verdict": "valid", "results": results, **summary},
    }
    for file, content in files.items():
        (path / file).write_text(json.dumps(content))
    (path / "bench.yaml").write_text("nicbench: 1\n")
    (path / "journal.ndjson").write_text("")
    if finished:
        manifest.write(path)
    return RunFolder(path.resolve())
