"""The figures of a lake, as ``FigureIndex`` gives those of one folder: what was measured, and the figures of it.

Rows lie in the order of what they measure, so a chart reads of each month what it shows, and no more. Measures have
negative numbers here: those of the index of a folder stand beside them.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nicbench.compare.history.figures import Figure, Measure, RunSettings, Told, figure_of, settings_from
from nicbench.lake.part import Part
from nicbench.lake.place import FIGURES, SETTINGS, Lake, Month

_KEY: Final = ("test", "name", "configuration", "parameters_json", "method", "scope")
_TOLD: Final = ("label", "unit", "is_main", "higher_is_better")
_TEXTS: Final = (*_KEY, "label", "unit", "verdict", "limited_by")
_OF_FIGURE: Final = ("run_id", "place", "value", "verdict", "lower", "upper", "limited_by", "near_limit")


class LakeFigures:
    """The figures of one lake. Any thread may ask."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._lock = threading.Lock()
        self._numbers: dict[Measure, int] = {}
        self._of_month: dict[Month, tuple[str, dict[Measure, int]]] = {}

    def measures(self) -> dict[int, Measure]:
        """Returns everything that was measured, by number; what runs measured first comes first.

        HostError where a file of the lake cannot be read.
        """
        places: dict[Measure, int] = {}
        with self._lock:
            for month in self._lake.months(FIGURES):
                stamp = self._lake.stamp(month, FIGURES)
                if self._of_month.get(month, ("",))[0] != stamp:
                    self._of_month[month] = (stamp, self._measures_of(month))
                for measure, place in self._of_month[month][1].items():
                    places[measure] = min(place, places.get(measure, place))
            # Rows lie in the order of their names: the place of a result in its run tells which test was made first.
            ordered = sorted(places, key=lambda measure: places[measure])
            return {self._numbers.setdefault(measure, -1 - len(self._numbers)): measure for measure in ordered}

    def figures(self, measures: Mapping[int, Measure], runs: Collection[str]) -> Iterator[tuple[int, str, int, Figure]]:
        """Yields each figure of these measures of these runs: its measure, its run, the place of its result, itself."""
        numbers = {_key_of(measure): number for number, measure in measures.items() if number < 0}
        if not numbers:
            return
        test, name = (tuple({key[place] for key in numbers}) for place in (0, 1))
        for month in self._lake.months_of(runs):
            for part in self._lake.parts(month, FIGURES, _TEXTS):
                if _may_have(part, test, name):
                    yield from _figures_of(part.read((*_KEY, *_OF_FIGURE)), numbers, runs)

    def settings(self, runs: Iterable[str]) -> tuple[dict[str, int], dict[int, RunSettings]]:
        """Returns the number of the settings of each of these runs, and the settings by number."""
        wanted = set(runs)
        known: dict[str, int] = {}
        of_run: dict[str, int] = {}
        for month in self._lake.months_of(wanted):
            for part in self._lake.parts(month, SETTINGS):
                rows = part.read(("run_id", "settings_json"))
                texts = rows.column("settings_json").combine_chunks()
                numbers = [known.setdefault(text, -1 - len(known)) for text in texts.dictionary.to_pylist()]
                for name, place in zip(rows.column("run_id").to_pylist(), texts.indices.to_pylist(), strict=True):
                    if name in wanted:
                        of_run[name] = numbers[place]
        used = set(of_run.values())
        return of_run, {number: _settings(text) for text, number in known.items() if number in used}

    def _measures_of(self, month: Month) -> dict[Measure, int]:
        """Returns what was measured in a month, and the least place that a result of it has in its run."""
        found: dict[Measure, int] = {}
        for part in self._lake.parts(month, FIGURES, _TEXTS):
            rows = part.read((*_KEY, *_TOLD, "place"))
            firsts = np.flatnonzero(_changes(rows))
            places = rows.column("place").to_numpy()
            least = np.minimum.reduceat(places, firsts).tolist() if len(firsts) else []
            for row, place in zip(rows.take(pa.array(firsts)).to_pylist(), least, strict=True):
                told = Told(row["name"], row["label"], row["unit"], row["is_main"], row["higher_is_better"])
                texts = (row["test"], row["method"], row["configuration"], row["scope"], row["parameters_json"])
                measure = Measure(*texts, told)
                found[measure] = min(place, found.get(measure, place))
        return found


def _changes(rows: pa.Table) -> np.ndarray[Any, Any]:
    """Whether a row measures something else than the row before."""
    found = np.zeros(rows.num_rows, dtype=bool)
    found[:1] = True
    for name in _KEY:
        places = rows.column(name).combine_chunks().indices.to_numpy(zero_copy_only=False)
        found[1:] |= places[1:] != places[:-1]
    return found


def _key_of(measure: Measure) -> tuple[str, ...]:
    texts = (measure.configuration, measure.given, measure.method, measure.scope)
    return (measure.test, measure.told.value, *texts)


def _may_have(part: Part, tests: Iterable[str], names: Iterable[str]) -> bool:
    """Whether a part may have a row of one of these tests and values, by what its file says of it."""
    for column, wanted in (("test", tests), ("name", names)):
        bounds = part.bounds(column)
        if bounds is not None and not any(bounds[0] <= one <= bounds[1] for one in wanted):
            return False
    return True


def _figures_of(
    rows: pa.Table, numbers: Mapping[tuple[str, ...], int], runs: Container[str]
) -> Iterator[tuple[int, str, int, Figure]]:
    keep = np.zeros(rows.num_rows, dtype=bool)
    starts = np.flatnonzero(_changes(rows))
    number_of = np.zeros(rows.num_rows, dtype=np.int64)
    for begin, end, row in zip(
        starts, [*starts[1:], rows.num_rows], rows.select(_KEY).take(pa.array(starts)).to_pylist(), strict=True
    ):
        number = numbers.get(tuple(row[name] for name in _KEY))
        if number is not None:
            keep[begin:end], number_of[begin:end] = True, number
    chosen = rows.filter(pa.array(keep))
    columns = [_plain(chosen.column(name)) for name in _OF_FIGURE]
    for number, run, place, *row in zip(number_of[keep].tolist(), *columns, strict=True):
        figure = figure_of(*row) if run in runs else None
        if figure is not None:
            yield number, run, place, figure


def _plain(column: pa.ChunkedArray) -> list[Any]:
    texts = pc.cast(column, pa.string()) if pa.types.is_dictionary(column.type) else column
    return list(texts.to_pylist())


def _settings(text: str) -> RunSettings:
    """Reads settings; those that cannot be ours are none."""
    return settings_from(text) or RunSettings()
