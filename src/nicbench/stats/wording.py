"""Writes sentences on comparisons and drift, with the figures behind them."""

from __future__ import annotations

from nicbench.core.units import Quantity, count_of, figures, format_alike, percent, probability
from nicbench.stats.bootstrap import Interval
from nicbench.stats.compare import MOST_RUNS, ClaimOutcome, Comparison, Exactness, fewest_runs
from nicbench.stats.drift import Drift, Drifts
from nicbench.stats.sample import Sample


def sentence(comparison: Comparison, quantity: Quantity, circumstances: str = "") -> str:
    """States the result, such as "with 10 instances, 1x100 is 1.24 times as fast as 4x25 [1.19, 1.31]".

    Where none can be claimed, it states what was seen, why, and how many runs a claim needs: "with 2 instances, the
    medians of 1x100 and 4x25 (48.2 and 47.9 fps) differ, but no difference can be claimed: the ratio's interval [0.97,
    1.05] holds 1; about 40 runs of each would show it". ``circumstances`` come first ("with 10 instances").
    """
    text = (
        _describe_difference(comparison, quantity)
        if comparison.claim.shown is ClaimOutcome.YES
        else explain_no_claim(comparison, quantity, _reason_not_shown(comparison))
    )
    return f"{circumstances}, {text}" if circumstances else text


def arithmetic(comparison: Comparison, quantity: Quantity) -> str:
    """Lists the figures behind the sentence: medians, runs, effect with interval, test and delta."""
    first, second = comparison.first, comparison.second
    parts = [
        f"median {quantity.format_value(side.sample.median)} of {count_of(side.sample.n, 'run')} of {side.name}"
        f"{_count_unknown(side.sample)}"
        for side in (first, second)
    ]
    parts.append(
        f"{comparison.kind} ({first.name} {'over' if comparison.kind.is_ratio else 'less'} {second.name}) "
        f"{_effect(comparison, quantity)}"
    )
    if comparison.test is not None:
        test = comparison.test
        kind = "exact" if test.exactness is Exactness.EXACT else f"by {test.exactness}"
        statistic = f"{test.statistic:,.1f}".removesuffix(".0")
        parts.append(f"{test.name} {statistic}, {probability(test.p)} (two-sided, {kind})")
    if comparison.dominance is not None:
        delta = comparison.dominance
        numbers = format_alike((delta.delta, delta.lower, delta.upper), 0.0)
        parts.append(f"Cliff's delta {numbers[0]} [{numbers[1]}, {numbers[2]}], {delta.magnitude}")
    return "; ".join((*parts, *comparison.effect.notes))


def could_show(comparison: Comparison, quantity: Quantity) -> str | None:
    """States what difference the runs could show, and how many the one seen would need; None with one run."""
    found = comparison.detectable
    if found is None:
        return None
    if found.difference is None:
        text = found.note or ""
    else:
        least = quantity.format_value(found.difference)
        if comparison.kind.is_ratio:
            least = f"{figures(found.change_percent or 0.0, 2)} %"
        text = (
            f"runs that vary as these would show a difference of {least} or more with a probability of "
            f"{100.0 * found.power_ratio:.0f} %"
        )
    if comparison.claim.shown is ClaimOutcome.YES or not _differs(comparison):
        return text
    each = "pairs" if comparison.kind.is_paired else "runs of each"
    many = f"more than {MOST_RUNS:,}" if found.runs_for_seen is None else f"about {_round_count(found.runs_for_seen)}"
    return text if not _varies(comparison) else f"{text}; to show the one seen, {many} {each} are needed"


def drift_summary(found: Drifts) -> str:
    """Summarises the drift: "2 of 40 values drift over the run (80 tests, corrected together by Holm's method)"."""
    tests = count_of(found.tests, "test")
    many = len(found.all)
    among = "the only value" if many == 1 else f"any of {many} values"
    if not found.tests:
        return f"whether {among} drifts over the run was not tested: there are too few runs, or they do not differ"
    how = f"({tests}, corrected together by Holm's method at {100.0 * found.confidence_ratio:g} %)"
    if not found.shown:
        return f"no drift over the run is shown by {among} {how}"
    verb = "drifts" if len(found.shown) == 1 else "drift"
    return f"{len(found.shown)} of {count_of(many, 'value')} {verb} over the run {how}"


