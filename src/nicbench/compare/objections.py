"""Reasons why entries must not be compared, and facts that a reader must know when they are compared.

Everything here is a pure function. An objection *blocks* where it changes the meaning of a number: one rate allows loss
and the other does not, one is of a port and the other of two, one passed a trial of 1 s and the other one of 60 s, one
is of a network card and the other of a simulation. An objection that does not block is only reported, because it may be
the very thing that is compared: cards, kernels, settings, links.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from nicbench.compare.conditions import Conditions, TestConditions
from nicbench.compare.entry import Origin
from nicbench.compare.scopes import how_to_agree, ports_at_once
from nicbench.core.registry import find_one
from nicbench.core.result import ResultVerdict
from nicbench.core.units import format_bits_per_s, format_duration_s
from nicbench.methods.base import Method

MOST_NAMED = 4
Value = TypeVar("Value", bound=Hashable)


@dataclass(frozen=True, slots=True)
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
    known = find_one("nicbench.methods", Method, method)
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
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
