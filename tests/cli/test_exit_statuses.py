"""Every way a command can end: the exit status, the message, and the data on stdout."""

from __future__ import annotations

import asyncio
import errno
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.commands import run_tried

from nicbench.bench_file import BenchFile, load
from nicbench.cli import output
from nicbench.cli.output import streams_may_break
from nicbench.core.errors import (
    EngineError,
    HostError,
    NicbenchError,
    NothingMeasuredError,
    NotReadyError,
    ThresholdError,
    UsageError,
)
from nicbench.core.result import Summary

ERRORS = {
    "our own fault": (NicbenchError("the plan contradicts itself"), 1),
    "a wrong argument": (UsageError("no such interface", place="t9"), 2),
    "a machine that is not ready": (NotReadyError("clang is missing", next_step="apt-get install clang"), 3),
    "a host that failed": (HostError("the host is gone", place="dut"), 4),
    "an engine that died": (EngineError("killed by signal 9", place="nicbench-packets"), 4),
    "nothing measured": (NothingMeasuredError("no test gave a result"), 5),
    "a threshold missed": (ThresholdError("PDR is under 1 Mpps"), 6),
}


@pytest.fixture(params=ERRORS.values(), ids=ERRORS.keys())
def failure(request: pytest.FixtureRequest, run_is: Callable[..., None]) -> tuple[NicbenchError, int]:
    error = request.param[0]
    status = request.param[1]

    async def fail(*_: Any) -> None:
        raise error

    run_is(fail)
    return error, status


def test_the_type_of_the_error_sets_the_exit_status(failure: tuple[NicbenchError, int], nicbench: Any) -> None:
    error, status = failure
    ended = nicbench("run", "bench.yaml")
    assert ended.status == status
    assert error.message in ended.stderr
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr


def test_json_is_valid_and_alone_on_stdout_after_an_error(failure: tuple[NicbenchError, int], nicbench: Any) -> None:
    error, status = failure
    document = json.loads(nicbench("run", "bench.yaml", "--json").stdout)
    assert document["format"] == "1.0"
    assert document["verdict"] == "incomplete"
    assert document["error"]["message"] == error.message
    assert document["error"]["exit_status"] == status


def test_what_was_measured_before_an_error_is_in_the_json(
    nicbench: Any, run_is: Callable[..., None], one_result: Callable[..., None]
) -> None:
    async def fail_late(bench: Any, folder: Any, bus: Any) -> None:
        one_result(bench, folder, bus)
        raise HostError("the host is gone", place="dut")

    run_is(fail_late)
    document = json.loads(nicbench("run", "bench.yaml", "--json").stdout)
    assert document["title"] == "A bench file of the tests"
    assert [result["id"] for result in document["results"]] == ["throughput/64"]


@pytest.mark.parametrize("refused", [errno.EACCES, errno.EROFS])
@pytest.mark.parametrize(
    ("command", "option"),
    [("run bench.yaml --runs ro/runs", "--runs DIR"), ("init streams --namespaces --out ro/bench.yaml", "--out")],
)
def test_a_folder_that_cannot_be_written_is_a_wrong_option_and_nothing_to_resume(
    nicbench: Any, monkeypatch: pytest.MonkeyPatch, refused: int, command: str, option: str
) -> None:
    def refuse(path: Path, *_: object, **__: object) -> None:
        raise OSError(refused, os.strerror(refused), str(path))

    monkeypatch.setattr(Path, "mkdir", refuse)
    ended = nicbench(*command.split())
    assert ended.status == 2
    assert os.strerror(refused) in ended.stderr
    assert option in ended.stderr.partition("next: ")[2]
    assert "resume" not in ended.stderr


def test_a_reliable_result_that_is_not_accepted_ends_a_run_with_6(
    nicbench: Any, run_is: Callable[..., None], finished_run: Any
) -> None:
    async def refused(bench: Any, folder: Any, bus: Any) -> Summary:
        summary = await finished_run(bench, folder, bus)
        (result,) = summary.results
        values = {**result.values, "accepted": "no"}
        refused_result = result.replace(values=values)
        return summary.replace(results=(refused_result,))

    run_is(refused)
    ended = nicbench("run", "bench.yaml")
    assert (ended.status, "not accepted: throughput/64" in ended.stderr) == (6, True)


def test_a_good_run_ends_with_0_a_table_and_the_place_of_the_report(
    nicbench: Any, run_is: Callable[..., None], finished_run: Any
) -> None:
    run_is(finished_run)
    ended = nicbench("run", "bench.yaml")
    assert ended.status == 0
    assert "400 .. 410" in ended.stdout
    assert "report.html" in ended.stderr


def test_a_run_that_is_to_have_no_report_has_none_and_says_how_to_make_it(
    nicbench: Any, run_is: Callable[..., None], finished_run: Any
) -> None:
    run_is(finished_run)
    ended = nicbench("run", "bench.yaml", "--no-report")
    assert ended.status == 0
    assert "400 .. 410" in ended.stdout
    [folder] = Path("runs").iterdir()
    assert f"nicbench report {folder.resolve()}" in ended.stderr
    assert not (folder / "report.html").exists()


def test_json_of_a_good_run_is_its_summary(nicbench: Any, run_is: Callable[..., None], finished_run: Any) -> None:
    run_is(finished_run)
    ended = nicbench("run", "bench.yaml", "--json")
    [summary] = Path("runs").glob("*/summary.json")
    assert json.loads(ended.stdout) == json.loads(summary.read_text())


