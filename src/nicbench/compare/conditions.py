"""The conditions under which an entry's results were made, by which comparability is judged. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from nicbench.compare.entry import Entry, Origin
from nicbench.core.pattern import per_port_of
from nicbench.core.registry import find_one
from nicbench.core.result import Result, ResultVerdict, name_of_test
from nicbench.methods.base import Method

_TIMES: Final = frozenset({"duration", "overload_time", "recovery_time", "longest_burst"})
"""Names of the options of a test that say for how many seconds it sends."""
_TRIAL, _VALIDATION = "trial.duration", "search.validation"
_LONGEST: Final = f"the longer of {_TRIAL} and {_VALIDATION}"
_PASSED: Final = "_passed_for_s"
"""The end of the names of values that say how long a trial a rate has passed."""
_BASES: Final = ("latency_basis", "basis")
"""Names of the values that say whether a latency is one-way or round-trip."""
ONE_WAY: Final = "one way"
_NOT_SAID: Final = "as the source gives them"


@dataclass(frozen=True, slots=True)
class TestConditions:
    """The conditions of one test; ``times_s`` is by option name; what nobody states is left out."""

    __test__ = False

    test: str
    method: str
    scopes: frozenset[str]
    """What rates are based on (per port, or a sum of ports); a source that does not say it adds nothing here."""
    times_s: Mapping[str, float]
    shortest_passed_s: float | None
    """The shortest of the trials that its rates have passed, each the longest of one rate; None where none says so."""
    goals: Mapping[str, float]
    """Loss ratios by the name of the goal."""
    latencies: frozenset[str]
    """What the latencies measure, as the tool states it: one way, or half of the round trip."""
    tools: frozenset[str]
    is_imported: bool = False

    @property
    def leaves_ports_open(self) -> bool:
        """Whether its rates are published as per port, which does not say whether other ports sent at once."""
        return self.is_imported and self.scopes == {per_port_of(1)}


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of one entry; ``nominal``: the line rate is only a virtual link's claim (None if unknown)."""

    name: str
    origin: Origin
    tests: tuple[TestConditions, ...]
    verdict: ResultVerdict = ResultVerdict.VALID
    finished: bool = True
    troubles: tuple[str, ...] = ()
    nominal: bool | None = None
    link_bits_per_s: float | None = None
    bidirectional: bool | None = None
    runs: int = 1

    def of_test(self, test: str, method: str) -> TestConditions | None:
        """Returns the conditions of the test with this name and method; None if there is none."""
        return next((one for one in self.tests if (one.test, one.method) == (test, method)), None)


def conditions_of(entry: Entry) -> Conditions:
    """Collects the conditions of an entry from its results and its plan."""
    plan = entry.plan
    known = plan is not None and entry.origin is not Origin.IMPORTED
    return Conditions(
        name=entry.name,
        origin=entry.origin,
        tests=tuple(_list_tests(entry)),
        verdict=entry.verdict,
        finished=entry.finished,
        troubles=entry.troubles,
        nominal=plan.link_is_nominal if plan is not None and known else None,
        link_bits_per_s=plan.link_bits_per_s if plan is not None else None,
        bidirectional=_flag(plan.traffic.get("bidirectional")) if plan is not None and known else None,
        runs=entry.runs,
    )


def _list_tests(entry: Entry) -> Iterator[TestConditions]:
    grouped: dict[tuple[str, str], list[Result]] = {}
    for result in entry.results:
        grouped.setdefault((name_of_test(result, {}), result.method), []).append(result)
    planned = {test.name: test.options for test in (entry.plan.tests if entry.plan else ())}
    for (test, method), results in grouped.items():
        options = planned.get(test, {})
        imported = entry.origin is Origin.IMPORTED
        yield TestConditions(
            test=test,
            method=method,
            scopes=frozenset(result.scope for result in results if not result.scope.startswith(_NOT_SAID)),
            times_s=MappingProxyType({} if imported else _times(options)),
            shortest_passed_s=min(_list_passed(results), default=None),
            goals=MappingProxyType(_goal_ratios(options)),
            latencies=frozenset(_list_latencies(results, method, imported=imported)),
            tools=frozenset(_list_tools(options, results)),
            is_imported=imported,
        )


def _times(options: Mapping[str, Any]) -> dict[str, float]:
    """Returns for how long a test sends, by option. A search is as good as the longest trial that its rate must pass:
    a validation, where it has one, and else the trials that find it.
    """
    found = dict(_list_times(options))
    search = options.get("search")
    if not isinstance(search, Mapping) or _TRIAL not in found:
        return found
    validation = search.get("validation")
    longest = max(found.pop(_TRIAL), float(validation) if isinstance(validation, int | float) else 0.0)
    return {_LONGEST: longest, **found}


def _list_passed(results: Iterable[Result]) -> Iterator[float]:
    for result in results:
        for name, value in result.values.items():
            if name.endswith(_PASSED) and isinstance(value, int | float):
                yield float(value)


def _list_times(options: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, float]]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _list_times(value, f"{within}{name}.")
        elif name in _TIMES and isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{within}{name}", float(value)


def _goal_ratios(options: Mapping[str, Any]) -> dict[str, float]:
    search = options.get("search")
    goals = search.get("goals") if isinstance(search, Mapping) else None
    return (
        {str(name): float(ratio) for name, ratio in goals.items() if isinstance(ratio, int | float)}
        if isinstance(goals, Mapping)
        else {}
    )


def _list_latencies(results: Iterable[Result], method: str, *, imported: bool) -> Iterator[str]:
    kind = find_one("nicbench.methods", Method, method)
    if kind is not None and kind.times_one_way and not imported:
        yield ONE_WAY
    for result in results:
        for name in _BASES:
            value = result.values.get(name)
            if isinstance(value, str):
                yield value


def _list_tools(options: Mapping[str, Any], results: Iterable[Result]) -> Iterator[str]:
    workload = options.get("workload")
    if isinstance(workload, Mapping) and isinstance(workload.get("kind"), str):
        yield workload["kind"]
    for result in results:
        value = result.parameters.get("workload")
        if isinstance(value, str):
            yield value


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None
