"""``nicbench gather``, and the commands that read its lake: what is in the lake and in the folder counts once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Command
from tests.web._history import make_history

from nicbench.store.marks import add_tag


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
