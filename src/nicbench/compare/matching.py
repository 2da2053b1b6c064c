"""Finds the results of several entries that measure the same thing: matches their tests and their points' parameters.

Tests of one method are matched by their names; where each entry has only one test of the method, these are matched
whatever their names. A parameter that only some entries state (for example a published table's name for its link) does
not keep points apart, unless it is needed to distinguish the points of an entry.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from nicbench import __version__
from nicbench.compare.entries import Entry
from nicbench.compare.objections import divide_scope, list_names, ports_at_once, ports_of_sum
from nicbench.compare.points import seed_of, words_of
from nicbench.core.frame_size import label_of
from nicbench.core.frozen import frozen
from nicbench.core.lists import grouped
from nicbench.core.pattern import per_port_of
from nicbench.core.plan import Plan, PlannedTest
from nicbench.core.registry import find
from nicbench.core.result import Bounded, Result, ResultVerdict, Summary, Value, name_of_test
from nicbench.core.turn import ONCE, Runs
from nicbench.methods.base import Method, main_values
from nicbench.stats.runs import count_runs, summarise_over_runs

_NEVER: Final = frozenset({"run", "size"})
"""Parameters that never identify a point: the run number of imported results, and the label of a frame size."""

_OF_SETUP: Final = {"link": "links", "load_of": "what 100 % is"}
"""Parameters that name the setup: where each entry has one value, they do not keep points apart."""

Kind = tuple[str, str, str]
"""Test, method and part of a result: the results that share them have points of one kind."""


@frozen
class Point:
    """A thing that entries measure; ``parameters`` are the names and values that identify it, sorted by name."""

    test: str
    method: str
    parameters: tuple[tuple[str, Any], ...]

    @property
    def words(self) -> str:
        """The test and its circumstances as text for a reader: "throughput: with 64-byte frames"."""
        return words_of(self.test, self.method, dict(self.parameters))


@frozen
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
    remarks = []
    by_entry = [_group_by_kind(entry.results) for entry in entries]
    drop = {}
    for kind in dict.fromkeys(kind for found in by_entry for kind in found):
        having = [(entry, found[kind]) for entry, found in zip(entries, by_entry, strict=True) if kind in found]
        names = [{name for result in results for name in result.parameters} - _NEVER for _, results in having]
        some = set[str]().union(*names) - names[0].intersection(*names[1:])
        for name in _OF_SETUP:
            found = {_only_value(name, results) for _, results in having}
            if len(found) > 1 and None not in found:
                some.add(name)
        droppable = frozenset(
            name for name in some if all(_are_distinct_without(results, some) for _, results in having)
        )
        drop[kind] = droppable
        for name in sorted(some - {"mix"}):
            if name in _OF_SETUP and all(name in own for own in names):
                said = "; ".join(f"{_only_value(name, results)} ({entry.name})" for entry, results in having[:4])
                verb = "are" if name == "link" else "is"
                remarks.append(f"{kind[0]}: {_OF_SETUP[name]} {verb} not the same: {said}")
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


def _only_value(name: str, results: Sequence[Result]) -> str | None:
    """Returns the value of a parameter that all these results have; None where one lacks it, or they differ."""
    found = {result.parameters.get(name) for result in results}
    return str(found.pop()) if len(found) == 1 and None not in found else None


def _list_some(names: Sequence[str], most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def _kind_of(result: Result) -> Kind:
    return name_of_test(result, {}), result.method, str(result.parameters.get("part"))


def _group_by_kind(results: Iterable[Result]) -> dict[Kind, list[Result]]:
    found = grouped((_kind_of(result), result) for result in results)
    return found


def _are_distinct_without(results: Sequence[Result], names: Iterable[str]) -> bool:
    """Whether the points of each run remain distinct without these parameters."""
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


def summarise_points(results: Sequence[Result], asked: Runs, run_id: str) -> tuple[Result, ...]:
    """Summarises each point over all runs of its configuration, with statistics of its main values."""
    return _restate(summarise_over_runs(results, asked, main_values, seed_of(run_id)))


def unfinished_summary(results: Sequence[Result], plan: Plan | None, run_id: str, title: str) -> Summary:
    """Returns an ``incomplete`` summary of the results so far, for a run that is still going or ended without one."""
    asked = plan.runs if plan else ONCE
    over = summarise_points(results, asked, run_id)
    return Summary(
        title=title,
        verdict=ResultVerdict.INCOMPLETE,
        results=tuple(results),
        configurations=plan.compared if plan else (),
        over_runs=over,
        runs=count_runs(asked, results, over, complete=False),
    )


_RATES: Final = ("_frames_per_s", "_bits_per_s")


def divide_by_ports(entries: Iterable[Entry]) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    """Divides rates that are sums of ports by the number of ports; returns the entries and sentences on the changes."""
    found, changed = [], []
    for entry in entries:
        results = tuple(_divide(result) for result in entry.results)
        if results != entry.results:
            changed.append(entry.name)
        found.append(replace(entry, results=results))
    return tuple(found), _explain_division(changed)


def _explain_division(names: Sequence[str]) -> tuple[str, ...]:
    if not names:
        return ()
    said = (
        f"rates of {list_names(names)} are printed as the sum of ports and were divided by their number (--per-port): "
        "all ports are taken to have sent at once, and to have carried as much"
    )
    return (said,)


def _divide(result: Result) -> Result:
    ports = ports_of_sum(result.scope)
    if ports is None:
        return result
    values = {name: _share(value, ports) if name.endswith(_RATES) else value for name, value in result.values.items()}
    imported = result.imported
    if imported is not None:  # the printed digits are not those of the divided rates
        printed = {name: one for name, one in imported.printed.items() if not name.endswith(_RATES)}
        imported = imported.replace(printed=printed)
    return result.replace(values=values, scope=divide_scope(result.scope), imported=imported)


def _share(value: Value, ports: int) -> Value:
    if isinstance(value, Bounded):
        bounds = (value.value, value.lower, value.upper)
        middle, lower, upper = (None if bound is None else bound / ports for bound in bounds)
        return value.replace(value=middle, lower=lower, upper=upper)
    return value / ports if isinstance(value, int | float) and not isinstance(value, bool) else value


def merge_summaries(found: MatchedEntries, title: str) -> Summary:
    """Merges the entries' results; points that only one entry has are left out (see ``MatchedEntries.lonely``)."""
    entries = tuple(
        replace(entry, results=tuple(one for one in entry.results if len(found.has[point_of(one)]) > 1))
        for entry in found.entries
    )
    results = rename_results(entries)
    names = tuple(entry.name for entry in entries)
    verdicts = [entry.verdict for entry in entries]
    return Summary(
        title=title,
        verdict=max(verdicts, key=list(ResultVerdict).index),
        results=results,
        configurations=names,
        over_runs=_summarise_entries(results, names) if any(entry.runs > 1 for entry in entries) else (),
    )


