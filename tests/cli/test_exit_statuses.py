"""Every way a command can end: the exit status, the message, and the data on stdout."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nicbench.bench_file import BenchFile, load
from nicbench.core.errors import (
    EngineError,
    HostError,
    NicbenchError,
    NothingMeasuredError,
    NotReadyError,
    ThresholdError,
    UsageError,
)
from nicbench.core.result import ResultVerdict, Summary

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
    error: NicbenchError = request.param[0]
    status: int = request.param[1]

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


@pytest.mark.parametrize("verdict", [ResultVerdict.VALID, ResultVerdict.ADJUSTED])
def test_a_reliable_result_that_is_not_accepted_ends_a_run_with_6(
    nicbench: Any, run_is: Callable[..., None], finished_run: Any, verdict: ResultVerdict
) -> None:
    async def refused(bench: Any, folder: Any, bus: Any) -> Summary:
        summary: Summary = await finished_run(bench, folder, bus)
        (result,) = summary.results
        values = {**result.values, "accepted": "no"}
        refused_result = result.replace(values=values, verdict=verdict)
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
    monkeypatch.setattr("nicbench.cli.commands.run.load", stumble)
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
    monkeypatch.setattr("nicbench.cli.commands.run.load", stumble)
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
