"""All runs of a folder, in memory: found, filtered and sorted. They come from the index of `nicbench list`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nicbench.core.errors import UsageError
from nicbench.store.headline import RunHeadline
from nicbench.store.index import IndexedRuns, Search, find_runs, moment

ReadRuns = Callable[[], IndexedRuns]
"""Returns every run as its folder is now, oldest first."""
_FRESH_S: Final = 2.0
"""A list younger than this is shown as it is."""
_REST: Final = 10.0
"""Looking for new runs takes at most a tenth of the time: with very many runs the list may be older."""
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


@dataclass(frozen=True, slots=True)
class Wish:
    """Which runs are wanted, in which order: ``sort`` is a name of ``SORTS``, behind ``-`` for the other direction."""

    search: Search = field(default_factory=Search)
    states: tuple[str, ...] = ()
    """Verdicts, ``unfinished`` or ``damaged``; empty for any."""
    sort: str = "-at"


def wish_of(query: Sequence[tuple[str, str]]) -> Wish:
    """Reads the query of an address; names that are not known are left alone. UsageError for a wrong date or order."""
    values: dict[str, list[str]] = {}
    for name, value in query:
        if value.strip():
            values.setdefault(name, []).append(value.strip()[:_LONGEST_QUERY])

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


class Catalogue:
    """Every run of the folder, as it was a moment ago."""

    def __init__(self, read: ReadRuns) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._runs: tuple[RunHeadline, ...] = ()
        self._orders: dict[str, tuple[RunHeadline, ...]] = {}
        self._next = 0.0
        self._is_read = False

    def warm(self) -> None:
        """Begins to read the runs, so that the first page need not wait for all of it."""
        threading.Thread(target=self._refresh, daemon=True, name="first runs").start()

    def find(self, wish: Wish) -> tuple[RunHeadline, ...]:
        """Returns the runs that are wanted, in order."""
        runs = self._in_order(wish.sort)
        if wish.search.asks:
            runs = find_runs(runs, wish.search)
        return tuple(run for run in runs if state_of(run) in wish.states) if wish.states else runs

    @property
    def count(self) -> int:
        """The number of all runs."""
        self._refresh()
        return len(self._runs)

    def _in_order(self, sort: str) -> tuple[RunHeadline, ...]:
        """Returns all runs in order, which is kept until the runs change: to sort 100,000 takes a tenth of a second."""
        self._refresh()
        with self._lock:
            found = self._orders.get(sort)
            if found is None:
                key = _KEYS[sort.removeprefix("-")]
                found = tuple(sorted(self._runs, key=key, reverse=sort.startswith("-")))
                self._orders[sort] = found
            return found

    def _refresh(self) -> None:
        """Reads the runs anew where it is time: the first time the caller waits, later it is done beside."""
        with self._lock:
            if time.monotonic() < self._next:
                return
            self._next = float("inf")
            first = not self._is_read
            if first:
                self._read_all()
        if not first:
            threading.Thread(target=self._read_all, daemon=True, name="runs").start()

    def _read_all(self) -> None:
        began = time.monotonic()
        try:
            runs = self._read().runs
        finally:
            self._next = time.monotonic() + max(_FRESH_S, _REST * (time.monotonic() - began))
        self._is_read = True
        if runs != self._runs:
            self._runs, self._orders = runs, {}
