"""The section "What each layer costs": the time and the latency that each DUT adds to the first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from nicbench.report.document.blocks import Block, Cell
from nicbench.report.document.inlines import BREAK, mark, small, strong
from nicbench.report.document.tables import caption, cell, head, heading, name, table, word_heads
from nicbench.report.drawing.figures import Figures
from nicbench.report.drawing.layer_costs import CostsOf, costs_chart, unit_of
from nicbench.report.numbers import UNKNOWN, significant
from nicbench.report.statistics.layer_costs import Cost, LayerCosts

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
        if figure := figures.figure(costs_chart, CostsOf(sound, costs.names, title), title, told):
            yield figure
    places = dict.fromkeys((cost.size, cost.configuration) for cost in (*costs.per_frame, *costs.latency))
    of_frames, of_latency = (_by_place(shown) for shown in (costs.per_frame, costs.latency))
    units = [unit_of(shown)[0] if shown else "ns" for shown in (costs.per_frame, costs.latency)]
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
