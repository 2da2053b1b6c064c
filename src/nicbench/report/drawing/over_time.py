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
from typing import Any, Final

from nicbench.core.round import Round
from nicbench.report.document.blocks import Figure
from nicbench.report.document.making import inlines, superscript
from nicbench.report.drawing.figures import Figures
from nicbench.report.drawing.kit import DASHES, Format, Spec, channel, finish_chart, from_to, legend, marks, told_apart
from nicbench.report.drawing.svg import INK, MUTED, SERIES
from nicbench.report.watched import RECORDING, Flow, MovedData, Slice, WatchedMachine
from nicbench.stats.cpu import add_times
from nicbench.stats.links import moved_intervals

STATES: dict[str, tuple[str, ...]] = {
    "programs": ("user", "nice", "guest"),
    "kernel": ("system",),
    "interrupts and softirqs": ("irq", "softirq"),
    "taken by the hypervisor": ("steal",),
}
_COLOURS = (SERIES[0], SERIES[5], SERIES[1], SERIES[6])
_CPU_HEIGHT, _MOVED_HEIGHT, _FAILED_LINK_HEIGHT = 110, 150, 190
_STRIP = (-8, -4)
"""The place of the trials, in pixels above the plot."""
_STEPS: Final = {True: 300, False: 120}
"""The most steps of a line, in a wide chart (True) and in a narrow one (False): more would be finer than the line."""


def watched_figure(view: WatchedMachine, figures: Figures) -> Figure | None:
    """Returns a figure with a drawing for each CPU: the first has the legend and the names of the phases, the last the
    title of the x axis.
    """
    panels = []
    for number, cpu in enumerate(view.series):
        is_last = number == len(view.series) - 1
        draw = partial(cpu_chart, view=view, is_first=number == 0, is_last=is_last)
        label = f"{view.host}, {cpu}: time by state over the run"
        panel = figures.draw_panel(draw, cpu, label)
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


