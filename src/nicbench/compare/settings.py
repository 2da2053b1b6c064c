"""Finds the settings that differ between several entries: each setting once, most important first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nicbench.compare.entry import Entry
from nicbench.compare.importance import NOT_RECORDED, importance_of
from nicbench.compare.run_differences import index_by_name, kind_of

_LAST_THAT_MATTERS: Final = importance_of("inventory.clock_source").rank
"""The last rank that matters; ranks after it are versions of tools and remaining facts (compare/importance.py)."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting that differs between entries.

    ``values`` are in the order of the entries, ``NOT_RECORDED`` where an entry does not state it. ``places`` are the
    machines on which it differs; it is empty for a setting of the run itself.
    """

    path: str
    places: tuple[str, ...]
    values: tuple[Any, ...]
    rank: int
    why: str


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings that differ between entries, by their importance.

    ``main`` change results; ``others`` are less likely to. ``apart`` has the paths of differences that are no settings.
    ``of`` names the entries that disclose their settings, ``silent`` those that do not.
    """

    of: tuple[str, ...]
    silent: tuple[str, ...]
    main: tuple[Setting, ...]
    others: tuple[Setting, ...]
    apart: tuple[str, ...]


def compare_settings(entries: Sequence[Entry]) -> Settings:
    """Compares the entries that disclose their settings; without any difference where fewer than two do."""
    telling = [entry for entry in entries if entry.told]
    silent = tuple(entry.name for entry in entries if not entry.told)
    names = tuple(entry.name for entry in telling)
    if len(telling) < 2:
        return Settings(names, silent, (), (), ())
    found: dict[tuple[str, str], tuple[tuple[Any, ...], list[str]]] = {}
    for place in dict.fromkeys(place for entry in telling for place in entry.told):
        for path, values in _find_differences([entry.told.get(place, NOT_RECORDED) for entry in telling], ""):
            found.setdefault((path, repr(values)), (values, []))[1].append(place)
    rows: dict[str, list[Setting]] = {}
    for (path, _), (values, places) in found.items():
        known = importance_of(path)
        row = Setting(path, tuple(place for place in places if place), values, known.rank, known.why)
        rows.setdefault(kind_of(path, values), []).append(row)
    kept = sorted(rows.pop("settings", []), key=lambda row: (row.rank, row.path, row.places))
    return Settings(
        of=names,
        silent=silent,
        main=tuple(row for row in kept if row.rank <= _LAST_THAT_MATTERS),
        others=tuple(row for row in kept if row.rank > _LAST_THAT_MATTERS),
        apart=tuple(dict.fromkeys(row.path for kind in rows.values() for row in kind)),
    )


def _find_differences(values: Sequence[Any], path: str) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yields the leaves that differ between entries; where an entry has nothing below a path, only that path."""
    first = values[0]
    if all(value is first or (value == first and type(value) is type(first)) for value in values[1:]):
        return
    if path.startswith("tuning") or not path:  # lists each setting, even where an entry has none
        values = [{} if value is NOT_RECORDED else value for value in values]
    if all(isinstance(value, Mapping) for value in values):
        for name in dict.fromkeys(name for value in values for name in value):
            below = f"{path}.{name}" if path else str(name)
            yield from _find_differences([value.get(name, NOT_RECORDED) for value in values], below)
    elif all(index_by_name(value) is not None for value in values):
        yield from _find_differences([index_by_name(value) for value in values], path)
    else:
        yield path, tuple(values)
