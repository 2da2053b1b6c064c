"""Finds the results of several entries that measure the same thing: matches their tests and their points' parameters.

Tests of one method are matched by their names; where each entry has only one test of the method, these are matched
whatever their names. A parameter that only some entries state (for example a published table's name for its link) does
not keep points apart, as long as the points of each entry can be told apart without it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from nicbench.compare.entry import Entry
from nicbench.compare.points import words_of
from nicbench.core.frame_size import label_of
from nicbench.core.result import Result, name_of_test

_NEVER: Final = frozenset({"run", "size"})
"""Parameters that never identify a point: the run number of imported results, and the label of a frame size."""

_LINK: Final = "link"

Kind = tuple[str, str, str]
"""Test, method and part of a result: the results that share them have points of one kind."""


@dataclass(frozen=True, slots=True)
class Point:
    """A thing that entries measure; ``parameters`` are the names and values that identify it, sorted by name."""

    test: str
    method: str
    parameters: tuple[tuple[str, Any], ...]

    @property
    def words(self) -> str:
        """The test and its circumstances as text for a reader: "throughput: with 64-byte frames"."""
        return words_of(self.test, self.method, dict(self.parameters))


@dataclass(frozen=True, slots=True)
class MatchedEntries:
    """Entries whose tests and parameters are equal where they measure the same thing.

    ``has`` maps each point to the names of the entries that have it; ``remarks`` say which tests and parameters were
    matched.
    """

    entries: tuple[Entry, ...]
    has: Mapping[Point, tuple[str, ...]]
    remarks: tuple[str, ...]

    @property
    def common(self) -> tuple[Point, ...]:
        """The points that at least two entries have."""
        return tuple(point for point, names in self.has.items() if len(names) > 1)

    @property
    def lonely(self) -> Mapping[Point, tuple[str, ...]]:
        """The points that at least one entry lacks, each with the names of the entries that have it."""
        return {point: names for point, names in self.has.items() if len(names) < len(self.entries)}


def match_points(entries: Sequence[Entry]) -> MatchedEntries:
    """Returns the entries with their tests and points matched."""
    with_tests, remarks = _match_tests(entries)
    same, said = _match_parameters(with_tests)
    has: dict[Point, list[str]] = {}
    for entry in same:
        for result in entry.results:
            names = has.setdefault(point_of(result), [])
            if entry.name not in names:
                names.append(entry.name)
    return MatchedEntries(tuple(same), {point: tuple(names) for point, names in has.items()}, (*remarks, *said))


def point_of(result: Result) -> Point:
    """Returns the point of a result whose test and parameters have been matched."""
    given = {name: value for name, value in result.parameters.items() if name not in _NEVER}
    return Point(name_of_test(result, {}), result.method, tuple(sorted(given.items())))


def _match_tests(entries: Sequence[Entry]) -> tuple[list[Entry], list[str]]:
    remarks: list[str] = []
    tests = [_tests_by_method(entry) for entry in entries]
    new: list[dict[tuple[str, str], str]] = [{} for _ in entries]
    for method in dict.fromkeys(method for found in tests for method in found):
        having = [(number, found[method]) for number, found in enumerate(tests) if method in found]
        names = dict.fromkeys(name for _, own in having for name in own)
        if len(having) < 2 or len(names) < 2 or any(len(own) > 1 for _, own in having):
            continue
        first = having[0][1][0]
        for number, (own,) in having[1:]:
            if own != first:
                new[number][method, own] = first
                one, other = entries[number].name, entries[having[0][0]].name
                laid = f"the test “{own}” of {one} is laid beside “{first}” of {other}"
                remarks.append(f"{laid}: both are of the method {method}")
    return [_rename(entry, names) for entry, names in zip(entries, new, strict=True)], remarks


def _tests_by_method(entry: Entry) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for result in entry.results:
        own = found.setdefault(result.method, [])
        if (name := name_of_test(result, {})) not in own:
            own.append(name)
    return found


def _rename(entry: Entry, names: Mapping[tuple[str, str], str]) -> Entry:
    """Renames tests in the results and the plan of an entry, and names the test in every result."""
    results = tuple(
        result.replace(test=names.get((result.method, test), test))
        for result in entry.results
        for test in (name_of_test(result, {}),)
    )
    plan = entry.plan
    if plan is not None and names:
        tests = (test.replace(name=names.get((test.method, test.name), test.name)) for test in plan.tests)
        plan = plan.replace(tests=tuple(tests))
    return replace(entry, results=results, plan=plan)


def _match_parameters(entries: Sequence[Entry]) -> tuple[list[Entry], list[str]]:
    remarks: list[str] = []
    by_entry = [_group_by_kind(entry.results) for entry in entries]
    drop: dict[Kind, frozenset[str]] = {}
    for kind in dict.fromkeys(kind for found in by_entry for kind in found):
        having = [(entry, found[kind]) for entry, found in zip(entries, by_entry, strict=True) if kind in found]
        names = [{name for result in results for name in result.parameters} - _NEVER for _, results in having]
        some = set[str]().union(*names) - names[0].intersection(*names[1:])
        if len({_link_of(results) for _, results in having}) > 1 and all(_link_of(results) for _, results in having):
            some.add(_LINK)  # each entry has one link only, which thus tells none of its points apart
        droppable = frozenset(
            name for name in some if all(_are_distinct_without(results, some) for _, results in having)
        )
        drop[kind] = droppable
        for name in sorted(some - {"mix"}):
            if name == _LINK and all(_LINK in own for own in names):
                links = "; ".join(f"{_link_of(results)} ({entry.name})" for entry, results in having[:4])
                remarks.append(f"{kind[0]}: links are not the same: {links}")
                continue
            who = [entry.name for (entry, _), own in zip(having, names, strict=True) if name not in own]
            if len(having) > 1 and name not in ("frame_bytes",):
                kept = "" if name in droppable else ", so that its points are not those of the others"
                remarks.append(
                    f"{kind[0]}: {_list_some(who)} {'does' if len(who) == 1 else 'do'} not say “{name}”{kept}"
                )
    return [replace(entry, results=tuple(_reduce(result, drop) for result in entry.results)) for entry in entries], (
        remarks
    )


def _link_of(results: Sequence[Result]) -> str | None:
    """Returns the link that all these results name; None where one names no link or they differ."""
    links = {result.parameters.get(_LINK) for result in results}
    return str(links.pop()) if len(links) == 1 and None not in links else None


def _list_some(names: Sequence[str], most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def _kind_of(result: Result) -> Kind:
    return name_of_test(result, {}), result.method, str(result.parameters.get("part"))


def _group_by_kind(results: Iterable[Result]) -> dict[Kind, list[Result]]:
    found: dict[Kind, list[Result]] = {}
    for result in results:
        found.setdefault(_kind_of(result), []).append(result)
    return found


def _are_distinct_without(results: Sequence[Result], names: Iterable[str]) -> bool:
    """Whether the points of each run can be told apart without these parameters."""
    keys = [
        (
            result.run_number,
            json.dumps(
                {name: value for name, value in result.parameters.items() if name not in _NEVER and name not in names},
                sort_keys=True,
                default=str,
            ),
        )
        for result in results
    ]
    return len(set(keys)) == len(keys)


def _reduce(result: Result, drop: Mapping[Kind, frozenset[str]]) -> Result:
    """Removes parameters that only some entries state, and makes whole numbers integers (64.0 to 64)."""
    dropped = drop.get(_kind_of(result), frozenset())
    kept = {name: _to_integer(value) for name, value in result.parameters.items() if name not in dropped}
    if label_of(kept) is not None:
        kept["size"] = str(label_of(kept))
    return result.replace(parameters=kept)


def _to_integer(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def rename_results(entries: Iterable[Entry]) -> tuple[Result, ...]:
    """Returns all results with the entry's name as their configuration.

    The id of each begins with the entry's name, and a result without a run number becomes one of run 1.
    """
    return tuple(
        result.replace(
            configuration=entry.name,
            id=f"{entry.name}/{result.run_number or 1}/{result.id}",
            run=result.run_number or 1,
        )
        for entry in entries
        for result in entry.results
    )
