"""Whether two ways of measuring the same thing agree: the ratio of pairs, its interval, and the answer. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_MOST_EXPONENT: Final = 700.0
"""Of e, near the end of what a float holds: an interval that reaches so far tells nothing anyway."""


class Agreement(StrEnum):
    """What an interval of a ratio says about a bound."""

    AGREE = "agree"
    DISAGREE = "do not agree"
    UNKNOWN = "cannot be told"


@dataclass(frozen=True, slots=True)
class RatioInterval:
    """The ratio that ``pairs`` have in the geometric mean, and the interval that holds it with the confidence asked."""

    ratio: float
    lower: float
    upper: float
    pairs: int


def ratio_interval(pairs: Sequence[tuple[float, float]], confidence_ratio: float) -> RatioInterval | None:
    """The second of each pair over the first, by Student's t of the logarithms; None of fewer than two pairs.

    Both of a pair are measured one right after the other, so that what changes slowly is in both and falls out.
    Ratios are compared by their logarithms because 2 and 1/2 are equally far from 1. All values must be above 0.
    """
    if len(pairs) < 2:
        return None
    from scipy.special import stdtrit  # here: who asks for no interval needs none of it

    logarithms = [math.log(second / first) for first, second in pairs]
    middle, deviation = statistics.fmean(logarithms), statistics.stdev(logarithms)
    quantile = float(stdtrit(len(pairs) - 1, (1.0 + confidence_ratio) / 2.0))
    half = quantile * deviation / math.sqrt(len(pairs))
    return RatioInterval(
        math.exp(middle), math.exp(middle - half), math.exp(min(middle + half, _MOST_EXPONENT)), len(pairs)
    )


def agreement(found: RatioInterval, within_ratio: float) -> Agreement:
    """They agree where no ratio in the interval is further from 1 than the bound, either way, and not where all are."""
    least, most = 1.0 / (1.0 + within_ratio), 1.0 + within_ratio
    if least <= found.lower and found.upper <= most:
        return Agreement.AGREE
    if found.upper < least or found.lower > most:
        return Agreement.DISAGREE
    return Agreement.UNKNOWN
