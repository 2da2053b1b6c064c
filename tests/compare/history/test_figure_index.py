"""The index of figures: it says what run folders say, reads only what changed, and does without a file of its own."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.web._history import FIRST, facts, make_finished, make_history, make_week, result

from nicbench.cli.main import main
from nicbench.compare.history.figure_index import NAME, FigureIndex
from nicbench.compare.history.figures import FIRMWARE, RunSettings, settings_from, settings_of
from nicbench.core.result import PASSES_NOTHING, Bounded, LimitedBy, ResultVerdict
from nicbench.store.folder import RunFolder
from nicbench.store.index import OwnDatabase, list_indexed_runs


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    make_history(tmp_path, 3)
    return tmp_path


def update(index: FigureIndex) -> list[int]:
    """Brings the index up to date; returns how many runs were read each time it said so."""
    told = []
    index.update(list_indexed_runs(index.parent, lambda _: None).runs, lambda done, _: told.append(done))
    return told


def rates(index: FigureIndex) -> dict[str, float | None]:
    wanted = [
        number
        for number, measure in index.measures().items()
        if measure.told.value == "ndr_frames_per_s" and measure.parameters == {"frame_bytes": 64}
    ]
    return {name: figure.number for _, name, _, figure in index.figures(wanted)}


def test_what_runs_measured_is_told_with_its_point_and_its_settings(lab: Path) -> None:
    index = FigureIndex(lab)
    assert update(index)[-1] == 6
    assert len(rates(index)) == 6
    measure = next(each for each in index.measures().values() if each.told.value == "ndr_frames_per_s")
    assert (measure.test, measure.told.head, measure.told.unit) == ("throughput", "NDR", "Mpps")
    assert (measure.told.is_main, measure.told.higher_is_better) == (True, True)
    settings = index.settings({})
    (first,) = {number for name, number in index.settings_of_runs().items() if name.endswith("25g")}
    assert settings[first].every[FIRMWARE] == "22.41"
    assert settings[first].every["inventory.rings.nic0.rx"] == "1024"


def test_only_runs_that_are_new_or_changed_are_read_and_those_that_are_gone_are_forgotten(lab: Path) -> None:
    index = FigureIndex(lab)
    update(index)
    assert update(FigureIndex(lab)) == [0]
    gone, changed = sorted(path for path in lab.iterdir() if path.is_dir())[:2]
    for file in gone.iterdir():
        file.unlink()
    gone.rmdir()
    os.utime(changed / "summary.json", (1, 1))
    assert update(index)[-1] == 1
    assert len(rates(index)) == 5


@pytest.mark.parametrize("spoil", ["a folder", "another program", "damaged", "a link"])
def test_a_file_that_is_not_ours_is_left_alone_and_figures_are_told_all_the_same(spoil: str, lab: Path) -> None:
    path = lab / NAME
    if spoil == "a folder":
        path.mkdir()
    elif spoil == "another program":
        other = sqlite3.connect(path)
        other.execute("CREATE TABLE theirs (x)")
        other.close()
    elif spoil == "a link":
        path.symlink_to(lab / "elsewhere")
    else:
        path.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    index = FigureIndex(lab)
    update(index)
    assert len(rates(index)) == 6
    assert not (lab / "elsewhere").exists()
    if spoil == "another program":
        assert sqlite3.connect(path).execute("SELECT name FROM sqlite_schema").fetchall() == [("theirs",)]


def test_a_run_that_cannot_be_read_has_no_figures_and_hides_no_other(lab: Path) -> None:
    folder = next(path for path in lab.iterdir() if path.name.endswith("100g"))
    (folder / "summary.json").write_text('{"format": "1.6", "title": "x", "verdict": "valid", "results": "none"}')
    index = FigureIndex(lab)
    update(index)
    assert len(rates(index)) == 5
    assert folder.name not in rates(index)


def test_a_rate_below_a_bound_and_one_of_a_device_that_passes_nothing_are_given_back_as_they_were(
    tmp_path: Path,
) -> None:
    values = [
        Bounded(value=None, upper=1000.0, limited_by=LimitedBy.DUT, reason_null="no load that was tried passed"),
        Bounded(
            value=None,
            upper=1000.0,
            limited_by=LimitedBy.DUT,
            reason_null=f"{PASSES_NOTHING}: no frame came",
            passes_nothing=True,
        ),
        Bounded(value=None, reason_null="every trial was disturbed"),
    ]
    results = [
        result("throughput", size, {"ndr_frames_per_s": value}, ResultVerdict.VALID)
        for size, value in zip((64, 512, 1518), values, strict=True)
    ]
    make_finished(tmp_path, "2026-01-31T120000Z-one", FIRST, "One", results, facts("25G", 1))
    index = FigureIndex(tmp_path)
    update(index)
    below, nothing = (figure for *_, figure in sorted(index.figures(index.measures())))
    assert below.is_only_below
    assert isinstance(below.value, Bounded)
    assert below.value.is_only_below
    assert isinstance(nothing.value, Bounded)
    assert nothing.value.passes_nothing


DAMAGE = {
    "a number that is none": ["UPDATE figures SET number = 9e999 WHERE run = 1"],
    "bounds that are none": ["UPDATE figures SET lower = x'00', upper = 'x' WHERE run = 2"],
    "neither number nor bound": ["UPDATE figures SET number = NULL, upper = NULL WHERE run = 2"],
    "a limit and a verdict that do not exist": [
        "UPDATE figures SET limited = 7 WHERE run = 1",
        "UPDATE figures SET verdict = 'moon' WHERE run = 2",
    ],
    "a place that is a word": ["UPDATE figures SET place = 'first' WHERE run = 2 AND place = 0"],
    "measures that are none": ["UPDATE measures SET given = '[' || id, head = x'07' WHERE test = 'latency'"],
    "points that are none": ["UPDATE measures SET given = '{\"frame_bytes\": ' WHERE id = 1"],
    "settings that are not packed": ["UPDATE settings SET content = 'no zip'"],
    "a name that is no text": ["UPDATE runs SET name = x'ff' WHERE id = 3"],
    "a name that is no UTF-8": ["UPDATE runs SET name = CAST(x'ff41' AS TEXT) WHERE id = 3"],
    "a unit that is no UTF-8": ["UPDATE measures SET unit = CAST(x'c3' AS TEXT) WHERE id = 1"],
    "a stamp that is a number": ["UPDATE runs SET stamp = x'00', settings = 'none' WHERE id = 3"],
    "a column that is missing": ["ALTER TABLE figures DROP COLUMN near"],
    "a table that is missing": ["DROP TABLE figures"],
    "a view for a table": ["DROP TABLE measures", "CREATE VIEW measures AS SELECT 1"],
    "a trigger": ["CREATE TRIGGER harm AFTER INSERT ON runs BEGIN DELETE FROM runs; END"],
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_an_index_that_is_damaged_is_read_without_what_is_wrong_and_made_anew(damage: list[str], lab: Path) -> None:
    update(FigureIndex(lab))
    whole = FigureIndex(lab)
    everything = sorted((each[1:] for each in whole.figures(whole.measures())), key=str)
    with sqlite3.connect(lab / NAME) as connection:
        for statement in damage:
            connection.execute(statement)
    connection.close()
    index = FigureIndex(lab)
    found = list(index.figures(index.measures()))
    assert {name for _, name, *_ in found} <= {name for name, *_ in everything}
    assert all(figure.number_or_bound > 0 and figure.value is not None for *_, figure in found)
    assert all(isinstance(each, RunSettings) for each in index.settings({}).values())
    assert set(index.settings_of_runs()) <= {name for name, *_ in everything}
    update(index)
    assert sorted((each[1:] for each in index.figures(index.measures())), key=str) == everything
    settings = index.settings({})
    assert len(index.settings_of_runs()) == 6
    assert all(settings[number].every[FIRMWARE] for number in index.settings_of_runs().values())
    assert not index.is_damaged
    assert update(FigureIndex(lab)) == [0], "what was made anew is kept"


def test_an_index_that_may_not_be_written_is_copied_and_new_runs_are_told_all_the_same(
    lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    update(FigureIndex(lab))
    before = (lab / NAME).read_bytes()
    open_one = OwnDatabase.open

    @contextlib.contextmanager
    def open_as_another_user(self: OwnDatabase, mode: str) -> Iterator[sqlite3.Connection]:
        with open_one(self, mode) as connection:
            if self.path.parent == lab:
                connection.execute("PRAGMA query_only = ON")
            yield connection

    monkeypatch.setattr(OwnDatabase, "open", open_as_another_user)
    week = make_week(lab, "25G", 7, [1.0] * 8, title="New")
    index = FigureIndex(lab)
    assert update(index)[-1] == 1, "the others are known already"
    assert len(rates(index)) == 7
    assert week.name in rates(index)
    assert (lab / NAME).read_bytes() == before


BENCH = """
nicbench: 1
title: Two queues
lab: {kind: simulated, capacity: 500 kpps, queue_frames: 256}
dut: {kind: simulated}
tests:
  - name: throughput
    method: throughput
    frame_bytes: [64]
    search: {precision: 20 %, maximum_trials: 4}
    trial: {duration: 100 ms, drain: 50 ms, settle: 10 ms}
