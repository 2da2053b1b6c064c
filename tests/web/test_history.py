"""Trends, explore and badges as the server answers them: what is claimed, what is refused, and what strangers write."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
from tests.web._folders import HOSTILE
from tests.web._history import (
    FIRMWARE_WEEK,
    FIRST,
    KERNEL_WEEK,
    facts,
    make_collapse,
    make_fall,
    make_finished,
    make_history,
    result,
)
from tests.web.conftest import Client

from nicbench.cli.main import main
from nicbench.compare.history.figure_index import NAME, FigureIndex
from nicbench.compare.history.figures import Figure, Measure, RunSettings, Told
from nicbench.compare.history.selection import Entry
from nicbench.core.result import ResultVerdict
from nicbench.store.index import list_indexed_runs
from nicbench.store.listing import RunHeadline
from nicbench.web.history import Known

THROUGHPUT = "test=throughput&value=ndr_frames_per_s"


def ask(client: Client, path: str) -> dict[str, Any]:
    """Asks until the runs were read."""
    for _ in range(600):
        answer = client.get(path).json()
        if answer.get("ready", True) and not answer.get("reading"):
            return answer
        time.sleep(0.05)
    raise AssertionError(f"still being read: {answer}")


@pytest.fixture
def lab(runs: Path) -> Path:
    make_history(runs, KERNEL_WEEK + 12, first=FIRMWARE_WEEK - 14)
    return runs


@pytest.mark.parametrize("path", ["/api/trends.csv", "/api/trends.json", "/api/explore.csv", "/api/explore.json"])
def test_a_file_has_every_figure_or_is_refused_until_it_can_have_them(path: str, lab: Path, client: Client) -> None:
    answer = client.get(f"{path}?{THROUGHPUT}")
    while answer.status_code == 503:
        assert answer.headers["retry-after"] == "5"
        assert "still being read" in answer.text
        time.sleep(0.05)
        answer = client.get(f"{path}?{THROUGHPUT}")
    assert answer.status_code == 200
    time.sleep(0.2)
    assert client.get(f"{path}?{THROUGHPUT}").text == answer.text
    assert len(answer.text) > 10_000


def test_without_a_figure_the_page_says_so_in_sentences(runs: Path, client: Client) -> None:
    for _ in range(100):
        answer = client.get("/api/trends")
        if "error" in answer.json():
            break
        time.sleep(0.05)
    assert answer.json()["error"] == (
        "no run has ended with a number yet. Next: look again when one has; the list of runs shows them."
    )


def test_each_change_is_told_with_its_first_run_its_size_and_what_differed(lab: Path, client: Client) -> None:
    ask(client, f"/api/trends?{THROUGHPUT}")
    series = {each["name"]: each for each in client.get(f"/api/trends/changes?{THROUGHPUT}").json()["series"]}
    (card25,) = next(each for name, each in series.items() if "25G" in name)["changes"]
    assert card25["outcome"] == "worse"
    assert card25["change_percent"] == pytest.approx(-6.0, abs=1.0)
    assert card25["run"].startswith("2025-12-29")
    assert [row["path"] for row in card25["differences"]] == ["inventory.kernel.release"]
    (card100,) = next(each for name, each in series.items() if "100G" in name)["changes"]
    assert card100["outcome"] == "better"
    assert (card100["differences"][0]["before"], card100["differences"][0]["after"]) == ("22.41", "24.10")


def test_runs_that_are_not_comparable_are_no_better_and_no_worse(runs: Path, client: Client) -> None:
    make_history(runs, 20)
    answer = ask(client, f"/api/trends?{THROUGHPUT}&by=&card=25g")
    assert len(answer["series"]) == 1
    for number in range(12):
        at = FIRST.replace(year=2026, day=1 + number)
        values = {"ndr_frames_per_s": 10e6 + number}
        found = [result("throughput", 64, values, ResultVerdict.VALID)]
        make_finished(runs, f"{at:%Y-%m-%dT%H%M%SZ}-other", at, "Nightly 25G", found, facts("100G", 1))
    time.sleep(2.1)  # a list so young is shown as it is
    ask(client, f"/api/trends?{THROUGHPUT}&by=")
    for _ in range(100):
        (series,) = client.get(f"/api/trends/changes?{THROUGHPUT}&by=&q=nightly+25g").json()["series"]
        if series["changes"]:
            break
        time.sleep(0.1)
    assert series["changes"][-1]["outcome"] == "not comparable"
    assert "another card" in " ".join(series["changes"][-1]["objections"])


def test_a_value_is_told_against_parameters_settings_values_and_words(lab: Path, client: Client) -> None:
    found = ask(client, f"/api/explore?{THROUGHPUT}")
    assert (found["x"], found["x_kind"]) == ("parameter:frame_bytes", "number")
    assert {size for each in found["series"] for size in each["x"]} == {64.0, 512.0, 1518.0}
    kernels = client.get(f"/api/explore?{THROUGHPUT}&x=kernel&p.frame_bytes=64").json()
    assert kernels["x_words"].index("6.1.97") < kernels["x_words"].index("6.12.7")
    values = client.get("/api/explore?test=latency&x=value:latency_p99_ns&p.load_percent=50").json()
    point = values["series"][0]
    assert point["x"][0] > point["number"][0]
    rings = client.get("/api/explore?test=latency&x=setting:inventory.rings.nic0.rx").json()
    assert rings["x_kind"] == "number"
    split = client.get(f"/api/explore?{THROUGHPUT}&x=time&by=firmware").json()
    assert {"24.10", "22.41"} <= {word for each in split["series"] for word in each["name"].replace(",", "").split()}


@pytest.mark.parametrize(("others", "series"), [({}, 1), ({"delay": "30 us"}, 2)], ids=["alone", "among others"])
def test_configurations_stand_at_their_own_setting_in_one_series_where_they_differ_in_nothing_else(
    others: dict[str, str], series: int, runs: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = {
        "nicbench": 1,
        "title": "Queues",
        "lab": {"kind": "simulated", "capacity": "500 kpps"},
        "dut": {"kind": "simulated"},
        "tests": [{"name": "throughput", "method": "throughput", "frame_bytes": [64], "trial": {"duration": "100 ms"}}],
        "configurations": {"long": {"lab": {"queue_frames": 1024, **others}}, "short": {"lab": {"queue_frames": 16}}},
    }
    monkeypatch.chdir(runs.parent)
    Path("bench.yaml").write_text(json.dumps(bench))
    assert main(["run", "bench.yaml", "--no-progress", "--no-report"]) == 0
    answer = ask(client, "/api/explore?test=throughput&value=ndr_frames_per_s&x=setting:lab.queue_frames")
    assert len(answer["series"]) == series
    assert sorted(x for each in answer["series"] for x in each["x"]) == [16.0, 1024.0]


def test_configurations_of_which_nothing_is_known_are_never_one_series() -> None:
    """Of a lake of an older format, settings are those of all configurations together."""
    told = Told("ndr_frames_per_s", "NDR", "Mpps", True, True)
    measures = [Measure("throughput", "throughput", name, "per port", "{}", told) for name in ("long", "short")]
    entries = [Entry(Figure(1.0, "valid"), RunHeadline("run", "/runs/run"), measure, 0.0) for measure in measures]
    own = {"long": {"queue": "1024", "driver.queue": "1024"}, "short": {"queue": "16", "driver.queue": "16"}}
    switched = {"long": {"queue": "on", "other": "on"}, "short": {"queue": "off", "other": "off"}}
    for of_each, is_one in (({}, False), (own, True), (switched, False)):
        known = Known(settings={1: RunSettings({"queue": "1024 / 16"}, of_each)}, of_run={"run": 1})
        assert known.tells_configurations("queue", entries) is is_one
    assert not known.tells_configurations("queue", entries[:1]), "runs of one configuration stay apart by its name"


def test_a_place_of_which_only_a_bound_is_known_is_told_as_one_and_what_has_none_is_counted(
    runs: Path, client: Client
) -> None:
    make_fall(runs)
    query = "test=throughput&value=pdr_frames_per_s&x=value:ndr_frames_per_s"
    found = ask(client, f"/api/explore?{query}")
    (series,) = found["series"]
    assert (found["x_label"], series["count"], series["unplaced"]) == ("NDR", 10, 1)
    assert [at for at, below in zip(series["x"], series["x_below"], strict=True) if below] == [1000.0] * 3
    assert series["number"][-1] is None
    rows = list(csv.DictReader(io.StringIO(client.get(f"/api/explore.csv?{query}").text)))
    assert [(row["x"], row["x_upper"]) for row in rows[-4:]] == [("400006.0", ""), *[("", "1000.0")] * 3]
    assert [(row["x"], row["x_upper"]) for row in rows[3:4]] == [("", "")]


def test_filters_are_those_of_the_list_and_files_hold_every_figure(lab: Path, client: Client) -> None:
    ask(client, "/api/trends")
    text = client.get(f"/api/trends.csv?{THROUGHPUT}&card=25g&since=2026-01").text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["run"][:7] for row in rows} == {"2026-01", "2026-02", "2026-03"}
    assert all("25G" in row["series"] or row["series"] == "" for row in rows)
    found = client.get(f"/api/explore.json?{THROUGHPUT}&x=kernel").json()["explore"]
    assert {row["x"] for row in found} >= {"6.1.97", "6.12.7"}


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("trends?test=none", "test: "),
        ("trends?value=none", "value: "),
        ("trends?p.frame_bytes=65&test=throughput", "p.frame_bytes: "),
        ("trends?by=colour", "by: "),
        ("trends?by=setting:", "by: "),
        ("trends?tolerance=much", "tolerance: "),
        ("trends?tolerance=101", "tolerance: "),
        ("trends?tolerance=nan", "tolerance: "),
        ("trends/changes?tolerance=-1", "tolerance: "),
        ("trends?since=yesterday", "since: "),
        ("trends?test=a&test=b", "test: "),
        ("explore?x=colour", "x: "),
        ("explore?x=value:", "x: "),
        ("explore?by=time", "by: "),
        ("explore.csv?x=colour", "x: "),
        ("trends.json?value=none", "value: "),
    ],
)
def test_a_wrong_query_is_refused_by_the_name_in_the_address(path: str, place: str, runs: Path, client: Client) -> None:
    make_history(runs, 1)
    ask(client, "/api/trends")
    answer = client.get(f"/api/{path}")
    assert answer.status_code == 404
    assert answer.json()["error"].startswith(place)


def test_runs_in_which_every_load_failed_are_a_change_and_never_a_plain_number(runs: Path, client: Client) -> None:
    make_collapse(runs)
    (series,) = ask(client, f"/api/trends?{THROUGHPUT}")["series"]
    assert series["number"][-1] is None
    assert (series["upper"][-1], len(series["number"])) == (1000.0, 16)
    (trend,) = client.get(f"/api/trends/changes?{THROUGHPUT}").json()["series"]
    (change,) = trend["changes"]
    assert (change["outcome"], change["after"], change["after_below"]) == ("worse", None, 1000.0)
    assert [level["below"] for level in trend["levels"]] == [False, True]
    rows = list(csv.DictReader(io.StringIO(client.get(f"/api/explore.csv?{THROUGHPUT}").text)))
    assert [(row["number"], row["upper"]) for row in rows][-1] == ("", "1000.0")
    assert "NDR, 64 bytes: &lt; 1.000 kpps, valid" in client.get("/badges/throughput/ndr_frames_per_s.svg").text


@pytest.mark.parametrize("asked_first", [True, False], ids=["while it is served", "before it is served"])
def test_a_damaged_index_ends_no_page_and_is_made_anew(asked_first: bool, runs: Path, client: Client) -> None:
    make_collapse(runs)
    path = f"/api/trends?{THROUGHPUT}"
    if asked_first:
        ask(client, path)
    else:
        FigureIndex(runs).update(list_indexed_runs(runs, lambda _: None).runs, lambda *_: None)
    with sqlite3.connect(runs / NAME) as connection:
        connection.execute("UPDATE figures SET number = NULL, upper = NULL WHERE run IN (1, 9)")
        connection.execute("UPDATE figures SET place = 'x', verdict = 7 WHERE run IN (2, 3)")
    connection.close()
    for damaged in (path, f"/api/explore?{THROUGHPUT}", "/badges/throughput/ndr_frames_per_s.svg"):
        assert client.get(damaged).status_code in (200, 503)
    (series,) = ask(client, path)["series"]
    assert (series["count"], series["upper"][-1]) == (16, 1000.0)


def test_a_badge_has_the_newest_figure_and_the_same_bytes_each_time(lab: Path, client: Client) -> None:
    ask(client, "/api/trends")
    path = "/badges/throughput/ndr_frames_per_s.svg?p.frame_bytes=64&card=25g"
    answer = client.get(path)
    assert answer.headers["content-type"] == "image/svg+xml"
    root = ElementTree.fromstring(answer.text)
    title = root.find("{http://www.w3.org/2000/svg}title")
    assert title is not None
    assert (title.text or "").startswith("NDR, 64 bytes: 13.")
    assert (title.text or "").endswith(" Mpps, valid")
    assert root.attrib["aria-label"] == title.text
    assert client.get(path).content == answer.content
    assert client.get("/badges/throughput/none.svg").status_code == 404
    assert client.get(path + "&driver=none").status_code == 404


def test_texts_of_strangers_stay_texts(runs: Path, client: Client) -> None:
    name = HOSTILE.replace("/", "")
    values = {"ndr_frames_per_s": 1e6}
    found = [result("throughput", 64, values, ResultVerdict.VALID, flows=HOSTILE).replace(test=HOSTILE)]
    make_finished(runs, name, FIRST, HOSTILE, found, {"dut": {"kernel": {"release": HOSTILE}}})
    ask(client, "/api/trends")
    answer = client.get("/api/explore.csv?x=kernel&by=title")
    assert answer.status_code == 200
    assert "\u202e" not in answer.text.replace(name, "").replace(name.replace('"', '""'), "")
    badge = client.get(f"/badges/{quote(HOSTILE.replace('/', ''), safe='')}/ndr_frames_per_s.svg")
    assert badge.status_code == 404
    for page in ("/trends", "/explore"):
        assert "<img" not in client.get(page).text
