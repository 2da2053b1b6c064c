"""What a newcomer meets: help without the types of a programmer, one convention of options, errors with a next step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer

from nicbench.cli.app import COMMANDS, make_app, rename_old


def every_command() -> dict[str, Any]:
    """Each command, those of groups too, by its words."""
    found: dict[str, Any] = {}
    for name, command in typer.main.get_command(make_app()).commands.items():  # type: ignore[attr-defined]
        own = getattr(command, "commands", None)
        found |= {f"{name} {part}": one for part, one in own.items()} if own else {name: command}
    return found


@pytest.mark.parametrize("name", ["", *COMMANDS, "lab up", "reference import"])
def test_the_help_of_a_flag_shows_no_type(name: str, nicbench: Any) -> None:
    ended = nicbench(*name.split(), "--help")
    assert ended.status == 0
    assert "--help" in ended.stdout
    assert "bool" not in ended.stdout


def test_the_same_option_is_the_same_thing_in_every_command() -> None:
    for name, command in every_command().items():
        options = {word: one for one in command.params for word in one.opts if word.startswith("--")}
        assert "--output" not in options, name
        if "--runs" in options:
            assert options["--runs"].help == "The folder that holds the runs.", name


def test_the_old_names_of_options_still_work(nicbench: Any, run_is: Any, finished_run: Any) -> None:
    run_is(finished_run)
    assert nicbench("run", "bench.yaml", "--output", "old").status == 0
    assert len(list(Path("old").iterdir())) == 1
    assert nicbench("list", "--output=old").status == 0
    assert nicbench("export", "latest", "--runs", "old", "--to", "json", "--output", "old.json").status == 0
    assert Path("old.json").exists()
    assert rename_old("lab", ["shell", "--", "ls", "--output"]) == ["shell", "--", "ls", "--output"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("rnu", "bench.yaml"), "Did you mean 'run'?"),
        (("run",), "Missing argument 'BENCH.yaml'. The bench file."),
        (("check", "latest"), "Missing option '--against'. The run to compare with"),
        (("report", "latest", "--layout", "short"), "'short' is not one of 'study', 'datasheet'"),
        (("run", "none.yaml"), "`nicbench init` writes one, `nicbench demo` runs one"),
        (("run", "."), "is a folder, not a bench file"),
        (("report", "bench.yaml"), "`nicbench run bench.yaml` makes a run of a bench file"),
        (("report", "none"), "there is no such folder next: `nicbench list` shows the runs"),
        (("web", "none"), "`nicbench run BENCH.yaml` or `nicbench demo` makes one"),
        (("run", "bench.yaml", "--wait", "soon"), "write it like 90s or 10min"),
        (("list", "--since", "yesterday"), "write it like 2026, 2026-01 or 2026-01-31"),
        (("export", "latest", "--to", "exel"), "it is one of badge, csv, json"),
        (("reference", "show", "connectx5"), "did you mean"),
        (("demo", "simulate"), "did you mean `simulated`?"),
        (("lab", "shell"), "make one: nicbench lab up BENCH.yaml"),
        (("import", "none.csv", "--method", "throughput"), "none.csv"),
        (("run", "bench.yaml", "--runs", "bench.yaml"), "give --runs a folder"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_wrong_command_says_what_to_write(
    arguments: tuple[str, ...], said: str, nicbench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nicbench.cli.commands.lab.find_kept_runs", list)
    ended = nicbench(*arguments)
    shown = " ".join(ended.stderr.replace("│", " ").split())
    assert ended.status == 2
    assert said in shown
    assert "error," not in shown


def test_a_run_is_no_bench_file_and_a_folder_of_runs_is_no_run(nicbench: Any, run_is: Any, finished_run: Any) -> None:
    run_is(finished_run)
    assert nicbench("run", "bench.yaml").status == 0
    (folder,) = Path("runs").iterdir()
    (folder / "journal.ndjson").touch()
    shown = nicbench("run", str(folder)).stderr
    assert "is the folder of a run, not a bench file" in shown
    assert f"`nicbench resume {folder}` goes on with it" in shown
    assert f"name one of the 1 runs in it, such as {folder}" in nicbench("report", "runs").stderr


def test_a_table_says_by_which_options_it_can_be_imported(nicbench: Any) -> None:
    Path("mine.csv").write_text("Card,Ports,Frame size,Frame rate [Mpps]\nA,2x25GbE,64,10\nB,2x25GbE,64,11\n")
    assert "add --method throughput, whose columns it has" in nicbench("import", "mine.csv").stderr
    shown = nicbench("import", "mine.csv", "--method", "throughput").stderr
    assert "try it with: --configuration Card --column Ports=link" in shown or "--ignore Card" in shown
