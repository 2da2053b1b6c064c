"""The answer of one run: its first sentence, the further ones, what its verdict means and what to make of it."""

from __future__ import annotations

from collections.abc import Sequence

from nicbench.core.plan import Plan
from nicbench.core.result import Bounded, Result, ResultVerdict, Spread, Summary
from nicbench.core.turn import DEFAULT
from nicbench.report.answer.sentences import answers_of, brief_rate, largest_sentence, statement_of, subject_in
from nicbench.report.section import Section

_MOST_SENTENCES = 4


def headline(sections: Sequence[Section], summary: Summary, plan: Plan | None) -> str:
    """Returns the answer: the rate of the smallest frames, which are the hardest; the latency where only that was
    measured; or else what the first section says.
    """
    ordered = in_order(sections)
    first = ordered[0] if ordered else None
    subject = subject_in(plan, first.configuration if first else DEFAULT)
    if first is not None and first.table.statement is not None:
        if (said := statement_of(first)) is not None or any(row.result.trials for row in first.rows):
            return f"{subject} {first.table.statement.alone}. {said or ''}".strip()
    elif first is not None and (said_of_first := answers_of(first, subject)):
        return said_of_first[0]
    if summary.results and all(map(_is_empty, summary.results)):
        return "Nothing was measured: no tool gave a figure."
    lacking = [result for result in summary.results if _is_of_rounds(result) and not _is_complete(result)]
    if lacking:
        return f"{subject} was not measured as planned: {len(lacking)} of {len(summary.results)} results have no value."
    if summary.results:
        were = "measured" if summary.imported is None else "imported"
        return f"{len(summary.results)} results were {were}; they are listed below."
    if summary.imported is not None:
        recorded = [each.host for each in plan.monitors] if plan else []
        return f"No results, but what {' and '.join(recorded[:5])} did was recorded: it is shown below."
    return "Nothing was measured: the run ended before its first result."


def known_devices(summary: Summary) -> dict[str, str]:
    """Returns the configurations whose device has a known rate, each with a sentence on whether it was found."""
    checks: dict[str, list[str]] = {}
    for result in summary.counted:
        if isinstance(check := result.values.get("self_check"), str):
            checks.setdefault(result.configuration, []).append(check)
    return {name: f"“{name}” is a device of known rate: {'; '.join(said)}." for name, said in checks.items()}


def in_order(sections: Sequence[Section]) -> list[Section]:
    """Returns the sections in order: searched rates first, then statements about frames at a load, then all others."""
    return sorted(
        sections, key=lambda section: (section.table.rates is None, not section.table.apart_by, section.table.editors)
    )


def details(sections: Sequence[Section]) -> tuple[str, ...]:
    """Returns the further sentences: the largest frames, the latency, and what other methods found."""
    ordered = in_order(sections)
    if not ordered:
        return ()
    first = ordered[0]
    sentences: list[str | None] = []
    if first.table.rates is not None or first.table.apart_by:
        sentences.append(largest_sentence(first) if first.table.rates is not None and len(first.rows) > 1 else None)
        stating = next((section for section in ordered if section.table.apart_by), None)
        if first.table.rates is not None and stating is not None:
            sentences += answers_of(stating, "It")[:1]
        others = (each for each in ordered if each.table.rates is None and not each.table.apart_by)
        sentences += [_sentence_of_other(section, first.configuration) for section in others if section.sentence]
    elif _is_of_rounds(first.rows[0].result):
        sentences += _more_of_rounds(ordered)
    return tuple(sentence for sentence in sentences if sentence)


def brief(sections: Sequence[Section]) -> str | None:
    """Returns a few words for a list of runs: the first rate, or else what the first section says."""
    ordered = in_order(sections)
    searched = next((section for section in ordered if section.table.rates is not None), None)
    if searched is not None:
        return brief_rate(searched)
    return ((ordered[0].claim or "").partition(", and ")[0] or None) if ordered else None


def _more_of_rounds(sections: Sequence[Section]) -> list[str]:
    """Returns what the other rows of the first section say, and what the first section of each other test says."""
    first = sections[0]
    rows = [f"It {text}." for row in first.rows[1:] if first.table.grid is None and (text := first.sentence_of(row))]
    tests = {section.test: section for section in reversed(sections)}
    others = [each for each in sections if each.test != first.test and tests[each.test] is each]
    return [*rows[: _MOST_SENTENCES - 1], *(f"It {each.sentence}." for each in others if each.sentence)]


