"""What small charts with a column for each run share: their size, the numbers of the runs, and the parts between which
configurations are apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from nicbench.report.drawing.charts import Format
from nicbench.report.drawing.svg import GRID, inline

FORM: Final = Format(width=292, height=150, font=11, columns=4)
"""Width and height fit a narrow phone screen; on a wide page several charts stand in a row."""


def ticks_of_runs(runs: int) -> list[int]:
    """Returns the numbers of the runs with a tick: the first and then every fifth or so; all if there are few."""
    if runs <= 6:
        return list(range(1, runs + 1))
    step = 5 if runs <= 25 else 10 * -(-runs // 60)
    return [1, *range(step, runs + 1, step)]


def stride_of(runs: int) -> int:
    """Returns the distance in columns from one configuration to the next, with an empty column on each side."""
    return runs + 2


def draw_parts(names: Sequence[str], runs: int, x: alt.X, colour: alt.Color, *, named: bool) -> list[Any]:
    """Returns the lines between configurations and, where they are ``named``, their names above."""
    stride = stride_of(runs)
    layers: list[Any] = []
    if len(names) > 1:
        between = [{"x": number * stride - 0.5} for number in range(1, len(names))]
        layers.append(alt.Chart(inline(between)).mark_rule(color=GRID, aria=False).encode(x=x))
    if named:
        heads = [{"x": place * stride + (runs + 1) / 2, "name": name} for place, name in enumerate(names)]
        text = alt.Chart(inline(heads)).mark_text(
            align="center",
            baseline="bottom",
            fontSize=FORM.font,
            fontWeight="bold",
            limit=round(FORM.width / len(names)),
            aria=False,
        )
        layers.append(text.encode(x=x, y=alt.value(-3), text="name:N", color=colour))
    return layers
