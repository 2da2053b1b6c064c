"""Configurations side by side: their rates, their values, what each layer costs, and faults that were injected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from nicbench.core.table import Goal
from nicbench.report.comparison import GROWTH_COLUMNS, Comparison, Cost, HeatMap, LayerCosts
from nicbench.report.document.blocks import Block, Cell, Figure, FoldedBlocks, Panel
from nicbench.report.document.making import (
    BREAK,
    NOTHING,
    Part,
    breakable_code,
    caption,
    cell,
    head,
    heading,
    inlines,
    link,
    mark,
    name,
    paragraph,
    set_tone,
    small,
    strong,
    table,
    word_heads,
    words,
)
from nicbench.report.drawing.charts import CUT_CAPTION
from nicbench.report.drawing.figures import Figures
from nicbench.report.drawing.rates import are_numbered, costs_chart, has_cut_intervals, rate_multiples, unit_of
from nicbench.report.injected import InjectedRow
from nicbench.report.model import Report
from nicbench.report.numbers import UNKNOWN, basis_words, significant
from nicbench.report.rates import RateCell, RatesTable
from nicbench.report.sections.results import long_tail, result_table, section_blocks
from nicbench.report.study import place_of_rates

_PER_FRAME: Final = "time that a frame takes more"
_LATENCY: Final = "latency that is added"


def layer_costs_section(costs: LayerCosts, figures: Figures) -> Iterator[Block]:
    """Yields the charts and the table; nothing that is not comparable has a bar or a number."""
    yield heading(2, "What each layer costs", id="layer-costs")
    yield caption(
        f"What each configuration adds to {costs.first}. Time per frame is 1 / {costs.goal}: where one core does all "
        "the work, its time, and less than all cores’ where work is spread. Its interval is that of both rates. A rate "
        "at the line rate or at the tester’s ceiling is not compared. Added latency is the difference of the medians, "
        "only where the load was the same; its interval spans all runs, and of one run there is none. What is marked * "
        "is of a disturbed or incomplete result, and has no bar."
    )
    for shown, title in ((costs.per_frame, _PER_FRAME), (costs.latency, _LATENCY)):
        told = f"{title[0].upper()}{title[1:]}, against {costs.first}. The line over a bar is its interval."
        sound = tuple(cost for cost in shown if cost.doubtful is None)
        draw = partial(costs_chart, names=costs.names, title=title)
        if figure := figures.figure(draw, sound, title, told):
            yield figure
    places = dict.fromkeys((cost.size, cost.configuration) for cost in (*costs.per_frame, *costs.latency))
    of_frames, of_latency = (_by_place(shown) for shown in (costs.per_frame, costs.latency))
    units = [unit_of(shown)[0] for shown in (costs.per_frame, costs.latency)]
    yield table(
        ((*word_heads("Configuration"), head("Frame", "bytes"), head("Time per frame", units[0]),
          head("Latency", units[1])),),
        (
            (
                name(configuration, words=True),
                cell(size),
                _cell(of_frames.get((size, configuration)), costs.per_frame),
                _cell(of_latency.get((size, configuration)), costs.latency),
            )
            for size, configuration in places
        ),
        "result",
    )  # fmt: skip


def _by_place(costs: Sequence[Cost]) -> dict[tuple[str, str], Cost]:
    return {(cost.size, cost.configuration): cost for cost in costs}


def _cell(cost: Cost | None, beside: Sequence[Cost]) -> Cell:
    if cost is None:
        return cell(UNKNOWN)
    factor = unit_of(beside)[1]
    least, most = (significant(value * factor) for value in (cost.lower_ns, cost.upper_ns))
    return cell(
        strong(f"{significant(cost.added_ns * factor)}"),
        mark(cost.doubtful) if cost.doubtful else None,
        BREAK,
        *((small(f"{least} to {most}"),) if least != most else ()),
    )


def compared_configurations(compared: Comparison, report: Report) -> Iterator[Block]:
    """Yields the configurations, the order of their runs, their differences, and how closely their means are known."""
    if compared.compares:
        each = f", {compared.runs} runs each" if compared.runs > 1 else ""
        drift = (
            "; runs come in pairs, the second in reverse order, so that steady drift affects all configurations alike"
        )
        drift = drift if compared.runs > 1 else ""
        single = (
            " With one run each, a change between the runs cannot be told from an effect of the configuration."
            if compared.runs == 1
            else ""
        )
        yield heading(2, "What is compared", id="compared")
        yield caption(
            f"{len(compared.names)} configurations of one bench file{each}. They took turns: "
            f"{', '.join(compared.order)}. Each run makes its own testbed{drift}.{single}"
        )
        if compared.differences:
            yield table(
                (word_heads("Setting", *compared.names),),
                (
                    (
                        name(breakable_code(row.setting), words=True),
                        *(words(_given_part(row.values[each])) for each in compared.names),
                    )
                    for row in compared.differences
                ),
                "result",
            )
    elif compared.runs > 1:
        yield caption(
            f"{compared.runs} runs, each with a testbed of its own. Numbers are medians, with the lowest and "
            "the highest of the runs beneath them."
        )
    yield from _growth(compared)


def over_axes(compared: Comparison, figures: Figures) -> Iterator[Block]:
    """Yields a heat map of each main value over the axes of a study, and its numbers as a table."""
    if not compared.heat_maps:
        return
    yield heading(2, "Over the axes of the study", id="axes")
    beside = " Of several runs it is the median." if compared.runs > 1 else ""
    yield caption(f"Every combination of the axes is a configuration of its own.{beside}")
    for shown in compared.heat_maps:
        figure = figures.of_heat_map(shown)
        if figure is not None and figure is not figures.lead:
            yield figure
        yield FoldedBlocks(inlines(f"{shown.test}: {shown.title}, as a table"), (_axes_table(shown),))


def _axes_table(shown: HeatMap) -> Block:
    rows, columns = (list(dict.fromkeys(side)) for side in zip(*shown.cells, strict=True))
    unit = f" [{shown.shown.unit}]" if shown.shown.unit else ""
    heads = [f"{shown.columns} {column}" if shown.columns else f"{shown.shown.head}{unit}" for column in columns]
    return table(
        ((head(shown.rows), *word_heads(*heads)),),
        ((name(row), *(cell(shown.cells[row, column][1] or UNKNOWN) for column in columns)) for row in rows),
        "result",
    )


def _given_part(value: str | None) -> Part:
    return set_tone("not given", "quiet") if value is None else value


def _growth(compared: Comparison) -> Iterator[Block]:
    growth = compared.growth
    if growth is None:
        return
    sentences = [
        sentence if growth.reached or number == 0 else strong(sentence)
        for number, sentence in enumerate(growth.sentences)
    ]
    told = inlines(*(part for sentence in sentences for part in (sentence, " ")))
    yield caption(told) if growth.reached else paragraph(told)
    if growth.rows:
        about = caption(
            "Mean over the runs and half its confidence interval, by Student’s t; the width is the full width, as "
            "netperf has it. It shows how well runs repeat, not whether all share the same error."
        )
        shown = result_table(GROWTH_COLUMNS, growth.rows)
        summary = inlines("How closely the mean of each main value is known")
        yield FoldedBlocks(summary, (about, shown), is_open=not growth.reached)


def rates(compared: Comparison, report: Report, figures: Figures) -> Iterator[Block]:
    """Yields the rates that a search found for each configuration, side by side."""
    for shown in compared.rates:
        of_test = f": {shown.test}" if len(compared.rates) > 1 else ""
        beside = " side by side" if compared.compares else ""
        yield heading(2, f"{shown.title}{of_test}{beside}", id=place_of_rates(shown).id)
        yield caption(*_about_rates(shown, compared, report))
        for goal in shown.goals:
            yield from _of_goal(shown, goal, compared, figures)
    if compared.layers is not None:
        yield from layer_costs_section(compared.layers, figures)


def _about_rates(shown: RatesTable, compared: Comparison, report: Report) -> Iterator[Part]:
    yield f"Frame rates are {basis_words(shown.scope)}. "
    yield from (f"{goal.name}: {goal.clause}. " for goal in shown.goals if goal.loss_ratio is not None)
    if shown.runs > 1:
        beneath = "" if shown.is_long else ", with the lowest and the highest beneath it"
        yield f"The rate is the median of the runs{beneath}. "
    elif not shown.is_long:
        yield "The interval of each rate stands beneath it. "
    if compared.compares and not shown.is_long:
        yield f"“Against {compared.names[0]}” has a number where a difference is claimed"
        if report.statistics and report.statistics.differences:
            yield from (" (", link("how", "#differences"), ").")
        else:
            yield ": the runs show it (four of each at least), and the intervals of the rates do not overlap."


def _of_goal(shown: RatesTable, goal: Goal, compared: Comparison, figures: Figures) -> Iterator[Block]:
    figure = figures.of_rates(shown, goal)
    if figure and figure is not figures.lead:
        yield figure
    if shown.is_broad:
        yield from rates_by_configuration(shown, goal)
    if multiples := rate_multiples(shown, goal, figures.numbered):
        yield from _small_charts(shown, goal, multiples)
    if not shown.is_broad:
        yield _upright(shown, goal, compared)


def _small_charts(shown: RatesTable, goal: Goal, panels: Sequence[Panel]) -> Iterator[Block]:
    """Yields a chart for each frame size; where rows are numbered, folded and with three charts in a row."""
    numbered = are_numbered(shown)
    parts = _slice_panels(panels, (len(panels) + 2) // 3 if numbered else 1)
    as_numbered = " Rows are numbered as in the table above." if numbered else ""
    span = "spans the intervals of its runs" if shown.runs > 1 else "is the interval of the rate"
    below = caption(
        f"{goal.name} ({goal.clause}), a chart for each frame size; axes do not begin at 0.{as_numbered} The bar "
        f"behind a point {span}.{f' {CUT_CAPTION}' if has_cut_intervals(shown, goal) else ''}"
    )
    blocks: tuple[Block, ...] = (*(Figure(tuple(part), look="multiples") for part in parts), below)
    if numbered:
        yield FoldedBlocks(inlines("The same as charts, with the interval of each rate"), blocks)
    else:
        yield from blocks


def _slice_panels(panels: Sequence[Panel], number: int) -> Iterator[Sequence[Panel]]:
    """Splits the panels into ``number`` parts of nearly equal length."""
    length, longer = divmod(len(panels), number)
    at = 0
    for part in range(number):
        end = at + length + (part < longer)
        yield panels[at:end]
        at = end


def _upright(shown: RatesTable, goal: Goal, compared: Comparison) -> Block:
    """Returns a table with columns for each configuration, those of line-rate shares only where a share is known."""
    rates = [rate for row in shown.rows for rate in row.cells[goal.value]]
    has_shares = any(rate.percent_of_line_rate != UNKNOWN for rate in rates)
    of_names = (
        each
        for number, _ in enumerate(shown.names)
        for each in (
            head(goal.name, shown.unit(goal)),
            has_shares and head("% of\nline rate"),
            number > 0 and head(f"Against\n{shown.names[0]}"),
        )
    )
    spans = (
        head(each if compared.compares else goal.name, columns=1 + has_shares + bool(number))
        for number, each in enumerate(shown.names)
    )
    return table(
        ((NOTHING, *spans), (head("Frame", "bytes"), *of_names)),
        (
            (
                name(row.size),
                *(
                    each
                    for number, rate in enumerate(row.cells[goal.value])
                    for each in (
                        cell(*_rate(rate), *((BREAK, small(rate.within)) if rate.within else ())),
                        has_shares and cell(rate.percent_of_line_rate),
                        number > 0 and cell(rate.against_first),
                    )
                ),
            )
            for row in shown.rows
        ),
        "result",
    )


def rates_by_configuration(shown: RatesTable, goal: Goal) -> Iterator[Block]:
    """Yields a table with a row for each of many configurations and a column for each frame size."""
    numbered = are_numbered(shown)
    over = head(f"{goal.name} [{shown.unit(goal)}], by frame size [bytes]", columns=len(shown.rows))
    yield table(
        ((NOTHING, over), (*word_heads("Configuration"), *(head(row.size) for row in shown.rows))),
        (
            (
                name(*((small(str(place + 1)), " ") if numbered else ()), configuration, words=True),
                *(_transposed_cell(shown, goal, at, place) for at in range(len(shown.rows))),
            )
            for place, configuration in enumerate(shown.names)
        ),
        "heat",
    )
    within = "the lowest and the highest of its runs" if shown.runs > 1 else "its interval"
    beneath = "" if shown.is_long else f" Beneath each rate stand {within}, and its difference from {shown.names[0]}."
    yield caption(f"The darker a cell, the higher its rate among those of its frame size.{beneath}")


def _transposed_cell(shown: RatesTable, goal: Goal, at: int, place: int) -> Cell:
    row = shown.rows[at]
    rate = row.cells[goal.value][place]
    told = []
    if not shown.is_long:
        told += [BREAK, small(rate.within)] if rate.within else []
        told += [BREAK, small(rate.against_first)] if place and rate.against_first != UNKNOWN else []
    return Cell(inlines(*_rate(rate), *told), heat=row.heat(goal.value, place))


def _rate(rate: RateCell) -> tuple[Part, ...]:
    doubtful = next((result for result in rate.results if result.verdict.value != "valid"), None)
    return (strong(rate.text), mark(doubtful) if doubtful else None)


def every_value(
    compared: Comparison, report: Report, figures: Figures, *, most_bars: int | None = None
) -> Iterator[Block]:
    """Yields the methods' sections and the long tails; a tail with more than ``most_bars`` rows gets no figure."""
    for section in compared.sections:
        if not section.is_bare:
            yield from section_blocks(section, report, figures)
    for number, tail in enumerate(compared.tails):
        is_drawn = most_bars is None or len(tail.rows) <= most_bars
        yield from long_tail(tail, report, figures, is_first=number == 0, is_drawn=is_drawn, runs=compared.runs)


