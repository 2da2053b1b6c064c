"""Values that lie far from the others: named by a rule, shown, and never removed. Pure.

A run that lies far off is a finding. What the tables and intervals say is of all runs, with it.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from nicbench.stats.sample import Values, known

FENCE: Final = 1.5
"""Interquartile ranges beyond a quartile: Tukey, "Exploratory Data Analysis", 1977, his inner fences."""
HIGHEST_SCORE: Final = 3.5
"""Iglewicz and Hoaglin, "How to Detect and Handle Outliers", ASQC 1993."""
_NORMAL: Final = 0.6745
"""The median absolute deviation of the normal distribution, in standard deviations, as they round it."""
_FEWEST: Final = 4
"""Of fewer, no value is outside Tukey's fences, however far it lies."""


class Rule(StrEnum):
    """By which a value is called an outlier, in words for a report."""

    TUKEY = "Tukey's fences: more than 1.5 interquartile ranges beyond a quartile"
    MODIFIED_Z = "modified z-score of Iglewicz and Hoaglin: 0.6745 x distance from the median / MAD above 3.5"


@dataclass(frozen=True, slots=True)
class Outlier:
    """``place`` counts from 0 in the values as they were given, unknown ones included: it names the run."""

    place: int
    value: float


@dataclass(frozen=True, slots=True)
class Outliers:
    """Those outside ``lower`` to ``upper`` by ``rule``; ``note`` says where the rule is of no use, or of little."""

    rule: Rule
    found: tuple[Outlier, ...]
    lower: float | None = None
    upper: float | None = None
    note: str | None = None


def outliers(values: Values, rule: Rule = Rule.TUKEY) -> Outliers:
    """The bounds themselves are inside. Where the middle half is one value, every other is outside, and the note says
    so.
    """
    numbers = known(values)
    if len(numbers) < _FEWEST:
        return Outliers(rule, (), note=f"of fewer than {_FEWEST} values none can be called an outlier")
    lower, upper = _fences(numbers) if rule is Rule.TUKEY else _scores(numbers)
    outside = tuple(
        Outlier(place, float(value))
        for place, value in enumerate(values)
        if value is not None and known((value,)) and not lower <= value <= upper
    )
    note = "the middle values are all the same: every other value is outside, however near" if lower == upper else None
    return Outliers(rule, outside, lower, upper, note)


def _fences(values: Sequence[float]) -> tuple[float, float]:
    lower, _, upper = statistics.quantiles(values, n=4, method="inclusive")
    reach = FENCE * (upper - lower)
    return lower - reach, upper + reach


def _scores(values: Sequence[float]) -> tuple[float, float]:
    middle = statistics.median(values)
    deviation = statistics.median(abs(value - middle) for value in values)
    reach = HIGHEST_SCORE * deviation / _NORMAL
    return middle - reach, middle + reach
