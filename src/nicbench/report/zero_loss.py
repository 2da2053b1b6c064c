"""The zero-loss table, as card makers publish it: frame rate, line rate and its share for each frame size, and bars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import altair as alt

from nicbench.model.rate import Bounded, LimitedBy
from nicbench.model.result import Result, Value
from nicbench.model.table import Column
from nicbench.report.cells import number_of, texts
from nicbench.report.drawing.charts import Format, finished
from nicbench.report.drawing.inline import inline
from nicbench.report.drawing.svg import SERIES
from nicbench.report.model import Report, ThroughputTable

_HEADROOM = 1.06
_RATE, _SHARE = "frame rate", "% of line rate"
COLUMNS: Final = (
    Column(value="size", head="Frame size", unit="bytes", form="text"),
    Column(value="frame_rate_frames_per_s", head="Frame rate", unit="Mpps", form="mpps", is_main=True),
    Column(value="line_rate_frames_per_s", head="Line rate", unit="Mpps", form="mpps"),
    Column(value="percent_of_line_rate", head="% of line rate", form="trimmed"),
)


@dataclass(frozen=True, slots=True)
class ZeroLossTable:
    """One throughput test: the rates without loss. Cells in the order of ``COLUMNS``."""

    scope: str
    rows: tuple[tuple[tuple[str, ...], Result], ...]

    columns = COLUMNS


def zero_loss_table(table: ThroughputTable) -> ZeroLossTable | None:
    """None where no rate without loss was looked for, or none was found."""
    goal = next((goal.key for goal in table.goals if goal.loss_ratio == 0.0), None)
    if goal is None or all(goal not in row.rates or row.rates[goal].value is None for row in table.rows):
        return None
    results = [
        _with(
            row.result,
            row.size,
            {
                "frame_rate_frames_per_s": _plain(row.rates[goal]) if goal in row.rates else None,
                "line_rate_frames_per_s": row.line_rate_frames_per_s,
                "percent_of_line_rate": row.percents.get(goal),
            },
            {"frame_rate_frames_per_s": f"{goal}_frames_per_s", "percent_of_line_rate": f"{goal}_percent_of_line_rate"},
        )
        for row in table.rows
    ]
    cells = zip(*(texts(column, results) for column in COLUMNS), strict=True)
    return ZeroLossTable(table.scope, tuple(zip(cells, results, strict=True)))


def tells_something(table: ZeroLossTable, report: Report) -> bool:
    """Whether bars beside the share of the line rate say more than the rates by themselves: not of a nominal line."""
    return len(table.rows) > 1 and not (report.plan and (report.plan.link_is_nominal or report.plan.simulated))


def zero_loss_chart(table: ZeroLossTable, form: Format) -> dict[str, Any] | None:
    """Bars of the frame rate, and the share of the line rate as a line on an axis of its own."""
    known = [
        (cells[0], rate / 1e6, number_of(result, "percent_of_line_rate"))
        for cells, result in table.rows
        if (rate := number_of(result, "frame_rate_frames_per_s")) is not None
    ]
    if not known:
        return None
    x = alt.X(
        "size:N",
        sort=[cells[0] for cells, _ in table.rows],
        title="frame size [bytes, with FCS]",
        axis=alt.Axis(labelAngle=0, grid=False),
    )
    colour = alt.Color(
        "what:N",
        scale=alt.Scale(domain=[_RATE, _SHARE], range=[SERIES[0], SERIES[1]]),
        legend=alt.Legend(orient="top", title=None, symbolOpacity=1),
    )
    rates = [{"size": size, "value": rate, "what": _RATE} for size, rate, _ in known]
    top = _HEADROOM * max(rate for _, rate, _ in known)
    shares = [{"size": size, "value": share, "what": _SHARE} for size, _, share in known if share is not None]
    bars = alt.Chart(inline(rates)).mark_bar(opacity=0.85, width=min(90, form.width // 2 // len(known)))
    line = alt.Chart(inline(shares)).mark_line(strokeWidth=1.8, point=alt.OverlayMarkDef(size=60))
    rate_scale = alt.Scale(domain=[0, top], nice=False)
    share_axis = alt.Axis(values=[0, 25, 50, 75, 100], grid=False)
    layers = alt.layer(
        bars.encode(x=x, color=colour, y=alt.Y("value:Q", title="frame rate [Mpps]", scale=rate_scale)),
        line.encode(
            x=x,
            color=colour,
            y=alt.Y("value:Q", title=_SHARE, scale=alt.Scale(domain=[0, 105], nice=False), axis=share_axis),
        ),
    )
    return finished(layers.resolve_scale(y="independent"), form)


def _with(result: Result, size: str, values: dict[str, Value], known_as: dict[str, str]) -> Result:
    """The result with the values of this table alone; ``known_as`` are their names in the result itself."""
    imported = result.imported
    if imported is not None:
        digits = {name: imported.printed.get(known_as.get(name, name)) for name in values}
        imported = imported.model_copy(update={"printed": {name: one for name, one in digits.items() if one}})
    parameters = {**result.parameters, "size": size}
    return result.model_copy(update={"parameters": parameters, "values": values, "imported": imported})


def _plain(rate: Bounded) -> Value:
    """More than the line carries is out of the question: there the rate stands without its "at least"."""
    return rate.value if rate.limited_by is LimitedBy.LINE_RATE else rate
