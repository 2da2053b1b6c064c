"""Numbers in sentences: so many digits that no rounding says more, or other, than the number does. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

_MOST_DECIMALS: Final = 9


def figures(value: float, digits: int = 4) -> str:
    """So many significant digits, never an exponent, thousands with commas: "235.1", "14,880,000", "0.01234"."""
    if value == 0.0 or not math.isfinite(value):
        return "0" if value == 0.0 else "unknown"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, decimals):,.{max(0, decimals)}f}"


def alike(values: Sequence[float], of_no_difference: float, least_decimals: int = 2) -> tuple[str, ...]:
    """With equal decimals: so many that none but ``of_no_difference`` reads as it, nor different values as one."""
    decimals = least_decimals
    while decimals < _MOST_DECIMALS and _misleads(values, of_no_difference, decimals):
        decimals += 1
    return tuple(f"{value:,.{decimals}f}" for value in values)


def probability(p: float) -> str:
    """In words: "p = 0.032"; what is smaller than 0.0001 is said to be."""
    if p < 0.0001:
        return "p < 0.0001"
    return f"p = {p:.4f}" if p < 0.01 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def percent(value: float) -> str:
    """Signed, two significant digits or more: "+3.2 %", "-0.041 %", "0 %"."""
    text = figures(value, max(2, 1 + math.floor(math.log10(abs(value))) if value else 2))
    return f"{'+' if value > 0.0 else ''}{text} %"


def _misleads(values: Sequence[float], of_no_difference: float, decimals: int) -> bool:
    """Whether so few decimals move a value onto the one of no difference, or two different ends onto each other."""
    said = {value: f"{value:.{decimals}f}" for value in values}
    nothing = f"{of_no_difference:.{decimals}f}"
    if any(value != of_no_difference and text == nothing for value, text in said.items()):
        return True
    return len(set(said.values())) == 1 < len(said)
