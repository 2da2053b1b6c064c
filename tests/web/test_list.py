"""The list of runs: filters, order, pages, downloads, and that it is as the folder is."""

from __future__ import annotations

import csv
import io
import os
import shutil
import threading
from functools import partial
from pathlib import Path

import pytest
from tests.web._folders import finished, make_run, started, trials
from tests.web._history import make_history
from tests.web.conftest import Client
from tests.web.test_history import THROUGHPUT, ask

from nicbench.lake import place
from nicbench.lake.gathering import gather
from nicbench.lake.place import Lake
from nicbench.store.index import IndexedRuns, list_indexed_runs, newest_known
from nicbench.store.listing import RunHeadline
from nicbench.store.marks import add_tag
from nicbench.web.catalogue import Catalogue, FoundRuns, Wish, wish_of
from nicbench.web.security import Door
from nicbench.web.site import Site

DAYS = ("2026-01-01T120000Z", "2026-02-01T120000Z", "2026-03-01T120000Z")


def titles(client: Client, query: str = "") -> list[str]:
    return [row["title"] for row in client.get(f"/api/runs?{query}").json()["rows"]]


@pytest.fixture
def three(runs: Path) -> Path:
    for day, title in zip(DAYS, ("alpha", "Beta", "gamma"), strict=True):
        make_run(runs, f"{day}-{title}", started(title) + trials(len(title)) + finished())
    add_tag(runs / f"{DAYS[1]}-Beta", "golden")
    return runs


def test_the_newest_run_comes_first_and_other_orders_are_in_the_address(three: Path, client: Client) -> None:
    assert titles(client, "sort=title") == ["alpha", "Beta", "gamma"]
    assert titles(client, "sort=-title") == ["gamma", "Beta", "alpha"]
    assert titles(client, "sort=trials") == ["Beta", "alpha", "gamma"]
    assert client.get("/api/runs?sort=colour").json()["error"].startswith("sort: runs cannot be sorted by 'colour'")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("q=bet", ["Beta"]),
        ("q=bet+gamma", []),
        ("tag=golden", ["Beta"]),
        ("state=unfinished&sort=title", ["alpha", "Beta", "gamma"]),
        ("state=valid", []),
        ("since=2027", []),
        ("until=2026-11-26&since=2026-11&q=alpha", ["alpha"]),
        ("card=nothing", []),
        ("unknown=1&q=", ["alpha", "Beta", "gamma"]),
    ],
)
def test_a_filter_leaves_the_runs_that_meet_it(query: str, found: list[str], three: Path, client: Client) -> None:
    assert sorted(titles(client, query), key=str.casefold) == found


def test_a_wrong_date_is_answered_in_words(three: Path, client: Client) -> None:
    answer = client.get("/api/runs?since=yesterday")
    assert answer.status_code == 404
    assert "is no date" in answer.json()["error"]


def test_a_page_of_the_list_says_where_it_is(three: Path, client: Client) -> None:
    page = client.get("/api/runs?sort=title&from=1&rows=1").json()
    assert (page["every"], page["found"], page["from"]) == (3, 3, 1)
    assert [row["title"] for row in page["rows"]] == ["Beta"]
    assert client.get("/api/runs?from=-1&rows=x").status_code == 200


def test_what_is_seen_is_downloaded_with_its_columns(three: Path, client: Client) -> None:
    text = client.get("/api/runs.csv?sort=title&q=a&columns=title,tags").text
    assert list(csv.reader(io.StringIO(text)))[:3] == [["title", "tags"], ["alpha", ""], ["Beta", "golden"]]
    rows = client.get("/api/runs.json?sort=title&columns=title").json()["runs"]
    assert rows == [{"title": "alpha"}, {"title": "Beta"}, {"title": "gamma"}]


def test_a_title_is_no_formula_of_a_spreadsheet(runs: Path, client: Client) -> None:
    make_run(runs, "one", started("=HYPERLINK(1)"))
    assert client.get("/api/runs.csv?columns=title").text.splitlines()[1] == "'=HYPERLINK(1)"


def test_a_broken_name_and_a_broken_run_do_not_hide_the_others(three: Path, client: Client) -> None:
    broken = three / "2026-04-01T120000Z-broken"
    broken.mkdir()
    (broken / "MANIFEST.json").write_text("{")
    strange = Path(os.fsdecode(bytes(three) + b"/2026-05-01T120000Z-\xff"))
    strange.mkdir()
    (strange / "bench.yaml").write_text("nicbench: 1")
    rows = client.get("/api/runs").json()["rows"]
    assert [row["verdict"] for row in rows].count("damaged") == 1
    assert {"alpha", "Beta", "gamma"} <= {row["title"] for row in rows}