def _summarise_entries(results: Sequence[Result], names: Iterable[str]) -> tuple[Result, ...]:
    """Returns medians and ranges for each entry that has several runs, and the plain results of every other entry."""
    found: list[Result] = []
    for name in names:
        own = tuple(result for result in results if result.configuration == name)
        found += _restate(summarise_over_runs(own)) or own
    return tuple(found)


def unify_scopes(summary: Summary) -> Summary:
    """Gives each test one scope. Where entries differ in it, it names all of them: with ``--force`` only, or where
    rates are published as per port and it is not said how many ports sent at once.
    """
    scopes: dict[tuple[str, str], dict[tuple[str, bool], None]] = {}
    for result in summary.results:
        said = (result.scope, result.imported is not None)
        scopes.setdefault((name_of_test(result, {}), result.method), {})[said] = None

    def plain(results: tuple[Result, ...]) -> tuple[Result, ...]:
        return tuple(
            result.replace(scope=_scope_of_all(scopes[name_of_test(result, {}), result.method])) for result in results
        )

    return summary.replace(results=plain(summary.results), over_runs=plain(summary.over_runs))


def _scope_of_all(said: Collection[tuple[str, bool]]) -> str:
    """Returns one scope for those of all entries, each with whether it was imported."""
    found = dict.fromkeys(scope for scope, _ in said)
    if len(found) == 1:
        return next(iter(found))
    known = {scope for scope, is_imported in said if not (is_imported and scope == per_port_of(1))}
    ports = ports_at_once(known)
    if ports:
        return f"per port (of {ports} that send at once; of published ones it is not said how many did)"
    return f"not all on the same basis ({'; '.join(found)})"


def plan_of_all(entries: Sequence[Entry], title: str) -> Plan:
    """Makes the plan that tables read: loss ratios on which all entries agree, and whether the line rate is nominal."""
    plans = [entry.plan for entry in entries if entry.plan is not None]
    goals: dict[tuple[str, str], dict[str, set[float]]] = {}
    for plan in plans:
        for test in plan.tests:
            search = test.options.get("search")
            own = goals.setdefault((test.name, test.method), {})
            for name, ratio in (search.get("goals") or {}).items() if isinstance(search, dict) else ():
                own.setdefault(str(name), set()).add(float(ratio))
    nominal = {plan.link_is_nominal for plan in plans}
    links = {plan.link_bits_per_s for plan in plans}
    return Plan(
        run_id="",
        title=title,
        nicbench_version=__version__,
        seed=0,
        link_is_nominal=nominal == {True},
        link_bits_per_s=links.pop() if len(links) == 1 else None,
        tests=tuple(
            PlannedTest(
                name=name,
                method=method,
                description="",
                options={"search": {"goals": {goal: min(ratios) for goal, ratios in own.items() if len(ratios) == 1}}},
                points=0,
                estimate_s=0.0,
            )
            for (name, method), own in goals.items()
        ),
    )


def _restate(results: Iterable[Result]) -> tuple[Result, ...]:
    """Returns results over several runs, with the texts that their methods build from the medians."""
    methods = find("nicbench.methods", Method)
    return tuple(
        result.replace(values=methods[result.method].restate_values(result.values))
        if result.method in methods
        else result
        for result in results
    )
