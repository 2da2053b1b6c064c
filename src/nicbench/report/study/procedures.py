"""How each test was made, in plain words, with the options that it had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nicbench.core.plan import PlannedTest
from nicbench.core.registry import find
from nicbench.methods.base import Method
from nicbench.report import disclosure
from nicbench.report.declared import Shapes, method_shapes
from nicbench.report.facts import label_of
from nicbench.report.model import Report


@dataclass(frozen=True, slots=True)
class Procedure:
    """One test; ``parameters`` are its options, as they were resolved."""

    title: str
    text: str
    parameters: Mapping[str, Any]
    shapes: Shapes
    """What the method declares of its options."""


def procedures(report: Report) -> tuple[Procedure, ...]:
    """One for each test of the plan; of configurations whose tests have other options, one for each."""
    return tuple(_procedures(report))


def _procedures(report: Report) -> Iterator[Procedure]:
    if report.plan is None:
        return
    for names, plan in disclosure.of_configurations(report.plan, "tests"):
        for test in plan.tests:
            options = disclosure.in_bits(test.options) if report.endpoints else test.options
            whose = f" ({names})" if names else ""
            title = f"Test “{test.name}”{whose}"
            parameters = {"method": test.method, **disclosure.asked(options)}
            yield Procedure(title, text_of(test), parameters, method_shapes(test.method))


def text_of(test: PlannedTest) -> str:
    """As the plan has it; plans of before 2026-11 have one sentence, and the method says the rest."""
    if test.procedure:
        return test.procedure
    known = find("nicbench.methods", Method).get(test.method)
    return known.procedure() if known else test.description or label_of(test.method)
