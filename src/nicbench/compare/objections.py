"""What rates are of, by their scope: one port, each of several ports that send at once, or the sum of these.

Pure functions. A sum of ports is a rate of ports that sent at once; so its share is comparable with a rate per port of
as many that send at once, and not with that of one port that sends alone. A rate that others published as per port is
that of one port in one direction, and leaves open how many sent at once: it is compared with either, and the
reader learns what is not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeVar

from nicbench.compare.entries import Entry, Origin
from nicbench.core.frozen import frozen
from nicbench.core.lists import grouped
from nicbench.core.pattern import per_port_of
from nicbench.core.registry import find
from nicbench.core.result import Result, ResultVerdict, name_of_test
from nicbench.core.units import and_list, format_bits_per_s, format_duration_s
from nicbench.methods.base import Method

_SUM: Final = re.compile(r"sum of (\d+) ports")
_OF_SEVERAL: Final = re.compile(r"per port of (\d+) that send at once")


def ports_of_sum(scope: str) -> int | None:
    """Returns of how many ports a rate is the sum; None for any other rate."""
    match = _SUM.fullmatch(scope)
    return int(match[1]) if match else None


def divide_scope(scope: str) -> str:
    """Returns the scope of a rate that was divided by its ports; any other rate keeps its scope."""
    ports = ports_of_sum(scope)
    return scope if ports is None else per_port_of(ports)


def ports_at_once(scopes: Collection[str]) -> int | None:
    """Returns how many ports send at once where all rates are per port of as many; else None."""
    match = _OF_SEVERAL.fullmatch(next(iter(scopes))) if len(scopes) == 1 else None
    return int(match[1]) if match else None


def how_to_agree(every: Collection[str]) -> str | None:
    """Returns what brings rates of different scopes to one, or None where nothing does: dividing those that are sums,
    another run where a port sent alone, or both.
    """
    divided = {divide_scope(scope) for scope in every}
    has_sum = divided != set(every)
    if len(divided) == 1:
        return "--per-port divides what is a sum of ports by their number"
    alone = per_port_of(1)
    ports = ports_at_once(divided - {alone})
    if alone not in divided or ports is None:
        return None
    run = f"compare with a run whose {ports} ports send at once: `bidirectional: true` in `traffic`"
    return f"{run}; --per-port then divides the sum by their number" if has_sum else run


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


@frozen
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


@frozen
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
        """Returns the conditions of the test with this name and method; or None."""
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
    by_test = grouped(((name_of_test(result, {}), result.method), result) for result in entry.results)
    planned = {test.name: test.options for test in (entry.plan.tests if entry.plan else ())}
    for (test, method), results in by_test.items():
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
    kind = find("nicbench.methods", Method).get(method)
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


MOST_NAMED = 4
Value = TypeVar("Value", bound=Hashable)


@frozen
class Objection:
    """One reason as a sentence without full stop; where it ``blocks``, entries are compared only with ``--force``."""

    text: str
    blocks: bool
    next_step: str | None = None


def find_objections(every: Sequence[Conditions]) -> tuple[Objection, ...]:
    """Returns all objections to comparing these entries, those that block first."""
    found = dict.fromkeys((*_check_files(every), *_check_origins(every), *_check_tests(every), *_check_links(every)))
    return tuple(sorted(found, key=lambda one: not one.blocks))


def _check_files(every: Sequence[Conditions]) -> Iterator[Objection]:
    for one in every:
        if not one.finished:
            yield Objection(
                f"{list_names([one.name])} is not finished: what it would have measured is missing",
                True,
                "`nicbench resume` finishes a run",
            )
        elif one.verdict is ResultVerdict.INCOMPLETE:
            yield Objection(
                f"{list_names([one.name])} is incomplete: by its own verdict not all of it was measured", True
            )
        if one.troubles:
            more = f", and {len(one.troubles) - 2} more" if len(one.troubles) > 2 else ""
            files = f"{'; '.join(one.troubles[:2])}{more}"
            yield Objection(f"{list_names([one.name])} is not as the run left it: {files}", True)
    disturbed = [one.name for one in every if one.verdict is ResultVerdict.DISTURBED]
    if disturbed:
        yield Objection(
            f"some results of {list_names(disturbed)} were disturbed (marked *): no difference is claimed from them",
            False,
        )


def _check_origins(every: Sequence[Conditions]) -> Iterator[Objection]:
    simulated = [one.name for one in every if one.origin is Origin.SIMULATED]
    others = [one.name for one in every if one.origin is not Origin.SIMULATED]
    if simulated and others:
        yield Objection(
            f"{names_with_verb(simulated)} simulated, {list_names(others)} not: a simulation measures nothing", True
        )
    elif simulated:
        yield Objection("everything here is simulated: no frame was sent, and no machine or card was measured", False)
    imported = [one.name for one in every if one.origin is Origin.IMPORTED]
    if imported and len(imported) < len(every):
        yield Objection(
            f"{names_with_verb(imported)} not measured by nicbench: how long trials were, how often they were "
            "repeated, how the machine was set and how exact the figures are is not known beyond what the source says",
            False,
        )
    runs = _group_names(((one.name, one.runs) for one in every if one.origin is not Origin.IMPORTED), lambda one: one)
    if set(runs) == {1} and len(runs[1]) > 1:
        yield Objection(
            "there is one run of each: intervals are those of the searches, and how much a second run would differ is "
            "not in them",
            False,
        )
    elif len(runs) > 1:
        yield Objection(f"they have different numbers of runs: {_describe(runs, str)}", False)


def _check_links(every: Sequence[Conditions]) -> Iterator[Objection]:
    nominal = [one.name for one in every if one.nominal and one.origin is not Origin.SIMULATED]
    of_links = [
        one.name
        for one in every
        if one.origin is Origin.IMPORTED or (one.nominal is False and one.origin is Origin.MEASURED)
    ]
    frames = any(_sends_frames(test.method) for one in every for test in one.tests)
    if nominal and of_links and frames:
        yield Objection(
            f"{names_with_verb(nominal)} measured over virtual links, whose line rate is nominal and whose frames the "
            f"CPU copies; {names_with_verb(of_links)} not",
            True,
        )
    speeds = _group_names(((one.name, one.link_bits_per_s) for one in every), lambda one: one)
    if len(speeds) > 1:
        yield Objection(
            f"their links are not of the same speed ({_describe(speeds, format_bits_per_s)}): equal shares of the line "
            "rate are not equal rates",
            False,
        )
    ways = _group_names(((one.name, one.bidirectional) for one in every), lambda one: one)
    if len(ways) > 1 and frames:
        words = {True: "both ways at once", False: "one way"}
        yield Objection(f"frames did not go the same ways: {_describe(ways, lambda way: words[way])}", True)


def _sends_frames(method: str) -> bool:
    """Whether the method sends frames, as it declares itself; False for a method that no longer exists."""
    known = find("nicbench.methods", Method).get(method)
    return known is not None and known.measures == "frames"


def _check_tests(every: Sequence[Conditions]) -> Iterator[Objection]:
    tests = dict.fromkeys((test.test, test.method) for one in every for test in one.tests)
    for name, method in tests:
        having = [(one.name, found) for one in every if (found := one.of_test(name, method)) is not None]
        if len(having) > 1:
            yield from _check_test(f"“{name}”", having)
    methods: dict[str, set[str]] = {}
    for one in every:
        for test in one.tests:
            methods.setdefault(test.test, set()).add(test.method)
    for name, several in methods.items():
        if len(several) > 1:
            yield Objection(
                f"“{name}” is of several methods ({', '.join(sorted(several))}), which are not laid side by side",
                False,
            )


def _check_test(name: str, having: Sequence[tuple[str, TestConditions]]) -> Iterator[Objection]:
    yield from _check_scopes(name, having)
    for goal in dict.fromkeys(goal for _, test in having for goal in test.goals):
        ratios = _group_names(having, lambda test, goal=goal: test.goals.get(goal))  # type: ignore[misc]
        if len(ratios) > 1:
            yield Objection(
                f"{goal} of {name} allows other shares of lost frames: {_describe(ratios, _percent)}",
                True,
            )
    for option in dict.fromkeys(option for _, test in having for option in test.times_s):
        times = _group_names(having, lambda test, option=option: test.times_s.get(option))  # type: ignore[misc]
        if len(times) > 1:
            yield Objection(
                f"trials of {name} do not last equally long ({option}): {_describe(times, format_duration_s)}",
                True,
            )
    passed = _group_names(having, lambda test: test.shortest_passed_s)
    if len(passed) > 1:
        yield Objection(
            f"rates of {name} have not all passed equally long trials: {_describe(passed, _at_least_s)}",
            False,
        )
    ways = _group_names(having, lambda test: test.latencies or None)
    if len(ways) > 1:
        yield Objection(
            f"latencies of {name} are not of the same way: {_describe(ways, _join_sorted)}",
            True,
        )
    tools = _group_names(having, lambda test: test.tools or None)
    if len(tools) > 1:
        yield Objection(
            f"{name} was not measured by the same tool: {_describe(tools, _join_sorted)}",
            False,
        )


def _check_scopes(name: str, having: Sequence[tuple[str, TestConditions]]) -> Iterator[Objection]:
    scopes = _group_names(having, lambda test: test.scopes or None)
    plain = [who for who, test in having if test.leaves_ports_open]
    others = _group_names(having, lambda test: None if test.leaves_ports_open else test.scopes or None)
    ports = ports_at_once(frozenset[str]().union(*others))
    if plain and ports:
        verb = "has" if len(plain) == 1 else "have"
        yield Objection(
            f"rates of {name} are compared as frames of one port in one direction: {list_names(plain)} {verb} them per "
            f"port, without a word on whether other ports sent at once; of the others {ports} ports did, which is more "
            "work for the device than one port alone",
            False,
        )
    elif len(scopes) > 1:
        yield Objection(
            f"rates of {name} are not on the same basis: {_describe(scopes, _join_sorted)}",
            True,
            how_to_agree(frozenset[str]().union(*(others if plain and others else scopes))),
        )
    unsaid = [who for who, test in having if not test.scopes]
    if unsaid and len(unsaid) < len(having):
        does = "does" if len(unsaid) == 1 else "do"
        yield Objection(
            f"{list_names(unsaid)} {does} not say whether rates of {name} are per port or a sum of ports",
            False,
        )


Subject = TypeVar("Subject")


def _group_names(every: Iterable[tuple[str, Subject]], of: Callable[[Subject], Value | None]) -> dict[Value, list[str]]:
    """Groups the names by the value that ``of`` gives for their subjects; subjects without a value are left out."""
    found: dict[Value, list[str]] = {}
    for name, subject in every:
        value = of(subject)
        if value is not None:
            found.setdefault(value, []).append(name)
    return found


def _describe(groups: dict[Value, list[str]], words: Callable[[Value], str]) -> str:
    return "; ".join(f"{words(value)} ({list_names(names)})" for value, names in groups.items())


def _join_sorted(words: Iterable[str]) -> str:
    return " and ".join(sorted(words))


def _at_least_s(duration_s: float) -> str:
    return f"at least {format_duration_s(duration_s)}"


def _percent(ratio: float) -> str:
    return f"{100 * ratio:g} %"


def names_with_verb(names: Sequence[str]) -> str:
    """Returns the names with their verb: "“A” was", "“A” and “B” were"."""
    return f"{list_names(names)} {'was' if len(names) == 1 else 'were'}"


def list_names(names: Sequence[str]) -> str:
    """Returns the first few names in quotation marks, and how many more there are."""
    shown = [f"“{name}”" for name in names[:MOST_NAMED]]
    more = len(names) - MOST_NAMED
    if more > 0:
        return f"{', '.join(shown)} and {more} more"
    return and_list(shown)
