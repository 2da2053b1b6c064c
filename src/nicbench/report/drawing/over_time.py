"""The charts of what happened over a run.

A CPU: its time by state, stacked, with the trials above it. A machine: what it transferred, a line for each direction
of each interface or drive. A link that failed: what each client transferred, with the time in which the link was down
in the background.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, Final, Literal

import altair as alt

from nicbench.report.bonds import FailedLink
from nicbench.report.document.blocks import Figure
from nicbench.report.document.making import inlines, superscript
from nicbench.report.drawing.charts import DASHES, Format, finish_chart
from nicbench.report.drawing.figures import Figures
from nicbench.report.drawing.svg import INK, MUTED, SERIES, inline
from nicbench.report.watched import RECORDING, CpuSeries, Flow, MovedData, Slice, WatchedMachine
from nicbench.stats.cpu import add_times

STATES: dict[str, tuple[str, ...]] = {
    "programs": ("user", "nice", "guest"),
    "kernel": ("system",),
    "interrupts and softirqs": ("irq", "softirq"),
    "taken by the hypervisor": ("steal",),
}
_COLOURS = (SERIES[0], SERIES[5], SERIES[1], SERIES[6])
_Side = Literal["left", "right"]
_HEIGHT = 110
_STRIP = (-8, -4)
"""The place of the trials, in pixels above the plot."""
_STEPS = {True: 300, False: 120}  # wide and narrow: more would be finer than the lines


def watched_figure(view: WatchedMachine, figures: Figures) -> Figure | None:
    """Returns a figure with a drawing for each CPU: the first has the legend and the names of the phases, the last the
    title of the x axis.
    """
    panels = []
    for number, series in enumerate(view.series):
        is_last = number == len(view.series) - 1
        draw = partial(cpu_chart, view=view, is_first=number == 0, is_last=is_last)
        label = f"{view.host}, {series.name}: time by state over the run"
        panel = figures.draw_panel(draw, series, label, "monitor.parquet", series.name)
        if panel is not None:
            panels.append(panel)
    if not panels:
        return None
    waiting = ", or waited for a drive" if view.what == RECORDING else ""
    bars = f" The bars above are the {view.what}." if view.spans else ""
    steps = " The monitor paused during trials, so each trial is one step: its mean."
    paused = steps if view.plan and view.plan.paused else ""
    below = f"How each CPU spent its time; blank is idle{waiting}.{bars}{paused}"
    return Figure(tuple(panels), inlines(below))


def cpu_chart(
    series: CpuSeries, form: Format, *, view: WatchedMachine, is_first: bool, is_last: bool
) -> dict[str, Any] | None:
    """Returns the chart of one CPU; None where nothing was sampled."""
    steps = merge_steps(series.slices, _STEPS[form.width > 500])
    if not steps:
        return None
    begin_s, end_s = steps[0].begin_s, steps[-1].end_s
    told = {name: states for name, states in STATES.items() if any(set(states) & {*s.spent.by_state} for s in steps)}
    points = [
        {"t": round(time_s, 3), "state": name, "share": round(100.0 * (step.spent.share(*states) or 0.0), 2)}
        for step in steps
        for time_s in ((step.begin_s, step.end_s) if step is steps[-1] else (step.begin_s,))
        for name, states in told.items()
    ]
    began = "recording" if view.what == RECORDING else "run"
    over_time: dict[str, Any] = {
        "title": f"time since the {began} began [s]" if is_last else None,
        "scale": alt.Scale(domain=[begin_s, end_s], nice=False),
        "axis": alt.Axis(grid=False, labels=is_last, ticks=is_last),
    }
    y_axis = alt.Axis(values=[0, 50, 100], titleFontSize=form.font)
    y = alt.Y("share:Q", title=_short(series.name, form), scale=alt.Scale(domain=[0, 100]), axis=y_axis, stack="zero")
    legend = alt.Legend(orient="top", title=None, columns=max(2, form.columns // 2), labelLimit=0, offset=26)
    names = list(told)
    colours = alt.Scale(domain=names, range=[_COLOURS[list(STATES).index(name)] for name in names])
    colour = alt.Color("state:N", sort=names, scale=colours, legend=legend if is_first else None)
    layers: list[Any] = []
    spans = [{"from": span.begin_s, "to": span.end_s} for span in view.spans]
    if spans:
        above = alt.Chart(inline(spans)).mark_rect(color=MUTED)
        strip = {"y": alt.value(_STRIP[0]), "y2": alt.value(_STRIP[1])}
        layers.append(above.encode(x=alt.X("from:Q", **over_time), x2="to:Q", **strip))
    area = alt.Chart(inline(points)).mark_area(interpolate="step-after", opacity=0.9)
    said = [
        alt.Tooltip("t:Q", title="time since the run began [s]"),
        alt.Tooltip("share:Q", title=f"{series.name} [%]"),
    ]
    area = area.encode(x=alt.X("t:Q", **over_time), y=y, color=colour, order=alt.Order("order:Q"), tooltip=said)
    layers.append(area.transform_calculate(order=_order()))
    for align, labels in _phases(view, form, end_s).items() if is_first else ():
        named = alt.Chart(inline(labels))
        marks = named.mark_text(align=align, baseline="bottom", fontSize=form.font - 1, color=INK)
        layers.append(marks.encode(x=alt.X("at:Q", **over_time), y=alt.value(_STRIP[0] - 2), text="name:N"))
    return finish_chart(alt.layer(*layers), replace(form, height=_HEIGHT))


def merge_steps(slices: Sequence[Slice], most: int) -> tuple[Slice, ...]:
    """Returns about ``most`` steps at most: neighbouring slices are merged, but never a trial with what
    is beside it.
    """
    if not slices:
        return ()
    least_s = (slices[-1].end_s - slices[0].begin_s) / most
    steps: list[Slice] = []
    for one in slices:
        last = steps[-1] if steps else None
        if last is not None and last.trial == one.trial and last.end_s - last.begin_s < least_s:
            steps[-1] = Slice(last.begin_s, one.end_s, one.trial, add_times((last.spent, one.spent)))
        else:
            steps.append(one)
    return tuple(steps)


def _short(name: str, form: Format) -> str:
    return f"{name.partition(',')[0]} [%]" if form.width < 500 else f"{name} [%]"


def _order() -> str:
    """Returns the expression that stacks the states in the order of the legend."""
    return f"indexof({list(STATES)!r}, datum.state)"


def _phases(view: WatchedMachine, form: Format, end_s: float) -> dict[_Side, list[dict[str, Any]]]:
    """Returns where each phase begins for the first time, by the side on which its name stands; near the end that may
    have to be the left. Names that would overlap are left out; the table has all of them.
    """
    first: dict[str, float] = {}
    for span in view.spans:
        first.setdefault(span.name, span.begin_s)
    letter_s = 0.5 * (form.font - 1) / form.width * (end_s - view.series[0].slices[0].begin_s)
    sides: dict[_Side, list[dict[str, Any]]] = {}
    free_s = 0.0
    for name, from_s in first.items():
        length_s = letter_s * (len(name) + 1)
        is_last = from_s + length_s > end_s
        begin_s = end_s - length_s if is_last else from_s
        if begin_s >= free_s:
            side: _Side = "right" if is_last else "left"
            sides.setdefault(side, []).append({"name": name, "at": end_s if is_last else from_s})
            free_s = begin_s + length_s
    return sides


_MOVED_HEIGHT: Final = 150
_MOVED_STEPS: Final = {True: 300, False: 120}
"""The most steps of a line, in a wide chart (True) and in a narrow one (False): more would be finer than the line."""
_MOVED_HEADROOM: Final = 1.06


def moved_figure(moved: MovedData, host: str, figures: Figures) -> Figure | None:
    """Returns the figure of what a machine transferred; None where it transferred nothing."""
    panel = figures.draw_panel(moved_chart, moved, f"{host}, {moved.kind.name.lower()}: MB/s over time")
    below = (
        f"{moved.kind.name} of {host} over time, 10",
        superscript("6"),
        " bytes per second, the mean of each snapshot.",
    )
    return None if panel is None else Figure((panel,), inlines(*below))


def moved_chart(moved: MovedData, form: Format) -> dict[str, Any] | None:
    """Returns the chart of what a machine transferred; None where it transferred nothing."""
    points: list[dict[str, Any]] = [
        {"t": round(at_s, 3), "rate": rate, "line": flow.name}
        for flow in moved.flows
        for at_s, rate in _iterate_steps(flow, _MOVED_STEPS[form.width > 500])
    ]
    top = max((point["rate"] for point in points), default=0.0)
    if not top:
        return None
    names = [flow.name for flow in moved.flows]
    # A colour for each interface, a dash for each way.
    ways = len(moved.kind.ways)
    colours = [SERIES[number // ways % len(SERIES)] for number in range(len(names))]
    dashes = [DASHES[number % ways] for number in range(len(names))]
    columns = max(1, form.columns * 9 // max(map(len, names)))
    legend = alt.Legend(orient="top", title=None, columns=columns, labelLimit=0, symbolStrokeWidth=2)
    end_s = max(point["t"] for point in points)
    begin_s = min(point["t"] for point in points)
    title = "time since the recording began [s]"
    chart = alt.Chart(inline(points)).mark_line(interpolate="step-after", strokeWidth=1.6)
    chart = chart.encode(
        x=alt.X("t:Q", title=title, scale=alt.Scale(domain=[begin_s, end_s], nice=False), axis=alt.Axis(grid=False)),
        y=alt.Y(
            "rate:Q", title=f"{moved.kind.name} [MB/s]", scale=alt.Scale(domain=[0, top * _MOVED_HEADROOM], nice=False)
        ),
        color=alt.Color("line:N", sort=names, scale=alt.Scale(domain=names, range=colours), legend=legend),
        strokeDash=alt.StrokeDash("line:N", sort=names, scale=alt.Scale(domain=names, range=dashes), legend=legend),
    )
    return finish_chart(alt.layer(chart), replace(form, height=_MOVED_HEIGHT))


def _iterate_steps(flow: Flow, most: int) -> Iterator[tuple[float, float]]:
    """Yields where each step begins, with its rate in MB/s, and where the last step ends; neighbouring steps are
    merged.
    """
    steps = flow.steps
    least_s = (steps[-1].end_s - steps[0].begin_s) / most
    begin_s, amount, rate = steps[0].begin_s, 0, 0.0
    for number, step in enumerate(steps):
        amount += step.moved_bytes
        if step.end_s - begin_s >= least_s or number == len(steps) - 1:
            rate = amount / max(step.end_s - begin_s, 1e-9) / 1e6
            yield begin_s, rate
            begin_s, amount = step.end_s, 0
    yield steps[-1].end_s, rate


_FAILED_LINK_HEIGHT: Final = 190
_FAILED_LINK_HEADROOM: Final = 1.12


def failed_link_figure(failed: FailedLink, figures: Figures) -> Figure | None:
    """Returns the figure of a link that failed; None where no tool reported what it transferred over time."""
    caption = (
        "What each client moved, by its tool’s word, the mean of each of its intervals, from when it was started, "
        "which is a moment before its first byte. The link was down in the shaded time."
    )
    return figures.figure(failed_link_chart, failed, f"{failed.id}: what each client moved over time", caption)


def failed_link_chart(failed: FailedLink, form: Format) -> dict[str, Any] | None:
    """Returns a chart with steps: the mean of each interval that the tool reports."""
    points = [
        {"t": round(time_s, 3), "rate": one.bits_per_s / 1e6, "line": one.who}
        for one, last in _with_last(failed)
        for time_s in ((one.begin_s, one.end_s) if last else (one.begin_s,))
    ]
    if not points:
        return None
    names = list(dict.fromkeys(one.who for one in failed.moved))
    end_s = max(one.end_s for one in failed.moved)
    top = max(one.bits_per_s for one in failed.moved) / 1e6 * _FAILED_LINK_HEADROOM or 1.0
    x = alt.Scale(domain=[0, end_s], nice=False)
    axis = alt.Axis(grid=False)
    title = "time since the clients began [s]"
    down = [{"from": failed.down_at_s, "to": min(failed.up_at_s or end_s, end_s), "what": "link down"}]
    behind = alt.Chart(inline(down))
    shade = behind.mark_rect(color=MUTED, opacity=0.22).encode(
        x=alt.X("from:Q", title=title, scale=x, axis=axis), x2="to:Q", y=alt.value(0), y2=alt.value(_FAILED_LINK_HEIGHT)
    )
    named = behind.mark_text(align="left", baseline="top", dx=4, dy=4, fontSize=form.font - 1, color=INK)
    legend = alt.Legend(orient="top", title=None, columns=form.columns, labelLimit=0, symbolStrokeWidth=2)
    colours = alt.Scale(domain=names, range=[SERIES[number % len(SERIES)] for number in range(len(names))])
    dashes = alt.Scale(domain=names, range=[DASHES[number % len(DASHES)] for number in range(len(names))])
    lines = alt.Chart(inline(points)).mark_line(interpolate="step-after", strokeWidth=1.8)
    lines = lines.encode(
        x=alt.X("t:Q", title=title, scale=x, axis=axis),
        y=alt.Y("rate:Q", title="throughput [Mb/s]", scale=alt.Scale(domain=[0, top], nice=False)),
        color=alt.Color("line:N", sort=names, scale=colours, legend=legend),
        strokeDash=alt.StrokeDash("line:N", sort=names, scale=dashes, legend=legend),
    )
    layers = (shade, named.encode(x=alt.X("from:Q", title=title, scale=x), y=alt.value(0), text="what:N"), lines)
    return finish_chart(alt.layer(*layers), replace(form, height=_FAILED_LINK_HEIGHT))


def _with_last(failed: FailedLink) -> Iterator[tuple[Any, bool]]:
    """Yields each interval, and whether it is the last of its client."""
    for one, after in pairwise((*failed.moved, None)):
        if one is not None:
            yield one, after is None or after.who != one.who