def cpu_chart(cpu: str, form: Format, *, view: WatchedMachine, is_first: bool, is_last: bool) -> Spec | None:
    """Returns the chart of one CPU; None where nothing was sampled."""
    steps = merge_steps(view.series[cpu], _STEPS[form.is_wide])
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
    over_time = {
        "title": f"time since the {began} began [s]" if is_last else None,
        "scale": from_to(begin_s, end_s),
        "axis": {"grid": False, "labels": is_last, "ticks": is_last},
    }
    short = cpu if form.is_wide else cpu.partition(",")[0]
    axis = {"values": [0, 50, 100], "titleFontSize": form.font}
    names = list(told)
    shown = legend(names, form, columns=max(2, form.columns // 2), labelLimit=0, offset=26) if is_first else None
    colours = [_COLOURS[list(STATES).index(name)] for name in names]
    area = marks(
        points,
        "area",
        {"interpolate": "step-after", "opacity": 0.9},
        x=channel("t:Q", **over_time),
        y=channel("share:Q", title=f"{short} [%]", scale={"domain": [0, 100]}, axis=axis, stack="zero"),
        color=told_apart("state", names, colours, sort=names, legend=shown),
        order="order:Q",
        tooltip=[
            channel("t:Q", title="time since the run began [s]"),
            channel("share:Q", title=f"{cpu} [%]"),
        ],
    )
    # States are stacked in the order of the legend.
    area["transform"] = [{"calculate": f"indexof({list(STATES)!r}, datum.state)", "as": "order"}]
    layers = []
    if spans := [{"from": span.begin_s, "to": span.end_s} for span in view.spans]:
        strip = {"y": {"value": _STRIP[0]}, "y2": {"value": _STRIP[1]}}
        layers.append(marks(spans, "rect", {"color": MUTED}, x=channel("from:Q", **over_time), x2="to", **strip))
    layers.append(area)
    for align, labels in _phases(view, form, end_s).items() if is_first else ():
        look = {"align": align, "baseline": "bottom", "fontSize": form.font - 1, "color": INK}
        place = {"x": channel("at:Q", **over_time), "y": {"value": _STRIP[0] - 2}}
        layers.append(marks(labels, "text", look, **place, text="name:N"))
    return finish_chart(replace(form, height=_CPU_HEIGHT), *layers)


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


def _phases(view: WatchedMachine, form: Format, end_s: float) -> dict[str, list[dict[str, Any]]]:
    """Returns where each phase begins for the first time, by the side on which its name stands; near the end that may
    have to be the left. Names that would overlap are left out; the table has all of them.
    """
    first: dict[str, float] = {}
    for span in view.spans:
        first.setdefault(span.name, span.begin_s)
    letter_s = 0.5 * (form.font - 1) / form.width * (end_s - next(iter(view.series.values()))[0].begin_s)
    sides: dict[str, list[dict[str, Any]]] = {}
    free_s = 0.0
    for name, from_s in first.items():
        length_s = letter_s * (len(name) + 1)
        is_last = from_s + length_s > end_s
        begin_s = end_s - length_s if is_last else from_s
        if begin_s >= free_s:
            label = {"name": name, "at": end_s if is_last else from_s}
            sides.setdefault("right" if is_last else "left", []).append(label)
            free_s = begin_s + length_s
    return sides


def moved_figure(moved: MovedData, host: str, figures: Figures) -> Figure | None:
    """Returns the figure of what a machine transferred; None where it transferred nothing."""
    below = (
        f"{moved.kind.name} of {host} over time, 10",
        superscript("6"),
        " bytes per second, the mean of each snapshot.",
    )
    return figures.figure(moved_chart, moved, f"{host}, {moved.kind.name.lower()}: MB/s over time", inlines(*below))


def moved_chart(moved: MovedData, form: Format) -> Spec | None:
    """Returns the chart of what a machine transferred; None where it transferred nothing."""
    points: list[dict[str, Any]] = [
        {"t": round(at_s, 3), "rate": rate, "line": flow.name}
        for flow in moved.flows
        for at_s, rate in _iterate_steps(flow, _STEPS[form.is_wide])
    ]
    top = max((point["rate"] for point in points), default=0.0)
    if not top:
        return None
    names = [flow.name for flow in moved.flows]
    # A colour for each interface, a dash for each way.
    ways = len(moved.kind.ways)
    colours = [SERIES[number // ways % len(SERIES)] for number in range(len(names))]
    columns = max(1, form.columns * 9 // max(map(len, names)))
    shown = legend(names, form, columns=columns, labelLimit=0, symbolStrokeWidth=2)
    times = [point["t"] for point in points]
    line = marks(
        points,
        "line",
        {"interpolate": "step-after", "strokeWidth": 1.6},
        x=channel(
            "t:Q",
            title="time since the recording began [s]",
            scale=from_to(min(times), max(times)),
            axis={"grid": False},
        ),
        y=channel("rate:Q", title=f"{moved.kind.name} [MB/s]", scale=from_to(0, top * 1.06)),
        color=told_apart("line", names, colours, sort=names, legend=shown),
        strokeDash=told_apart("line", names, DASHES[:ways], sort=names, legend=shown),
    )
    return finish_chart(replace(form, height=_MOVED_HEIGHT), line)


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


def failed_link_figure(failed: Round, figures: Figures) -> Figure | None:
    """Returns the figure of a link that failed; None where no tool reported what it transferred over time."""
    caption = (
        "What each client moved, by its tool’s word, the mean of each of its intervals, from when it was started, "
        "which is a moment before its first byte. The link was down in the shaded time."
    )
    return figures.figure(failed_link_chart, failed, f"{failed.id}: what each client moved over time", caption)


def failed_link_chart(failed: Round, form: Format) -> Spec | None:
    """Returns a chart with steps: the mean of each interval that the tool reports."""
    moved = list(moved_intervals(failed))
    points = [
        {"t": round(time_s, 3), "rate": one.bits_per_s / 1e6, "line": one.who}
        for one, after in pairwise((*moved, None))
        if one is not None
        for time_s in ((one.begin_s,) if after is not None and after.who == one.who else (one.begin_s, one.end_s))
    ]
    if not points or failed.failure is None:
        return None
    names = list(dict.fromkeys(one.who for one in moved))
    end_s = max(one.end_s for one in moved)
    top = max(one.bits_per_s for one in moved) / 1e6 * 1.12 or 1.0
    until_s = min(failed.failure.up_at_s or end_s, end_s)
    down = [{"from": failed.failure.down_at_s, "to": until_s, "what": "link down"}]
    over_time = {"title": "time since the clients began [s]", "scale": from_to(0, end_s)}
    x, axis = channel("from:Q", **over_time), {"grid": False}
    top_of_plot, foot = {"value": 0}, {"value": _FAILED_LINK_HEIGHT}
    named = {"align": "left", "baseline": "top", "dx": 4, "dy": 4, "fontSize": form.font - 1, "color": INK}
    shown = legend(names, form, labelLimit=0, symbolStrokeWidth=2)
    return finish_chart(
        replace(form, height=_FAILED_LINK_HEIGHT),
        marks(down, "rect", {"color": MUTED, "opacity": 0.22}, x={**x, "axis": axis}, x2="to", y=top_of_plot, y2=foot),
        marks(down, "text", named, x=x, y=top_of_plot, text="what:N"),
        marks(
            points,
            "line",
            {"interpolate": "step-after", "strokeWidth": 1.8},
            x=channel("t:Q", **over_time, axis=axis),
            y=channel("rate:Q", title="throughput [Mb/s]", scale=from_to(0, top)),
            color=told_apart("line", names, SERIES, sort=names, legend=shown),
            strokeDash=told_apart("line", names, DASHES, sort=names, legend=shown),
        ),
    )
