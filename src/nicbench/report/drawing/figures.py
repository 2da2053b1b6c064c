"""The figures of a page, each drawn once in two widths, and the figure that stands first on the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from markupsafe import escape

from nicbench.core.frame_size import size_words
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
from nicbench.report.drawing.svg import identifiers, numbers_behind, svg
from nicbench.report.model import CALIBRATION, Report
from nicbench.report.rates import RatesTable
from nicbench.report.section import Section

SUMMARY: Final = "summary.json"
TRIALS: Final = "trials.parquet"
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
        self._of_rates: dict[tuple[int, str], Figure | None] = {}
        self._of_heat_maps: dict[int, Figure | None] = {}
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

    def draw_panel(self, draw: Draw, subject: Any, label: str, source: str = SUMMARY, name: str = "") -> Panel | None:
        """Returns both drawings of a chart, of which the style sheet shows the one that fits, and the table behind
        them.

        ``source`` is the file of the run folder that has every number; ``name`` distinguishes drawings of one figure.
        Returns None where there is nothing to draw.
        """
        wide = draw(subject, WIDE)
        narrow = None if wide is None else draw(subject, NARROW)
        if wide is None or narrow is None:
            return None
        numbers = numbers_behind(wide, label, source, name) or numbers_behind(narrow, label, source, name)
        return Panel(self._drawing(wide, label), narrow=self._drawing(narrow, label), numbers=numbers)

    def figure(self, draw: Draw, subject: Any, label: str, caption: Part, source: str = SUMMARY) -> Figure | None:
        """Returns the figure of one chart; None where there is nothing to draw."""
        panel = self.draw_panel(draw, subject, label, source)
        return None if panel is None else Figure((panel,), inlines(caption))

    def _drawing(self, specification: Spec, label: str) -> Drawing:
        return drawing(svg(specification, next(self.numbered), str(escape(label))))

    def of_rates(self, rates: RatesTable, goal: Goal) -> Figure | None:
        """Returns the chart of the rates of one goal, configurations side by side; None without anything to draw."""
        key = (id(rates), goal.value)
        if key not in self._of_rates:
            line = "spans the intervals of all runs" if rates.runs > 1 else "is its interval"
            cut = f" {CUT_CAPTION}" if has_cut_intervals(rates, goal) else ""
            self._of_rates[key] = self.figure(
                lambda shown, form: rates_chart(shown, goal, form),
                rates,
                f"{goal.name} by frame size",
                f"{goal.name} ({goal.clause}) by frame size. The line over a bar {line}.{cut}",
            )
        return self._of_rates[key]

    def of_heat_map(self, shown: HeatMap) -> Figure | None:
        """Returns the heat map of a value over the axes of a study; None where fewer than two values are known."""
        if id(shown) not in self._of_heat_maps:
            title = f"{shown.test}: {shown.title}" if shown.test else shown.title
            self._of_heat_maps[id(shown)] = self.figure(heat_chart, shown, title, f"{title}.")
        return self._of_heat_maps[id(shown)]

    def of_section(self, section: Section) -> tuple[Figure, ...]:
        """Returns the figures of a section: its searched rates, curve, bars and plots, and the latency tails of its
        timed frames.
        """
        if id(section) not in self._of_sections:
            self._of_sections[id(section)] = tuple(self._figures_of(section))
        return self._of_sections[id(section)]

    def _figures_of(self, section: Section) -> Iterator[Figure]:
        shown, title = section.table, section.table.title
        yield from self._of_searched_rates(section)
        for part, name in curves(section):
            curve = self.draw_panel(curve_chart, part, f"{title}: curve{f', {name}' if name else ''}")
            if curve is not None and shown.curve is not None:
                caption = shown.curve.caption
                yield Figure((curve,), inlines(f"{name}: {caption}" if name else caption))
        bars = self.draw_panel(bars_chart, section, f"{title}: bars")
        if bars is not None and shown.bars is not None:
            yield Figure((bars,), inlines(shown.bars.caption))
        narrowing = self.draw_panel(narrowing_chart, section, f"{title}: how it narrowed")
        if narrowing is not None and shown.narrowing is not None:
            yield Figure((narrowing,), inlines(shown.narrowing.caption))
        for plot in shown.plots:
            for part, name in split_plots(plot, section):
                label = f"{title}: {plot.y[0].head.lower()}{f', {name}' if name else ''}"
                panel = self.draw_panel(partial(plot_chart, plot), part, label)
                if panel is not None:
                    yield Figure((panel,), inlines(f"{name}: {plot.caption}" if name else plot.caption))
        yield from self._of_further_tables(section)
        yield from self._of_tails(section)

    def _of_searched_rates(self, section: Section) -> Iterator[Figure]:
        """Yields the chart of the trials where there is only one frame size, because a line over sizes would have a
        single point; else the chart of the rates over the sizes.
        """
        search = self._of_search(section) if len(section.rows) == 1 else None
        if search is not None:
            yield search
            return
        caption = rates_by_size_caption(section)
        rates = self.figure(rates_by_size_chart, section, "Frame rate by frame size", caption)
        if rates is not None:
            yield rates

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
        return self.figure(
            partial(search_chart, trials=searched),
            section,
            "Loss in every trial of the search",
            f"{words}, against the load, {section.scope}. The vertical lines are the rates found; no load passed "
            "beyond their bars.",
            TRIALS,
        )

    def _of_further_tables(self, section: Section) -> Iterator[Figure]:
        for further in section.further if tells_something(section) else ():
            title = further.table.title
            told = f"{title}: the frame rate, and its share of the line rate."
            bars = self.figure(share_bars_chart, further, title, told)
            if bars is not None:
                yield bars

    def _of_tails(self, section: Section) -> Iterator[Figure]:
        told = (
            "The tail: read across from 0.1 % to find the latency that one frame in a thousand exceeds. Both axes are "
            "logarithmic; a line ends at its slowest frame."
        )
        tail = self.figure(tail_chart, section, f"{section.table.title}: tail", told, "latency.hlog")
        if tail is not None:
            yield tail