def injected_faults(rows: Sequence[InjectedRow]) -> Iterator[Block]:
    """Yields a table of the faults that a DUT injected on purpose, with what was measured of them."""
    if not rows:
        return
    other = sum(1 for row in rows if row.agrees is False)
    agrees: Part = (
        strong(f"{other} of {len(rows)} rows do not agree.") if other else "Every row that can be judged agrees."
    )
    yield heading(2, "Injected and measured")
    yield caption(
        "The DUT injects faults on purpose: the method must find them, and nothing else. A share agrees where its "
        "exact 99.9 % interval, in brackets behind what was counted, holds the one that was injected. A delay agrees "
        "where no frame was faster, and where the median is no more above it than 99 % of the frames took in the "
        "configuration without faults; a jitter by the range of the middle half of the frames, within 15 %. ",
        agrees,
    )
    titles = (
        *word_heads("Configuration"),
        head("Frame", "bytes"),
        *word_heads("Fault", "Injected", "Agrees", "Measured", "To be expected"),
    )
    yield table(
        (titles,),
        (
            (
                name(row.configuration, mark(row.result), words=True),
                cell(row.size),
                words(row.fault),
                words(row.injected),
                words(strong(UNKNOWN if row.agrees is None else "yes" if row.agrees else "no")),
                words(row.measured),
                words(row.expected),
            )
            for row in rows
        ),
        "result",
    )
