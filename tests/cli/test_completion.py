"""Shell completion: the names that a user would type, at once, and never an error."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.commands import run_captured, run_tried

from nicbench.cli import completion
from nicbench.core.registry import find
from nicbench.export.formats.base import ExportFormat
from nicbench.importing.formats.base import Format
from nicbench.methods.base import Method
from nicbench.store.marks import add_tag

START = """
import pathlib, sys
from nicbench.cli.main import main
main()
pathlib.Path("loaded").write_text(" ".join(sys.modules))
"""
SPARED = {
    "altair",
    "vl_convert",
    "pyarrow",
    "scipy",
    "MLRsearch",
    "asyncssh",
    "httpx",
    "numpy",
    "nicbench.bench_file.load",
}


@pytest.fixture
def runs(nicbench: Any, run_is: Any, finished_run: Any) -> list[str]:
    """Two runs, the newest first, of which one has a tag."""
    run_is(finished_run)
    assert nicbench("run", "bench.yaml").status == 0
    (folder,) = Path("runs").iterdir()
    newer = folder.rename(folder.with_name("2026-02-02T000000Z-newer"))
    older = newer.with_name("2026-01-01T000000Z-older")
    older.mkdir()
    (older / "bench.yaml").write_bytes((newer / "bench.yaml").read_bytes())
    add_tag(newer, "golden")
    return [newer.name, older.name]


def complete(*words: str, shell: str = "bash") -> list[str]:
    """What the last of the words may become, and what was loaded for it."""
    line = ["nicbench", *words]
    asked = {"_NICBENCH_COMPLETE": f"complete_{shell}"}
    asked |= {"COMP_WORDS": "\n".join(line), "COMP_CWORD": str(len(words))}
    ended = run_captured([sys.executable, "-c", START], env=os.environ | asked)
    assert ended.stderr == ""
    return ended.stdout.split()


def test_the_names_of_commands_load_none_of_them(nicbench: Any) -> None:
    assert complete("re") == ["resume", "report", "reference", "restore"]
    loaded = set(Path("loaded").read_text().split())
    assert not [name for name in loaded if name.startswith("nicbench.cli.commands.")]


@pytest.mark.parametrize("words", [("report", ""), ("run", "--ru"), ("export", "latest", "--to", "")], ids=" ".join)
def test_a_completion_loads_no_part_of_a_run(words: tuple[str, ...], runs: list[str]) -> None:
    assert complete(*words)
    assert SPARED.isdisjoint(Path("loaded").read_text().split())


def test_no_command_loads_a_part_of_a_run_for_its_options() -> None:
    """The completion of any command's options loads the file of that command."""
    load_all = "import sys; from nicbench.cli.app import make_whole_app; make_whole_app(); print(*sys.modules)"
    loaded = run_captured([sys.executable, "-c", load_all]).stdout
    assert SPARED.intersection(loaded.split()) == set()


def test_runs_and_tags_are_completed_the_newest_first(runs: list[str]) -> None:
    assert complete("report", "") == ["latest", *runs]
    assert complete("report", "2026-01") == runs[1:]
    assert complete("check", "latest", "--against", "g") == ["golden"]
    assert complete("list", "--tag", "") == ["golden"]
    assert "reference:connectx5-zero-loss" in complete("compare", "latest", "ref")


def test_a_folder_of_runs_that_was_named_is_looked_into(runs: list[str], tmp_path: Path) -> None:
    Path("runs").rename("elsewhere")
    assert complete("report", "") == ["latest"] or complete("report", "") == []
    assert complete("report", "--runs", "elsewhere", "2026-01") == runs[1:]


def test_methods_formats_examples_and_data_sets(nicbench: Any) -> None:
    assert complete("list", "--method", "thr") == ["throughput"]
    assert complete("report", "latest", "--format", "p") == ["pdf"]
    assert complete("demo", "simul") == ["simulated"]
    assert "connectx5-zero-loss" in complete("reference", "show", "")


def test_what_is_completed_is_what_there_is() -> None:
    nothing = type("Context", (), {"params": {}})()
    for completer, package, base in (
        (completion.methods, "nicbench.methods", Method),
        (completion.export_formats, "nicbench.export.formats", ExportFormat),
        (completion.import_formats, "nicbench.importing.formats", Format),
    ):
        kinds = find(package, base)
        assert sorted(completer(nothing, "")) == sorted(kinds)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "environment",
    [
        {"COMP_WORDS": "nicbench\nreport\n", "COMP_CWORD": "two"},
        {"COMP_WORDS": "", "COMP_CWORD": "7"},
        {"COMP_WORDS": "nicbench\nreport\n--runs\n/proc/1/mem\n", "COMP_CWORD": "4"},
        {"_NICBENCH_COMPLETE": "nonsense"},
    ],
    ids=str,
)
def test_whatever_is_typed_a_completion_never_fails(environment: dict[str, str], nicbench: Any) -> None:
    asked = {"_NICBENCH_COMPLETE": "complete_bash", **environment}
    ended = run_tried([sys.executable, "-m", "nicbench"], env=os.environ | asked)
    assert ended.returncode == 0
    assert "Traceback" not in ended.stderr


def test_the_words_before_the_cursor_are_known_in_every_shell() -> None:
    assert completion.typed_words({"COMP_WORDS": "nicbench\nreport\nlat", "COMP_CWORD": "2"}) == ["report"]
    assert completion.typed_words({"_TYPER_COMPLETE_ARGS": "nicbench report lat"}) == ["report"]
    assert completion.typed_words({"_TYPER_COMPLETE_ARGS": "nicbench report "}) == ["report"]
    assert completion.is_asked({"_NICBENCH_COMPLETE": "source_zsh"})
    assert not completion.is_asked({})
