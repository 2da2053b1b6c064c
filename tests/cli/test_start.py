"""Starting the program: what takes longer to load than most commands take is loaded by those that use it."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.commands import run_captured

from nicbench.cli import app as app_module

HEAVY = {"altair", "vl_convert", "pyarrow", "scipy", "MLRsearch", "asyncssh", "httpx", "starlette", "uvicorn"}

START = """
import pathlib, sys
from nicbench.cli.main import main
main({command!r})
pathlib.Path({loaded!r}).write_text(" ".join(sys.modules))
"""


@pytest.mark.parametrize("command", [["--help"], [], ["rnu"], ["--version"]], ids=" ".join)
def test_help_and_a_wrong_word_load_no_command(command: list[str], tmp_path: Path) -> None:
    loaded = tmp_path / "loaded"
    script = tmp_path / "start.py"
    script.write_text(START.format(command=command, loaded=str(loaded)))
    run_captured([sys.executable, script])
    ours = {name for name in loaded.read_text().split() if name.startswith("nicbench.")}
    assert not {name for name in ours if not name.startswith(("nicbench.cli", "nicbench.store", "nicbench.core"))}
    assert {"numpy", "asyncio"}.isdisjoint(loaded.read_text().split())
    assert len(ours) < 30


@pytest.mark.parametrize("command", [["--version"], ["list"], ["validate", "bench.yaml"]], ids=" ".join)
def test_charts_tables_statistics_and_ssh_are_not_loaded_before_they_are_used(
    command: list[str], nicbench: Any, tmp_path: Path
) -> None:
    loaded = tmp_path / "loaded"
    script = tmp_path / "start.py"
    script.write_text(START.format(command=command, loaded=str(loaded)))
    run_captured([sys.executable, script])
    assert HEAVY.isdisjoint(loaded.read_text().split())


CHECK = ["check", "a", "--against", "b"]


@pytest.mark.parametrize(
    ("command", "spared"),
    [
        (["list", "--json"], {"rich.console", "nicbench.core.events", "nicbench.core.result", "asyncio", "numpy"}),
        (["list", "--card", "x", "--json"], {"rich.console", "nicbench.core.events", "nicbench.core.result", "numpy"}),
        (CHECK, {"nicbench.core.events", "asyncio", "numpy", "nicbench.methods.frames"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_to_answer_over_ten_thousand_runs_loads_no_more_than_it_needs(
    command: list[str], spared: set[str], nicbench: Any, tmp_path: Path, run_is: Any, finished_run: Any
) -> None:
    run_is(finished_run)
    assert nicbench("run", "bench.yaml").status == 0
    [folder] = Path("runs").iterdir()
    for name in ("a", "b"):
        shutil.copytree(folder, folder.with_name(name))
    for path in Path("runs").rglob("*"):
        os.utime(path, (0, 0))  # what was changed just now is read again
    assert nicbench("list").status == 0  # which reads the new folders
    loaded = tmp_path / "loaded"
    script = tmp_path / "start.py"
    script.write_text(START.format(command=command, loaded=str(loaded)))
    run_captured([sys.executable, script])
    assert spared.isdisjoint(loaded.read_text().split())


def test_every_command_is_loaded_by_its_name_and_all_of_them_without_one() -> None:
    files = {path.stem for path in (Path(app_module.__file__).parent / "commands").glob("*.py")} - {"__init__"}
    assert {file for file, _ in app_module.COMMANDS.values()} == files
    for app in (app_module.make_app(), app_module.make_whole_app()):
        assert set(typer.main.get_command(app).commands) == set(app_module.COMMANDS)  # type: ignore[attr-defined]
    for name in app_module.COMMANDS:
        assert list(typer.main.get_command(app_module.make_app(name)).commands) == [name]  # type: ignore[attr-defined]


def test_nothing_of_a_run_folder_is_writable_by_everybody(nicbench: Any, run_is: Any, finished_run: Any) -> None:
    run_is(finished_run)
    before = os.umask(0)
    try:
        assert nicbench("run", "bench.yaml").status == 0
        assert os.umask(0) == 0  # this process has its own again
    finally:
        os.umask(before)
    made = [Path("runs"), *Path("runs").rglob("*")]
    assert len(made) > 3
    assert [path for path in made if path.stat().st_mode & stat.S_IWOTH] == []