configurations:
  short: {lab: {queue_frames: 16}}
  long: {lab: {queue_frames: 1024}}
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("bench.yaml").write_text(BENCH)
    assert main(["run", "bench.yaml", "--no-progress", "--no-report"]) == 0
    (folder,) = (path for path in Path("runs").iterdir() if path.is_dir())
    return folder.absolute()


def test_each_configuration_has_its_own_settings_and_all_have_what_they_share(run: Path) -> None:
    found = settings_of(RunFolder.open(run))
    assert found.every["lab.queue_frames"] == "16 / 1024"
    assert {name: found.get("lab.queue_frames", name) for name in ("short", "long")} == {"short": "16", "long": "1024"}
    assert {found.get("lab.capacity", name) for name in ("short", "long", "default")} == {"500000"}
    assert found.get("lab.nothing", "short") is None
    assert settings_from(found.text) == found


@pytest.mark.parametrize(
    "text", ["", "[]", '{"a": 1}', '{"configurations": []}', '{"configurations": {"a": {"b": 1}}}', "[" * 100_000]
)
def test_what_cannot_be_settings_is_none(text: str) -> None:
    assert settings_from(text) is None


@pytest.mark.parametrize(("own", "told"), [({}, "1024"), ({"rings": "256"}, "256"), ({"rings": None}, None)])
def test_a_configuration_has_its_own_value_or_none_before_that_of_all(own: Mapping[str, Any], told: str | None) -> None:
    assert RunSettings({"rings": "1024"}, {"small": own}).get("rings", "small") == told
