"""Figures of tables of statistics: so many digits as the interval of a number makes sense of."""

from __future__ import annotations

import math
from typing import Final

from nicbench.report.numbers import THIN_SPACE, UNKNOWN
from nicbench.stats.numerals import figures

_MOST_DECIMALS: Final = 6


def plain(value: float | None, digits: int = 4) -> str:
    """So many significant digits; unknown is a dash."""
    return UNKNOWN if value is None else figures(value, digits).replace(",", THIN_SPACE)


def within(lower: float | None, upper: float | None) -> str:
    """An interval: two digits of its width, four of its ends where it has none."""
    if lower is None or upper is None:
        return UNKNOWN
    width = upper - lower
    if width <= 0.0:
        return f"[{plain(lower)}, {plain(upper)}]"
    decimals = max(0, min(_MOST_DECIMALS, 1 - math.floor(math.log10(width))))
    return f"[{_fixed(lower, decimals)}, {_fixed(upper, decimals)}]"


def percent(ratio: float | None) -> str:
    """A share in percent, three significant digits, without the sign."""
    return UNKNOWN if ratio is None else plain(100.0 * ratio, 3)


def _fixed(value: float, decimals: int) -> str:
    return f"{value:,.{decimals}f}".replace(",", THIN_SPACE)
