"""How evenly flows are spread over queues, and whether chance explains what is uneven. Pure; draws have a seed.

An ideal hash gives each flow a queue at random. Of F equal flows the queues' shares are then multinomial: with few
flows some queue is far above the mean although nothing is wrong. So the observed Jain's index is held against that of
many random assignments of the very same flows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nicbench.stats.frames import fairness

DRAWS: Final = 20_000
_SPAN: Final = (0.025, 0.975)
# Shares are sums of floating-point numbers: equal ones may differ in the last digits.
_EQUAL: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Flows:
    """``count`` flows, each with so many frames."""

    count: int
    frames: float


@dataclass(frozen=True, slots=True)
class Chance:
    """What random assignments of the flows give: the middle 95 % of Jain's index and of the most loaded queue.

    ``probability`` is that of an index as low as the observed one, or lower; never 0, as draws are finite.
    """

    index_lower: float
    index_upper: float
    most_to_mean_lower: float
    most_to_mean_upper: float
    probability: float


def most_to_mean(frames: Sequence[float]) -> float | None:
    """Returns the largest value by the mean of all; None where all are 0, or there are none."""
    total = sum(frames)
    return max(frames) * len(frames) / total if total > 0 else None


def spread_by_chance(
    flows: Sequence[Flows], frames: Sequence[float], seed: int, *, draws: int = DRAWS
) -> Chance | None:
    """Returns what chance makes of these flows over as many queues as there are ``frames``; None without a frame."""
    observed = fairness(frames)
    known = [each for each in flows if each.count > 0 and each.frames > 0]
    if observed is None or not known:
        return None
    queues = len(frames)
    generator = np.random.default_rng(seed)
    loads = np.zeros((draws, queues))
    for each in known:
        loads += each.frames * generator.multinomial(each.count, [1.0 / queues] * queues, size=draws)
    total = sum(each.count * each.frames for each in known)
    indexes = total**2 / (queues * (loads**2).sum(axis=1))
    most = loads.max(axis=1) * queues / total
    as_low = int((indexes <= observed * (1.0 + _EQUAL)).sum())
    index_lower, index_upper = (float(each) for each in np.quantile(indexes, _SPAN))
    most_lower, most_upper = (float(each) for each in np.quantile(most, _SPAN))
    return Chance(index_lower, index_upper, most_lower, most_upper, (1 + as_low) / (1 + draws))
