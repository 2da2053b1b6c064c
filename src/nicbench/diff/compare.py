"""Two run folders laid side by side: every value that is not the same in both, in the order of its importance."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from nicbench.diff.importance import importance, is_identity, is_volatile
from nicbench.diff.told import by_name, told
from nicbench.diff.words import NOT_RECORDED
from nicbench.redaction import is_redacted
from nicbench.store.folder import RunFolder

_TUNING: Final = "tuning"


@dataclass(frozen=True, slots=True)
class Difference:
    """One value: ``path`` without the machine, ``places`` the machines where it differs, both values, why it matters.

    A value is ``NOT_RECORDED`` where its run says nothing of it at all, None where it says that it is not known.
    """

    path: str
    places: tuple[str, ...]
    values: tuple[Any, Any]
    rank: int
    why: str


@dataclass(frozen=True, slots=True)
class Differences:
    """``settings`` matter, most important first; the others are told apart, for they say nothing of a setting."""

    settings: tuple[Difference, ...]
    identities: tuple[Difference, ...]
    volatile: tuple[Difference, ...]
    redacted: tuple[Difference, ...]
    lacking: tuple[str, ...]
    """Files that one run has not, or neither, in words."""

    @property
    def equal(self) -> bool:
        """Whether the runs were made in the same way on the same settings, as far as both say."""
        return not self.settings and not self.lacking


def differences(one: RunFolder, other: RunFolder) -> Differences:
    """Of bench file as resolved, tuning, inventory, map of cores and versions."""
    says = [told(folder) for folder in (one, other)]
    found: dict[tuple[str, str], list[str]] = {}
    rows: dict[tuple[str, str], tuple[str, tuple[Any, Any]]] = {}
    for place in dict.fromkeys([*says[0], *says[1]]):
        pair = (says[0].get(place, NOT_RECORDED), says[1].get(place, NOT_RECORDED))
        for path, values in _differing(pair[0], pair[1], ""):
            key = (path, repr(values))
            rows[key] = (path, values)
            found.setdefault(key, []).append(place)
    every = [
        Difference(
            path, tuple(place for place in found[key] if place), values, importance(path).rank, importance(path).why
        )
        for key, (path, values) in rows.items()
    ]
    every.sort(key=lambda row: (row.rank, row.path, row.places))
    kinds: dict[str, list[Difference]] = {"settings": [], "identities": [], "volatile": [], "redacted": []}
    for row in every:
        kinds[_kind(row)].append(row)
    return Differences(
        **{name: tuple(members) for name, members in kinds.items()},
        lacking=tuple(_lacking(one, other)),
    )


def _kind(row: Difference) -> str:
    return kind_of(row.path, row.values)


def kind_of(path: str, values: Iterable[Any]) -> str:
    """What a difference is: of ``settings``, ``identities``, ``volatile`` or ``redacted``."""
    if is_volatile(path):
        return "volatile"
    if any(_has_token(value) for value in values):
        return "redacted"
    return "identities" if is_identity(path) else "settings"


def _has_token(value: Any) -> bool:
    return is_redacted(value if isinstance(value, str) else json.dumps(value) if value is not NOT_RECORDED else None)


def _lacking(one: RunFolder, other: RunFolder) -> Iterator[str]:
    names = ("plan.json", "inventory.json")
    for name in names:
        has = [(folder.path / name).is_file() for folder in (one, other)]
        if has[0] != has[1]:
            yield f"{(other if has[0] else one).run_id} has no {name}"
    if not any((folder.path / name).is_file() for folder in (one, other) for name in names):
        yield f"neither run has {' or '.join(names)}: how they were made is not known"


def _differing(one: Any, other: Any, path: str) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Leaves that differ; where one side has nothing below a path, that path alone."""
    if one == other and type(one) is type(other):
        return
    if path.startswith(_TUNING):  # each setting by itself, also where the other run has none
        one = {} if one is NOT_RECORDED and isinstance(other, Mapping) else one
        other = {} if other is NOT_RECORDED and isinstance(one, Mapping) else other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for name in dict.fromkeys([*one, *other]):
            below = f"{path}.{name}" if path else str(name)
            yield from _differing(one.get(name, NOT_RECORDED), other.get(name, NOT_RECORDED), below)
    elif by_name(one) is not None and by_name(other) is not None:
        yield from _differing(by_name(one), by_name(other), path)
    elif not path:
        for name in one if isinstance(one, Mapping) else other if isinstance(other, Mapping) else ():
            pair = (one, other) if not isinstance(one, Mapping) else (one[name], other)
            pair = (pair[0], other[name]) if isinstance(other, Mapping) else pair
            yield str(name), pair
    else:
        yield path, (one, other)
