"""Why two runs must not be compared: another machine, lab or DUT, other traffic, a test made otherwise.

What a check is made for may differ: kernel, drivers, firmware, settings. It is told beside the values, by ``diff``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from nicbench.model.plan import Plan
from nicbench.regressions.measured import Measured
from nicbench.store.machines import INVENTORY, machines_of

_MISSING: Final = object()


def objections(run: Measured, other: Measured) -> tuple[str, ...]:
    """A sentence for each reason; none where they may be compared."""
    return tuple(dict.fromkeys(_objections(run, other)))


def _objections(run: Measured, other: Measured) -> Iterator[str]:
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
        yield from _of_plans(plans[0][name], plans[1][name])
    yield from _of_machines(run, other)


def _of_plans(plan: Plan, other: Plan) -> Iterator[str]:
    for what, pair in {
        "lab": (_kind(plan.lab), _kind(other.lab)),
        "DUT": (_kind(plan.dut), _kind(other.dut)),
        "tester": (_kind(plan.tester), _kind(other.tester)),
        "link in bit/s": (plan.link_bits_per_s, other.link_bits_per_s),
    }.items():
        if pair[0] != pair[1]:
            yield f"another {what}: {_shown(pair[0])} instead of {_shown(pair[1])}"
    for path, now, before in _differing(plan.traffic, other.traffic, "traffic"):
        yield f"{path} is {_shown(now)} instead of {_shown(before)}"
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
        for path, now, before in _differing(test.options, before_test.options, test.name):
            # A list are points: those that both have are compared.
            if not (isinstance(now, list) and isinstance(before, list)):
                yield f"{path} is {_shown(now)} instead of {_shown(before)}"


def _of_machines(run: Measured, other: Measured) -> Iterator[str]:
    cards, before = machines_of(run.folder.path).cards, machines_of(other.folder.path).cards
    if cards and before and set(cards) != set(before):
        yield f"another card: {', '.join(sorted(cards))} instead of {', '.join(sorted(before))}"
    models, earlier = _processors(run), _processors(other)
    if models and earlier and models != earlier:
        yield f"another processor: {', '.join(sorted(models))} instead of {', '.join(sorted(earlier))}"


def _processors(run: Measured) -> set[str]:
    inventory = run.folder.read_json(INVENTORY)
    found = inventory.values() if isinstance(inventory, Mapping) else ()
    parts = [facts.get("cpu") for facts in found if isinstance(facts, Mapping)]
    models = [part.get("model") for part in parts if isinstance(part, Mapping)]
    return {model for model in models if isinstance(model, str)}


def _kind(found: Mapping[str, Any] | None) -> Any:
    return (found or {}).get("kind")


def _differing(one: Any, other: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for name in dict.fromkeys([*one, *other]):
            yield from _differing(one.get(name, _MISSING), other.get(name, _MISSING), f"{path}.{name}")
    elif one != other and _MISSING not in (one, other):  # an option that an older nicbench did not know had its default
        yield path, one, other


def _shown(value: Any) -> str:
    return "unknown" if value is None else value if isinstance(value, str) else json.dumps(value, default=str)
