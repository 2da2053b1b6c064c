"""``nicbench export``: where the file goes, and what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from nicbench.cli.commands import results
from nicbench.core.events import RunFinished
from nicbench.core.registry import find
from nicbench.core.result import ResultVerdict, Summary
from nicbench.export.formats.base import ExportFormat
from nicbench.store import RunFolder

from .conftest import RESULT, Command


@pytest.fixture
def run(nicbench: Command, tmp_path: Path) -> RunFolder:
    folder = RunFolder.create(tmp_path / "runs", "nicbench: 1\n", "exported")
    folder.journal.append(RunFinished(verdict=ResultVerdict.VALID, measured_s=1.0))
    folder.finish(Summary(title="exported", verdict=ResultVerdict.VALID, results=(RESULT,)))
    return folder


def test_a_file_is_written_here_and_its_name_printed(run: RunFolder, nicbench: Command, tmp_path: Path) -> None:
    for kind, form in find("nicbench.export.formats", ExportFormat).items():  # type: ignore[type-abstract]
        ended = nicbench("export", "latest", "--to", kind)
        assert ended.status == 0, ended.stderr
        assert ended.stdout == f"{run.run_id}{form.suffix}\n"
        assert (tmp_path / ended.stdout.strip()).stat().st_size > 0


def test_the_kind_may_be_called_a_format_as_in_reports(run: RunFolder, nicbench: Command, tmp_path: Path) -> None:
    assert nicbench("export", "latest", "--format", "csv").status == 0
    assert (tmp_path / f"{run.run_id}.csv").exists()


def test_a_named_file_and_a_named_table(run: RunFolder, nicbench: Command, tmp_path: Path) -> None:
    ended = nicbench("export", run.run_id, "--to", "csv", "--table", "values", "--output", "some.csv")

    assert (ended.status, ended.stdout) == (0, "some.csv\n")
    assert (tmp_path / "some.csv").read_text().count("ndr_frames_per_s") == 1


def test_a_folder_that_is_missing_is_made(run: RunFolder, nicbench: Command, tmp_path: Path) -> None:
    assert nicbench("export", run.run_id, "--to", "csv", "--out", "for/others/some.csv").status == 0
    assert (tmp_path / "for/others/some.csv").is_file()


def test_a_dash_is_stdout(run: RunFolder, nicbench: Command) -> None:
    ended = nicbench("export", str(run.path), "--to", "json", "--output", "-")

    assert json.loads(ended.stdout)["results"][0]["values"][0]["value"] == 4e5


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--to", "ods"), "it is one of badge, csv, json, junit, openmetrics, parquet, xlsx"),
        (("--to", "csv", "--table", "frames"), "it is one of results, values, trials, rounds"),
        (("--to", "json", "--table", "values"), "the format json holds all tables"),
        (("--to", "csv", "--out", "/dev/null/x.csv"), "is no folder, but a file"),
        (("--to", "csv", "--output", "runs"), "is a folder, not a file"),
    ],
)
def test_what_cannot_be_says_so(arguments: tuple[str, ...], says: str, run: RunFolder, nicbench: Command) -> None:
    ended = nicbench("export", "latest", *arguments)

    assert ended.status == 2
    assert says in ended.stderr


def test_nothing_is_written_into_the_folder_of_a_run(run: RunFolder, nicbench: Command) -> None:
    ended = nicbench("export", "latest", "--to", "json", "--output", str(run.path / "summary.json"))

    assert ended.status == 2
    assert "lies in the folder of a run" in ended.stderr
    assert run.differences() == ()


@pytest.mark.parametrize("target", ["pipe", "link"])
def test_no_pipe_and_no_device_is_replaced(target: str, run: RunFolder, nicbench: Command, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")  # as /dev/stdout is
    ended = nicbench("export", "latest", "--to", "csv", "--output", target)

    assert ended.status == 2
    assert "is a pipe or a device, not a file" in ended.stderr
    assert (tmp_path / target).is_fifo()


def test_the_help_names_every_kind() -> None:
    option: Any = results.Kind
    told = option.__metadata__[0].help

    assert [kind for kind in find("nicbench.export.formats", ExportFormat) if kind not in told] == []  # type: ignore[type-abstract]


def test_an_export_is_no_table_to_import(run: RunFolder, nicbench: Command) -> None:
    assert nicbench("export", run.run_id, "--to", "csv", "--output", "some.csv").status == 0
    said = nicbench("import", "some.csv", "--method", "throughput").stderr
    assert "this is what `nicbench export` writes" in said
    assert "try it with" not in said
