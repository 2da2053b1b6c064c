"""Commands on runs that exist: list, resume, report; and how a run is named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def run_folder(nicbench: Any, run_is: Callable[..., None], finished_run: Any) -> Path:
    """The folder of a finished run."""
    run_is(finished_run)
    assert nicbench("run", "bench.yaml").status == 0
    [folder] = Path("runs").iterdir()
    return folder


def test_list_shows_date_title_verdict_and_headline(run_folder: Path, nicbench: Any) -> None:
    listed = nicbench("list").stdout
    for text in (run_folder.name[:17], "2026-01-31", "valid", "NDR", "at 64 bytes"):
        assert text in listed


def test_on_a_narrow_terminal_each_run_has_lines_and_its_name_is_whole(
    run_folder: Path, nicbench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nicbench.cli.output.WIDTH_OF_A_FILE", 80)
    name, state, headline = nicbench("list").stdout.splitlines()
    assert name == run_folder.name
    assert "valid" in state
    assert headline.strip().startswith("NDR 400 kpps")


def test_list_shows_a_damaged_run_beside_the_others(run_folder: Path, nicbench: Any) -> None:
    damaged = run_folder.with_name("2020-01-01T000000Z-damaged")
    shutil.copytree(run_folder, damaged)
    (damaged / "summary.json").write_text("{")
    ended = nicbench("list", "--json")
    assert ended.status == 0
    first, second = json.loads(ended.stdout)["runs"]
    assert "damaged" in first["trouble"]
    assert second["headline"].startswith("NDR 400 kpps")


def test_list_of_nothing_says_how_to_make_a_run(nicbench: Any) -> None:
    ended = nicbench("list")
    assert ended.status == 0
    assert "nicbench run" in ended.stderr


@pytest.mark.parametrize("name", ["latest", "id", "path"])
def test_a_run_is_named_by_latest_by_its_id_or_by_its_path(name: str, run_folder: Path, nicbench: Any) -> None:
    reference = {"latest": "latest", "id": run_folder.name, "path": str(run_folder)}[name]
    ended = nicbench("report", reference)
    assert ended.status == 0
    assert ended.stdout.strip().endswith("report.html")


def test_a_run_that_does_not_exist_ends_with_2(nicbench: Any) -> None:
    ended = nicbench("report", "2020-01-01T000000Z-nothing")
    assert ended.status == 2
    assert "nicbench list" in ended.stderr


def test_latest_without_runs_says_how_to_make_one(nicbench: Any) -> None:
    ended = nicbench("resume", "latest")
    assert ended.status == 2
    assert "nicbench run" in ended.stderr


def test_resume_goes_on_in_the_same_folder(run_folder: Path, nicbench: Any) -> None:
    ended = nicbench("resume", "latest")
    assert ended.status == 0
    assert list(Path("runs").iterdir()) == [run_folder]


def test_another_folder_for_runs(nicbench: Any, run_is: Callable[..., None], finished_run: Any) -> None:
    run_is(finished_run)
    assert nicbench("run", "bench.yaml", "--output", "elsewhere").status == 0
    assert len(list(Path("elsewhere").iterdir())) == 1


@pytest.mark.parametrize("output", ["bench.yaml", "bench.yaml/runs"])
@pytest.mark.parametrize("command", [("list",), ("run", "bench.yaml"), ("report", "latest"), ("restore", "latest")])
def test_a_file_is_no_folder_for_runs(command: tuple[str, ...], output: str, nicbench: Any) -> None:
    ended = nicbench(*command, "--output", output)
    assert ended.status == 2
    assert "error: bench.yaml: is a file, not a folder" in ended.stderr


def test_a_folder_that_is_not_there_holds_no_runs(nicbench: Any) -> None:
    ended = nicbench("list", "--output", "nothing/here")
    assert ended.status == 0
    assert "there is no folder nothing/here" in ended.stderr


def test_a_tag_finds_its_run_and_no_other(run_folder: Path, nicbench: Any) -> None:
    other = run_folder.with_name("2020-01-01T000000Z-other")
    shutil.copytree(run_folder, other)
    assert nicbench("tag", run_folder.name, "baseline").stdout == f"{run_folder.name}: baseline\n"
    assert json.loads(nicbench("tag", "latest", "--json").stdout)["tags"] == ["baseline"]
    [found] = json.loads(nicbench("list", "--tag", "baseline", "--json").stdout)["runs"]
    assert found["run_id"] == run_folder.name
    assert nicbench("tag", "latest", "baseline", "--remove").status == 0
    ended = nicbench("list", "--tag", "baseline")
    assert (ended.status, ended.stdout) == (0, "")
    assert "none of the 2 runs" in ended.stderr


def test_a_run_is_tagged_as_it_begins(nicbench: Any, run_is: Callable[..., None], finished_run: Any) -> None:
    run_is(finished_run)
    assert nicbench("run", "bench.yaml", "--tag", "nightly", "--tag", "v1.2").status == 0
    assert "nightly, v1.2" in nicbench("list", "of the tests").stdout
    [found] = json.loads(nicbench("list", "nightly", "--method", "throughput", "--json").stdout)["runs"]
    assert found["tags"] == ["nightly", "v1.2"]


@pytest.mark.parametrize("name", ["latest", "a b", "../up", "-x", "ü", "x" * 64, ""])
def test_what_is_no_tag_ends_with_2_before_anything_is_measured(name: str, nicbench: Any) -> None:
    ended = nicbench("run", "bench.yaml", f"--tag={name}")
    assert ended.status == 2
    assert "next: " in ended.stderr
    assert not Path("runs").exists()


def test_a_tag_that_the_run_does_not_have_cannot_be_taken_away(run_folder: Path, nicbench: Any) -> None:
    ended = nicbench("tag", run_folder.name, "gone", "--remove")
    assert ended.status == 2
    assert "does not have the tag" in ended.stderr


@pytest.mark.parametrize("date", ["yesterday", "2026-13", "2026-02-31"])
def test_a_date_that_is_none_ends_with_2(date: str, nicbench: Any) -> None:
    ended = nicbench("list", "--since", date)
    assert ended.status == 2
    assert "2026-01-31" in ended.stderr


def test_a_damaged_index_is_a_note_beside_the_list(run_folder: Path, nicbench: Any) -> None:
    Path("runs/.index.sqlite").write_text("no index")
    ended = nicbench("list", "--json")
    assert [run["run_id"] for run in json.loads(ended.stdout)["runs"]] == [run_folder.name]
    assert "made anew" in ended.stderr
    assert nicbench("list").stderr == ""


def test_hundreds_of_runs_are_a_line_each(run_folder: Path, nicbench: Any) -> None:
    for number in range(250):
        shutil.copytree(run_folder, run_folder.with_name(f"2020-01-01T000000Z-copy-{number:03}"))
    lines = nicbench("list").stdout.splitlines()
    assert len(lines) == 252
    assert lines[1].startswith("2020-01-01T000000Z-copy-000  ")