def test_a_list_is_read_again_only_after_a_while_and_never_twice_at_once() -> None:
    calls = []

    def read() -> IndexedRuns:
        calls.append(None)
        return IndexedRuns((RunHeadline("a", "/runs/a"), RunHeadline("b", "/runs/b")), 0)

    catalogue = Catalogue(read)
    for _ in range(5):
        assert [run.run_id for run in catalogue.find(wish_of([("sort", "run")])).runs] == ["a", "b"]
    assert len(calls) == 1


def test_the_first_page_is_as_the_index_has_it_until_the_folders_are_read(three: Path) -> None:
    list_indexed_runs(three, lambda _: None)
    may_end = threading.Event()

    def read() -> IndexedRuns:
        may_end.wait(30)
        return list_indexed_runs(three, lambda _: None)

    catalogue = Catalogue(read, partial(newest_known, three))
    first = catalogue.first_page(Wish(), 2)
    assert ([run.title for run in first.runs], first.every, first.reading) == (["gamma", "Beta"], 3, True)
    may_end.set()
    whole = catalogue.find(Wish())
    assert (len(whole.runs), whole.every, whole.reading) == (3, 3, False)


def test_a_list_that_could_not_be_read_is_empty_and_nobody_waits_for_it() -> None:
    def read() -> IndexedRuns:
        raise PermissionError("runs")

    assert Catalogue(read).find(Wish()) == FoundRuns((), 0)


@pytest.fixture
def lake_client(runs: Path, tmp_path: Path) -> Client:
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
    door = Door.of(("127.0.0.1", "localhost", "::1"), 8425, tls=False)
    return Client(Site(runs, Catalogue(lambda: list_indexed_runs(runs, lambda _: None), lake=opened), door, opened))


def test_runs_of_both_are_listed_and_found_once(lake_client: Client) -> None:
    listed = lake_client.get("/api/runs").json()
    assert (listed["every"], listed["found"], len({row["run"] for row in listed["rows"]})) == (12, 12, 12)
    assert lake_client.get("/api/runs?card=25g").json()["found"] == 6
    assert lake_client.get("/api/runs?until=2024-11-04").json()["found"] == 2


def test_of_very_many_runs_the_newest_are_listed_and_all_are_counted_and_searched(
    monkeypatch: pytest.MonkeyPatch, lake_client: Client
) -> None:
    monkeypatch.setattr(place, "MOST", 5)
    listed = lake_client.get("/api/runs").json()
    assert (listed["every"], listed["found"]) == (12, 5)
    found = lake_client.get("/api/runs?until=2024-11-05").json()
    assert (found["every"], found["found"]) == (12, 2)


def test_a_trend_has_a_figure_of_each_run_whether_gathered_or_not(lake_client: Client) -> None:
    answer = ask(lake_client, f"/api/trends?{THROUGHPUT}&card=25g&by=")
    (series,) = answer["series"]
    assert len(series["number"]) == len(set(series["run"])) == 6
    by_ring = lake_client.get("/api/trends?" + THROUGHPUT + "&card=25g&by=setting:inventory.rings.nic0.rx").json()
    assert [len(each["number"]) for each in by_ring["series"]] == [6]


def test_a_gathered_run_is_in_a_trend_whatever_its_folder_is_called(runs: Path, tmp_path: Path) -> None:
    make_history(runs, 1)
    own = min(runs.iterdir())
    named = tmp_path / "golden-25g"
    shutil.copytree(own, named)
    gather([named], runs / "lake")
    opened = Lake.open(runs / "lake")
    door = Door.of(("127.0.0.1", "localhost", "::1"), 8425, tls=False)
    answer = ask(
        Client(Site(runs, Catalogue(lambda: list_indexed_runs(runs, lambda _: None), lake=opened), door, opened)),
        f"/api/trends?{THROUGHPUT}",
    )
    assert "golden-25g" in [run for series in answer["series"] for run in series["run"]]


def test_a_gathered_run_is_shown_where_its_folder_is_below_the_one_that_is_served(lake_client: Client) -> None:
    names = sorted(row["run"] for row in lake_client.get("/api/runs").json()["rows"])
    assert lake_client.get(f"/runs/{names[0]}").status_code == 200
    elsewhere = lake_client.get(f"/runs/{names[2]}")
    assert elsewhere.status_code == 404
    assert "there is none below" in elsewhere.text
