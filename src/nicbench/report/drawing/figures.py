"""The figures of a page, each drawn once in two widths, and the figure that stands first on the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from markupsafe import escape

from nicbench.core.frame_size import size_words
from nicbench.core.lists import without_none
from nicbench.core.table import Goal
from nicbench.core.trial import Purpose
from nicbench.report.comparison import HeatMap
from nicbench.report.document.blocks import Drawing, Figure, Panel
from nicbench.report.document.finishing import drawing
from nicbench.report.document.making import Part, inlines
from nicbench.report.drawing.charts import CUT_CAPTION, rates_by_size_caption, rates_by_size_chart, tail_chart
from nicbench.report.drawing.kit import NARROW, WIDE, Format, Spec
from nicbench.report.drawing.plots import (
    bars_chart,
    curve_chart,
    curves,
    heat_chart,
    plot_chart,
    share_bars_chart,
    split_plots,
    tells_something,
)
from nicbench.report.drawing.rates import has_cut_intervals, narrowing_chart, rates_chart, search_chart
from nicbench.report.drawing.svg import identifiers, svg
from nicbench.report.model import CALIBRATION, Report
from nicbench.report.rates import RatesTable
from nicbench.report.section import Section

Draw = Callable[[Any, Format], Spec | None]


class Figures:
    """Draws the figures of one page; their ids are unique on it. ``is_alone`` is False where configurations are
    compared: then figures show the comparison, and single runs have only tables. With ``has_lead``, the page opens with
    the figure ``lead``, which does not stand in its section again.
    """

    def __init__(self, report: Report, *, has_lead: bool = True) -> None:
        self.report = report
        self.is_alone = report.comparison is None
        self.numbered = identifiers()
        self._of_sections: dict[int, tuple[Figure, ...]] = {}
        self._of_comparisons: dict[tuple[int, str], Figure | None] = {}
        self.lead = self._lead() if has_lead else None

    def _lead(self) -> Figure | None:
        """Returns the figure that stands first on the page: the heat map of a study with axes, or the first rates of
        configurations side by side, or else the first figure of the first section that has one. A study of editors has
        a chart of its own.
        """
        compared = self.report.comparison
        # Of several maps the first of a rate: that is what a study over axes is mostly made for.
        for shown in sorted(compared.heat_maps, key=lambda each: not each.is_of_rate) if compared else ():
            if (figure := self.of_heat_map(shown)) is not None:
                return figure
        for rates in compared.rates if compared else ():
            if (figure := self.of_rates(rates, rates.goals[0])) is not None:
                return figure
        if self.report.studies:
            return None
        sections = compared.sections if compared else self.report.sections
        return next((found[0] for section in sections if (found := self.of_section(section))), None)

    def draw_panel(self, draw: Draw, subject: Any, label: str) -> Panel | None:
        """Returns both drawings of a chart, of which the style sheet shows the one that fits; None where there is
        nothing to draw.
        """
        wide = draw(subject, WIDE)
        narrow = None if wide is None else draw(subject, NARROW)
        if wide is None or narrow is None:
            return None
        return Panel(self._drawing(wide, label), narrow=self._drawing(narrow, label))

    def figure(self, draw: Draw, subject: Any, label: str, caption: Part) -> Figure | None:
        """Returns the figure of one chart; None where there is nothing to draw."""
        panel = self.draw_panel(draw, subject, label)
        return None if panel is None else Figure((panel,), inlines(caption))

    def _drawing(self, specification: Spec, label: str) -> Drawing:
        return drawing(svg(specification, next(self.numbered), str(escape(label))))

    def of_rates(self, rates: RatesTable, goal: Goal) -> Figure | None:
        """Returns the chart of the rates of one goal, configurations side by side; None without anything to draw."""
        key = (id(rates), goal.value)
        if key not in self._of_comparisons:
            line = "spans the intervals of all runs" if rates.runs > 1 else "is its interval"
            cut = f" {CUT_CAPTION}" if has_cut_intervals(rates, goal) else ""
            self._of_comparisons[key] = self.figure(
                lambda shown, form: rates_chart(shown, goal, form),
                rates,
                f"{goal.name} by frame size",
                f"{goal.name} ({goal.clause}) by frame size. The line over a bar {line}.{cut}",
            )
        return self._of_comparisons[key]

    def of_heat_map(self, shown: HeatMap) -> Figure | None:
        """Returns the heat map of a value over the axes of a study; None where fewer than two values are known."""
        key = (id(shown), "")
        if key not in self._of_comparisons:
            title = f"{shown.test}: {shown.title}" if shown.test else shown.title
            self._of_comparisons[key] = self.figure(heat_chart, shown, title, f"{title}.")
        return self._of_comparisons[key]

    def of_section(self, section: Section) -> tuple[Figure, ...]:
        """Returns the figures of a section: its searched rates, curve, bars and plots, and the latency tails of its
        timed frames.
        """
        if id(section) not in self._of_sections:
            search = self._of_search(section) if len(section.rows) == 1 else None
            asked = self._asked_of(section, has_search=search is not None)
            drawn = (search, *(self.figure(*each) for each in asked))
            self._of_sections[id(section)] = tuple(without_none(drawn))
        return self._of_sections[id(section)]

    def _asked_of(self, section: Section, *, has_search: bool) -> Iterator[tuple[Draw, Any, str, str]]:
        """Yields what ``figure`` is to draw of a section: its rates over the sizes, unless it has the chart of the
        trials of a single frame size, over which a line would have one point.
        """
        shown, title = section.table, section.table.title
        if not has_search:
            caption = rates_by_size_caption(section)
            yield rates_by_size_chart, section, "Frame rate by frame size", caption
        for part, name in curves(section):
            told = shown.curve.caption if shown.curve else ""
            yield curve_chart, part, f"{title}: curve{f', {name}' if name else ''}", _of_part(name, told)
        if shown.bars is not None:
            yield bars_chart, section, f"{title}: bars", shown.bars.caption
        if shown.narrowing is not None:
            yield narrowing_chart, section, f"{title}: how it narrowed", shown.narrowing.caption
        for plot in shown.plots:
            for part, name in split_plots(plot, section):
                label = f"{title}: {plot.y[0].head.lower()}{f', {name}' if name else ''}"
                yield partial(plot_chart, plot), part, label, _of_part(name, plot.caption)
        for further in section.further if tells_something(section) else ():
            told = f"{further.table.title}: the frame rate, and its share of the line rate."
            yield share_bars_chart, further, further.table.title, told
        told = (
            "The tail: read across from 0.1 % to find the latency that one frame in a thousand exceeds. Both axes are "
            "logarithmic; a line ends at its slowest frame."
        )
        yield tail_chart, section, f"{title}: tail", told

    def _of_search(self, section: Section) -> Figure | None:
        row = section.rows[0]
        behind, size = set(row.result.trials), row.result.parameters.get("frame_bytes")
        searched = [
            trial
            for trial in section.known.trials.values()
            if trial.test == section.test
            and trial.request.purpose not in (*CALIBRATION, Purpose.CONNECTIONS)  # which are all at one load
            and (trial.id in behind or trial.request.frame_bytes == size)
        ]
        words = f"Every trial of the search at {size_words(row.result.parameters)}: the share of frames lost"
        scope = f", {section.scope}" if section.scope else ""
        return self.figure(
            partial(search_chart, trials=searched),
            section,
            "Loss in every trial of the search",
            f"{words}, against the load{scope}. The vertical lines are the rates found; no load passed "
            "beyond their bars.",
        )


def _of_part(name: str, caption: str) -> str:
    """Returns the caption of a part of a section, which begins with its name where there are several."""
    return f"{name}: {caption}" if name else caption
