"""``nicbench list``, ``tag``, ``export``, ``gather`` and ``reference``."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import RESULT, Command
from tests.web._history import make_history

from nicbench.cli.commands import export
from nicbench.core.events import RunFinished
from nicbench.core.registry import find
from nicbench.core.result import ResultVerdict, Summary
from nicbench.export.formats.base import ExportFormat
from nicbench.importing.reference.data_sets import command_line, data_set, data_sets
from nicbench.store import RunFolder
from nicbench.store.marks import add_tag

# Commands on runs that exist: list, resume, report; and how a run is named.


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


# ``nicbench export``: where the file goes, and what is refused.


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
    option = export.Kind
    told = option.__metadata__[0].help

    assert [kind for kind in find("nicbench.export.formats", ExportFormat) if kind not in told] == []  # type: ignore[type-abstract]


def test_an_export_is_no_table_to_import(run: RunFolder, nicbench: Command) -> None:
    assert nicbench("export", run.run_id, "--to", "csv", "--output", "some.csv").status == 0
    said = nicbench("import", "some.csv", "--method", "throughput").stderr
    assert "this is what `nicbench export` writes" in said
    assert "try it with" not in said


# ``nicbench gather``, and the commands that read its lake: what is in the lake and in the folder counts once.


@pytest.fixture
def lab(nicbench: Command) -> list[str]:
    """Ten runs under ``runs``, gathered; the names of those of one card, oldest first."""
    make_history(Path("runs"), 5)
    assert nicbench("gather").stdout == "10 runs added, 0 updated, 0 known already\n"
    return sorted(path.name for path in Path("runs").iterdir() if path.name.endswith("25g"))


def names(listed: Any) -> list[str]:
    return [run["run_id"] for run in json.loads(listed.stdout)["runs"]]


def test_gathered_runs_are_listed_once_and_also_when_their_folders_are_elsewhere(
    nicbench: Command, lab: list[str]
) -> None:
    every = names(nicbench("list", "--json"))
    assert len(every) == 10
    Path("archive").mkdir()
    for name in lab[:3]:
        shutil.move(Path("runs") / name, "archive")
    assert names(nicbench("list", "--json")) == every
    assert names(nicbench("list", "--json", "--card", "25g", "--until", "2024-11-10")) == lab[:1]
    newest = nicbench("list", "--json", "--last", "2")
    assert names(newest) == every[-2:]
    assert "the newest 2 of 10 runs" in newest.stderr


def test_a_lake_elsewhere_is_named(nicbench: Command, lab: list[str]) -> None:
    shutil.move("runs/lake", "elsewhere")
    shutil.rmtree("runs")
    assert len(names(nicbench("list", "--json", "--lake", "elsewhere"))) == 10
    ended = nicbench("list", "--lake", "nowhere")
    assert (ended.status, "is no lake" in ended.stderr) == (2, True)


def test_check_and_compare_find_runs_by_the_lake(nicbench: Command, lab: list[str]) -> None:
    for name in lab[:4]:
        add_tag(Path("runs") / name, "baseline")
    assert nicbench("gather", "runs").stdout == "0 runs added, 4 updated, 6 known already\n"
    Path("archive").mkdir()
    for name in lab[:4]:
        shutil.move(Path("runs") / name, "archive")
    nicbench("gather", "archive", "--into", "runs/lake")

    document = json.loads(nicbench("check", lab[4], "--against", "baseline", "--json").stdout)
    assert document["against"] == lab[:4]
    document = json.loads(nicbench("check", lab[1], "--against", lab[0], "--json").stdout)
    assert (document["run"], document["against"]) == (lab[1], [lab[0]])
    assert nicbench("compare", "old=baseline", lab[4], "--format", "md").status == 0
    assert lab[0] in Path("comparison.md").read_text()


def test_runs_whose_folders_are_gone_are_left_out_of_a_check_and_named(nicbench: Command, lab: list[str]) -> None:
    for name in lab[:2]:
        add_tag(Path("runs") / name, "baseline")
    nicbench("gather")
    shutil.rmtree(Path("runs") / lab[0])
    ended = nicbench("check", lab[4], "--against", "baseline", "--json")
    assert json.loads(ended.stdout)["against"] == [lab[1]]
    assert f"left out: {lab[0]}: there is no such folder" in ended.stderr


def test_what_was_skipped_is_said_and_the_rest_is_gathered(nicbench: Command, lab: list[str]) -> None:
    (Path("runs") / lab[0] / "summary.json").write_text("{}")
    add_tag(Path("runs") / lab[0], "touched")
    ended = nicbench("gather", "runs", "--into", "other", "--json")
    document = json.loads(ended.stdout)
    assert (ended.status, len(document["added"]), len(document["skipped"])) == (0, 9, 1)
    assert "summary.json" in ended.stderr
    assert nicbench("gather", "runs", "archive").status == 2


# ``nicbench reference``: what comes with nicbench is listed, shown and made into a run.


def test_every_data_set_is_listed(nicbench: Any) -> None:
    ended = nicbench("reference", "list")
    assert ended.status == 0
    assert all(f" {name} " in ended.stdout for name in data_sets())
    listed = json.loads(nicbench("reference", "list", "--json").stdout)["data_sets"]
    assert {one["name"]: one["rows"] for one in listed}["frametest-sums"] == 720
    assert all(one["source"] and one["year"] and (one["method"] or one["why_not"]) for one in listed)


def test_a_data_set_is_shown_with_source_rows_and_errata(nicbench: Any) -> None:
    ended = nicbench("reference", "show", "connectx5-single-core")
    assert ended.status == 0
    for text in ("Mellanox NICs Performance Report with DPDK 19.08 (2019)", "49.06 Gb/s", "49.2544 Gb/s", "120.837"):
        assert text in ended.stdout
    shown = json.loads(nicbench("reference", "show", "snapio-findings", "--json").stdout)
    assert len(shown["rows"]) == 4
    assert "changes in percent" in shown["why_not"]


def test_a_long_one_is_cut_and_says_so(nicbench: Any) -> None:
    ended = nicbench("reference", "show", "frametest-sums")
    assert "680 more rows: --all shows them" in ended.stderr
    assert ended.stdout.count("read") < 50
    assert "more rows" not in nicbench("reference", "show", "frametest-sums", "--all").stderr


@pytest.mark.parametrize("name", ["connectx5-zero-loss", "connectx5-single-core", "nsfnic4-four-ports-combined"])
def test_its_run_is_that_of_the_command_line_that_it_shows(nicbench: Any, name: str) -> None:
    chosen = data_set(name)
    line = command_line(chosen)
    assert line is not None
    Path(chosen.table).write_bytes(chosen.content())
    by_name = json.loads(nicbench("reference", "import", name, "--output", "named", "--json").stdout)
    by_line = json.loads(nicbench(*shlex.split(line)[1:], "--output", "typed", "--json").stdout)
    assert by_name == by_line
    assert by_name["imported"]["source"] == chosen.source
    (folder,) = Path("named").iterdir()
    assert (folder / "raw" / chosen.table).read_bytes() == chosen.content()
    assert chosen.source in (folder / "report.html").read_text()


def test_an_erratum_that_is_declared_is_in_the_report(nicbench: Any) -> None:
    ended = nicbench("reference", "import", "frametest-statistics")
    assert ended.status == 0, ended.stderr
    (folder,) = Path("runs").iterdir()
    assert "of one instance nothing deviates" in (folder / "report.html").read_text()


def test_what_cannot_become_a_run_says_why(nicbench: Any) -> None:
    ended = nicbench("reference", "import", "snapio-findings")
    assert ended.status == 2
    assert "none of the figures they are of" in ended.stderr
    assert not Path("runs").exists()
