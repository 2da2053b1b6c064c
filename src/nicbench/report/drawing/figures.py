"""The figures of a page: each drawn once in two widths, and the one that stands first on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from markupsafe import Markup, escape

from nicbench.report.drawing.bars import bars_chart
from nicbench.report.drawing.behind import numbers_behind
from nicbench.report.drawing.charts import NARROW, WIDE, Format
from nicbench.report.drawing.curves import curve_chart, curves
from nicbench.report.drawing.narrowing import narrowing_chart
from nicbench.report.drawing.plots import plot_chart, plotted
from nicbench.report.drawing.search import search_chart
from nicbench.report.drawing.svg import svg
from nicbench.report.model import CALIBRATION, Report, ThroughputTable
from nicbench.report.tables import Section

SUMMARY: Final = "summary.json"
Draw = Callable[[Any, Format], dict[str, Any] | None]


@dataclass(frozen=True, slots=True)
class Figure:
    """Both drawings of a chart, and what they show in words."""

    drawing: Markup
    caption: str


def drawn(
    draw: Draw, subject: Any, numbered: Iterator[int], label: str, source: str = SUMMARY, name: str = ""
) -> Markup | None:
    """Both drawings of a chart, of which the style sheet shows the one that suits, and the table behind them.

    ``source`` is the file of the run folder that has every number; ``name`` tells drawings of one figure apart. None
    where there is nothing to draw.
    """
    parts: list[Markup] = []
    behind = Markup("")
    for kind, form in (("wide", WIDE), ("narrow", NARROW)):
        specification = draw(subject, form)
        if specification is None:
            return None
        behind = behind or numbers_behind(specification, label, source, name)
        drawing = Markup(svg(specification, next(numbered), str(escape(label))))  # noqa: S704 - from numbers
        parts.append(Markup('<div class="{}">{}</div>').format(kind, drawing))
    return Markup("").join((*parts, behind))


def section_figures(section: Section, numbered: Iterator[int]) -> tuple[Figure, ...]:
    """The curve of a section, its bars, and its plots."""
    title = section.table.title
    found: list[Figure] = []
    for part, name in curves(section):
        curve = drawn(curve_chart, part, numbered, f"{title}: curve{f', {name}' if name else ''}")
        if curve is not None and section.table.curve is not None:
            caption = section.table.curve.caption
            found.append(Figure(curve, f"{name}: {caption}" if name else caption))
    bars = drawn(bars_chart, section, numbered, f"{title}: bars")
    if bars is not None and section.table.bars is not None:
        found.append(Figure(bars, section.table.bars.caption))
    narrowing = drawn(narrowing_chart, section, numbered, f"{title}: how it narrowed")
    if narrowing is not None and section.table.narrowing is not None:
        found.append(Figure(narrowing, section.table.narrowing.caption))
    for plot in section.table.plots:
        for part, name in plotted(plot, section):
            label = f"{title}: {plot.y[0].head.lower()}{f', {name}' if name else ''}"
            drawing = drawn(partial(plot_chart, plot), part, numbered, label)
            if drawing is not None:
                found.append(Figure(drawing, f"{name}: {plot.caption}" if name else plot.caption))
    return tuple(found)


def search_figure(report: Report, table: ThroughputTable, numbered: Iterator[int]) -> Figure | None:
    """The trials behind the rates of one frame size alone, where a line over frame sizes would have a single point."""
    if len(table.rows) != 1:
        return None
    behind = set(table.rows[0].result.trials)
    group = next((group for group in report.groups if group.test == table.test), None)
    searched = [
        trial
        for trial in (group.trials if group else ())
        if trial.request.purpose not in CALIBRATION
        and (trial.id in behind or trial.request.frame_bytes == table.rows[0].frame_bytes)
    ]
    drawing = drawn(
        partial(search_chart, trials=searched), table, numbered, "Loss in every trial of the search", "trials.parquet"
    )
    words = f"Every trial of the search at {table.rows[0].size_words}: the share of frames lost, against the load"
    return (
        None if drawing is None else Figure(drawing, f"{words}, {table.scope}. The vertical lines are the rates found.")
    )


def lead(found: Mapping[int, Sequence[Figure]], report: Report, has_throughput: bool) -> Figure | None:
    """What stands first where no throughput was measured: the first figure of the first section that has one."""
    if has_throughput:
        return None
    return next((figures[0] for section in report.sections if (figures := found[id(section)])), None)
