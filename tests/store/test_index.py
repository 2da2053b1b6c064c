"""The index of runs says what the run folders say, whatever becomes of it, and notices every change of them."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from nicbench.store import index, manifest
from nicbench.store.index import IndexedRuns, Search, find_runs, list_indexed_runs
from nicbench.store.listing import LONGEST_TEXT, MOST_NAMES, RunHeadline, headline, line_of, of_line
from nicbench.store.marks import add_tag, remove_tag

INVENTORY = {
    "dut": {
        "kernel": {"release": "6.1.90-amd64"},
        "interfaces": {"ens1": {"kind": "hardware"}},
        "drivers": {"ens1": {"name": "mlx5_core", "bus": "0000:01:00.0"}},
        "pci_adapters": {
            "0000:01:00.0": {"vendor": "Mellanox", "model": "ConnectX-5", "id": "15b3:1017"},
            "0000:02:00.0": {"vendor": "Intel", "model": "I350", "id": "8086:1521"},
        },
    }
}


def make_run(parent: Path, name: str, inventory: Any = None, method: str = "throughput") -> Path:
    """A finished run folder, a minute old."""
    path = parent / name
    path.mkdir(parents=True)
    (path / "bench.yaml").write_text("nicbench: 1\n")
    started = {"event": "run_started", "title": "One", "wall_time": f"{name[:10]}T12:00:00+00:00"}
    (path / "journal.ndjson").write_text(json.dumps(started) + "\n")
    (path / "inventory.json").write_text(json.dumps(inventory or INVENTORY))
    result = {"id": "a/1", "method": method, "parameters": {}, "values": {"rate_frames_per_s": 1.5}}
    summary = {"format": "1.0", "title": f"Run {name}", "verdict": "valid", "results": [result]}
    (path / "summary.json").write_text(json.dumps(summary))
    manifest.write(path)
    age(path)
    return path


def age(path: Path, by_s: float = 60.0) -> None:
    """As if nobody had touched it since: what was changed just now is read again anyway."""
    for each in (*path.iterdir(), path):
        status = each.stat()
        os.utime(each, ns=(status.st_atime_ns, status.st_mtime_ns - int(by_s * 1e9)))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parent = tmp_path_factory.mktemp("made")
    for number in range(50):
        make_run(parent, f"2026-{1 + number // 25:02}-{1 + number % 25:02}T120000Z-one")
    return parent


@pytest.fixture
def runs(made: Path, tmp_path: Path) -> Path:
    """A folder of fifty runs, a day apart."""
    return shutil.copytree(made, tmp_path / "runs")


def listed(parent: Path, **asked: Any) -> IndexedRuns:
    return list_indexed_runs(parent, lambda summary: f"found {len(summary.results)}", **asked)


def without_index(parent: Path) -> list[Any]:
    return [headline(path, lambda summary: f"found {len(summary.results)}") for path in sorted(parent.glob("2*"))]


def test_the_second_list_opens_no_folder_and_says_the_same(runs: Path) -> None:
    first, second = listed(runs), listed(runs)
    assert (first.read, second.read) == (50, 0)
    assert first.runs == second.runs == tuple(without_index(runs))
    assert second.notes == ()


def test_rounds_of_workloads_are_counted_as_trials_are(runs: Path) -> None:
    folder = max(path for path in runs.iterdir() if path.is_dir())
    with (folder / "journal.ndjson").open("a") as stream:
        stream.write('{"event":"trial_finished"}\n' + '{"event":"round_finished"}\n' * 12)
    manifest.write(folder)
    assert {run.run_id: run.trials for run in listed(runs).runs}[folder.name] == 13


def test_the_answer_that_a_run_wrote_is_listed_as_it_stands(runs: Path) -> None:
    folder = max(path for path in runs.iterdir() if path.is_dir())
    path = folder / "summary.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"headline": "NDR 1 Mpps"}))
    manifest.write(folder)
    assert [run.headline for run in listed(runs).runs[-2:]] == ["found 1", "NDR 1 Mpps"]


def test_new_changed_and_removed_runs_are_noticed_each_by_itself(runs: Path) -> None:
    listed(runs)
    folders = sorted(runs.glob("2*"))
    shutil.rmtree(folders[0])
    add_tag(folders[1], "baseline")
    summary = folders[2] / "summary.json"
    summary.write_text(summary.read_text().replace("Run 2026", "Renamed 2026"))
    with (folders[3] / "journal.ndjson").open("a") as stream:
        stream.write('{"event":"trial_finished"}\n')
    make_run(runs, "2026-09-09T120000Z-new")
    after = listed(runs)
    assert after.read == 4
    assert after.runs == tuple(without_index(runs))


def test_a_run_changed_twice_within_a_tick_is_read_twice(runs: Path) -> None:
    path = runs / "2026-01-01T120000Z-one"
    status = (path / "summary.json").stat()
    for title in ("AAAA", "BBBB"):
        text = (path / "summary.json").read_text()
        (path / "summary.json").write_text(text[: text.index('"title"')] + f'"title": "{title}", "verdict": "valid"}}')
        manifest.write(path)
        os.utime(path / "summary.json", ns=(status.st_atime_ns, os.stat(path).st_mtime_ns))
        os.utime(path)
        assert listed(runs).runs[0].title == title


@pytest.mark.parametrize("damage", ["garbage", "torn", "empty", "table gone", "rows of nonsense"])
def test_a_damaged_index_is_made_anew(damage: str, runs: Path) -> None:
    whole = listed(runs).runs
    path = runs / index.NAME
    if damage == "garbage":
        path.write_bytes(b"not an index at all" * 1000)
    elif damage == "torn":
        path.write_bytes(path.read_bytes()[:5000])
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        with sqlite3.connect(path) as connection:
            connection.execute(
                "DROP TABLE runs" if damage == "table gone" else "UPDATE runs SET headline = '{\"x\": 1}'"
            )
        connection.close()
    assert listed(runs).runs == whole
    again = listed(runs)
    assert (again.runs, again.read, again.notes) == (whole, 0, ())


@pytest.mark.parametrize(
    ("pragmas", "note"),
    [
        (("application_id = 12345",), "another program"),
        ((f"application_id = {index._APPLICATION}", f"user_version = {index.VERSION + 1}"), "newer nicbench"),
    ],
)
def test_an_index_that_is_not_ours_is_left_as_it_is(pragmas: tuple[str, ...], note: str, runs: Path) -> None:
    path = runs / index.NAME
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE runs (theirs TEXT)")
    for pragma in pragmas:
        connection.execute(f"PRAGMA {pragma}")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    for rebuild in (False, True):
        shown = listed(runs, rebuild=rebuild)
        assert len(shown.runs) == 50
        assert note in shown.notes[0]
    assert path.read_bytes() == before


def test_an_index_that_cannot_be_written_costs_time_and_nothing_else(runs: Path) -> None:
    (runs / index.NAME).mkdir()
    shown = listed(runs)
    assert len(shown.runs) == 50
    assert "is no file" in shown.notes[0]


def test_a_list_while_another_process_writes_the_index(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "_WAIT_S", 0.05)
    listed(runs)
    add_tag(runs / "2026-01-01T120000Z-one", "held")
    other = sqlite3.connect(runs / index.NAME, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    shown = listed(runs)
    assert shown.runs[0].tags == ("held",)
    assert "locked" in shown.notes[0]
    other.execute("ROLLBACK")
    other.close()
    assert listed(runs).notes == ()


def test_many_lists_at_once_all_say_the_same(runs: Path) -> None:
    shown = []
    threads = [threading.Thread(target=lambda: shown.append(listed(runs))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(shown) == 6
    assert {one.runs for one in shown} == {tuple(without_index(runs))}


def test_what_a_hostile_folder_says_is_bounded_and_steers_no_terminal(tmp_path: Path) -> None:
    nasty = "\x1b[31m\u202e\u2028" + "x" * 5000
    inventory = {
        "dut": {"kernel": {"release": nasty}, "pci_adapters": {f"{n}": {"model": f"{n}{nasty}"} for n in range(500)}}
    }
    path = make_run(tmp_path, "2026-01-01T120000Z-nasty", inventory)
    (path / "journal.ndjson").write_text(
        json.dumps({"event": "run_started", "title": nasty, "wall_time": nasty}) + "\n"
    )
    (path / "summary.json").write_text("[" * 100_000)
    (path / "tags.json").write_text(json.dumps({"tags": [nasty, "../../etc", 5, "good", "latest"]}))
    manifest.write(path)
    (run,) = listed(tmp_path).runs
    assert run.trouble
    assert run.started is None
    assert run.tags == ("good",)
    assert len(run.cards) == MOST_NAMES
    for text in (run.title or "", *run.cards, *run.kernels):
        assert text.isprintable()
        assert len(text) <= LONGEST_TEXT
    age(path)
    assert listed(tmp_path).runs == listed(tmp_path).runs == (run,)


@pytest.mark.parametrize(
    "content", ["null", "[]", '{"dut": 5}', '{"dut": {"pci_adapters": [1]}}', "{", '{"dut": {"kernel": 5}}']
)
def test_an_inventory_of_another_shape_names_nothing(content: str, tmp_path: Path) -> None:
    path = make_run(tmp_path, "2026-01-01T120000Z-odd")
    (path / "inventory.json").write_text(content)
    manifest.write(path)
    (run,) = listed(tmp_path).runs
    assert (run.cards, run.kernels, run.drivers, run.trouble) == ((), (), (), None)


def test_the_card_of_a_run_is_the_one_under_test(runs: Path) -> None:
    run = listed(runs).runs[0]
    assert run.cards == ("Mellanox ConnectX-5 15b3:1017",)
    assert run.drivers == ("mlx5_core",)


@pytest.mark.parametrize(
    ("search", "count"),
    [
        (Search(), 51),
        (Search(cards=("connectx-5",)), 50),
        (Search(cards=("8086:1521",)), 0),
        (Search(cards=("e810", "connectx")), 51),
        (Search(kernels=("6.1",)), 50),
        (Search(kernels=("6.18",)), 1),
        (Search(drivers=("ice",)), 1),
        (Search(methods=("latency",)), 1),
        (Search(methods=("Throughput",)), 50),
        (Search(tags=("baseline",)), 1),
        (Search(tags=("base",)), 0),
        (Search(tags=("baseline", "nightly")), 0),
        (Search(since="2026-02"), 26),
        (Search(until="2026-01-03"), 3),
        (Search(since="2026-01-02", until="2026-01-03"), 2),
        (Search(words=("e810", "6.18")), 1),
        (Search(words=("e810", "6.1.90")), 0),
        (Search(words=("run 2026-02-01",)), 1),
    ],
)
def test_a_search_finds_what_it_asks_for(search: Search, count: int, runs: Path) -> None:
    facts = {
        "kernel": {"release": "6.18.4"},
        "pci_adapters": {"0000:01:00.0": {"vendor": "Intel", "model": "E810-C", "driver": "ice"}},
    }
    make_run(runs, "2026-03-03T120000Z-other", {"dut": facts}, method="latency")
    add_tag(runs / "2026-01-01T120000Z-one", "baseline")
    assert len(find_runs(listed(runs).runs, search)) == count


def test_tags_come_and_go_and_the_run_is_as_it_was_measured(finished: Any) -> None:
    assert add_tag(finished.path, "b") == ("b",)
    assert add_tag(finished.path, "a") == add_tag(finished.path, "b") == ("a", "b")
    assert finished.differences() == ()
    assert remove_tag(finished.path, "a") == ("b",)


@pytest.fixture
def finished(folder: Any, summary: Any) -> Any:
    folder.finish(summary)
    return folder


def test_a_run_that_is_tagged_after_it_was_listed_is_found_though_it_had_no_tags(runs: Path) -> None:
    listed(runs)
    assert listed(runs).read == 0
    add_tag(runs / "2026-01-01T120000Z-one", "late")
    assert listed(runs).runs[0].tags == ("late",)


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.replace("valid", "splendid"),
        lambda line: line + "\x1fmore",
        lambda line: line.replace("Run 2026", "Run \x1b[31m"),
        lambda line: line.replace("throughput", "x" * 1_000_000),
        lambda line: "",
    ],
    ids=["verdict", "fields", "control characters", "too long", "empty"],
)
def test_a_line_of_an_index_that_nicbench_did_not_write_so_is_not_believed(change: Any, runs: Path) -> None:
    whole = listed(runs).runs
    with sqlite3.connect(runs / index.NAME) as connection:
        name, line = connection.execute("SELECT name, headline FROM runs ORDER BY name").fetchone()
        assert change(line) != line
        connection.execute("UPDATE runs SET headline = ? WHERE name = ?", (change(line), name))
    connection.close()
    assert (after := listed(runs)).runs == whole
    assert after.read == 1


def test_a_headline_is_kept_as_it_is_whatever_it_says(tmp_path: Path) -> None:
    run = RunHeadline(
        "a run",
        str(tmp_path / "a run"),
        "Título, “quoted”",
        None,
        "valid",
        True,
        5,
        0,
        False,
        None,
        ("a", "b"),
        ("c d",),
    )
    assert of_line("a run", str(tmp_path / "a run"), line_of(run)) == run
    assert run.plain()["path"] == str(tmp_path / "a run")


def test_a_folder_that_may_not_be_read_hides_no_other_and_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(tmp_path, "2026-01-01T000000Z-mine")
    os.utime(make_run(tmp_path, "2026-01-02T000000Z-theirs"), (1, 1))

    def refused(path: Path) -> bool:
        if path.name.endswith("theirs"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return True

    with monkeypatch.context() as patched:
        patched.setattr("nicbench.store.folder.is_run_folder", refused)
        troubles = [run.trouble for run in list_indexed_runs(tmp_path, lambda _: None).runs]
    assert troubles == [None, "cannot be read: Permission denied"]
    assert [run.trouble for run in list_indexed_runs(tmp_path, lambda _: None).runs] == [None, None]