def _sentence_of_other(section: Section, first: str) -> str:
    """Returns the sentence of a section; it names the configuration where that is not the one that the
    answer is about.
    """
    subject = "It" if section.configuration == first else f"“{section.configuration}”"
    return f"{subject} {section.sentence}."


def _is_of_rounds(result: Result) -> bool:
    return result.measured_by == "round"


def _is_complete(result: Result) -> bool:
    return result.verdict is not ResultVerdict.INCOMPLETE


def _is_empty(result: Result) -> bool:
    """Returns whether a result of rounds has not a single number."""
    numbers = (value for value in result.values.values() if isinstance(value, Bounded | Spread | int | float))
    return _is_of_rounds(result) and result.verdict is ResultVerdict.INCOMPLETE and next(numbers, None) is None


_MOST_FAILURES = 3
"""The most failures that the first page names; the rounds further below have all of them."""


def verdict_text(
    summary: Summary,
    plan: Plan | None,
    run_id: str,
    *,
    complete: bool = False,
    failures: Sequence[str] = (),
    by_rounds: bool = False,
) -> str:
    """Says what the verdict means, and what to make of it. A ``complete`` run may have fewer results than were planned.
    ``failures`` are those of tools; ``by_rounds`` says that tools measured the results in rounds.
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
    contradicted = sum(1 for result in summary.counted if result.contradicted_by)
    if summary.verdict.is_reliable:
        return "No result rests on losses that the tester may have caused."
    if summary.verdict is ResultVerdict.DISTURBED:
        why = []
        if disturbed > contradicted:
            what = "use at least one trial that other work on the machine disturbed, even after repeats"
            why.append(f"{disturbed - contradicted} of {len(summary.counted)} results {what}.")
        if contradicted:
            why.append(f"{contradicted} of {len(summary.counted)} results are contradicted by a later trial.")
        return f"{' '.join(why)} They are marked *: treat their numbers as indications, or repeat the run."
    marked = f" {disturbed} of {len(summary.counted)} are disturbed." if disturbed else ""
    planned = _count_planned(plan) if plan else 0
    if not complete and (not plan or total < planned):
        most = "at most " if plan and plan.runs.grows else ""
        counted = f"{total} of {most}{planned} planned results are here" if planned else f"{total} results are here"
        ended = f"The run ended before everything was measured: {counted}."
        return f"{ended}{marked} To go on where it stopped: nicbench resume {run_id}"
    empty = [result for result in summary.counted if result.verdict is ResultVerdict.INCOMPLETE]
    if not empty:
        return f"Everything planned was measured, but the run ended before its summary.{marked}"
    without = f"{len(empty)} of {len(summary.counted)} results have no value{_reasons(empty)}"
    return f"Everything planned was tried. {without}.{marked}"


def _verdict_of_rounds(summary: Summary, run_id: str, failures: Sequence[str], *, complete: bool) -> str:
    """Says what the verdict of a run of rounds means, and repeats every failure of a tool in the tool's own words."""
    total = len(summary.counted)
    doubtful = [result for result in summary.counted if result.verdict is not ResultVerdict.VALID]
    if summary.verdict is ResultVerdict.VALID:
        return "In every round behind these results every tool did its work and nothing disturbed the machines."
    said = []
    if not complete:
        said.append(f"The run ended before everything was measured; {total} results are here.")
    if doubtful:
        said.append(
            f"{len(doubtful)} of {total} results use a round in which a tool failed or something disturbed "
            "a machine, even after repeats. They are marked *."
        )
    shown = failures[:_MOST_FAILURES]
    said += [f"A tool failed: {text}." for text in shown]
    if len(failures) > len(shown):
        said.append(f"{len(failures) - len(shown)} more failures are listed with the rounds below.")
    if not complete:
        said.append(f"To go on where it stopped: nicbench resume {run_id}")
    return " ".join(said)


def _count_planned(plan: Plan) -> int:
    """Returns the number of planned results, over all turns."""
    return sum(turn.points for turn in plan.turns) or sum(test.points for test in plan.tests)


def _reasons(results: Sequence[Result]) -> str:
    """Returns why results have no value: each reason once, as the results give it."""
    reasons = dict.fromkeys(
        value.reason_null
        for result in results
        for value in result.values.values()
        if isinstance(value, Bounded) and value.reason_null
    )
    return f" ({'; '.join(reasons)})" if reasons else ""
