"""What all runs of the folder measured, as the views of many runs ask for it: kept up to date in the background."""

from __future__ import annotations

import contextlib
import gc
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nicbench.compare.history.figure_index import FigureIndex
from nicbench.compare.history.figures import FIRMWARE, Figure, Measure, RunSettings
from nicbench.compare.history.selection import (
    ANY,
    CONFIGURATION,
    KEYS,
    PARAMETER,
    SCOPE,
    SETTING,
    Choice,
    Entry,
    Series,
    check_key,
    choose,
    divide,
    label_of,
    parameters_of,
    seconds_of,
    tests_of,
    text_of,
    values_of,
)
from nicbench.compare.run_differences import last_name_of
from nicbench.core.errors import BusyError, NicbenchError, UsageError
from nicbench.core.frozen import frozen
from nicbench.lake.place import Lake
from nicbench.store.listing import RunHeadline, clean
from nicbench.web.catalogue import Catalogue, Wish, wish_of

if TYPE_CHECKING:
    from nicbench.lake.searching import LakeFigures


_PATIENCE_S: Final = 0.3
"""How long an answer waits for runs that are being read, before it is given without them."""
_TOLD_EVERY_S: Final = 1.0
_MOST_VARYING: Final = 400
"""The most settings that are offered as choices."""
_LONGEST: Final = 300
_MOST_WISHES: Final = 8
"""For how many filters the runs are kept by their names."""


@frozen
class Asked:
    """What an address asks of the history; without a ``by``, the view has a default."""

    wish: Wish
    test: str | None
    value: str | None
    given: Mapping[str, str]
    by: tuple[str, ...] | None


def asked_of(query: Sequence[tuple[str, str]]) -> Asked:
    """Reads the query of an address. UsageError where a filter is wrong, or a name stands twice."""
    one = {}
    by = []
    for name, value in query:
        if name == "by":
            by.append(value[:_LONGEST])
        elif name in ("test", "value") or name.startswith("p."):
            if name in one:
                raise UsageError("stands twice in the address", place=name[:_LONGEST], next_step="give it once")
            one[name] = value[:_LONGEST]
    given = {name[2:]: value for name, value in one.items() if name.startswith("p.")}
    split = None if not by else tuple(dict.fromkeys(key for key in by if key))
    return Asked(wish_of(query), one.get("test") or None, one.get("value") or None, given, split)


@frozen
class Progress:
    """How many of how many runs were read, while they are."""

    done: int
    of: int


@frozen
class Known:
    """What is known at one time. ``varying`` are the settings that differ among the runs."""

    measures: Mapping[int, Measure] = field(default_factory=dict)
    settings: Mapping[int, RunSettings] = field(default_factory=dict)
    of_run: Mapping[str, int] = field(default_factory=dict)
    varying: tuple[str, ...] = ()

    def setting_of(self, entry: Entry, path: str) -> str | None:
        """Returns the value of a setting in the run and the configuration of a figure; None where it is not known."""
        settings = self.settings.get(self.of_run.get(entry.run.name, -1))
        return None if settings is None else settings.get(path, entry.measure.configuration)

    def tells_configurations(self, path: str, entries: Iterable[Entry]) -> bool:
        """Whether a setting tells the configurations of each run apart, and they are known to differ in nothing else.

        The setting may have several paths with the same last name: a driver repeats what it was given.
        """
        of_run: dict[str, set[str]] = {}
        for entry in entries:
            of_run.setdefault(entry.run.name, set()).add(entry.measure.configuration)
        return all(
            len(names) > 1 and self._tells(self.settings.get(self.of_run.get(run, -1)), path, names)
            for run, names in of_run.items()
        )

    def _tells(self, settings: RunSettings | None, path: str, names: Collection[str]) -> bool:
        own = [] if settings is None else [settings.own.get(name, {}) for name in names]
        last = last_name_of(path)
        values = [
            each[path]
            for each in own
            if path in each and all((last_name_of(name), value) == (last, each[path]) for name, value in each.items())
        ]
        return len(set(values)) == len(names)


