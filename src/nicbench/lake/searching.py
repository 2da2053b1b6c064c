"""The search among the headlines of a lake, with the meaning that ``store.index`` gives it, without a row for each run.

A name (a card, a kernel, a tag) stands in very many rows, and once in the dictionary of a column: it is looked at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nicbench.lake.part import Part
from nicbench.lake.place import HEADLINE, Lake, Month
from nicbench.store.headline import VERDICTS, RunHeadline, clean
from nicbench.store.index import Search, find_runs, is_release

_LISTS: Final = ("tags", "cards", "kernels", "drivers", "methods", "configurations")
_DICTIONARIES: Final = ("title", *(f"{name}.list.element" for name in _LISTS))
_SHOWN: Final = (
    "run_id", "path", "title", "started", "verdict", "finished", "trials", "results", "has_report", *_LISTS,
    "nicbench_version", "format", "headline",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Found:
    """The newest runs that were found, oldest first; how many there are of them; and how many runs the lake has."""

    runs: tuple[RunHeadline, ...]
    matching: int
    every: int


def find_in_lake(lake: Lake, search: Search, most: int, without: Sequence[str] = ()) -> Found:
    """Finds the newest runs that meet a search, at most so many; those ``without`` do not count.

    HostError where a file of the lake cannot be read.
    """
    absent, absent_in = pa.array(sorted(without), pa.string()), set(lake.months_of(without))
    found: list[list[RunHeadline]] = []
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


def find_together(own: Sequence[RunHeadline], lake: Lake, search: Search, most: int) -> Found:
    """Finds the newest runs of a folder and of a lake; a run of both counts once, as its folder is now.

    ``own`` are all runs of the folder. HostError where a file of the lake cannot be read.
    """
    found = find_in_lake(lake, search, most, [run.run_id for run in own])
    mine = find_runs(own, search)
    both = sorted((*found.runs, *mine), key=lambda run: run.run_id)
    return Found(tuple(both[-most:]), found.matching + len(mine), found.every + len(own))


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
    for condition in _conditions(search):
        if not keep.any():
            break
        keep = keep & condition(rows)
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

    def any_of(self, name: str, holds: Callable[[str], bool]) -> np.ndarray[Any, Any]:
        """Whether a row has, in a column of lists or of texts, a name for which that holds."""
        column = self.column(name)
        if not pa.types.is_list(column.type):
            return _of_dictionary(column, holds)
        flags = _of_dictionary(column.flatten(), holds)
        if not flags.any():
            return np.zeros(len(column), dtype=bool)
        within = np.concatenate([[0], np.cumsum(flags)])
        offsets = column.offsets.to_numpy()
        offsets = offsets - offsets[0]
        return np.asarray(within[offsets[1:]] > within[offsets[:-1]])

    def texts_with(self, name: str, word: str) -> np.ndarray[Any, Any]:
        """Whether a text that is another in every row has a word, which is in small letters."""
        return _flags(
            pc.match_substring((pc.ascii_lower if word.isascii() else pc.utf8_lower)(self.column(name)), word)
        )


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


_Condition = Callable[[_Rows], "np.ndarray[Any, Any]"]


def _conditions(search: Search) -> Iterator[_Condition]:
    """Makes the conditions that are not empty, those that cost least first."""
    if search.since or search.until:
        yield lambda rows: _in_time(rows, search)
    for name, asked in (("cards", search.cards), ("drivers", search.drivers)):
        if asked:
            yield _any_within(name, tuple(each.casefold() for each in asked))
    if search.kernels:
        yield lambda rows: rows.any_of("kernels", lambda has: any(is_release(one, has) for one in search.kernels))
    for name, asked in (("tags", search.tags), ("methods", search.methods)):
        for each in asked:
            yield _has(name, each.casefold())
    for word in search.words:
        yield _with_word(word.casefold())


def _any_within(name: str, wanted: tuple[str, ...]) -> _Condition:
    return lambda rows: rows.any_of(name, lambda has: any(one in has.casefold() for one in wanted))


def _has(name: str, wanted: str) -> _Condition:
    return lambda rows: rows.any_of(name, lambda has: has.casefold() == wanted)


def _with_word(word: str) -> _Condition:
    def holds(rows: _Rows) -> np.ndarray[Any, Any]:
        found = rows.texts_with("run_id", word)
        for name in ("title", *_LISTS):
            found |= rows.any_of(name, lambda has: word in has.casefold())
        return found

    return holds


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
