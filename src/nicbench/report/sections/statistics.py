"""Text of comparisons for table cells, with as many digits as the interval of a number justifies."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from nicbench.compare.claims import Basis, PointComparison
from nicbench.core.lists import without_none
from nicbench.core.units import count_of, figures, format_alike, format_digits, format_fixed
from nicbench.report.document.blocks import Block, Cell, Figure, FoldedBlocks
from nicbench.report.document.making import (
    BREAK,
    Optional,
    caption,
    cell,
    head,
    heading,
    heads,
    inlines,
    name,
    paragraph,
    small,
    strong,
    table,
    word_heads,
    words,
)
from nicbench.report.drawing.figures import Figures
from nicbench.report.drawing.runs import runs_figures
from nicbench.report.model import Report
from nicbench.report.numbers import THIN_SPACE, UNKNOWN, whole
from nicbench.report.sections.opening import foreign
from nicbench.report.statistics import OverRuns, StatisticsView, TestStatistics
from nicbench.report.wording import capitalise

_MOST_DECIMALS: Final = 6


def plain(value: float | None, digits: int = 4) -> str:
    """Returns the value with ``digits`` significant digits; a dash if unknown."""
    return UNKNOWN if value is None else figures(value, digits).replace(",", THIN_SPACE)


def within(lower: float | None, upper: float | None) -> str:
    """Returns an interval as text, with two significant digits of its width, or four of its ends if it has no width."""
    if lower is None or upper is None:
        return UNKNOWN
    width = upper - lower
    if width <= 0.0:
        return f"[{plain(lower)}, {plain(upper)}]"
    decimals = max(0, min(_MOST_DECIMALS, 1 - math.floor(math.log10(width))))
    return f"[{format_fixed(lower, decimals, THIN_SPACE)}, {format_fixed(upper, decimals, THIN_SPACE)}]"


def percent(ratio: float | None) -> str:
    """Returns a ratio in percent with three significant digits, without the sign."""
    return UNKNOWN if ratio is None else plain(100.0 * ratio, 3)


def verdict_of(one: PointComparison) -> str:
    """Returns the verdict on a comparison: who is better, or why no difference is claimed."""
    claim = one.claim
    if not claim.basis.is_shown:
        return claim.basis.cell
    who = one.better or f"{claim.higher} (higher)"
    return f"{who}, by the search intervals" if claim.basis is Basis.INTERVALS else who


def _p(value: float) -> str:
    return "< 0.0001" if value < 0.0001 else format_digits(value, 2) if value < 0.1 else f"{value:.2f}"


def unit_head(test: TestStatistics) -> str:
    """Returns the unit in brackets for the heading of a column, if all rows have the same unit; else ""."""
    units = {row.unit for row in test.rows}
    unit = units.pop() if len(units) == 1 else ""
    return f" [{unit}]" if unit else ""


def unit_beside(test: TestStatistics, row: OverRuns) -> str:
    """Returns the unit to be printed after a number, if rows have different units; else ""."""
    return f" {row.unit}" if row.unit and not unit_head(test) else ""


_MOST_ROWS = 16
_MOST_COMPARISONS = 30


def statistics(report: Report, figures: Figures) -> Iterator[Block]:
    """Yields the statistics of every test, the comparisons of every two configurations, then what drifted."""
    found = report.statistics
    if found is None:
        return
    for test in found.tests:
        yield from _over_runs(test, found, report, figures)
    yield from _differences(found, report)
    yield from _drift(found, report)


def _over_runs(test: TestStatistics, found: StatisticsView, report: Report, figures: Figures) -> Iterator[Block]:
    of_test = f": {test.test}" if len(found.tests) > 1 or report.studies else ""
    none = "" if test.with_outliers else " There is none."
    yield heading(2, f"Statistics over runs{of_test}")
    yield caption(
        foreign(report),
        f" Intervals are BCa bootstrap intervals of 95 % ({whole(found.resamples)} resamples, seed {found.seed}, which "
        f"follows from the run’s id). An outlier is a run beyond {test.rows[0].found.outlier_rule}; it is shown, and "
        f"counts in every figure here.{none}",
    )
    if drawn := runs_figures(test, figures.numbered):
        yield Figure(drawn, look="of-runs")
        ring = "; a ring marks an outlier" if test.with_outliers else ""
        some = (
            f" Drawn are {len(drawn)} of {test.points}, those with most outliers and whose runs vary most; all are in "
            "the table."
            if test.points > len(drawn)
            else ""
        )
        yield caption(
            f"Each dot is a run; the line is the median, the band its interval{ring}. Axes do not begin at 0.{some}"
        )
    medians = _medians(test)
    if len(test.rows) > _MOST_ROWS:
        yield FoldedBlocks(inlines(f"Median, spread and outliers: {len(test.rows)} rows"), (medians,))
    else:
        yield medians
    about = caption(
        "The sample standard deviation has n − 1 in its divisor (the runs are a sample), that of the population "
        "n (the runs are the whole population). The coefficient of variation is the former over the mean."
    )
    notes = (caption(f"{capitalise(note)}.") for note in test.notes)
    summary = f"Mean, standard deviations, lowest and highest: {count_of(len(test.rows), 'row')}"
    yield FoldedBlocks(inlines(summary), (about, _means(test), *notes))


def _places(test: TestStatistics) -> tuple[Cell, ...]:
    apart = word_heads(test.compares and "Configuration", test.values and "Value")
    return head("At"), *apart, head("n")


def _place(test: TestStatistics, row: OverRuns) -> tuple[Optional, ...]:
    configuration, value = words(row.configuration), words(row.of.value.quantity.name)
    return name(row.point), test.compares and configuration, test.values and value, cell(row.counted)


def _medians(test: TestStatistics) -> Block:
    titles = heads(f"Median{unit_head(test)}", "its interval", "Coefficient of\nvariation [%]", "Outliers\n(runs)")
    return table(
        ((*_places(test), *titles),),
        (
            (
                *_place(test, row),
                cell(strong(f"{plain(row.found.median)}{unit_beside(test, row)}")),
                cell(within(row.found.median_interval.lower, row.found.median_interval.upper)),
                cell(percent(row.found.coefficient_of_variation)),
                cell(strong(row.outliers) if row.found.outliers else row.outliers),
            )
            for row in test.rows
        ),
        "result",
    )


def _means(test: TestStatistics) -> Block:
    titles = heads(
        f"Mean{unit_head(test)}",
        "its interval",
        "Sample\nstandard deviation",
        "Population\nstandard deviation",
        "Lowest",
        "Highest",
    )
    return table(
        ((*_places(test), *titles),),
        (
            (
                *_place(test, row),
                cell(f"{plain(row.found.mean)}{unit_beside(test, row)}"),
                cell(within(row.found.mean_interval.lower, row.found.mean_interval.upper)),
                cell(plain(row.found.sample_standard_deviation, 3)),
                cell(plain(row.found.population_standard_deviation, 3)),
                cell(plain(row.found.minimum)),
                cell(plain(row.found.maximum)),
            )
            for row in test.rows
        ),
        "result",
    )


def _differences(found: StatisticsView, report: Report) -> Iterator[Block]:
    all_of_them = found.differences
    if not all_of_them or found.comparisons is None:
        return
    yield heading(2, "Differences between configurations", id="differences")
    for number, sentence in enumerate(found.comparisons.rule):
        yield caption(foreign(report) if number == 0 else None, " ", sentence)
    if all(max(one.comparison.first.sample.n, one.comparison.second.sample.n) < 2 for one in all_of_them):
        return  # the tables of results show single runs side by side
    shown = _comparisons(all_of_them, has_values=found.compared_values > 1)
    if len(all_of_them) > _MOST_COMPARISONS:
        yield FoldedBlocks(inlines(f"Every comparison: {len(all_of_them)}"), (shown,))
    else:
        yield shown
    sentences = (
        paragraph(
            f"{capitalise(one.sentence)}.",
            BREAK,
            small(f"{one.arithmetic}.{f' {capitalise(one.could_show)}.' if one.could_show else ''}"),
        )
        for one in all_of_them
    )
    yield FoldedBlocks(inlines("The same in sentences, each with its arithmetic"), tuple(sentences), is_detail=True)


def _comparisons(all_of_them: Sequence[PointComparison], *, has_values: bool) -> Block:
    def of_one(one: PointComparison) -> Iterator[Cell]:
        found, effect, quantity = one.comparison, one.comparison.effect, one.value.quantity
        unit = "" if found.kind.is_ratio else f" {quantity.unit}".rstrip()
        known = without_none((effect.estimate, effect.lower, effect.upper))
        told = format_alike(known, found.kind.of_no_difference) if known else ()
        yield name(capitalise(one.point.circumstances or one.point.test))
        yield words(f"{found.first.name} {'/' if found.kind.is_ratio else '−'} {found.second.name}")
        if has_values:
            yield words(quantity.name)
        yield cell(strong(f"{told[0]}{unit}" if told else UNKNOWN))
        yield cell(f"[{told[1]}, {told[2]}]" if len(told) == 3 else UNKNOWN)
        p, dominance = one.p_corrected, found.dominance
        yield cell(UNKNOWN if p is None or found.test is None else _p(found.test.p))
        yield cell(UNKNOWN if p is None else _p(p))
        yield cell(UNKNOWN if p is None or dominance is None else f"{dominance.delta:+.2f}")
        yield words(strong(verdict_of(one)) if one.claim.basis.is_shown else verdict_of(one))

    differs = any(not one.comparison.kind.is_ratio for one in all_of_them)
    effect = "Ratio or difference\nof medians" if differs else "Ratio of\nmedians"
    return table(
        (
            (
                head("At"),
                *word_heads("First over second", has_values and "Value"),
                *heads(effect, "its interval", "p", "p, corrected\n(Holm)", "Cliff’s\ndelta"),
                *word_heads("Better"),
            ),
        ),
        map(of_one, all_of_them),
        "result",
    )


def _drift(found: StatisticsView, report: Report) -> Iterator[Block]:
    known = [drift for drift in (found.drift, found.drift_within) if drift]
    if known:
        yield heading(2, "Drift", id="drift")
    order = " The order is that in which the source numbers its runs." if report.imported else ""
    for drift in known:
        yield paragraph(drift.sentence)
        yield caption(
            f"Trend: Mann-Kendall, its size Sen’s slope from the first to the last {drift.what}; and the first third "
            f"against the last, Mann-Whitney U.{order}"
        )
        if drift.rows:
            yield table(
                (word_heads("What drifts", "How far"),),
                ((name(one.name, words=True), words(drift.words(one))) for one in drift.rows),
                "result",
            )
