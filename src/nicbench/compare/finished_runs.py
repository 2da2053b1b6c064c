"""What a check compares: finished runs, their results by their points, and why two runs must not be compared."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from nicbench.compare.points import Point, point_of
from nicbench.core.plan import Plan
from nicbench.core.result import Result, Summary
from nicbench.core.turn import DEFAULT
from nicbench.store.folder import RunFolder
from nicbench.store.listing import INVENTORY, machines_of


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A finished run."""

    folder: RunFolder
    summary: Summary
    plan: Plan | None

    @property
    def name(self) -> str:
        """The id of the run."""
        return self.folder.run_id


class ConfiguredPoint(NamedTuple):
    """What two results must have in common to measure the same thing: a configuration and a point of measurement."""

    configuration: str
    point: Point

    @property
    def words(self) -> str:
        """The test and its circumstances as text for a reader: "throughput (nat): with 64-byte frames"."""
        if self.configuration == DEFAULT:
            return self.point.words
        return replace(self.point, test=f"{self.point.test} ({self.configuration})").words


def require_finished(folder: RunFolder) -> FinishedRun | str:
    """Returns the run, or a sentence why it cannot be compared; HostError where its files are damaged."""
    summary = folder.summary()
    if summary is None or not folder.finished:
        return f"{folder.run_id} is not finished"
    return FinishedRun(folder, summary, folder.plan())


def group_by_point(runs: Sequence[FinishedRun]) -> dict[ConfiguredPoint, list[Result]]:
    """Groups the results of all these runs that count (no warm-up) by configuration and point, in order."""
    found: dict[ConfiguredPoint, list[Result]] = {}
    for run in runs:
        for result in run.summary.counted:
            found.setdefault(ConfiguredPoint(result.configuration, point_of(result)), []).append(result)
    return found


_MISSING: Final = object()


def find_objections(run: FinishedRun, other: FinishedRun) -> tuple[str, ...]:
    """Returns a sentence for each reason why two runs must not be compared; empty where they may be."""
    return tuple(dict.fromkeys(_list_objections(run, other)))


def _list_objections(run: FinishedRun, other: FinishedRun) -> Iterator[str]:
    imported = [one for one in (run, other) if one.folder.is_imported]
    if imported:
        if len(imported) == 1:
            yield f"{imported[0].name} was imported, not measured by nicbench"
        return
    plans = [
        {plan.configuration: plan for plan in one.plan.each} if one.plan is not None else {} for one in (run, other)
    ]
    for one, plan in zip((run, other), plans, strict=True):
        if not plan:
            yield f"{one.name} has no plan.json: how it was made is not known"
    both = [name for name in plans[0] if name in plans[1]]
    if plans[0] and plans[1] and not both:
        yield f"they have no configuration in common: {', '.join(plans[0])}; {', '.join(plans[1])}"
    for name in both:
        yield from _compare_plans(plans[0][name], plans[1][name])
    yield from _compare_machines(run, other)


def _compare_plans(plan: Plan, other: Plan) -> Iterator[str]:
    for what, pair in {
        "lab": (_kind(plan.lab), _kind(other.lab)),
        "DUT": (_kind(plan.dut), _kind(other.dut)),
        "tester": (_kind(plan.tester), _kind(other.tester)),
        "link in bit/s": (plan.link_bits_per_s, other.link_bits_per_s),
    }.items():
        if pair[0] != pair[1]:
            yield f"another {what}: {_words_of(pair[0])} instead of {_words_of(pair[1])}"
    for path, now, before in _find_differences(plan.traffic, other.traffic, "traffic"):
        yield f"{path} is {_words_of(now)} instead of {_words_of(before)}"
    tests = {test.name: test for test in other.tests}
    if not any(test.name in tests for test in plan.tests):
        yield "they have no test in common"
    for test in plan.tests:
        before_test = tests.get(test.name)
        if before_test is None:
            continue
        if test.method != before_test.method:
            yield f"the test {test.name} is of the method {test.method} instead of {before_test.method}"
            continue
        for path, now, before in _find_differences(test.options, before_test.options, test.name):
            # A list holds points; those that both runs have are compared.
            if not (isinstance(now, list) and isinstance(before, list)):
                yield f"{path} is {_words_of(now)} instead of {_words_of(before)}"


def _compare_machines(run: FinishedRun, other: FinishedRun) -> Iterator[str]:
    cards, before = machines_of(run.folder.path).cards, machines_of(other.folder.path).cards
    if cards and before and set(cards) != set(before):
        yield f"another card: {', '.join(sorted(cards))} instead of {', '.join(sorted(before))}"
    models, earlier = _processors(run), _processors(other)
    if models and earlier and models != earlier:
        yield f"another processor: {', '.join(sorted(models))} instead of {', '.join(sorted(earlier))}"


def _processors(run: FinishedRun) -> set[str]:
    inventory = run.folder.read_json(INVENTORY)
    found = inventory.values() if isinstance(inventory, Mapping) else ()
    parts = [facts.get("cpu") for facts in found if isinstance(facts, Mapping)]
    models = [part.get("model") for part in parts if isinstance(part, Mapping)]
    return {model for model in models if isinstance(model, str)}


def _kind(found: Mapping[str, Any] | None) -> Any:
    return (found or {}).get("kind")


def _find_differences(one: Any, other: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for name in dict.fromkeys([*one, *other]):
            yield from _find_differences(one.get(name, _MISSING), other.get(name, _MISSING), f"{path}.{name}")
    elif one != other and _MISSING not in (one, other):  # an option unknown to an older nicbench had its default
        yield path, one, other


def _words_of(value: Any) -> str:
    return "unknown" if value is None else value if isinstance(value, str) else json.dumps(value, default=str)
