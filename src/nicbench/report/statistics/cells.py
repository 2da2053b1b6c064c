"""Text of comparisons for table cells, with as many digits as the interval of a number justifies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from nicbench.compare.claims import Basis
from nicbench.compare.compared import PointComparison
from nicbench.core.units import figures, format_alike, format_digits
from nicbench.report.numbers import THIN_SPACE, UNKNOWN
from nicbench.report.statistics.over_runs import OverRuns, TestStatistics

_MOST_DECIMALS: Final = 6


def plain(value: float | None, digits: int = 4) -> str:
    """Returns the value with ``digits`` significant digits; a dash if unknown."""
    return UNKNOWN if value is None else figures(value, digits).replace(",", THIN_SPACE)


def within(lower: float | None, upper: float | None) -> str:
    """Returns an interval as text, with two significant digits of its width, or four of its ends if it has no width."""
    if lower is None or upper is None:
        return UNKNOWN
    width = upper - lower
    if width <= 0.0:
        return f"[{plain(lower)}, {plain(upper)}]"
    decimals = max(0, min(_MOST_DECIMALS, 1 - math.floor(math.log10(width))))
    return f"[{_fixed_text(lower, decimals)}, {_fixed_text(upper, decimals)}]"


def percent(ratio: float | None) -> str:
    """Returns a ratio in percent with three significant digits, without the sign."""
    return UNKNOWN if ratio is None else plain(100.0 * ratio, 3)


def _fixed_text(value: float, decimals: int) -> str:
    return f"{value:,.{decimals}f}".replace(",", THIN_SPACE)


@dataclass(frozen=True, slots=True)
class ComparisonCells:
    """The cells of one comparison; ``effect`` is a ratio, or a difference with its unit."""

    place: str
    sides: str
    effect: str
    interval: str
    p: str
    corrected: str
    delta: str
    verdict: str


def comparison_cells(one: PointComparison) -> ComparisonCells:
    """Returns the cells of a comparison; a dash stands for what cannot be determined."""
    found, effect = one.comparison, one.comparison.effect
    unit = "" if found.kind.is_ratio else f" {one.value.quantity.unit}".rstrip()
    known = [end for end in (effect.estimate, effect.lower, effect.upper) if end is not None]
    told = format_alike(known, found.kind.of_no_difference) if known else ()
    place = one.point.circumstances or one.point.test
    return ComparisonCells(
        place=f"{place[:1].upper()}{place[1:]}",
        sides=f"{found.first.name} {'/' if found.kind.is_ratio else '−'} {found.second.name}",
        effect=f"{told[0]}{unit}" if told else UNKNOWN,
        interval=f"[{told[1]}, {told[2]}]" if len(told) == 3 else UNKNOWN,
        p=UNKNOWN if one.p_corrected is None or found.test is None else _p(found.test.p),
        corrected=UNKNOWN if one.p_corrected is None else _p(one.p_corrected),
        delta=UNKNOWN if found.dominance is None or one.p_corrected is None else f"{found.dominance.delta:+.2f}",
        verdict=_verdict(one),
    )


def _verdict(one: PointComparison) -> str:
    claim = one.claim
    if not claim.basis.is_shown:
        return claim.basis.cell
    who = one.better or f"{claim.higher} (higher)"
    return f"{who}, by the search intervals" if claim.basis is Basis.INTERVALS else who


def _p(value: float) -> str:
    return "< 0.0001" if value < 0.0001 else format_digits(value, 2) if value < 0.1 else f"{value:.2f}"


def unit_head(test: TestStatistics) -> str:
    """Returns the unit in brackets for the heading of a column, if all rows have the same unit; else ""."""
    units = {row.unit for row in test.rows}
    unit = units.pop() if len(units) == 1 else ""
    return f" [{unit}]" if unit else ""


def unit_beside(test: TestStatistics, row: OverRuns) -> str:
    """Returns the unit to be printed after a number, if rows have different units; else ""."""
    return f" {row.unit}" if row.unit and not unit_head(test) else ""


__all__ = ["ComparisonCells", "comparison_cells", "plain", "unit_beside", "unit_head"]
