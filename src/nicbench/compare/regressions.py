"""What a check compares: finished runs, their results by their points, and why two runs must not be compared."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final, NamedTuple

from nicbench.compare.points import (
    MainValue,
    Point,
    comparable_number,
    hide_common_parameters,
    main_value_of,
    point_of,
    quantity_of,
)
from nicbench.core.frozen import frozen
from nicbench.core.lists import grouped
from nicbench.core.plan import Plan
from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict, Summary, Value
from nicbench.core.turn import DEFAULT
from nicbench.core.units import count_of, figures, probability
from nicbench.methods.base import main_values
from nicbench.stats.sample import Span, span_of
from nicbench.store.folder import RunFolder
from nicbench.store.listing import machines_of


@frozen
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
    found = grouped(
        (ConfiguredPoint(result.configuration, point_of(result)), result)
        for run in runs
        for result in run.summary.counted
    )
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
    machines, before = machines_of(run.folder.path), machines_of(other.folder.path)
    for what, names, earlier in (
        ("card", machines.cards, before.cards),
        ("processor", machines.processors, before.processors),
    ):
        if names and earlier and set(names) != set(earlier):
            yield f"another {what}: {', '.join(sorted(names))} instead of {', '.join(sorted(earlier))}"


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


FEWEST_RUNS: Final = 4
"""Fewest runs on each side with which a rank test at 95 % confidence can show a difference at all."""
MOST_RUNS: Final = 50
"""The most runs of a side that are compared: those nearest to the other side."""
_SEED: Final = 8219
"""Seed of the bootstrap resampling, fixed so that the same two runs always get the same judgement."""


class Outcome(StrEnum):
    """The outcome of the comparison of one value."""

    WORSE = "worse"
    UNKNOWN = "cannot be told"
    DIFFERENT = "different"
    """The value changed, but neither a higher nor a lower one is better."""
    BETTER = "better"
    SAME = "no difference shown"
    TOLERATED = "within the tolerance"
    """The value changed by no more than the tolerance, whether or not the change is shown."""


_UNCHANGED: Final = (Outcome.SAME, Outcome.TOLERATED)


@frozen
class Judgement:
    """The judgement of one value, with its medians over the runs and the reason.

    ``before`` and ``after`` stay None where a side has no value, or a run of it tells only what its rate lies below;
    where every run of a side does, ``before_below`` and ``after_below`` are the bound. ``change_ratio`` is ``after``
    divided by ``before``, less 1; None where a value is missing, or ``before`` is 0 and ``after`` is not.
    """

    outcome: Outcome
    why: str
    before: float | None = None
    after: float | None = None
    change_ratio: float | None = None
    before_below: float | None = None
    after_below: float | None = None


def judge(
    before: Sequence[Value],
    after: Sequence[Value],
    *,
    higher_is_better: bool | None,
    tolerance_ratio: float,
    near_limit: str | None = None,
) -> Judgement:
    """Judges one value at one point; ``before`` and ``after`` have one value for each run.

    ``near_limit`` says why the values after may be the tester's limit, where they may: they are then not called worse.
    """
    numbers = [
        [number for value in side if (number := comparable_number(value)) is not None] for side in (before, after)
    ]
    if any(map(_is_only_below, (*before, *after))):
        return _judge_bounds(before, after, higher_is_better, near_limit)
    if not numbers[0] or not numbers[1]:
        return Judgement(Outcome.UNKNOWN, f"there is no value {'before' if not numbers[0] else 'of this run'}")
    old, new = statistics.median(numbers[0]), statistics.median(numbers[1])
    change = new / old - 1.0 if old else 0.0 if new == old else None

    dead = sum(map(_passes_nothing, after))

    def judgement_of(outcome: Outcome, why: str) -> Judgement:
        if outcome in _UNCHANGED and dead and not any(map(_passes_nothing, before)):
            outcome, why = Outcome.UNKNOWN, f"in {dead} of {len(after)} runs now nothing passed, in none before: {why}"
        return Judgement(outcome, why, old, new, change)

    if new == old:
        return judgement_of(Outcome.SAME, "equal" if len({*numbers[0], *numbers[1]}) == 1 else "equal medians")
    if change is not None and abs(change) <= tolerance_ratio:
        return judgement_of(Outcome.TOLERATED, f"at most {100.0 * tolerance_ratio:g} % (--tolerance)")
    shown, why = _judge_by_runs(before, after, *numbers) or _judge_by_intervals(before, after)
    if shown is None:
        return judgement_of(Outcome.UNKNOWN, why)
    if not shown:
        return judgement_of(Outcome.SAME, why)
    if higher_is_better is None:
        return judgement_of(Outcome.DIFFERENT, f"{why}; neither way is better")
    if (new > old) is higher_is_better:
        return judgement_of(Outcome.BETTER, why)
    return judgement_of(Outcome.UNKNOWN, near_limit) if near_limit else judgement_of(Outcome.WORSE, why)


def _passes_nothing(value: Value) -> bool:
    return isinstance(value, Bounded) and value.passes_nothing


def _is_only_below(value: Value) -> bool:
    return isinstance(value, Bounded) and value.is_only_below


def _judge_bounds(
    before: Sequence[Value], after: Sequence[Value], higher_is_better: bool | None, near_limit: str | None
) -> Judgement:
    """Judges a rate of which some runs tell only what it lies below: every load that they tried failed.

    Such a run has no number, and to leave it out would compare the best runs of one side with all of the other.
    """
    old, new = _span_of(before), _span_of(after)
    if old is None or new is None:
        return Judgement(Outcome.UNKNOWN, f"there is no value {'before' if old is None else 'of this run'}")
    both = f"{_interval_text(old)} before and {_interval_text(new)}"
    below = [span.upper if all(map(_is_only_below, side)) else None for span, side in ((old, before), (new, after))]

    def judgement_of(outcome: Outcome, why: str) -> Judgement:
        median_before, median_after = _median_of(before), _median_of(after)
        return Judgement(outcome, why, median_before, median_after, before_below=below[0], after_below=below[1])

    if not old.is_above(new) and not new.is_above(old):
        if None not in below:
            return judgement_of(Outcome.SAME, f"no load that was tried passed, before or now: {both}")
        when = "now" if any(map(_is_only_below, after)) else "before"
        return judgement_of(Outcome.UNKNOWN, f"there are runs {when} in which no load that was tried passed: {both}")
    why = f"intervals do not overlap: {both}"
    if higher_is_better is None:
        return judgement_of(Outcome.DIFFERENT, f"{why}; neither way is better")
    if new.is_above(old) is higher_is_better:
        return judgement_of(Outcome.BETTER, why)
    return judgement_of(Outcome.UNKNOWN, near_limit) if near_limit else judgement_of(Outcome.WORSE, why)


def _median_of(side: Sequence[Value]) -> float | None:
    """Returns the median of a side; None where a run of it tells only what its rate lies below."""
    numbers = [number for value in side if (number := comparable_number(value)) is not None]
    return statistics.median(numbers) if numbers and not any(map(_is_only_below, side)) else None


def _judge_by_runs(
    before: Sequence[Value], after: Sequence[Value], old: Sequence[float], new: Sequence[float]
) -> tuple[bool | None, str] | None:
    """Judges by a rank test whether the runs show a difference, and says why.

    Returns None where there are too few runs, or runs too much alike, to show a difference. The judgement stays None
    where the tester was the limit, and this run may do more than was tried. ``old`` and ``new`` are the numbers of the
    values ``before`` and ``after``.
    """
    if min(len(old), len(new)) < FEWEST_RUNS:
        return None
    # Imported here: they are slow to load, and not needed for single runs.
    from nicbench.compare.claims import Basis, claim_of, median_span
    from nicbench.stats.bootstrap import IntervalSpec
    from nicbench.stats.compare import ClaimOutcome, compare

    found = compare(("this", new), ("before", old), IntervalSpec(seed=_SEED))
    effect, test = found.effect, found.test
    if found.claim.shown in (ClaimOutcome.NO_INTERVAL, ClaimOutcome.TOO_FEW, ClaimOutcome.TOO_ALIKE):
        return None
    if effect.lower is None or effect.upper is None or test is None:
        return None
    why = (
        f"{len(new)} runs against {len(old)}: {found.kind} {figures(effect.estimate or 0.0)} "
        f"[{figures(effect.lower)}, {figures(effect.upper)}], {test.name} {probability(test.p)}"
    )
    basis = claim_of(found, after, before).basis
    if basis is Basis.SEARCHES_OVERLAP and _is_by_tester(before, after):
        span = median_span([value for value in after if isinstance(value, Bounded)])
        if span is not None and math.isinf(span.upper):
            return None, f"{why}, but the tester was the limit"
    return basis.is_shown, f"{why}, but {basis}" if basis is Basis.SEARCHES_OVERLAP else why


def _judge_by_intervals(before: Sequence[Value], after: Sequence[Value]) -> tuple[bool | None, str]:
    """Judges whether the intervals of both sides are disjoint, and says why.

    The judgement stays None where a side has no value, or where the tester was the limit and the rate of this run may
    be higher than what was tried.
    """
    old, new = _span_of(before), _span_of(after)
    if old is None or new is None:
        return None, "a run says nothing of the value"
    both = f"{_interval_text(old)} before and {_interval_text(new)}"
    if old.is_above(new) or new.is_above(old):
        if len(before) == len(after) == 1 and old.lower == old.upper and new.lower == new.upper:
            return True, "one value each without an interval: told by the tolerance alone"
        return True, f"intervals do not overlap: {both}"
    if math.isinf(new.upper) and _is_by_tester(before, after):
        return None, f"the tester was the limit: {both}"
    return False, f"intervals overlap: {both}"


def _is_by_tester(before: Sequence[Value], after: Sequence[Value]) -> bool:
    """Whether the tester was the limit of any run."""
    return any(isinstance(value, Bounded) and value.limited_by is LimitedBy.TESTER for value in (*before, *after))


def _span_of(values: Sequence[Value]) -> Span | None:
    rates = [value for value in values if isinstance(value, Bounded) and not value.is_bare]
    if rates:
        return span_of(rates)
    numbers = [number for value in values if (number := comparable_number(value)) is not None]
    return Span(min(numbers), max(numbers)) if numbers else None


def _interval_text(span: Span) -> str:
    upper = "no bound" if math.isinf(span.upper) else figures(span.upper)
    return f"[{figures(span.lower)}, {upper}]"


RELIABLE: Final = frozenset(verdict for verdict in ResultVerdict if verdict.is_reliable)
"""The verdicts of results on which a claim may rest."""


@frozen
class Row:
    """The judgement of one value at one point."""

    point: ConfiguredPoint
    value: MainValue
    judgement: Judgement


@frozen
class Check:
    """A check: ``rows`` judge values of points that were measured before; ``new`` are points that were not."""

    rows: tuple[Row, ...]
    new: tuple[ConfiguredPoint, ...]

    def rows_with(self, outcome: Outcome) -> tuple[Row, ...]:
        """Returns the rows with this outcome."""
        return tuple(row for row in self.rows if row.judgement.outcome is outcome)


def check_regressions(runs: Sequence[FinishedRun], against: Sequence[FinishedRun], tolerance_ratio: float) -> Check:
    """Judges the values that share test, configuration and parameters; each side may have several runs of them."""
    now, before = group_by_point(runs), group_by_point(against)
    rows = [row for point, results in before.items() for row in _rows(point, results, now.get(point), tolerance_ratio)]
    order = list(Outcome)
    rows.sort(key=lambda row: order.index(row.judgement.outcome))
    told = hide_common_parameters(each.point for each in (*before, *now))
    return Check(
        tuple(replace(row, point=row.point._replace(point=told[row.point.point])) for row in rows),
        tuple(each._replace(point=told[each.point]) for each in now if each not in before),
    )


def _rows(
    point: ConfiguredPoint, before: Sequence[Result], now: Sequence[Result] | None, tolerance_ratio: float
) -> list[Row]:
    names = dict.fromkeys(name for result in (*before, *(now or ())) for name in main_values(result))
    rows = []
    for name in names:
        if not any(name in result.values for result in before):
            continue
        if now is None:
            judgement = Judgement(Outcome.UNKNOWN, "this run did not measure it")
        else:
            judgement = _judge(name, before, now, tolerance_ratio)
        rows.append(Row(point, main_value_of(before[0], name), judgement))
    return rows


def _judge(name: str, before: Sequence[Result], now: Sequence[Result], tolerance_ratio: float) -> Judgement:
    sides = [[result for result in side if result.verdict in RELIABLE] for side in (before, now)]
    for side, usable, whose in zip((before, now), sides, ("before", "of this run"), strict=True):
        if not usable:
            why = side[0].disturbances[0] if side[0].disturbances else "no reason is given"
            return Judgement(Outcome.UNKNOWN, f"the result {whose} is {side[0].verdict}: {why}")
    near = [one.text for result in sides[1] for one in result.near_tester_limit or () if one.value == name]
    found = judge(
        [result.values.get(name) for result in sides[0]],
        [result.values.get(name) for result in sides[1]],
        higher_is_better=quantity_of(sides[0][0], name).higher_is_better,
        tolerance_ratio=tolerance_ratio,
        near_limit=near[0] if near else None,
    )
    left_out = len(before) + len(now) - len(sides[0]) - len(sides[1])
    if left_out:
        why = f"{found.why}; {count_of(left_out, 'disturbed or incomplete result')} left out"
        return replace(found, why=why)
    return found
