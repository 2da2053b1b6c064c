"""The answer in words: one sentence that a stranger understands; its numbers are the results' and nothing beyond."""

from __future__ import annotations

from collections.abc import Sequence

from nicbench.model.plan import Plan
from nicbench.model.rate import PASSES_NOTHING, Bounded, LimitedBy
from nicbench.model.result import Result, ResultVerdict, Summary
from nicbench.model.spread import Spread
from nicbench.model.turn import DEFAULT
from nicbench.report.model import Goal, LatencyTable, ThroughputRow, ThroughputTable
from nicbench.report.numbers import (
    basis_words,
    bounds_decimals,
    gigabits,
    interval,
    microseconds,
    mpps,
    only_below,
    share,
)
from nicbench.report.tables import Section

_MOST_SENTENCES = 4
_MOST_FAILURES = 3
"""On the first page; the rounds below have all of them."""
_GAP = "\u00a0"  # a number and its unit stay on one line
_LIMIT_CLAUSES = {
    LimitedBy.DUT: "limited by the device under test (DUT)",
    LimitedBy.TESTER: "limited by the tester: the DUT may do more",
    LimitedBy.LINE_RATE: "limited by the line rate",
}
_KINDS = {"kernel-forward": "kernel IP forwarding", "policer": "policer", "bridge": "Linux bridge"}


def headline(
    throughput: Sequence[ThroughputTable],
    latency: Sequence[LatencyTable],
    summary: Summary,
    plan: Plan | None,
    sections: Sequence[Section] = (),
) -> str:
    """The answer: the smallest frames, the hardest; or the latency, where only that was measured."""
    first = _first_configuration(throughput, latency, sections)
    subject = subject_in(plan, first)
    if throughput and throughput[0].rows:
        return _throughput_sentence(subject, throughput[0])
    if latency and summary.imported is not None:
        return _imported_latency_sentence(subject, latency[0]) or f"{len(summary.results)} results were imported."
    if latency and any(row.frames for table in latency for row in table.rows):
        return f"{subject} was measured for latency only. {_latency_sentence(latency[0]) or ''}".strip()
    if sections and sections[0].sentence:
        return f"{subject} {sections[0].sentence}."
    if summary.results and all(map(_is_empty, summary.results)):
        return "Nothing was measured: no tool gave a figure."
    lacking = [result for result in summary.results if _is_of_rounds(result) and not _is_complete(result)]
    if lacking:
        return f"{subject} was not measured as planned: {len(lacking)} of {len(summary.results)} results lack a figure."
    if summary.results:
        were = "measured" if summary.imported is None else "imported"
        return f"{len(summary.results)} results were {were}; they are listed below."
    if summary.imported is not None:
        recorded = [each.host for each in plan.monitors] if plan else []
        return f"No results, but what {' and '.join(recorded[:5])} did was recorded: it is shown below."
    return "Nothing was measured: the run ended before its first result."


def details(
    throughput: Sequence[ThroughputTable], latency: Sequence[LatencyTable], sections: Sequence[Section] = ()
) -> tuple[str, ...]:
    """Some more sentences: the largest frames, the latency, and what other methods found."""
    sentences = []
    if throughput and len(throughput[0].rows) > 1:
        sentences.append(_largest_sentence(throughput[0]))
    if throughput and latency:
        sentences.append(_latency_sentence(latency[0]))
    if throughput or latency:
        first = _first_configuration(throughput, latency, ())
        sentences += [_told_of(section, first) for section in sections if section.sentence]
    elif sections and _is_of_rounds(sections[0].rows[0].result):
        sentences += _more_of_rounds(sections)
    return tuple(sentence for sentence in sentences if sentence)


def _more_of_rounds(sections: Sequence[Section]) -> list[str]:
    """What the other rows of the first section say, and the first of every other test."""
    first = sections[0]
    rows = [f"It {text}." for row in first.rows[1:] if first.table.grid is None and (text := first.sentence_of(row))]
    tests = {section.test: section for section in reversed(sections)}
    others = [each for each in sections if each.test != first.test and tests[each.test] is each]
    return [*rows[: _MOST_SENTENCES - 1], *(f"It {each.sentence}." for each in others if each.sentence)]


def sentences_of_throughput(plan: Plan | None, table: ThroughputTable, subject: str | None = None) -> tuple[str, ...]:
    """What a table of throughput says: of its smallest frames, and of its largest; none of an empty one.

    ``subject`` is who it is about where that is not the DUT of the plan.
    """
    if not table.rows:
        return ()
    first = _throughput_sentence(subject or subject_of(plan), table)
    largest = _largest_sentence(table) if len(table.rows) > 1 else None
    return (first, largest) if largest else (first,)