def test_an_unexpected_exception_says_where_its_traceback_is(nicbench: Any, run_is: Callable[..., None]) -> None:
    async def stumble(*_: Any) -> None:
        raise ZeroDivisionError("division by zero")

    run_is(stumble)
    ended = nicbench("run", "bench.yaml")
    assert ended.status == 1
    assert "Traceback" not in ended.stderr
    assert "ZeroDivisionError" in ended.stderr
    [written] = Path("runs").glob("*/error.txt")
    assert str(written) in ended.stderr
    assert "Traceback" in written.read_text()
    assert "report this" in ended.stderr


def test_an_exception_outside_of_a_run_is_written_to_a_temporary_file(
    nicbench: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def stumble(_: Path) -> None:
        raise RuntimeError("no reason")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("nicbench.bench_file.load", stumble)
    assert nicbench("validate", "bench.yaml").status == 1
    [written] = tmp_path.glob("nicbench-error-*.txt")
    assert "RuntimeError: no reason" in written.read_text()


def test_a_file_that_we_fail_at_does_not_hide_the_others(
    nicbench: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def stumble(path: Path) -> BenchFile:
        if path.name == "odd.yaml":
            raise RuntimeError("no reason")
        return load(path)

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("nicbench.bench_file.load", stumble)
    ended = nicbench("validate", "odd.yaml", "bench.yaml")
    assert ended.status == 1
    assert "odd.yaml:" in ended.stderr
    assert "RuntimeError: no reason" in ended.stderr
    assert "bench.yaml is valid" in ended.stdout


@pytest.mark.parametrize("arguments", [("validate",), ("fly",), ("run", "bench.yaml", "--fast"), ()])
def test_wrong_arguments_end_with_2(arguments: tuple[str, ...], nicbench: Any) -> None:
    assert nicbench(*arguments).status == 2


def test_wrong_arguments_with_json_still_give_json(nicbench: Any) -> None:
    ended = nicbench("run", "--json")
    assert ended.status == 2
    assert json.loads(ended.stdout)["error"]["exit_status"] == 2


def test_a_wrong_bench_file_ends_with_2_and_leaves_no_run_folder(nicbench: Any) -> None:
    Path("bench.yaml").write_text("nicbench: 1\ntitel: x\n")
    ended = nicbench("run", "bench.yaml")
    assert ended.status == 2
    assert "bench.yaml:2:1: unknown key `titel`" in ended.stderr
    assert not Path("runs").exists()


def test_every_problem_of_a_bench_file_is_in_the_json(nicbench: Any) -> None:
    Path("bench.yaml").write_text("nicbench: 1\ntitel: x\n")
    error = json.loads(nicbench("validate", "bench.yaml", "--json").stdout)["error"]
    assert {"place": "bench.yaml:2:1", "next": "did you mean `title`?"}.items() <= error["problems"][-1].items()
    assert len(error["problems"]) == 4


def test_the_version_is_printed(nicbench: Any) -> None:
    ended = nicbench("--version")
    assert ended.status == 0
    assert ended.stdout.startswith("nicbench ")


LONG = "a" * 5000


@pytest.mark.parametrize(
    "arguments",
    [
        ("report", LONG),
        ("tag", LONG),
        ("check", LONG, "--against", "latest"),
        ("compare", "reference:netxtreme25-long-tail", "--out", LONG),
    ],
)
def test_a_name_too_long_for_a_file_is_a_wrong_argument(arguments: tuple[str, ...], nicbench: Any) -> None:
    ended = nicbench(*arguments)
    assert ended.status == 2
    assert "is too long for a file name (5000 characters)" in ended.stderr
    assert "give a shorter one" in ended.stderr


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.ENOSPC])
def test_what_the_machine_refuses_is_no_fault_of_the_program(
    code: int, nicbench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> None:
        raise OSError(code, os.strerror(code), "/srv/runs/x")

    monkeypatch.setattr("nicbench.store.listing.path_of", refused)
    ended = nicbench("report", "x")
    assert ended.status == 4
    assert ended.stderr.startswith("error: /srv/runs/x: ")


# A pipe that nobody reads any more, a full disk, a closed descriptor: no traceback, and no run that breaks of it.

JSON = "validate bench.yaml --json"
NICBENCH = f"{sys.executable} -m nicbench"


def shell(command: str) -> subprocess.CompletedProcess[str]:
    """In a shell, as a user redirects; its status is that of nicbench."""
    return run_tried(["bash", "-o", "pipefail", "-c", command])


@pytest.mark.sampled(1)
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


def test_a_full_disk_is_an_error_of_help_also_where_nothing_is_buffered() -> None:
    ended = shell(f"PYTHONUNBUFFERED=1 {NICBENCH} --help >/dev/full")
    assert ended.returncode == 1
    assert "stdout: the results cannot be written: No space left on device" in ended.stderr


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
        "from nicbench.report.drawing import kit, svg; "
        "chart = kit.finish_chart(kit.WIDE, kit.marks([{'x': 1, 'y': 2}], 'bar', x='x:Q', y='y:Q')); "
        "Path('drawing').write_text(svg.svg(chart, 1, 'a'))"
    )
    shell(f'{sys.executable} -c "{script}" <&- >&- 2>&-')
    assert Path("drawing").read_text().startswith("<svg")
    shell(f"{NICBENCH} report {page.parent} <&- >&- 2>&-")
    assert page.exists()


def test_an_error_keeps_its_status_where_its_json_cannot_be_written(nicbench: Any) -> None:
    ended = shell(f"{NICBENCH} validate nothing.yaml --json >/dev/full")
    assert ended.returncode == 2
    assert "there is no such file" in ended.stderr


@pytest.mark.sampled(1)
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
        summary = await finished_run(bench, folder, bus)
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
