"""The index of figures: it says what run folders say, reads only what changed, and does without a file of its own."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest
from tests.web._history import FIRST, facts, make_finished, make_history, result

from nicbench.compare.history.figure_index import NAME, FigureIndex
from nicbench.compare.history.figures import FIRMWARE
from nicbench.core.result import PASSES_NOTHING, Bounded, LimitedBy, ResultVerdict
from nicbench.store.index import list_indexed_runs


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    make_history(tmp_path, 3)
    return tmp_path


def update(index: FigureIndex) -> list[int]:
    """Brings the index up to date; returns how many runs were read each time it said so."""
    told: list[int] = []
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
    assert settings[first][FIRMWARE] == "22.41"
    assert settings[first]["inventory.rings.nic0.rx"] == "1024"


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
        Bounded(value=None, upper=1000.0, limited_by=LimitedBy.DUT, reason_null=f"{PASSES_NOTHING}: no frame came"),
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
    with sqlite3.connect(tmp_path / NAME) as connection:
        connection.execute("UPDATE figures SET upper = NULL WHERE number IS NULL")
    connection.close()
    assert len(list(index.figures(index.measures()))) == 1, "without number and bound it is no figure"


def test_rows_that_somebody_else_wrote_do_no_harm(lab: Path) -> None:
    index = FigureIndex(lab)
    update(index)
    with sqlite3.connect(lab / NAME) as connection:
        connection.execute("UPDATE figures SET number = 9e999, lower = 'x', limited = 7 WHERE run = 1")
        connection.execute("UPDATE figures SET lower = x'00', upper = -9e999, limited = 'moon' WHERE run = 2")
        connection.execute("UPDATE measures SET given = '[' || id, head = x'07' WHERE test = 'latency'")
        connection.execute("UPDATE settings SET content = 'no zip'")
        connection.execute("UPDATE runs SET name = x'ff' WHERE id = 3")
    connection.close()
    found = rates(index)
    assert len(found) == 4
    assert {each.told.value for each in index.measures().values()} == {"ndr_frames_per_s"}
    assert set(index.settings_of_runs()) >= set(found)
    assert [each for each in index.settings({}).values() if each] == []
    values = [figure.value for *_, figure in index.figures(index.measures())]
    assert len(values) == 12
