"""What the verdict of a run means, and what to make of it."""

from __future__ import annotations

from collections.abc import Sequence

from nicbench.core.plan import Plan
from nicbench.core.result import Bounded, Result, ResultVerdict, Summary

_MOST_FAILURES = 3
"""On the first page; the rounds below have all of them."""


def verdict_text(
    summary: Summary,
    plan: Plan | None,
    run_id: str,
    *,
    complete: bool = False,
    failures: Sequence[str] = (),
    by_rounds: bool = False,
) -> str:
    """What the verdict means, and what to make of it. A ``complete`` run may have fewer results than were planned.

    ``failures`` are of tools, and ``by_rounds`` says that it was they who measured.
    """
    if by_rounds and summary.imported is None:
        return _verdict_of_rounds(summary, run_id, failures, complete=complete)
    total = len(summary.results)
    if summary.imported is not None:
        return (
            "Imported: not measured by nicbench, which only looked for figures that exceed the line rate or contradict "
            "one another."
        )
    disturbed = sum(1 for result in summary.counted if result.verdict is ResultVerdict.DISTURBED)
    if summary.verdict is ResultVerdict.VALID:
        return "Every result rests on trials in which the tester kept its pace and nothing disturbed it."
    if summary.verdict is ResultVerdict.DISTURBED:
        return (
            f"{disturbed} of {len(summary.counted)} results rest on at least one trial that other work on the machine "
            "disturbed, even after repeats. They are marked; read their numbers as indications, or repeat the run on a "
            "quieter machine."
        )
    marked = f" {disturbed} of {total} are disturbed." if disturbed else ""
    planned = _planned(plan) if plan else 0
    if not complete and (not plan or total < planned):
        most = "at most " if plan and plan.runs.grows else ""
        counted = f"{total} of {most}{planned} planned results are here" if planned else f"{total} results are here"
        ended = f"The run ended before everything was measured: {counted}."
        return f"{ended}{marked} To go on where it stopped: nicbench resume {run_id}"
    empty = [result for result in summary.counted if result.verdict is ResultVerdict.INCOMPLETE]
    if not empty:
        return f"Everything planned was measured, but the run ended before it was summed up.{marked}"
    without = f"{len(empty)} of {len(summary.counted)} results have no value{_reasons(empty)}"
    return f"Everything planned was tried. {without}.{marked}"


def _verdict_of_rounds(summary: Summary, run_id: str, failures: Sequence[str], *, complete: bool) -> str:
    """Every failure of a tool is told here, in its own words."""
    total = len(summary.results)
    doubtful = [result for result in summary.results if result.verdict is not ResultVerdict.VALID]
    if summary.verdict is ResultVerdict.VALID:
        return "Every result rests on rounds in which every tool did its work and nothing disturbed the machines."
    said = []
    if not complete:
        said.append(f"The run ended before everything was measured; {total} results are here.")
    if doubtful:
        said.append(
            f"{len(doubtful)} of {total} results rest on a round in which a tool failed or something disturbed a "
            "machine, even after repeats; they are marked."
        )
    shown = failures[:_MOST_FAILURES]
    said += [f"A tool failed: {text}." for text in shown]
    if len(failures) > len(shown):
        said.append(f"{len(failures) - len(shown)} more failures are among the rounds below.")
    if not complete:
        said.append(f"To go on where it stopped: nicbench resume {run_id}")
    return " ".join(said)


def _planned(plan: Plan) -> int:
    """How many results there should be; of all turns."""
    return sum(turn.points for turn in plan.turns) or sum(test.points for test in plan.tests)


def _reasons(results: Sequence[Result]) -> str:
    """Why results have no value, each reason once, as the results give it."""
    reasons = dict.fromkeys(
        value.reason_null
        for result in results
        for value in result.values.values()
        if isinstance(value, Bounded) and value.reason_null
    )
    return f" ({'; '.join(reasons)})" if reasons else ""