@frozen
class Selected:
    """The figures that were asked for, of what was ``known`` then; ``reading`` where others may follow."""

    known: Known
    choice: Choice
    measures: Mapping[int, Measure]
    entries: Sequence[Entry]
    reading: Progress | None = None


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Lets Python make very many small things without looking through all of them again and again.

    Of 200,000 figures that takes half of the time, and finds nothing: none of them refers to itself.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _gathered(lake: Lake | None) -> LakeFigures | None:
    if lake is None:
        return None
    from nicbench.lake.searching import LakeFigures  # imported here: pages without a lake load none of it

    return LakeFigures(lake)


class History:
    """The figures of every run of one folder."""

    def __init__(self, folder: Path, catalogue: Catalogue, lake: Lake | None = None) -> None:
        self._folder = str(folder)
        self._catalogue = catalogue
        self._index = FigureIndex(folder)
        self._gathered = _gathered(lake)
        self._lock = threading.Lock()
        self._is_reading = False
        self._first = threading.Event()
        self._runs: Sequence[RunHeadline] | None = None
        self._settings_for: Sequence[RunHeadline] | None = None
        self._of_gathered: tuple[dict[str, int], dict[int, RunSettings]] = ({}, {})
        self._wishes: dict[Wish, tuple[Sequence[RunHeadline], Mapping[str, tuple[RunHeadline, float | None]]]] = {}
        self._shown = 0.0
        self.known = Known()
        self.progress: Progress | None = None
        self._trouble: NicbenchError | None = None

    def is_ready(self) -> bool:
        """Has the figures of new runs read in the background; whether there is anything to show yet, after a short
        wait.

        NicbenchError where what is read can be kept nowhere.
        """
        if not self._catalogue.wait(_PATIENCE_S):
            return False
        runs = self._catalogue.find(Wish()).runs
        with self._lock:
            is_wanted = runs is not self._runs or self._index.is_damaged or self._trouble is not None
            if not self._is_reading and is_wanted:
                self._is_reading, self._runs = True, runs
                self.progress = Progress(0, len(runs))
                threading.Thread(target=self._update, args=(runs,), daemon=True, name="figures").start()
        self._first.wait(_PATIENCE_S)
        if self._trouble is not None:
            raise self._trouble
        return bool(self.known.measures) or self._first.is_set()

    def select(self, asked: Asked, *, first: bool) -> Selected:
        """Returns the figures that are asked for, of the runs that meet the filters.

        ``first``: a parameter that is not asked for has its first value. UsageError where nobody measured that,
        BusyError where all is being read anew.
        """
        reading = self.progress  # before anything is looked at: what is read meanwhile may be missing here
        known = self.known
        if not known.measures and not self._first.is_set():  # a damaged index is being made anew
            raise BusyError("the runs are still being read", next_step="ask again in a moment")
        choice, measures = choose(known.measures, asked.test, asked.value, asked.given, first=first)
        runs = self._dated(asked.wish)
        entries = []
        for measure, name, place, figure in self._figures(measures, runs):
            found = runs.get(name)
            if found is not None:
                entries.append(Entry(figure, found[0], measures[measure], found[1], place))
        entries.sort(key=lambda entry: (entry.at_s or 0.0, entry.place))
        if self._index.is_damaged:
            reading = reading or Progress(0, len(runs))  # figures are missing: the next question has them read again
        return Selected(known, choice, measures, entries, reading)

    def _dated(self, wish: Wish) -> Mapping[str, tuple[RunHeadline, float | None]]:
        """Returns the runs that are wanted by the names of their folders, with the times at which they began."""
        runs = self._catalogue.find(wish).runs
        with self._lock:
            kept = self._wishes.get(wish)
        if kept is not None and kept[0] is runs:
            return kept[1]
        found = {run.name: (run, seconds_of(run)) for run in runs}
        with self._lock:
            if len(self._wishes) >= _MOST_WISHES:
                self._wishes.clear()
            self._wishes[wish] = (runs, found)
        return found

    def figures_of(self, test: str, value: str) -> Mapping[tuple[str, int], Figure]:
        """Returns the figures of a value by run and place of the result, for charts of one value against another."""
        every = self.known.measures.items()
        measures = {number: each for number, each in every if each.test == test and each.told.value == value}
        return {(name, place): each for _, name, place, each in self._figures(measures, self._dated(Wish()))}

    def _figures(
        self, measures: Mapping[int, Measure], runs: Mapping[str, tuple[RunHeadline, float | None]]
    ) -> Iterator[tuple[int, str, int, Figure]]:
        """Yields the figures of the folder, and those of the lake of runs that are not in the folder."""
        yield from self._index.figures(measures)
        if self._gathered is not None:
            others = {name for name, (run, _) in runs.items() if not self._is_own(run)}
            yield from self._gathered.figures(measures, others)

    def _is_own(self, run: RunHeadline) -> bool:
        return run.folder.rpartition("/")[0] == self._folder

    def _update(self, runs: Sequence[RunHeadline]) -> None:
        try:
            self._show()
            if self._index.is_damaged:  # what is known has numbers of rows that are to be made anew
                self._first.clear()
                self.known = Known()
            self._dated(Wish())
            self._index.update([run for run in runs if self._is_own(run)], self._tell)
            self._trouble = None
        except NicbenchError as error:
            self._trouble = error
        finally:  # whatever happened: pages wait for this
            self._show()
            with self._lock:
                self._is_reading, self.progress = False, None
            self._first.set()

    def _tell(self, done: int, of: int) -> None:
        self.progress = Progress(done, of)
        if time.monotonic() - self._shown > _TOLD_EVERY_S:
            self._show()

    def _show(self) -> None:
        """Puts what the index has now in the place of what was known."""
        settings = {**self.known.settings, **self._index.settings(self.known.settings)}
        measures, of_run = self._index.measures(), self._index.settings_of_runs()
        if self._gathered is not None:
            with contextlib.suppress(
                NicbenchError
            ):  # a damaged lake: its figures are missing, and their answer says why
                measures |= self._gathered.measures()
                if self._settings_for is not self._runs:
                    others = (run.name for run in self._runs or () if not self._is_own(run))
                    self._of_gathered, self._settings_for = self._gathered.settings(others), self._runs
                of_run |= self._of_gathered[0]
                settings |= self._of_gathered[1]
        self.known = Known(measures, settings, of_run, _varying(tuple(settings.values())))
        self._shown = time.monotonic()