def drift_sentence(drift: Drift) -> str:
    """Describes the drift of one series: how far it moved, and by which test; or that nothing is shown."""
    if not drift.is_shown:
        return (
            f"{drift.name}: {drift.note}" if drift.trend is None and drift.thirds is None else _describe_no_drift(drift)
        )
    parts = []
    if drift.trend is not None and drift.trend_is_shown:
        moved = "a trend" if drift.over_run_percent is None else percent(drift.over_run_percent)
        if drift.over_run_lower_percent is not None and drift.over_run_upper_percent is not None:
            moved += f" [{percent(drift.over_run_lower_percent)}, {percent(drift.over_run_upper_percent)}]"
        p = _corrected_probability(drift.trend.p_corrected)
        parts.append(f"{moved} from the first to the last of {drift.n} runs (Mann-Kendall, {p})")
    if drift.thirds is not None and drift.thirds_differ:
        moved = "a change" if drift.thirds_percent is None else percent(drift.thirds_percent)
        parts.append(
            f"{moved} from the median of the first {drift.third} runs to that of the last {drift.third} "
            f"(Mann-Whitney U, {_corrected_probability(drift.thirds.p_corrected)})"
        )
    return f"{drift.name}: {'; '.join(parts)}"


def _describe_difference(comparison: Comparison, quantity: Quantity) -> str:
    claim, kind = comparison.claim, comparison.kind
    ends = _effect_of_higher(comparison)
    better = None if quantity.higher_is_better is None else claim.better_of(higher_is_better=quantity.higher_is_better)
    if not kind.is_ratio:
        far, least, most = quantity.format_value(ends[0]), *map(figures, ends[1:])
        verdict = f", and {claim.lower} is the better" if better == claim.lower else ""
        return f"{claim.higher} is {far} above {claim.lower} in {quantity.name} [{least}, {most}]{verdict}"
    factor, least, most = format_alike(ends, 1.0)
    if better is not None and quantity.adjective:
        other = claim.lower if better == claim.higher else claim.higher
        return f"{better} is {factor} times as {quantity.adjective} as {other} [{least}, {most}]"
    verdict = f", and {claim.lower} is the better" if better == claim.lower else ""
    return f"{claim.higher} has {factor} times the {quantity.name} of {claim.lower} [{least}, {most}]{verdict}"


def _effect_of_higher(comparison: Comparison) -> tuple[float, float, float]:
    """Returns estimate and ends of the higher side over (or less) the lower."""
    effect = comparison.effect
    assert effect.estimate is not None  # noqa: S101 - a difference is shown by an interval
    assert effect.lower is not None  # noqa: S101
    assert effect.upper is not None  # noqa: S101
    ends = (effect.estimate, effect.lower, effect.upper)
    if comparison.claim.higher == comparison.first.name:
        return ends
    turned = [1.0 / end if comparison.kind.is_ratio else -end for end in ends]
    return turned[0], turned[2], turned[1]


def explain_no_claim(comparison: Comparison, quantity: Quantity, reason: str, *, more_runs_help: bool = True) -> str:
    """States what was seen of two sides, the ``reason`` why no difference can be claimed, and the runs that it needs.

    What was seen may differ, as an answer elsewhere may say: only where the medians are equal is there no difference.
    """
    first, second = comparison.first, comparison.second
    known = [median for side in (first, second) if (median := side.sample.median) is not None]
    if len(known) < 2 or known[0] == known[1]:
        return f"no difference is shown between {first.name} and {second.name}: {reason}"
    texts = tuple(map(figures, known))
    if texts[0] == texts[1]:
        texts = format_alike(known, 0.0)
    seen = f"{texts[0]} and {texts[1]} {quantity.unit}".rstrip()
    needed = runs_needed(comparison) if more_runs_help else None
    return (
        f"the medians of {first.name} and {second.name} ({seen}) differ, but no difference can be claimed: {reason}"
        f"{f'; {needed}' if needed else ''}"
    )


