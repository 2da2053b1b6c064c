"""What differs between the makings of several entries: each setting once, most important first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nicbench.compare.entry import Entry
from nicbench.compare.importance import NOT_RECORDED, importance_of
from nicbench.compare.run_differences import index_by_name, kind_of

_LAST_THAT_MATTERS: Final = importance_of("inventory.clock_source").rank
"""Beyond it (diff/importance.py) are versions of tools, and the rest of the machine."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting that is not the same in all entries; ``values`` in their order, ``NOT_RECORDED`` where one has none.

    ``place`` is the machine, "" the run itself.
    """

    path: str
    places: tuple[str, ...]
    values: tuple[Any, ...]
    rank: int
    why: str


@dataclass(frozen=True, slots=True)
class Settings:
    """``main`` change results; ``others`` are less likely to; ``apart`` are names of what says nothing of a setting.

    ``of`` are the names of the entries that say how they were made: of the others nothing is known.
    """

    of: tuple[str, ...]
    silent: tuple[str, ...]
    main: tuple[Setting, ...]
    others: tuple[Setting, ...]
    apart: tuple[str, ...]


def compare_settings(entries: Sequence[Entry]) -> Settings:
    """Of those entries that say anything of their making; nothing where fewer than two do."""
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
    """Leaves that are not the same in all; where an entry has nothing below a path, that path alone."""
    first = values[0]
    if all(value is first or (value == first and type(value) is type(first)) for value in values[1:]):
        return
    if path.startswith("tuning") or not path:  # each by itself, also where an entry has none
        values = [{} if value is NOT_RECORDED else value for value in values]
    if all(isinstance(value, Mapping) for value in values):
        for name in dict.fromkeys(name for value in values for name in value):
            below = f"{path}.{name}" if path else str(name)
            yield from _find_differences([value.get(name, NOT_RECORDED) for value in values], below)
    elif all(index_by_name(value) is not None for value in values):
        yield from _find_differences([index_by_name(value) for value in values], path)
    else:
        yield path, tuple(values)