def _varying(settings: Sequence[RunSettings]) -> tuple[str, ...]:
    """Returns the paths of settings that differ between runs, or between configurations of one."""
    found = {path for each in settings for own in each.own.values() for path in own}
    for each in settings[1:]:
        found |= {path for path, _ in settings[0].every.items() ^ each.every.items()}
    return tuple(sorted(found - {FIRMWARE})[:_MOST_VARYING])


MOST_SERIES: Final = 6
"""The most series that a chart shows; the others are counted."""
MOST_POINTS: Final = 4000
"""The most points of a chart; of more, the lowest and the highest of successive ones are shown."""
DEFAULT_KEYS: Final = ("title", "card")
COLUMNS: Final = ("series", "run", "at", "test", "configuration", "parameters", "value", "number", "lower", "upper",
                  "limited_by", "verdict")  # fmt: skip


def _plain(progress: Progress | None) -> dict[str, int] | None:
    """Returns how many of how many runs were read, while they are; else None."""
    return None if progress is None else {"done": progress.done, "of": progress.of}


def not_ready(history: History) -> dict[str, Any]:
    """The answer as long as nothing is known."""
    return {"ready": False, "reading": _plain(history.progress)}


def still_reading() -> BusyError:
    """The error of what must have every figure, or is not given at all."""
    return BusyError("the runs are still being read", next_step="ask again in a moment")