def runs_needed(comparison: Comparison) -> str | None:
    """States how many runs would show the difference that was seen; None where that cannot be known."""
    found, paired = comparison.detectable, comparison.kind.is_paired
    each = "pairs" if paired else "runs of each"
    if found is not None and found.runs_for_seen is not None:
        return f"about {_round_count(found.runs_for_seen)} {each} would show it"
    if comparison.claim.shown in (ClaimOutcome.NO_INTERVAL, ClaimOutcome.TOO_FEW):
        least = fewest_runs(round(1.0 - comparison.effect.confidence_ratio, 12), paired=paired)
        return f"at least {least} {each} are needed"
    if found is not None and found.difference is not None:
        return f"more than {MOST_RUNS:,} {each} are needed"
    return None


def _reason_not_shown(comparison: Comparison) -> str:
    first, second = comparison.first.sample, comparison.second.sample
    effect, test = comparison.effect, comparison.test
    what = "ratio" if comparison.kind.is_ratio else "difference"
    if comparison.claim.shown is ClaimOutcome.NO_INTERVAL or test is None:
        return f"there is no interval ({'; '.join(effect.notes)})"
    if comparison.claim.shown is ClaimOutcome.TOO_FEW:
        counts = (
            f"{count_of(first.n, 'run')} and {count_of(second.n, 'run')}"
            if not comparison.kind.is_paired
            else f"{count_of(first.n, 'run')} of each"
        )
        return f"{counts} are too few to show a difference of any size"
    if comparison.claim.shown is ClaimOutcome.TOO_ALIKE:
        return (
            "all runs gave the same value"
            if not (_varies(comparison) or _differs(comparison))
            else "too many runs gave the same value"
        )
    ends = _format_interval(comparison)
    if comparison.claim.shown is ClaimOutcome.INTERVAL_HOLDS:
        return f"the {what}'s interval {ends} holds {comparison.kind.of_no_difference:.0f}"
    level = round(1.0 - effect.confidence_ratio, 12)
    leaves_out = f"interval {ends} leaves out {comparison.kind.of_no_difference:.0f}"
    return f"the {what}'s {leaves_out}, but {test.name} has {probability(test.p)}, above {level:g}"


def _effect(comparison: Comparison, quantity: Quantity) -> str:
    effect = comparison.effect
    if effect.estimate is None:
        return "unknown"
    if effect.lower is None or effect.upper is None:
        if comparison.kind.is_ratio:
            return format_alike((effect.estimate,), 1.0)[0]
        return quantity.format_value(effect.estimate)
    numbers = format_alike((effect.estimate, effect.lower, effect.upper), comparison.kind.of_no_difference)
    estimate = numbers[0] if comparison.kind.is_ratio else f"{numbers[0]} {quantity.unit}".rstrip()
    return f"{estimate}, {_describe_interval(effect)} [{numbers[1]}, {numbers[2]}]"


def _describe_interval(effect: Interval) -> str:
    confidence = f"{100.0 * effect.confidence_ratio:g} %"
    return f"{confidence} {effect.method} interval of {effect.resamples:,} resamples (seed {effect.seed})"


def _format_interval(comparison: Comparison) -> str:
    effect = comparison.effect
    if effect.lower is None or effect.upper is None:
        return "(none)"
    _, lower, upper = format_alike(
        (effect.estimate or 0.0, effect.lower, effect.upper), comparison.kind.of_no_difference
    )
    return f"[{lower}, {upper}]"


def _differs(comparison: Comparison) -> bool:
    return comparison.effect.estimate not in (None, comparison.kind.of_no_difference)


def _varies(comparison: Comparison) -> bool:
    """Returns whether the runs of at least one side differ."""
    return not (comparison.first.sample.is_constant and comparison.second.sample.is_constant)


def _describe_no_drift(drift: Drift) -> str:
    seen = "" if drift.over_run_percent is None else f" ({percent(drift.over_run_percent)} by Sen's slope)"
    return f"{drift.name}: no drift is shown over {drift.n} runs{seen}"


def _round_count(runs: int) -> str:
    return str(runs) if runs < 100 else figures(runs, 2)


def _corrected_probability(p: float) -> str:
    return f"{probability(p)} corrected"


def _count_unknown(sample: Sample) -> str:
    return f" ({sample.unknown} more unknown)" if sample.unknown else ""
