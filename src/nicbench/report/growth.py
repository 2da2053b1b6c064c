"""Runs that grow until their mean is known: what was asked, what was reached, and the interval of each main value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from nicbench.core.result import Result, Summary
from nicbench.core.runs import RunsMade
from nicbench.core.table import Column
from nicbench.report.numbers import THIN_SPACE, UNKNOWN, significant
from nicbench.stats.runs import Awaited, awaited, percent, verdict_words

COLUMNS: Final = (
    Column(value="place", head="Result", form="text"),
    Column(value="name", head="Value", form="text"),
    Column(value="n", head="n"),
    Column(value="mean", head="Mean"),
    Column(value="width", head="Width of the interval", unit="% of the mean", is_main=True),
    Column(value="reached", head="As asked", form="text"),
)


@dataclass(frozen=True, slots=True)
class Growth:
    """A sentence of how many runs there were and why no more, and a row for each value that was waited for."""

    sentences: tuple[str, ...]
    reached: bool
    rows: tuple[tuple[tuple[str, ...], Result], ...]

    columns = COLUMNS


def growth(summary: Summary) -> Growth | None:
    """None where the number of runs is fixed and none warms up."""
    if summary.runs is None:
        return None
    values = awaited(summary.over_runs)
    rows = tuple((_cells(value), value.result) for value in values)
    return Growth(runs_lines(summary), summary.runs.reached is not False, rows)


def runs_lines(summary: Summary) -> tuple[str, ...]:
    """How many runs of each configuration there were, and whether they are enough; nothing where that was fixed."""
    made = summary.runs
    if made is None:
        return ()
    of_each = " of each configuration" if summary.configurations else ""
    lines = [f"{_counted(made)}{of_each}{_warmed_up(made)}."]
    if made.asked.grows:
        early = not made.reached and made.made < made.asked.at_most
        so_far = "the run ended early; so far " if early else ""
        lines.append(f"{_asked(made)}: {so_far}{verdict_words(made.asked, made.made, summary.over_runs)}.")
    return tuple(lines)


def _counted(made: RunsMade) -> str:
    most = f" of at most {made.asked.at_most}" if made.asked.grows else ""
    return f"n = {made.made}{most} run{'' if made.made == 1 and not most else 's'}"


def _warmed_up(made: RunsMade) -> str:
    number = made.asked.warm_up
    if not number:
        return ""
    return f", after {number} to warm up, which {'is' if number == 1 else 'are'} part of no statistics"


def _asked(made: RunsMade) -> str:
    return f"{percent(made.asked.confidence_ratio or 0.0)} confidence interval of the mean"


def _cells(value: Awaited) -> tuple[str, ...]:
    found = value.of_mean
    runs = f"{value.spread.n}" if value.spread.n == value.spread.runs else f"{value.spread.n} of {value.spread.runs}"
    width = UNKNOWN if found.width_ratio is None else significant(100.0 * found.width_ratio)
    mean = significant(found.mean) if found.upper is None else _with_half_width(found.mean, found.upper - found.mean)
    return value.place, value.name, runs, mean, width, "yes" if found.reached else "not reached"


def _with_half_width(mean: float, half: float) -> str:
    """Both with as many decimals as two digits of the half width need: "98.97 ± 0.42"."""
    if half == 0.0:
        return f"{significant(mean)} ± 0"
    decimals = max(0, min(9, 1 - math.floor(math.log10(half))))
    return f"{mean:,.{decimals}f} ± {half:,.{decimals}f}".replace(",", THIN_SPACE)
