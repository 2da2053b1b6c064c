"""All runs of a folder, in memory: found, filtered and sorted. They come from the index of `nicbench list`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Final

from nicbench.core.errors import NicbenchError, UsageError
from nicbench.core.frozen import frozen
from nicbench.core.lists import grouped
from nicbench.lake.place import HEADLINE, Found, Lake, find_together
from nicbench.store.index import IndexedRuns, Search, moment
from nicbench.store.listing import RunHeadline

Peek = Callable[[int], tuple[tuple[RunHeadline, ...], int]]
"""Returns this many of the newest runs as last known, and the number of all runs."""
ReadRuns = Callable[[], IndexedRuns]
"""Returns every run as its folder is now, oldest first."""
_FRESH_S: Final = 2.0
"""A list younger than this is shown without reading the folder again."""
_REST: Final = 20.0
"""Looking for new runs takes at most a twentieth of the time: with very many runs the list may be older."""
_PATIENCE_S: Final = 0.3
"""How long the first page waits for the folders to be read before it shows what the index says."""
_MOST_WISHES: Final = 32
"""How many lists are kept until the runs change: their pages, and those who ask again, wait for nothing."""
MOST_ROWS: Final = 500
"""The most rows of one page of the list."""
_LONGEST_QUERY: Final = 300


def state_of(run: RunHeadline) -> str:
    """Returns a run's verdict; ``unfinished`` where it has none yet, ``damaged`` where it cannot be read."""
    if run.trouble:
        return "damaged"
    return run.verdict if run.verdict and run.finished else "unfinished"


_KEYS: Final[Mapping[str, Callable[[RunHeadline], str | int]]] = {
    "run": lambda run: run.run_id,
    "at": lambda run: run.at,
    "title": lambda run: (run.title or "").casefold(),
    "verdict": state_of,
    "trials": lambda run: run.trials,
    "results": lambda run: run.results,
    "tags": lambda run: ", ".join(run.tags).casefold(),
    "cards": lambda run: ", ".join(run.cards).casefold(),
    "kernels": lambda run: ", ".join(run.kernels),
    "drivers": lambda run: ", ".join(run.drivers).casefold(),
    "methods": lambda run: ", ".join(run.methods),
    "headline": lambda run: (run.headline or run.trouble or "").casefold(),
}
SORTS: Final = tuple(_KEYS)


@frozen
class Wish:
    """Which runs are wanted, in which order: ``sort`` is a name of ``SORTS``, behind ``-`` for the other direction."""

    search: Search = field(default_factory=Search)
    states: tuple[str, ...] = ()
    """Verdicts, ``unfinished`` or ``damaged``; empty for any."""
    sort: str = "-at"


def wish_of(query: Sequence[tuple[str, str]]) -> Wish:
    """Reads the query of an address; names that are not known are left alone. UsageError for a wrong date or order."""
    values = grouped((name, value.strip()[:_LONGEST_QUERY]) for name, value in query if value.strip())

    def each(name: str) -> tuple[str, ...]:
        return tuple(values.get(name, ()))

    since, until = values.get("since", [None])[0], values.get("until", [None])[0]
    sort = values.get("sort", ["-at"])[0]
    if sort.removeprefix("-") not in _KEYS:
        raise UsageError(f"runs cannot be sorted by {sort!r}", place="sort", next_step=f"by {', '.join(SORTS)}")
    return Wish(
        Search(
            words=tuple(word for text in each("q") for word in text.split()),
            cards=each("card"),
            kernels=each("kernel"),
            drivers=each("driver"),
            tags=each("tag"),
            methods=each("method"),
            since=moment(since, "since") if since else None,
            until=moment(until, "until") if until else None,
        ),
        each("state"),
        sort,
    )


@frozen
class FoundRuns:
    """The runs that were found, in order, and the number of all. ``reading``: others are still being read."""

    runs: Sequence[RunHeadline]
    every: int
    reading: bool = False


def _sorted(runs: Sequence[RunHeadline], sort: str) -> tuple[RunHeadline, ...]:
    return tuple(sorted(runs, key=_KEYS[sort.removeprefix("-")], reverse=sort.startswith("-")))


class Catalogue:
    """Every run of the folder, in its state of a moment ago."""

    def __init__(self, read: ReadRuns, peek: Peek = lambda _: ((), 0), lake: Lake | None = None) -> None:
        self._read = read
        self._peek = peek
        self._lake = lake
        self._lock = threading.Lock()
        self._own: Sequence[RunHeadline] = ()
        self._state: object = None
        self._newest = Found((), 0, 0)
        self._orders: dict[str, tuple[RunHeadline, ...]] = {}
        self._wishes: dict[Wish, tuple[RunHeadline, ...]] = {}
        self._next = 0.0
        self._is_read = threading.Event()
        self._is_reading = False

    def warm(self) -> None:
        """Begins to read the runs, so that the first page need not wait for all of it."""
        self._refresh()

    def wait(self, patience_s: float) -> bool:
        """Has the runs read where it is time; whether they are read, after this wait at most."""
        self._refresh()
        return self._is_read.wait(patience_s)

    def first_page(self, wish: Wish, most: int) -> FoundRuns:
        """Returns the first runs of a list, which may be as the index has them until the folders are read."""
        if not self._is_read.is_set() and wish == Wish() and self._lake is None:
            self._refresh()
            if not self._is_read.wait(_PATIENCE_S):
                runs, every = self._peek(most)
                if runs:
                    return FoundRuns(runs, every, reading=True)
        return self.find(wish)

    def find(self, wish: Wish) -> FoundRuns:
        """Returns the runs that are wanted, in order; the first time it waits until they are read."""
        self._refresh()
        self._is_read.wait()
        with self._lock:
            runs = self._wishes.get(wish)
            if runs is None:
                if len(self._wishes) >= _MOST_WISHES:
                    self._wishes.clear()
                runs = self._wishes[wish] = self._select(wish)
            return FoundRuns(runs, self._newest.every)

    def _select(self, wish: Wish) -> tuple[RunHeadline, ...]:
        if wish.search == Search():
            runs = self._in_order(wish.sort)
        else:
            runs = _sorted(find_together(self._own, self._lake, wish.search).runs, wish.sort)
        return tuple(run for run in runs if state_of(run) in wish.states) if wish.states else runs

    def _in_order(self, sort: str) -> tuple[RunHeadline, ...]:
        """Returns all runs in order, which is kept until the runs change: to sort 100,000 takes a tenth of a second."""
        found = self._orders.get(sort)
        if found is None:
            found = self._orders[sort] = _sorted(self._newest.runs, sort)
        return found

    def _refresh(self) -> None:
        """Has the runs read again in the background where it is time."""
        with self._lock:
            if self._is_reading or time.monotonic() < self._next:
                return
            self._is_reading = True
        threading.Thread(target=self._read_all, daemon=True, name="runs").start()

    def _read_all(self) -> None:
        began = time.monotonic()
        own, newest, state = self._own, self._newest, self._state
        try:
            own = self._read().runs
            lake = self._lake
            state = (own, *((lake.stamp(month, HEADLINE) for month in lake.months()) if lake is not None else ()))
            if state != self._state:
                newest = find_together(own, self._lake, Search())
        except (NicbenchError, OSError):
            pass  # the folder is gone for the moment: what was known of it is shown
        finally:  # whatever happened: pages wait for this
            with self._lock:
                if newest is not self._newest:
                    self._own, self._newest, self._state, self._orders, self._wishes = own, newest, state, {}, {}
                self._next = time.monotonic() + max(_FRESH_S, _REST * (time.monotonic() - began))
                self._is_reading = False
            self._is_read.set()
