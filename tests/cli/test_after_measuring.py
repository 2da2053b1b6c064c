"""What comes after measuring cannot unmake it: the results are given, whatever becomes of report and summary."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nicbench.cli.output import ReaderGoneError
from nicbench.core.errors import HostError
from nicbench.run import finish_measured
from nicbench.store.files import write_atomically
from nicbench.store.folder import RunFolder


def full(*_: object) -> Path:
    raise HostError("the disk is full; what was measured so far is kept", place="report.html")


def no_memory(*_: object) -> Path:
    raise MemoryError


def fault(*_: object) -> Path:
    raise ValueError("a fault of a chart")


def killed(*_: object) -> Path:
    os.kill(os.getpid(), signal.SIGKILL)
    return Path()


@pytest.fixture
def report_is(monkeypatch: pytest.MonkeyPatch, run_is: Any, finished_run: Any) -> Callable[[Callable[..., Path]], None]:
    """Puts something in the place of the report of a run that goes well."""

    def replace(build: Callable[..., Path]) -> None:
        run_is(finished_run)
        monkeypatch.setitem(sys.modules, "nicbench.report", SimpleNamespace(build=build))
        monkeypatch.setattr("nicbench.cli.running._draws_here", lambda: False)

    return replace


@pytest.mark.parametrize(
    ("build", "why"),
    [
        (full, "the disk is full"),
        (no_memory, "more memory than it may have"),
        (fault, "ValueError: a fault of a chart"),
        (killed, "killed by SIGKILL"),
    ],
)
def test_a_report_that_cannot_be_made_is_one_line_and_a_status_of_its_own(
    build: Callable[..., Path], why: str, nicbench: Any, report_is: Any
) -> None:
    report_is(build)
    ended = nicbench("run", "bench.yaml", "--json")
    assert ended.status == 7
    document = json.loads(ended.stdout)
    assert (document["verdict"], len(document["results"])) == ("valid", 1)
    [line] = [line for line in ended.stderr.splitlines() if "error" in line]
    assert "the report could not be made, the results are kept" in line
    assert why in line
    [run] = Path("runs").iterdir()
    assert f"nicbench report {run.resolve()} makes it" in ended.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_the_report_is_made_leaves_the_results(
    number: signal.Signals, nicbench: Any, report_is: Any
) -> None:
    def build(folder: Path, *_: object) -> Path:
        write_atomically(folder / "report.html", b"half of it")
        time.sleep(60)
        return folder

    report_is(build)
    parent = os.getpid()
    if os.fork() == 0:  # the process of the report may signal nobody
        while not list(Path("runs").glob("*/report.html")):
            time.sleep(0.01)
        os.kill(parent, number)
        os._exit(0)
    ended = nicbench("run", "bench.yaml", "--json")
    assert ended.status == 130
    assert len(json.loads(ended.stdout)["results"]) == 1
    assert f"stopped by {number.name} while the report was made; the results are kept" in ended.stderr


def test_a_summary_that_cannot_be_written_leaves_the_results_and_resume_writes_it(
    nicbench: Any, run_is: Any, one_result: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run(bench: Any, folder: Any, bus: Any) -> Any:
        one_result(bench, folder, bus)
        return finish_measured(bench, folder, bus)

    def finish(*_: object) -> None:
        raise OSError(28, "No space left on device", "summary.json")

    run_is(run)
    with monkeypatch.context() as patched:
        patched.setattr(RunFolder, "finish", finish)
        ended = nicbench("run", "bench.yaml", "--json", "--no-report")
    document = json.loads(ended.stdout)
    assert (ended.status, document["verdict"], len(document["results"])) == (7, "valid", 1)
    assert "No space left on device" in document["error"]["message"]


def test_resume_of_a_finished_run_gives_its_results(nicbench: Any, run_is: Any, finished_run: Any) -> None:
    run_is(finished_run)
    first = nicbench("run", "bench.yaml", "--json")
    again = nicbench("resume", "latest", "--json")
    assert (again.status, json.loads(again.stdout)) == (0, json.loads(first.stdout))
    assert "400" in nicbench("resume", "latest").stdout


def test_a_reader_that_is_gone_costs_no_report(nicbench: Any, run_is: Any, finished_run: Any) -> None:
    run_is(finished_run)

    def gone(*_: object, **__: object) -> None:
        raise ReaderGoneError

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("nicbench.cli.running.print_json", gone)
        ended = nicbench("run", "bench.yaml", "--json")
    [run] = Path("runs").iterdir()
    assert ended.status == 0
    assert (run / "report.html").is_file()


def test_a_signal_while_results_are_printed_leaves_them_all(
    nicbench: Any, run_is: Any, finished_run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_is(finished_run)
    monkeypatch.setattr("nicbench.cli.running.print_json", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    ended = nicbench("run", "bench.yaml", "--json")
    document = json.loads(ended.stdout)
    assert (ended.status, len(document["results"]), document["error"]["kind"]) == (130, 1, "InterruptedRunError")
