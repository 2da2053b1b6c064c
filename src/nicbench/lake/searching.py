"""The search among the headlines of a lake, with the meaning that ``store.index`` gives it, without a row for each run.

A name (a card, a kernel, a tag) stands in very many rows, and once in the dictionary of a column: it is looked at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nicbench.compare.history.figures import Figure, Measure, RunSettings, Told, figure_of, settings_from
from nicbench.lake.place import FIGURES, HEADLINE, SETTINGS, Found, Lake, Month
from nicbench.lake.tables import Part
from nicbench.store.index import Condition, Search, conditions_on_texts
from nicbench.store.listing import VERDICTS, RunHeadline, clean

_LISTS: Final = ("tags", "cards", "kernels", "drivers", "methods", "configurations")
_DICTIONARIES: Final = ("title", *(f"{name}.list.element" for name in _LISTS))
_SHOWN: Final = (
    "run_id", "path", "title", "started", "verdict", "finished", "trials", "results", "has_report", *_LISTS,
    "nicbench_version", "format", "headline",
)  # fmt: skip


def find_in_lake(lake: Lake, search: Search, most: int, without: Sequence[str] = ()) -> Found:
    """Finds the newest runs that meet a search, at most so many; those ``without`` do not count.

    HostError where a file of the lake cannot be read.
    """
    absent, absent_in = pa.array(sorted(without), pa.string()), set(lake.months_of(without))
    found = []
    matching = every = shown = 0
    for month in reversed(lake.months()):
        for part in reversed(lake.parts(month, HEADLINE, _DICTIONARIES)):
            rows = _Rows(part)
            mine = np.ones(part.count, dtype=bool)
            if month in absent_in:
                mine = ~_flags(pc.is_in(rows.column("run_id"), absent))
            every += int(np.count_nonzero(mine))
            chosen = np.flatnonzero(_meeting(search, rows, mine) if _may_match(month, search) else mine[:0])
            matching += len(chosen)
            wanted = chosen[max(0, len(chosen) - (most - shown)) :] if shown < most else chosen[:0]
            if len(wanted):
                found.append(list(_headlines(part.read(_SHOWN).take(pa.array(wanted)))))
                shown += len(wanted)
    return Found(tuple(run for some in reversed(found) for run in some), matching, every)


def find_run(lake: Lake, run_id: str) -> RunHeadline | None:
    """Finds a run by its id; None where the lake has none of this name."""
    for month in lake.months_of([run_id]):
        for part in lake.parts(month, HEADLINE, _DICTIONARIES):
            place = pc.index(part.read(["run_id"]).column("run_id"), run_id).as_py()
            if place >= 0:
                return next(_headlines(part.read(_SHOWN).slice(place, 1)))
    return None


def _may_match(month: Month, search: Search) -> bool:
    """Whether a month may have runs of the period: the time in a name and that of the start are seconds apart."""
    if month.month == 0:
        return True
    before = f"{month.year - (month.month == 1):04}-{(month.month - 2) % 12 + 1:02}"
    after = f"{month.year + (month.month == 12):04}-{month.month % 12 + 1:02}"
    since, until = (search.since or "")[:7], (search.until or "")[:7]
    return (not since or after[: len(since)] >= since) and (not until or before[: len(until)] <= until)


def _meeting(search: Search, rows: _Rows, keep: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Returns which rows of those to keep meet a search."""
    if search.since or search.until:
        keep = keep & _in_time(rows, search)
    for condition in conditions_on_texts(search):
        if not keep.any():
            break
        keep = keep & np.any([rows.any_of(field, condition) for field in condition.fields], axis=0)
    return keep


class _Rows:
    """The columns of a row group, each read when it is first asked for."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._columns: dict[str, pa.Array] = {}

    def column(self, name: str) -> pa.Array:
        if name not in self._columns:
            read = self._part.read([name]).column(name)
            self._columns[name] = read.combine_chunks() if isinstance(read, pa.ChunkedArray) else read
        return self._columns[name]

    def any_of(self, name: str, condition: Condition) -> np.ndarray[Any, Any]:
        """Whether a row has, in a column of lists or of texts, a text that meets a condition."""
        column = self.column(name)
        if name == "run_id":  # another in every row: one at a time would take long
            lower = pc.ascii_lower if condition.word.isascii() else pc.utf8_lower
            return _flags(pc.match_substring(lower(column), condition.word))
        if not pa.types.is_list(column.type):
            return _of_dictionary(column, condition.holds)
        flags = _of_dictionary(column.flatten(), condition.holds)
        if not flags.any():
            return np.zeros(len(column), dtype=bool)
        within = np.concatenate([[0], np.cumsum(flags)])
        offsets = column.offsets.to_numpy()
        offsets = offsets - offsets[0]
        return np.asarray(within[offsets[1:]] > within[offsets[:-1]])


def _of_dictionary(column: pa.Array, holds: Callable[[str], bool]) -> np.ndarray[Any, Any]:
    if not len(column):
        return np.zeros(0, dtype=bool)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    known = [text is not None and holds(text) for text in column.dictionary.to_pylist()]
    if not any(known):
        return np.zeros(len(column), dtype=bool)
    places = column.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)
    return np.asarray(np.array([*known, False], dtype=bool)[places])


def _flags(column: Any) -> np.ndarray[Any, Any]:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return np.asarray(array.fill_null(False).to_numpy(zero_copy_only=False), dtype=bool)


def _in_time(rows: _Rows, search: Search) -> np.ndarray[Any, Any]:
    milliseconds = rows.column("started").cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    texts = np.datetime_as_string(milliseconds.astype("datetime64[ms]"), unit="s")
    found = ~_flags(pc.is_null(rows.column("started")))
    if search.since:
        found &= texts.astype(f"U{len(search.since)}") >= search.since
    if search.until:
        found &= texts.astype(f"U{len(search.until)}") <= search.until
    return np.asarray(found, dtype=bool)


def _headlines(rows: pa.Table) -> Iterator[RunHeadline]:
    """Makes headlines of rows, their texts clean: a lake is trusted no more than a run folder is."""
    for row in rows.to_pylist():
        started = row.pop("started")
        folder = row.pop("path")
        texts: dict[str, Any] = {
            name: clean(text) or None if isinstance(text, str) else text for name, text in row.items()
        }
        lists = {name: tuple(map(clean, filter(None, row[name] or ()))) for name in _LISTS}
        at = started.astimezone(UTC).isoformat(timespec="seconds") if started is not None else None
        verdict = texts["verdict"] if texts["verdict"] in VERDICTS else None
        yield RunHeadline(folder=folder, **{**texts, **lists, "started": at, "verdict": verdict, "trouble": None})


# The figures of a lake, as ``FigureIndex`` gives those of one folder: what was measured, and the figures of it.  Rows
# lie in the order of what they measure, so a chart reads of each month what it shows, and no more. Measures have
# negative numbers here: those of the index of a folder stand beside them.

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
        of_run = {}
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
    """Reads settings; skips those that cannot be ours."""
    return settings_from(text) or RunSettings()
