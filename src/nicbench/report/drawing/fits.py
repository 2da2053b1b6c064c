"""The chart of an estimate: the rate of every trial against what explains it, and the fitted line with its band.

A trial that lost frames is a filled dot, at what came back of it. One that lost none is a hollow triangle: the device
carried at least as much. At the end of each line stand the stated rate and its interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import altair as alt

from nicbench.core.forms import SCALES, suitable_form
from nicbench.core.result import ResultVerdict
from nicbench.report.drawing.behind import number
from nicbench.report.drawing.charts import DASHES, SHAPES, Format, finish_chart
from nicbench.report.drawing.svg import INK, SERIES, inline
from nicbench.report.fits import LEAST_CHANGE, LEAST_SHARE, RateFit, returned_frames_per_s
from nicbench.report.section import Section
from nicbench.search.base import Sample

if TYPE_CHECKING:
    from nicbench.search import FittedLine, Span

SMALL: Final = Format(width=246, height=170, font=11, columns=2)
_LOSSY, _LOSSLESS = "lost frames", "lost none"
_HOLLOW: Final = "M-1,0.8L0,-0.9L1,0.8ZM-0.62,0.58L0.62,0.58L0,-0.48Z"
"""A triangle with a triangular hole, because a legend fills every mark."""
_POINTS: Final = 13
"""The points of a drawn line and its band."""
_HEADROOM: Final = 0.08
_MARGIN: Final = 0.05
_APART: Final = 8
"""The pixels between the stated rates of two goals."""


@dataclass(frozen=True, slots=True)
class Covariate:
    """What explains the rates of trials, as the horizontal axis of a chart; values are in the unit of the axis."""

    title: str
    name: str
    """Its name in the label of a chart."""
    told: str
    """The sentence that tells what is drawn."""
    stated_told: str
    """Where the stated rate and its interval stand, within a sentence."""
    left_out: str
    """Of which frame sizes there is no chart."""
    brought_to: str
    """To what the rates of trials are brought, so that the other covariate does not scatter them."""
    varies: Callable[[RateFit], bool]
    """Whether a chart tells more than dots above each other."""
    value: Callable[[Sample], float | None]
    """The value of a trial; None where it is unknown."""
    stated: Callable[[RateFit], float]
    """Where the stated rate lies."""
    at: Callable[[FittedLine, float], Span]
    """The fitted rate."""
    left_by_other: Callable[[FittedLine, Sample], float]
    """The part of the rate that the other covariate left to a trial."""


SHARE: Final = Covariate(
    title="core used by others [% of samples]",
    name="the share of the core that others used",
    told="Frames returned per second in each trial, against the share of samples in which others used the DUT's core.",
    stated_told="the rate of a dedicated core and its interval stand at 0",
    left_out=f"where no trial found the core shared in {100 * LEAST_SHARE:g}\u202f% of samples",
    brought_to="the highest clock of the core",
    varies=lambda fit: fit.is_shared,
    value=lambda sample: None if sample.slow_share is None else 100.0 * sample.slow_share,
    stated=lambda fit: 0.0,
    at=lambda line, percent: line.at(share=percent / 100.0),
    left_by_other=lambda line, sample: line.left_by_clock(sample),
)
CLOCK: Final = Covariate(
    title="clock of the core [GHz]",
    name="the clock of the core",
    told="Frames returned per second in each trial, against the mean clock of the DUT's core.",
    stated_told="the stated rate and its interval stand at the highest clock of the core",
    left_out=f"where the clocks of the trials differ by {100 * LEAST_CHANGE:g}\u202f% or less",
    brought_to="a dedicated core",
    varies=lambda fit: fit.clock_changed,
    value=lambda sample: None if sample.clock_hz is None else sample.clock_hz / 1e9,
    stated=lambda fit: max(line.clock_hz or 0.0 for line in fit.lines.values()) / 1e9,
    at=lambda line, ghz: line.at(clock_hz=ghz * 1e9),
    left_by_other=lambda line, sample: line.left_by_others(sample),
)
_BROUGHT: Final = 0.01
"""Where the other covariate left all but so much of the rate to every trial, nothing is said of it."""


def fit_caption(over: Covariate, fits: Sequence[RateFit], section: Section) -> str:
    """Returns the caption of the charts over a covariate; that over the share explains the verdict ``adjusted``."""
    told = [over.told, "A hollow triangle lost nothing: the DUT passed at least that much."]
    if any(fit.lines for fit in fits):
        told.append(f"The line is the fitted rate in its band; {over.stated_told}{_reference_words(over, fits)}.")
    if any(left < 1.0 - _BROUGHT for fit in fits for left in _left(over, fit)):
        told.append(f"Rates are scaled to {over.brought_to}.")
    if not all(fit.lines for fit in fits):
        told.append("There is no line where the trials do not fit one, or give only a bound.")
    if len(fits) < len(section.rows):
        told.append(f"Frame sizes are omitted {over.left_out}.")
    if over is SHARE and any(fit.row.result.verdict is ResultVerdict.ADJUSTED for fit in fits):
        told.append(
            "Adjusted: others used the core in some trials for longer than a valid trial allows; these count all the "
            "same, because the line tells what the device would have carried without them."
        )
    return " ".join(told)


def _reference_words(over: Covariate, fits: Sequence[RateFit]) -> str:
    """Says where the clock of the stated rates is from, if an earlier run saw it and these did not."""
    lines = (line for fit in fits for line in fit.lines.values())
    reference = next((line.reference_clock for line in lines if line.reference_clock), None) if over is CLOCK else None
    if reference is None:
        return ""
    return f", which is {reference.clock_hz / 1e9:.2f} GHz, {reference.words}"


def _left(over: Covariate, fit: RateFit) -> Iterator[float]:
    """Yields the part of the rate that the other covariate left to each trial, by the first of the lines."""
    line = next(iter(fit.lines.values()), None)
    return (1.0 if line is None else over.left_by_other(line, sample) for sample in fit.samples)


def fit_chart(fit: RateFit, form: Format, *, over: Covariate) -> dict[str, Any] | None:
    """Returns the chart of the trials at one frame size; None where nobody knows what the axis shows."""
    known = [
        (value, sample, left)
        for sample, left in zip(fit.samples, _left(over, fit), strict=True)
        if (value := over.value(sample)) is not None
    ]
    if not known:
        return None
    stated_at = [over.stated(fit)] if fit.lines else []
    values = [*stated_at, *(value for value, _, _ in known)]
    span = min(values), max(values)
    highest = max(returned_frames_per_s(sample) / left for _, sample, left in known)
    scale = SCALES[suitable_form("mpps", highest)]
    dots = [_dot(value, sample, scale.factor / left) for value, sample, left in known]
    drawn = {name: _line(over, name, line, span, scale.factor) for name, line in fit.lines.items()}
    lines = [point for points in drawn.values() for point in points]
    ends = [point for point in lines if [point["x"]] == stated_at]
    goals = list(fit.lines)
    kinds = [kind for kind in (_LOSSY, _LOSSLESS) if any(dot["what"] == kind for dot in dots)]
    colours = [INK] * len(kinds) + [SERIES[place % len(SERIES)] for place in range(len(goals))]
    shapes = [{_LOSSY: "circle", _LOSSLESS: _HOLLOW}[kind] for kind in kinds]
    shapes += [SHAPES[(2 + place) % len(SHAPES)] for place in range(len(goals))]
    legend = alt.Legend(orient="top", title=None, columns=form.columns, symbolOpacity=1, labelLimit=0)
    names = [*kinds, *goals]
    colour = alt.Color("what:N", scale=alt.Scale(domain=names, range=colours), legend=legend)
    shape = alt.Shape("what:N", scale=alt.Scale(domain=names, range=shapes), legend=legend)
    dash = alt.StrokeDash(
        "what:N",
        scale=alt.Scale(domain=goals, range=[DASHES[place % len(DASHES)] for place in range(len(goals))]),
        legend=None,
    )
    margin = _MARGIN * (span[1] - span[0])
    shown = alt.Scale(domain=[span[0] - margin, span[1] + margin], nice=False)
    x = alt.X("x:Q", title=over.title, scale=shown, axis=alt.Axis(tickCount=5, grid=False))
    rates = alt.Scale(domain=_range(dots, lines, ends), nice=False, zero=False)
    y = alt.Y("y:Q", title=f"frame rate [{scale.unit}]", scale=rates, axis=alt.Axis(tickCount=5))
    lower = alt.Y("lower:Q", title="", scale=rates)
    fitted = alt.Chart(inline(lines)).encode(x=x, color=colour)
    stated = [
        # Side by side, so that equal rates do not hide one another.
        (alt.Chart(inline([end])).encode(x=x, color=colour), (place - (len(ends) - 1) / 2) * _APART)
        for place, end in enumerate(ends)
    ]
    lossy, lossless = ([dot for dot in dots if dot["what"] == kind] for kind in (_LOSSY, _LOSSLESS))
    layers: list[Any] = [
        fitted.mark_area(opacity=0.16, clip=True).encode(y=lower, y2="upper:Q"),
        fitted.mark_line(strokeWidth=1.6, clip=True).encode(y=y, strokeDash=dash),
        *(
            layer
            for end, shift in stated
            for layer in (
                end.mark_rule(strokeWidth=7, opacity=0.35, clip=True, aria=False, xOffset=shift).encode(
                    y=lower, y2="upper:Q"
                ),
                end.mark_point(size=50, filled=True, opacity=1, aria=False, xOffset=shift).encode(y=y, shape=shape),
            )
        ),
        alt.Chart(inline(lossless))
        .mark_point(size=66, filled=True, opacity=0.9)
        .encode(x=x, y=y, color=colour, shape=shape),
        alt.Chart(inline(lossy))
        .mark_point(size=34, filled=True, opacity=0.8)
        .encode(x=x, y=y, color=colour, shape=shape),
    ]
    return finish_chart(alt.layer(*layers), form)


def _dot(x: float, sample: Sample, factor: float) -> dict[str, Any]:
    rate = returned_frames_per_s(sample) * factor
    if sample.counts.failed:
        return {"x": x, "y": rate, "what": _LOSSY}
    return {"x": x, "y": rate, "what": _LOSSLESS, "words": f"at least {number(rate)}"}


def _line(
    over: Covariate, name: str, line: FittedLine, span: tuple[float, float], factor: float
) -> list[dict[str, Any]]:
    """Returns the points of a line from one end of the axis to the other; the stated rate is at one of the ends."""
    points = []
    for place in range(_POINTS):
        x = span[1] if place == _POINTS - 1 else span[0] + (span[1] - span[0]) * place / (_POINTS - 1)
        at = over.at(line, x)
        ends = {"lower": at.lower * factor, "upper": at.upper * factor}
        points.append({"x": x, "y": at.middle * factor, **ends, "what": name})
    return points


def _range(
    dots: Sequence[dict[str, Any]], lines: Sequence[dict[str, Any]], ends: Sequence[dict[str, Any]]
) -> list[float]:
    """Returns the ends of the axis of rates: every dot, line and stated interval whole, and bands as far as they do not
    double it.
    """
    seen = [point["y"] for point in (*dots, *lines)]
    seen += [point[name] for point in ends for name in ("lower", "upper")]
    least, most = min(seen), max(seen)
    reach = most - least or 0.1 * most
    lower = min((point["lower"] for point in lines), default=least)
    upper = max((point["upper"] for point in lines), default=most)
    low, high = max(lower, least - reach / 2.0), min(upper, most + reach / 2.0)
    low, high = min(low, least), max(high, most)
    room = _HEADROOM * (high - low)
    return [max(0.0, low - room), high + room]
