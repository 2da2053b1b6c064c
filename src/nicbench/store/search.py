"""Runs looked for by what a headline says of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from nicbench.errors import UsageError
from nicbench.store.listing import RunHeadline

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
    if not _TIME.fullmatch(text):
        raise UsageError(f"{text!r} is no date", place=option, next_step="write it like 2026, 2026-01 or 2026-01-31")
    return text


def found(runs: Iterable[RunHeadline], search: Search) -> tuple[RunHeadline, ...]:
    """Those that the search is about, in their order."""
    return tuple(run for run in runs if _matches(run, search))


def _matches(run: RunHeadline, search: Search) -> bool:
    return (
        _in_time(run.at, search)
        and _any_within(search.cards, run.cards)
        and _any_within(search.drivers, run.drivers)
        and (not search.kernels or any(_is_release(wanted, one) for wanted in search.kernels for one in run.kernels))
        and _all_of(search.tags, run.tags)
        and _all_of(search.methods, run.methods)
        and (not search.words or _has_words(run, search.words))
    )


def _in_time(at: str, search: Search) -> bool:
    since, until = search.since, search.until
    if (since or until) and not at:
        return False
    return (not since or at[: len(since)] >= since) and (not until or at[: len(until)] <= until)


def _any_within(wanted: tuple[str, ...], names: tuple[str, ...]) -> bool:
    return not wanted or any(one.casefold() in name.casefold() for one in wanted for name in names)


def _all_of(wanted: tuple[str, ...], names: tuple[str, ...]) -> bool:
    return not wanted or {one.casefold() for one in wanted} <= {name.casefold() for name in names}


def _is_release(wanted: str, release: str) -> bool:
    wanted, release = wanted.casefold(), release.casefold()
    return release.startswith(wanted) and not (release[len(wanted) :][:1].isdigit() and wanted[-1:].isdigit())


def _has_words(run: RunHeadline, words: tuple[str, ...]) -> bool:
    lists = (run.tags, run.cards, run.kernels, run.drivers, run.methods, run.configurations)
    text = "\n".join((run.run_id, run.title or "", *(name for names in lists for name in names))).casefold()
    return all(word.casefold() in text for word in words)
