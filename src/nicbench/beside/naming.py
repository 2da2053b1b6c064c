"""How the entries of a comparison are called: as shortly as tells each from the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from nicbench.beside.entry import Entry
from nicbench.model.turn import DEFAULT

LONGEST = 40
"""Of a title that serves as a name, in characters."""


def named(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """The same entries with names that are all different; one that the user gave stays.

    First the configuration, where it has a name; else the title; else when it was made; and last the run's id. What was
    not measured here says so in its name, so that no table and no figure shows it without.
    """
    names = [entry.name if entry.is_named else _base(entry, entries) for entry in entries]
    for more in _MORE:
        counts = Counter(names)
        names = [
            name if counts[name] == 1 else _with(name, more(entry), entry)
            for name, entry in zip(names, entries, strict=True)
        ]
    marked = [
        f"{name} ({entry.published})" if entry.published and not entry.is_named else name
        for name, entry in zip(names, entries, strict=True)
    ]
    return tuple(replace(entry, name=name) for entry, name in zip(entries, _numbered(marked), strict=True))


def _base(entry: Entry, entries: Sequence[Entry]) -> str:
    if entry.configuration != DEFAULT:
        return entry.configuration
    if entry.imported is not None and entry.imported.device:
        return entry.imported.device
    alone = sum(other.title == entry.title for other in entries) == 1
    if alone and len(entry.title) <= LONGEST:
        return entry.title
    tags = [tag for tag in entry.tags if sum(tag in other.tags for other in entries) == 1]
    return tags[0] if tags else entry.moment or entry.title[:LONGEST]


_MORE: tuple[Callable[[Entry], str | None], ...] = (
    lambda entry: None if entry.is_named else entry.moment,
    lambda entry: entry.run_id,
)


def _with(name: str, more: str | None, entry: Entry) -> str:
    if entry.is_named or more is None or more in name:
        return name
    return more if name == entry.moment else f"{name}, {more}"


def _numbered(names: Sequence[str]) -> list[str]:
    """Copies of one run folder have everything in common."""
    seen: Counter[str] = Counter()
    counts = Counter(names)
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if counts[name] == 1 else f"{name} #{seen[name]}")
    return found
