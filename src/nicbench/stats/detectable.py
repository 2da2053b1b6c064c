"""How small a difference so many runs with such a spread could have shown, and how many runs another would need. Pure.

The runs' logarithms (of differences: the values) are taken for normal. The standard error of a median is then sqrt(pi /
2) times that of a mean (Conover, "Practical Nonparametric Statistics": efficiency 2 / pi), and a difference is shown
with probability ``POWER`` from (t of 1 - level / 2 + t of power) standard errors on (Cohen, "Statistical Power
Analysis", 1988).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nicbench.stats.rank_tests import fewest_runs, smallest_p

POWER: Final = 0.8
"""By convention (Cohen 1988): four of five such comparisons would show it."""
MOST_RUNS: Final = 10_000
"""Nobody makes more to learn of one difference."""
_MEDIAN: Final = math.sqrt(math.pi / 2.0)


@dataclass(frozen=True, slots=True)
class Spread:
    """Standard deviation (n - 1) and number of runs of one side, or of pairs."""

    deviation: float
    runs: int


@dataclass(frozen=True, slots=True)
class Detectable:
    """``difference`` is the least that would be shown: of logarithms where ratios are compared, else of the values.

    None with the reason in ``note``. ``runs_for_seen``: of each side, to show the difference that was seen; None where
    it is 0, there is no spread, or more than ``MOST_RUNS`` are needed.
    """

    difference: float | None
    power_ratio: float
    runs_for_seen: int | None
    note: str | None = None

    @property
    def change_percent(self) -> float | None:
        """Of a difference of logarithms: by how much the higher one is above the other."""
        return None if self.difference is None else 100.0 * math.expm1(self.difference)


def detectable(sides: Sequence[Spread], seen: float | None, confidence_ratio: float) -> Detectable:
    """Of two independent sides, or of one: the differences of pairs. ``seen`` is the difference that was seen."""
    level, paired = round(1.0 - confidence_ratio, 12), len(sides) == 1
    least_runs = fewest_runs(level, paired=paired)
    variance = sum(side.deviation**2 for side in sides)
    if variance == 0.0:
        return Detectable(
            None, POWER, None, "the runs do not differ: how small a difference they could show is not known"
        )
    needed = _runs_for(abs(seen), variance, least_runs, level, paired=paired) if seen else None
    if smallest_p(*(side.runs for side in sides)) > level:
        told = f"{least_runs} pairs" if paired else f"{least_runs} runs of each"
        return Detectable(None, POWER, needed, f"so few runs can show no difference, however large; {told} could")
    freedom = sum(side.runs - 1 for side in sides)
    error = _MEDIAN * math.sqrt(sum(side.deviation**2 / side.runs for side in sides))
    return Detectable(_quantiles(freedom, level) * error, POWER, needed)


def _runs_for(seen: float, variance: float, least_runs: int, level: float, *, paired: bool) -> int | None:
    """The fewest, by halving: more runs never show less."""

    def shows(runs: int) -> bool:
        freedom = (runs - 1) * (1 if paired else 2)
        return _quantiles(freedom, level) * _MEDIAN * math.sqrt(variance / runs) <= seen

    if not shows(MOST_RUNS):
        return None
    low, high = least_runs - 1, MOST_RUNS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if shows(middle) else (middle, high)
    return high


def _quantiles(freedom: int, level: float) -> float:
    from scipy.special import stdtrit  # here: who compares nothing needs none of it

    return float(stdtrit(freedom, 1.0 - level / 2.0) + stdtrit(freedom, POWER))
