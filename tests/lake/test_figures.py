"""The figures of a lake are those that the index of the folder has."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tests.web._history import make_collapse

from nicbench.compare.history.figure_index import FigureIndex
from nicbench.lake.gathering import gather
from nicbench.lake.place import Lake
from nicbench.lake.searching import LakeFigures
from nicbench.store.index import list_indexed_runs


def test_measures_figures_and_settings_are_those_of_the_folder(runs: Path, tmp_path: Path) -> None:
    make_collapse(runs, 5, 3)
    index = FigureIndex(runs)
    index.update(list_indexed_runs(runs, lambda _: None).runs, lambda _done, _of: None)
    gather([runs], tmp_path / "lake")
    lake = LakeFigures(Lake.open(tmp_path / "lake"))
    figures = [figure for *_, figure in index.figures(index.measures())]
    assert sum(figure.is_only_below for figure in figures) == 3

    measures = lake.measures()
    assert set(measures.values()) == set(index.measures().values())
    assert all(number < 0 for number in measures)
    assert lake.measures() == measures, "a measure keeps its number"

    names = {path.name for path in runs.iterdir() if path.is_dir()}
    told = {(index.measures()[number], *rest) for number, *rest in index.figures(index.measures())}
    assert {(measures[number], *rest) for number, *rest in lake.figures(measures, names)} == told

    some = {number: each for number, each in measures.items() if each.told.value == "ndr_frames_per_s"}
    one = min(names)
    found = list(lake.figures(some, {one}))
    assert found
    assert {(number in some, run) for number, run, *_ in found} == {(True, one)}

    of_run, settings = lake.settings(names)
    assert {name: settings[number] for name, number in of_run.items()} == {
        name: index.settings({})[number] for name, number in index.settings_of_runs().items()
    }


def test_a_damaged_row_is_left_out_and_hides_no_other(runs: Path, tmp_path: Path) -> None:
    make_collapse(runs, 5, 3)
    gather([runs], tmp_path / "lake")
    for file in (tmp_path / "lake" / "figures").rglob("*.parquet"):
        rows = pq.ParquetFile(file).read()
        place = rows.schema.get_field_index("upper")
        nothing = pa.nulls(rows.num_rows, rows.schema.field(place).type)
        pq.write_table(rows.set_column(place, rows.schema.field(place), nothing), file)
    lake = LakeFigures(Lake.open(tmp_path / "lake"))
    names = {path.name for path in runs.glob("*-collapse")}
    found = [figure for *_, figure in lake.figures(lake.measures(), names)]
    assert len(found) == 5, "three have neither a number nor a bound"
    assert all(figure.number_or_bound > 0 for figure in found)


def test_what_runs_measured_first_comes_first(runs: Path, tmp_path: Path) -> None:
    """Rows of a lake lie in the order of their names; its measures do not."""
    gather([runs], tmp_path / "lake")
    index = FigureIndex(runs)
    index.update(list_indexed_runs(runs, lambda _: None).runs, lambda _done, _of: None)
    tests, others = (
        list(dict.fromkeys(measure.test for measure in known.measures().values()))
        for known in (LakeFigures(Lake.open(tmp_path / "lake")), index)
    )
    assert tests == others
    assert tests != sorted(tests)
