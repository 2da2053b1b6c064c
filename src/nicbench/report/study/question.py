"""The question that a run answers: its author's, else one for each way of measuring in the order of the tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nicbench.core.plan import Plan
from nicbench.core.registry import find
from nicbench.core.report_options import ReportWishes
from nicbench.methods.base import Method
from nicbench.report.answer.subject import subject_of

_OPENINGS = ("The ", "This ")


def questions(
    plan: Plan | None, wishes: ReportWishes, methods: Iterable[str], compared: Sequence[str] = ()
) -> tuple[str, ...]:
    """``methods`` are those of the results, for a run whose plan was not written; ``compared`` are configurations."""
    if wishes.question:
        return (wishes.question,)
    kinds = find("nicbench.methods", Method)
    asked = dict.fromkeys([test.method for test in plan.tests] if plan else methods)
    subject = "the DUT" if len(compared) > 1 and plan and not plan.compared else subject_of(plan)
    subject = f"{subject[:1].lower()}{subject[1:]}" if subject.startswith(_OPENINGS) else subject
    made = [kinds[kind].question.format(subject=subject) for kind in asked if kind in kinds and kinds[kind].question]
    if len(compared) > 1:
        names = " and ".join((", ".join(f"“{name}”" for name in compared[:-1]), f"“{compared[-1]}”"))
        made.append(f"In what do {names} differ?")
    return tuple(made)
