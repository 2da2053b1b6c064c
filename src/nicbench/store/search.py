"""Runs looked for by what a headline says of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import Final

from nicbench.errors import UsageError
from nicbench.store.headline import RunHeadline

_TIME: Final = re.compile(r"\d{4}(-\d\d(-\d\d(T\d\d(:\d\d)?)?)?)?")


@dataclass(frozen=True, slots=True)
class Search:
    """Every condition holds; an empty one asks nothing. Case does not matter.

    ``words`` are looked for in everything, ``cards`` and ``drivers`` anywhere in a name, ``kernels`` from a release's
    beginning to a mark (6.1 is 6.1.90 and not 6.18), ``tags`` and ``methods`` as they are written. Of several cards
    (kernels, drivers) a run has any; of several words, tags and methods it has all. ``since`` and ``until`` are times
    in UTC, 2026, 2026-01, 2026-01-31 or 2026-01-31T12:30, and both are included.
    """

    words: tuple[str, ...] = ()
    cards: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None

    @property
    def asks(self) -> bool:
        """Whether any run could be left out."""
        return self != Search()


def moment(text: str, option: str) -> str:
    """A time of ``Search``; UsageError where it is none."""
    if not (_TIME.fullmatch(text) and _exists(text)):
        raise UsageError(f"{text!r} is no date", place=option, next_step="write it like 2026, 2026-01 or 2026-01-31")
    return text


def _exists(text: str) -> bool:
    """No 31st of February. What is left out is the first of its kind."""
    try:
        datetime.fromisoformat(text + "0000-01-01T00:00"[len(text) :] if len(text) != 13 else f"{text}:00")
    except ValueError:
        return False
    return True


def found(runs: Iterable[RunHeadline], search: Search) -> tuple[RunHeadline, ...]:
    """Those that the search is about, in their order."""
    for holds in _conditions(search):
        runs = filter(holds, runs)
    return tuple(runs)


def _conditions(search: Search) -> Iterator[Callable[[RunHeadline], bool]]:
    """Those that ask something: of ten thousand runs each costs its time."""
    if search.since or search.until:
        yield lambda run: _in_time(run.at, search)
    for wanted, names_of in ((search.cards, _cards), (search.drivers, _drivers)):
        if wanted:
            yield _any_within(_folded(wanted), names_of)
    if search.kernels:
        yield lambda run: any(_is_release(wanted, one) for wanted in search.kernels for one in run.kernels)
    for wanted, names_of in ((search.tags, _tags), (search.methods, _methods)):
        if wanted:
            yield _all_of(set(_folded(wanted)), names_of)
    if search.words:
        yield lambda run: _has_words(run, _folded(search.words))


_Names = Callable[[RunHeadline], tuple[str, ...]]
_cards: Final[_Names] = attrgetter("cards")
_drivers: Final[_Names] = attrgetter("drivers")
_tags: Final[_Names] = attrgetter("tags")
_methods: Final[_Names] = attrgetter("methods")


@lru_cache(maxsize=4096)  # the same few names stand in thousands of runs
def _folded(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.casefold() for name in names)


def _any_within(wanted: tuple[str, ...], names_of: _Names) -> Callable[[RunHeadline], bool]:
    return lambda run: any(one in name for one in wanted for name in _folded(names_of(run)))


def _all_of(wanted: set[str], names_of: _Names) -> Callable[[RunHeadline], bool]:
    return lambda run: wanted.issubset(_folded(names_of(run)))


def _in_time(at: str, search: Search) -> bool:
    since, until = search.since, search.until
    return bool(at) and (not since or at[: len(since)] >= since) and (not until or at[: len(until)] <= until)


def _is_release(wanted: str, release: str) -> bool:
    wanted, release = wanted.casefold(), release.casefold()
    return release.startswith(wanted) and not (release[len(wanted) :][:1].isdigit() and wanted[-1:].isdigit())


def _has_words(run: RunHeadline, words: tuple[str, ...]) -> bool:
    lists = (run.tags, run.cards, run.kernels, run.drivers, run.methods, run.configurations)
    text = "\n".join((run.run_id, run.title or "", *chain.from_iterable(lists))).casefold()
    return all(word in text for word in words)
