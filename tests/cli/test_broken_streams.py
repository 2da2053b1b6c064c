"""A pipe that nobody reads any more, a full disk, a closed descriptor: no traceback, and no run that breaks of it."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nicbench.cli import output
from nicbench.cli.output import streams_may_break
from nicbench.core.errors import HostError, NicbenchError, ThresholdError
from nicbench.core.result import Summary

JSON = "validate bench.yaml --json"
NICBENCH = f"{sys.executable} -m nicbench"


def shell(command: str) -> subprocess.CompletedProcess[str]:
    """In a shell, as a user redirects; its status is that of nicbench."""
    return subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("arguments", "stdout", "why"),
    [
        *(
            (each, "/dev/full", "No space left on device")
            for each in (JSON, "validate bench.yaml", "--version", "--help")
        ),
        *((each, "&-", "Bad file descriptor") for each in (JSON, "--help")),
    ],
)
def test_results_that_cannot_be_written_are_an_error(arguments: str, stdout: str, why: str, nicbench: Any) -> None:
    ended = shell(f"{NICBENCH} {arguments} >{stdout}")
    assert ended.returncode == 1
    assert f"stdout: the results cannot be written: {why}" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "Exception" not in ended.stderr


def test_a_report_with_its_charts_is_made_where_every_stream_is_closed(
    nicbench: Any, run_is: Callable[..., None], finished_run: Any
) -> None:
    run_is(finished_run)
    assert nicbench("run", "bench.yaml").status == 0
    [page] = Path("runs").glob("*/report.html")
    page.unlink()
    script = (
        "import os, sys; from pathlib import Path; from nicbench.cli.main import main; "
        "sys.argv[1:] = ['list']; main(); "
        "from nicbench.report.drawing import svg; import altair as alt; "
        "chart = alt.Chart(svg.inline([{'x': 1, 'y': 2}])).mark_bar().encode(x='x:Q', y='y:Q'); "
        "Path('drawing').write_text(svg.svg(chart.to_dict(), 1, 'a'))"
    )
    shell(f'{sys.executable} -c "{script}" <&- >&- 2>&-')
    assert Path("drawing").read_text().startswith("<svg")
    shell(f"{NICBENCH} report {page.parent} <&- >&- 2>&-")
    assert page.exists()


def test_an_error_keeps_its_status_where_its_json_cannot_be_written(nicbench: Any) -> None:
    ended = shell(f"{NICBENCH} validate nothing.yaml --json >/dev/full")
    assert ended.returncode == 2
    assert "there is no such file" in ended.stderr


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("arguments", "reader"),
    [("validate bench.yaml", "head -1"), (JSON, "head -1"), ("--help", "head -1"), (JSON, "true"), ("--help", "true")],
)
def test_a_reader_that_has_seen_enough_is_no_error(arguments: str, reader: str, nicbench: Any) -> None:
    ended = shell(f"{NICBENCH} {arguments} | {reader}")
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("arguments", "status", "stderr"),
    [
        *((each, 0, "/dev/full") for each in ("list --json", "list")),
        *((each, 2, "/dev/full") for each in ("fly", "validate no")),
        *(("list", 0, "&-"), ("validate no", 2, "&-")),
    ],
)
def test_messages_that_cannot_be_written_change_nothing(
    stderr: str, arguments: str, status: int, nicbench: Any
) -> None:
    assert shell(f"{NICBENCH} {arguments} 2>{stderr}").returncode == status


@pytest.mark.parametrize("options", [(), ("--no-progress",), ("--json",)])
def test_a_run_goes_on_where_its_progress_cannot_be_written(
    options: tuple[str, ...],
    nicbench: Any,
    run_is: Callable[..., None],
    finished_run: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_is(finished_run)
    with Path("/dev/full").open("w") as full, monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", full)
        assert nicbench("run", "bench.yaml", *options).status == 0
    assert list(Path("runs").glob("*/report.html"))


@pytest.fixture
def without_a_reader(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stdout is a pipe whose reader has ended."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", stream)
        yield


@pytest.mark.parametrize("options", [(), ("--json",)])
@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (None, 130, "stopped by SIGINT"),
        (HostError("the DUT died", place="dut"), 4, "error: dut: the DUT died"),
        (ThresholdError("a threshold was missed"), 6, "error: a threshold was missed"),
    ],
    ids=["interrupted", "a host died", "a threshold"],
)
def test_a_run_that_failed_says_so_where_nobody_reads_its_results(
    error: NicbenchError | None,
    status: int,
    told: str,
    options: tuple[str, ...],
    nicbench: Any,
    run_is: Callable[..., None],
    one_result: Callable[..., None],
    without_a_reader: None,
) -> None:
    async def failing(bench: Any, folder: Any, bus: Any) -> None:
        one_result(bench, folder, bus)
        if error is not None:
            raise error
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(60)

    run_is(failing)
    ended = nicbench("run", "bench.yaml", *options)
    assert ended.status == status
    assert told in ended.stderr
    assert "report of what was measured: " in ended.stderr
    assert list(Path("runs").glob("*/report.html"))


def test_results_that_are_not_accepted_give_their_status_where_nobody_reads_them(
    nicbench: Any, run_is: Callable[..., None], finished_run: Any, without_a_reader: None
) -> None:
    async def not_accepted(bench: Any, folder: Any, bus: Any) -> Summary:
        summary: Summary = await finished_run(bench, folder, bus)
        result = summary.results[0]
        refused = result.replace(values={**result.values, "accepted": "no"})
        return summary.replace(results=(refused,))

    run_is(not_accepted)
    ended = nicbench("run", "bench.yaml")
    assert ended.status == 6
    assert "not accepted: throughput/64" in ended.stderr
    assert "report: " in ended.stderr


def test_a_good_run_names_its_report_where_nobody_reads_its_results(
    nicbench: Any, run_is: Callable[..., None], finished_run: Any, without_a_reader: None
) -> None:
    run_is(finished_run)
    ended = nicbench("run", "bench.yaml")
    assert ended.status == 0
    assert "report: " in ended.stderr


def test_a_terminal_that_is_not_of_utf_8_gets_results_with_question_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    received = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(received, encoding="latin-1"))
    with streams_may_break():
        output.results().print("“Ä”")
        sys.stdout.flush()
    assert received.getvalue() == "?Ä?\n".encode("latin-1")
