"""Figures and what they measure as short texts, for badges."""

from __future__ import annotations

from nicbench.compare.history.figures import Figure, Measure, Told
from nicbench.compare.history.selection import text_of
from nicbench.core.result import LimitedBy
from nicbench.core.turn import DEFAULT
from nicbench.core.units import SCALES, default_form, figures, round_up, suitable_form


def figure_in_words(told: Told, figure: Figure) -> str:
    """Returns a figure with its unit: "14.2 Mpps"; "at least" where the DUT passed all that was tried, "< " where it
    passed none of it.
    """
    number = figure.number_or_bound
    form = suitable_form(default_form(told.value, None), abs(number))
    scale = SCALES.get(form)
    number, unit = (number * scale.factor, scale.unit) if scale else (number, told.unit)
    if figure.is_only_below:
        return f"< {figures(round_up(number))} {unit}".rstrip()
    is_bound = figure.lower is not None and figure.upper is None and figure.limited_by != LimitedBy.LINE_RATE
    return f"{'at least ' if is_bound else ''}{figures(number)} {unit}".rstrip()


def measure_in_words(measure: Measure) -> str:
    """Returns what is measured and at which point: "NDR, 64 bytes", after the configuration where that has a name."""
    size = measure.parameters.get("frame_bytes")
    whose = "" if measure.configuration == DEFAULT else f"{measure.configuration}: "
    told = [f"{whose}{measure.told.head}"] + ([] if size is None else [f"{text_of(size)} bytes"])
    others = {name: value for name, value in measure.parameters.items() if name in ("load_percent", "load_of")}
    if "load_percent" in others:
        told.append(f"{text_of(others['load_percent'])} % of {text_of(others.get('load_of', 'line rate'))}")
    return ", ".join(told)
