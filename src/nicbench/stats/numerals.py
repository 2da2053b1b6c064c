"""Formats numbers and quantities for sentences, with enough digits that rounding does not mislead."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from typing import Final

_MOST_DECIMALS: Final = 9
_ROUNDING_ERROR: Final = 1e-6


def figures(value: float, digits: int = 4) -> str:
    """Formats with this many significant digits, commas and no exponent: "235.1", "14,880,000", "0.01234"."""
    if value == 0.0 or not math.isfinite(value):
        return "0" if value == 0.0 else "unknown"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, decimals):,.{max(0, decimals)}f}"


def decimals_above_one(factor: float) -> int | None:
    """Returns the decimals that show that a factor is more than 1, where two do not: 3 for 1.002; else None."""
    if round(factor, 2) != 1.0:
        return None
    return next((decimals for decimals in range(3, 7) if round(factor, decimals) > 1.0), 6)


def round_up(value: float, digits: int = 4) -> float:
    """Rounds an upper bound above 0 up to this many significant digits, so that it stays one: 1.2431 to 1.244.

    A relative excess of 1e-6 is an error of the arithmetic before: 2.00000001 stays 2.
    """
    nearest = float(f"{value:.{digits}g}")
    if abs(value - nearest) <= _ROUNDING_ERROR * nearest:
        return nearest
    return float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(f"{value:.15g}"))


def format_alike(values: Sequence[float], of_no_difference: float, least_decimals: int = 2) -> tuple[str, ...]:
    """Formats with equal decimals, enough that values differ from ``of_no_difference`` and from each other as they
    should.
    """
    decimals = least_decimals
    while decimals < _MOST_DECIMALS and _misleads(values, of_no_difference, decimals):
        decimals += 1
    return tuple(f"{value:,.{decimals}f}" for value in values)


def probability(p: float) -> str:
    """Formats a p-value: "p = 0.032"; below 0.0001 "p < 0.0001"."""
    if p < 0.0001:
        return "p < 0.0001"
    return f"p = {p:.4f}" if p < 0.01 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def percent(value: float) -> str:
    """Formats with a sign and at least two significant digits: "+3.2 %", "-0.041 %", "0 %"."""
    text = figures(value, max(2, 1 + math.floor(math.log10(abs(value))) if value else 2))
    return f"{'+' if value > 0.0 else ''}{text} %"


def _misleads(values: Sequence[float], of_no_difference: float, decimals: int) -> bool:
    """Returns whether this many decimals make a value look like no difference, or different values look equal."""
    texts = {value: f"{value:.{decimals}f}" for value in values}
    nothing = f"{of_no_difference:.{decimals}f}"
    if any(value != of_no_difference and text == nothing for value, text in texts.items()):
        return True
    return len(set(texts.values())) == 1 < len(texts)


@dataclass(frozen=True, slots=True)
class Quantity:
    """What is compared. ``name`` is such as "sum of frame rates"; ``unit`` such as "frames/s", or "".

    ``comparative`` describes the better one: "faster" (then "1.24 times faster"); without it the sentence only says
    which is higher. ``higher_is_better`` is None where neither is better.
    """

    name: str
    unit: str
    higher_is_better: bool | None = None
    comparative: str | None = None

    def format_value(self, value: float | None) -> str:
        """Formats a value with the unit."""
        return "unknown" if value is None else f"{figures(value)} {self.unit}".rstrip()