def keys_of(asked: Asked, choice: Choice) -> tuple[str, ...]:
    """Returns the keys that divide the figures: those asked for, and those that must never be mixed.

    UsageError for an unknown key.
    """
    wanted = DEFAULT_KEYS if asked.by is None else tuple(check_key(key, "by") for key in asked.by)
    open_ones = tuple(PARAMETER + name for name, value in choice.given.items() if value == ANY)
    return tuple(dict.fromkeys((*wanted, CONFIGURATION, SCOPE, *open_ones)))


def series_of(selected: Selected, keys: Sequence[str]) -> list[Series]:
    """Divides what was selected."""
    return divide(selected.entries, keys, selected.known.setting_of)


def about(asked: Asked, selected: Selected) -> dict[str, Any]:
    """Returns what was chosen and what could be chosen instead."""
    choice, every = selected.choice, selected.known.measures.values()
    values = values_of(every, choice.test)
    same = [each for each in every if each.test == choice.test and each.told.value == choice.value]
    parameters = parameters_of(same)
    told = values[choice.value].told
    keys = [*KEYS, *(PARAMETER + name for name in parameters), *(SETTING + path for path in selected.known.varying)]
    return {
        "ready": True,
        "reading": _plain(selected.reading),
        "test": choice.test,
        "value": choice.value,
        "label": told.head,
        "unit": told.unit,
        "higher_is_better": told.higher_is_better,
        "given": dict(choice.given),
        "by": list(DEFAULT_KEYS if asked.by is None else asked.by),
        "tests": tests_of(every),
        "values": [
            {"name": name, "label": each.told.head, "unit": each.told.unit, "main": each.told.is_main}
            for name, each in values.items()
        ],
        "parameters": {name: [text_of(value) for value in found] for name, found in parameters.items()},
        "keys": [{"key": key, "label": label_of(key)} for key in keys],
    }


def points(entries: Sequence[Entry]) -> dict[str, list[Any]]:
    """Returns the points of a series as columns."""
    return {
        "at": [entry.at_s for entry in entries],
        "number": [entry.figure.number for entry in entries],
        "lower": [entry.figure.lower for entry in entries],
        "upper": [entry.figure.upper for entry in entries],
        "verdict": [entry.figure.verdict for entry in entries],
        "run": [entry.run.name for entry in entries],
    }


def thin(entries: Sequence[Entry], most: int) -> Sequence[Entry]:
    """Returns at most so many: of equal numbers of successive ones the lowest and the highest, in their order."""
    if len(entries) <= most:
        return entries
    size = -(-2 * len(entries) // most)
    kept = []
    for begin in range(0, len(entries), size):
        places = sorted(
            range(begin, min(begin + size, len(entries))), key=lambda place: entries[place].figure.number_or_bound
        )
        ends = {places[0], places[-1]}
        kept += [entries[place] for place in sorted(ends)]
    return kept


def parameters_in_words(measure: Measure) -> str:
    """Returns the parameters of a point as the cell of a table."""
    return clean("; ".join(f"{name}={text_of(value)}" for name, value in measure.parameters.items()))


def rows(series: Sequence[Series]) -> Iterator[dict[str, Any]]:
    """Yields every figure of the series, by the names of ``COLUMNS``."""
    for each in series:
        for entry in each.entries:
            figure, measure = entry.figure, entry.measure
            yield {
                "series": each.name,
                "run": entry.run.name,
                "at": entry.run.at,
                "test": measure.test,
                "configuration": measure.configuration,
                "parameters": parameters_in_words(measure),
                "value": measure.told.value,
                "number": figure.number,
                "lower": figure.lower,
                "upper": figure.upper,
                "limited_by": figure.limited_by,
                "verdict": figure.verdict,
            }
