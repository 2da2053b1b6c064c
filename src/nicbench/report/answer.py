"""The answer in words: one sentence that a stranger understands; its numbers are the results' and nothing beyond."""

from __future__ import annotations

from collections.abc import Sequence

from nicbench.model.plan import Plan
from nicbench.model.rate import Bounded, LimitedBy
from nicbench.model.result import ResultVerdict, Summary
from nicbench.report.model import Goal, LatencyTable, ThroughputTable
from nicbench.report.numbers import bounds_decimals, gigabits, interval, microseconds, mpps, only_below, share

_GAP = "\u00a0"  # a number and its unit stay on one line
_LIMIT_CLAUSES = {
    LimitedBy.DUT: "limited by the DUT",
    LimitedBy.TESTER: "limited by the tester: the DUT may do more",
    LimitedBy.LINE_RATE: "limited by the line rate",
}


def headline(
    throughput: Sequence[ThroughputTable], latency: Sequence[LatencyTable], summary: Summary, plan: Plan | None
) -> str:
    """The answer in one sentence: the smallest frames, the hardest; or the latency, where only that was measured."""
    subject = subject_of(plan)
    if throughput and throughput[0].rows:
        return _throughput_sentence(subject, throughput[0])
    if latency and any(row.frames for table in latency for row in table.rows):
        return f"{subject} was measured for latency only. {_latency_sentence(latency[0]) or ''}".strip()
    if summary.results:
        return f"{len(summary.results)} results were measured; they are listed below."
    return "Nothing was measured: the run ended before its first result."


def details(throughput: Sequence[ThroughputTable], latency: Sequence[LatencyTable]) -> tuple[str, ...]:
    """Two more sentences at most: the largest frames, and the latency."""
    sentences = []
    if throughput and len(throughput[0].rows) > 1:
        sentences.append(_largest_sentence(throughput[0]))
    if throughput and latency:
        sentences.append(_latency_sentence(latency[0]))
    return tuple(sentence for sentence in sentences if sentence)


def subject_of(plan: Plan | None) -> str:
    """Who the sentence is about; a DUT may disclose a ``name`` that reads better than its kind."""
    name = plan and (plan.dut_disclosure.get("name") or plan.dut.get("name"))
    kind = plan and (plan.dut_disclosure.get("kind") or plan.dut.get("kind"))
    if plan is None or not (name or kind):
        return "The DUT"
    if plan.simulated:
        return "The simulated DUT"
    if plan.lab is not None:
        return f"This machine's {name or f'{kind} DUT'}"
    return f"The DUT ({name or kind})"


def verdict_text(summary: Summary, plan: Plan | None, run_id: str) -> str:
    """What the verdict means, and what to make of it."""
    total = len(summary.results)
    spoilt = sum(1 for result in summary.results if result.verdict is not ResultVerdict.VALID)
    if summary.verdict is ResultVerdict.VALID:
        return "Every result rests on trials in which the tester kept its pace and nothing disturbed it."
    if summary.verdict is ResultVerdict.DISTURBED:
        return (
            f"{spoilt} of {total} results rest on at least one trial that other work on the machine disturbed, even "
            "after repeats. They are marked; read their numbers as indications, or repeat the run on a quieter machine."
        )
    planned = sum(test.points for test in plan.tests) if plan else 0
    counted = f"{total} of {planned} planned results are here" if planned else f"{total} results are here"
    return (
        f"The run ended before everything was measured: {counted}. To go on where it stopped: nicbench resume {run_id}"
    )


def goal_clause(goal: Goal) -> str:
    """A goal in words: "without loss", "at 0.5 % loss"."""
    if goal.loss_ratio is None:
        return f"at the {goal.name}"
    return "without loss" if goal.loss_ratio == 0 else f"at {share(goal.loss_ratio)} loss"


def _throughput_sentence(subject: str, table: ThroughputTable) -> str:
    row = table.rows[0]
    size = f"{row.frame_bytes}-byte frames"
    decimals = bounds_decimals(row.rates.values())
    clauses = []
    for number, goal in enumerate(table.goals):
        if goal.key in row.rates:
            what = f" of {size}" if number == 0 else ""
            clauses.append(_rate_clause(row.rates[goal.key], goal, what, decimals))
    limits = dict.fromkeys(rate.limited_by for rate in row.rates.values() if rate.limited_by is not None)
    limited = f"; {' and '.join(_LIMIT_CLAUSES[limit] for limit in limits)}" if limits else ""
    return f"{subject} passes {' and '.join(clauses)}{limited}."


def _rate_clause(rate: Bounded, goal: Goal, what: str, decimals: int) -> str:
    if only_below(rate):
        tried = f"{goal.name}, no load tried down to there passed"
        return f"less than {mpps(rate.upper, decimals)}{_GAP}Mpps{what} {goal_clause(goal)} ({tried})"
    if rate.value is None:
        reason = f": {rate.reason_null}" if rate.reason_null else ""
        return f"no load{what} {goal_clause(goal)} ({goal.name}{reason})"
    if rate.at_least:
        return f"at least {mpps(rate.value, decimals)}{_GAP}Mpps{what} {goal_clause(goal)} ({goal.name})"
    between = f"interval {interval(rate, decimals)}"
    return f"{mpps(rate.value, decimals)}{_GAP}Mpps{what} {goal_clause(goal)} ({goal.name}, {between})"


def _largest_sentence(table: ThroughputTable) -> str | None:
    row = table.rows[-1]
    goal = next((goal for goal in table.goals if goal.key in row.rates), None)
    if goal is None or row.rates[goal.key].value is None:
        return None
    rate = row.rates[goal.key]
    least = "at least " if rate.at_least else ""
    l2 = gigabits(row.l2_bits_per_s(goal.key))
    passes = f"{least}{mpps(rate.value)}{_GAP}Mpps {goal_clause(goal)}"
    return f"With {row.frame_bytes}-byte frames it passes {passes}, {l2}{_GAP}Gb/s on layer 2."


def _latency_sentence(table: LatencyTable) -> str | None:
    row = next((row for row in table.rows if row.values.get("latency_p50_ns") is not None), None)
    if row is None:
        return None
    half, tail = row.values.get("latency_p50_ns"), row.values.get("latency_p99_9_ns")
    also = f" and 99.9 % within {microseconds(tail)}{_GAP}µs" if tail is not None else ""
    return f"At {table.load}, half of the {row.frame_bytes}-byte frames pass within {microseconds(half)}{_GAP}µs{also}."
