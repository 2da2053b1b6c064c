"""The pages over a lake: its runs are listed, searched and charted as those of the folder, each once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.web._history import make_history
from tests.web.conftest import Client
from tests.web.test_history import THROUGHPUT, ask

from nicbench.lake.gathering import gather
from nicbench.lake.place import Lake
from nicbench.store.index import list_indexed_runs
from nicbench.web import catalogue
from nicbench.web.catalogue import Catalogue, LakeRuns
from nicbench.web.security import Door
from nicbench.web.site import Site


@pytest.fixture
def client(runs: Path, tmp_path: Path) -> Client:
    """Six weeks of two cards are in the lake; four of the folders were moved away, and two of them below the runs."""
    make_history(runs, 6)
    lake = runs / "lake"
    gather([runs], lake)
    folders = sorted(path for path in runs.iterdir() if path != lake)
    (runs / "2024").mkdir()
    for path, into in zip(folders[:4], (runs / "2024", runs / "2024", tmp_path, tmp_path), strict=True):
        shutil.move(path, into)
    gather([runs / "2024", *(tmp_path / path.name for path in folders[2:4])], lake)
    opened = Lake.open(lake)
    both = LakeRuns(opened, lambda: list_indexed_runs(runs, lambda _: None))
    door = Door.of(("127.0.0.1", "localhost", "::1"), 8425, tls=False)
    return Client(Site(runs, Catalogue(both.read, look=both.look), door, opened))


def test_runs_of_both_are_listed_and_found_once(client: Client) -> None:
    listed = client.get("/api/runs").json()
    assert (listed["every"], listed["found"], len({row["run"] for row in listed["rows"]})) == (12, 12, 12)
    assert client.get("/api/runs?card=25g").json()["found"] == 6
    assert client.get("/api/runs?until=2024-11-04").json()["found"] == 2


def test_of_very_many_runs_the_newest_are_listed_and_all_are_counted_and_searched(
    monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    monkeypatch.setattr(catalogue, "MOST", 5)
    listed = client.get("/api/runs").json()
    assert (listed["every"], listed["found"]) == (12, 5)
    found = client.get("/api/runs?until=2024-11-05").json()
    assert (found["every"], found["found"]) == (12, 2)


def test_a_trend_has_a_figure_of_each_run_whether_gathered_or_not(client: Client) -> None:
    answer = ask(client, f"/api/trends?{THROUGHPUT}&card=25g&by=")
    (series,) = answer["series"]
    assert len(series["number"]) == len(set(series["run"])) == 6
    by_ring = client.get("/api/trends?" + THROUGHPUT + "&card=25g&by=setting:inventory.rings.nic0.rx").json()
    assert [len(each["number"]) for each in by_ring["series"]] == [6]


def test_a_gathered_run_is_in_a_trend_whatever_its_folder_is_called(runs: Path, tmp_path: Path) -> None:
    make_history(runs, 1)
    own = min(runs.iterdir())
    named = tmp_path / "golden-25g"
    shutil.copytree(own, named)
    gather([named], runs / "lake")
    opened = Lake.open(runs / "lake")
    both = LakeRuns(opened, lambda: list_indexed_runs(runs, lambda _: None))
    door = Door.of(("127.0.0.1", "localhost", "::1"), 8425, tls=False)
    answer = ask(Client(Site(runs, Catalogue(both.read, look=both.look), door, opened)), f"/api/trends?{THROUGHPUT}")
    assert "golden-25g" in [run for series in answer["series"] for run in series["run"]]


def test_a_gathered_run_is_shown_where_its_folder_is_below_the_one_that_is_served(client: Client) -> None:
    names = sorted(row["run"] for row in client.get("/api/runs").json()["rows"])
    assert client.get(f"/runs/{names[0]}").status_code == 200
    elsewhere = client.get(f"/runs/{names[2]}")
    assert elsewhere.status_code == 404
    assert "there is none below" in elsewhere.text