def sentence_of_latency(table: LatencyTable) -> str | None:
    """What a table of latencies says; None where it has none."""
    return _latency_sentence(table)


def _is_of_rounds(result: Result) -> bool:
    return bool(result.trials) and result.trials[0].startswith("r")


def _is_complete(result: Result) -> bool:
    return result.verdict is not ResultVerdict.INCOMPLETE


def _is_empty(result: Result) -> bool:
    """A result of rounds without a single number."""
    numbers = (value for value in result.values.values() if isinstance(value, Bounded | Spread | int | float))
    return _is_of_rounds(result) and result.verdict is ResultVerdict.INCOMPLETE and next(numbers, None) is None


def dut_name(plan: Plan) -> str | None:
    """What the DUT is called without an article; None where the plan does not say."""
    kind = plan.dut_disclosure.get("kind") or plan.dut.get("kind")
    name = plan.dut_disclosure.get("name") or plan.dut.get("name") or _KINDS.get(str(kind))
    return str(name or kind) if name or kind else None


def subject_of(plan: Plan | None) -> str:
    """Who the sentence is about; a DUT may disclose a ``name`` that reads better than its kind."""
    name = plan and (plan.dut_disclosure.get("name") or plan.dut.get("name"))
    kind = plan and (plan.dut_disclosure.get("kind") or plan.dut.get("kind"))
    if plan is None or not (name or kind):
        return "The DUT"
    if plan.simulated:
        return "The simulated DUT"
    known = name or _KINDS.get(str(kind))
    if plan.lab is not None:
        return f"This machine's {known or f'{kind} DUT'}"
    return f"The DUT ({known or kind})"


def subject_in(plan: Plan | None, configuration: str) -> str:
    """Who a table is about: of several imported devices, each is a configuration of the name that its source gives."""
    if plan is None or configuration == DEFAULT or plan.simulated or plan.lab is not None or not plan.dut.get("name"):
        return subject_of(plan)
    return f"The DUT ({configuration})"


def _first_configuration(
    throughput: Sequence[ThroughputTable], latency: Sequence[LatencyTable], sections: Sequence[Section]
) -> str:
    """Of the table that the answer is from."""
    rates = [table.configuration for table in throughput]
    others = [table.configuration for table in latency] + [each.configuration for each in sections]
    return next(iter([*rates, *others]), DEFAULT)


def _told_of(section: Section, first: str) -> str:
    """A section's sentence; one of another configuration than the answer's names its own."""
    subject = "It" if section.configuration == first else f"“{section.configuration}”"
    return f"{subject} {section.sentence}."


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
    spoilt = [result for result in summary.results if result.verdict is not ResultVerdict.VALID]
    if summary.verdict is ResultVerdict.VALID:
        return "Every result rests on rounds in which every tool did its work and nothing disturbed the machines."
    said = []
    if not complete:
        said.append(f"The run ended before everything was measured; {total} results are here.")
    if spoilt:
        said.append(
            f"{len(spoilt)} of {total} results rest on a round in which a tool failed or something disturbed a "
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


def goal_clause(goal: Goal) -> str:
    """A goal in words: "without loss", "with at most 0.5 % lost"."""
    if goal.loss_ratio is None:
        return f"at the {goal.name}"
    return "without loss" if goal.loss_ratio == 0 else f"with at most {share(goal.loss_ratio)} lost"


def _throughput_sentence(subject: str, table: ThroughputTable) -> str:
    """One sentence for each rate, then what limited them."""
    row = table.rows[0]
    decimals = bounds_decimals(row.rates.values())
    goals = [goal for goal in table.goals if goal.key in row.rates]
    sentences = []
    for number, goal in enumerate(goals):
        rate = row.rates[goal.key]
        what = f" of {row.size_name} frames" if number == 0 else ""
        if rate.passes_nothing:
            text = f"{PASSES_NOTHING}{what} ({goal.name}: {_without_the_words(rate)})"
        elif only_below(rate):
            text = _failing_clause(goal, row, what, decimals)
        elif rate.value is None and rate.upper is None:  # no trial that counts: nothing is said of the DUT
            text = f"has no {goal.name}{what.replace(' of ', ' for ')} ({rate.reason_null or 'it was not measured'})"
        elif rate.value is None:
            reason = f": {rate.reason_null}" if rate.reason_null else ""
            text = f"passed no load{what} {goal_clause(goal)} ({goal.name}{reason})"
        else:
            text = _passing_clause(rate, goal, what, decimals, after_another=number > 0)
        sentences.append(f"{subject} {text}." if number == 0 else f"{'' if text[:1].isupper() else 'It '}{text}.")
    limits = dict.fromkeys(rate.limited_by for rate in row.rates.values() if rate.limited_by is not None)
    if len(limits) == 1:
        sentences.append(f"{_capitalised(_LIMIT_CLAUSES[next(iter(limits))])}.")
    else:
        for goal in goals:
            limit = row.rates[goal.key].limited_by
            if limit is not None:
                sentences.append(f"The {goal.name} is {_LIMIT_CLAUSES[limit]}.")
    if table.scope != "per port":
        sentences.append(f"Rates are {basis_words(table.scope)}.")
    return " ".join(sentences) + _caveat(row)


def _caveat(row: ThroughputRow) -> str:
    return " It rests on disturbed trials." if row.result.verdict is ResultVerdict.DISTURBED else ""


def _failing_clause(goal: Goal, row: ThroughputRow, what: str, decimals: int) -> str:
    """No load passed: what happened, down to which load. A trial that did pass and was outvoted is not hidden."""
    upper = mpps(row.rates[goal.key].upper, decimals)
    outvoted = any(note.startswith(f"{goal.name}:") and "outvoted" in note for note in row.result.disturbances)
    every = "almost every load" if outvoted else "every load"
    lost = f"more than {share(goal.loss_ratio)} of the frames" if goal.loss_ratio else "frames"
    return f"lost {lost} at {every} tried, down to {upper}{_GAP}Mpps{what} ({goal.name} below {upper}{_GAP}Mpps)"


def _passing_clause(rate: Bounded, goal: Goal, what: str, decimals: int, *, after_another: bool) -> str:
    least = "at least " if rate.at_least else ""
    between = "" if rate.at_least or rate.is_bare else f", interval {interval(rate, decimals)}{_GAP}Mpps"
    passes = f"{least}{mpps(rate.value, decimals)}{_GAP}Mpps{what}"
    named = f"({goal.name}{between})"
    if rate.is_line_rate:
        passes = f"the line rate{what}, {mpps(rate.value, decimals)}{_GAP}Mpps,"
    if after_another:
        return f"{_capitalised(goal_clause(goal))} it passes {passes} {named}"
    return f"passes {passes} {goal_clause(goal)} {named}"


def _without_the_words(rate: Bounded) -> str:
    return (rate.reason_null or "").removeprefix(f"{PASSES_NOTHING}: ")


def _capitalised(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _largest_sentence(table: ThroughputTable) -> str | None:
    row = table.rows[-1]
    goal = next((goal for goal in table.goals if goal.key in row.rates and row.rates[goal.key].value is not None), None)
    if goal is None:
        return None
    rate = row.rates[goal.key]
    least = "line rate, " if rate.is_line_rate else "at least " if rate.at_least else ""
    l2 = gigabits(row.l2_bits_per_s(goal.key))
    passes = f"{least}{mpps(rate.value)}{_GAP}Mpps {goal_clause(goal)}"
    return f"With {row.size_name} frames it passes {passes}, {l2}{_GAP}Gb/s on layer 2.{_caveat(row)}"


def _imported_latency_sentence(subject: str, table: LatencyTable) -> str | None:
    """Tables of others have an average and a maximum."""
    names = {"latency_mean_ns": "on average", "latency_p50_ns": "in the median", "latency_maximum_ns": "at most"}
    for row in table.rows:
        said = [f"{row.microseconds(name)}{_GAP}µs {words}" for name, words in names.items() if row.values.get(name)]
        if said:
            return f"{subject} delays {row.size_name} frames by {' and '.join(said)}, at {table.load}."
    return None


def _latency_sentence(table: LatencyTable) -> str | None:
    row = next((row for row in table.rows if row.values.get("latency_p50_ns") is not None), None)
    if row is None:
        return None
    half, tail = row.values.get("latency_p50_ns"), row.values.get("latency_p99_9_ns")
    within = f"pass within {microseconds(half)}{_GAP}µs"
    if tail is not None and microseconds(tail) == microseconds(half):
        return f"At {table.load}, half of the {row.size_name} frames, and also 99.9 % of them, {within}."
    also = f" and 99.9 % within {microseconds(tail)}{_GAP}µs" if tail is not None else ""
    return f"At {table.load}, half of the {row.size_name} frames {within}{also}."
