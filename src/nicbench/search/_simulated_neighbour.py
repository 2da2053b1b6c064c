"""A simulated neighbour on the other hyperthread of the DUT's core: when the core is slow, and how often it is seen.

Slow spells of some milliseconds alternate with quiet ones; how long both last changes by the minute, as programs of
somebody else come and go.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class SimulatedNeighbour:
    """``slope`` is by how much of it the capacity falls while the core is slow; looks come at equal intervals.

    Each regime is the mean quiet and the mean slow spell, in seconds; a regime lasts ``regime_s`` on average.
    """

    slope: float = 0.4
    regimes: tuple[tuple[float, float], ...] = ((0.014, 0.002), (0.1, 0.002), (0.004, 0.003), (0.002, 0.008))
    regime_s: float = 30.0
    looks_per_s: float = 1000.0

    def share(self, began_s: float, duration_s: float, seed: int) -> tuple[float, int, int]:
        """Returns the true share of slow time in a trial, and of how many looks at it how many found it slow."""
        spells = np.random.default_rng([seed, int(began_s * 1e6)])
        quiet_s, slow_s = self._regime(began_s, seed)
        pairs = math.ceil(1.5 * duration_s / (quiet_s + slow_s)) + 50
        lengths = np.empty(2 * pairs)
        lengths[0::2] = spells.exponential(quiet_s, pairs)
        lengths[1::2] = spells.exponential(slow_s, pairs)
        edges = np.concatenate([[0.0], np.cumsum(lengths)])
        edges = np.minimum(edges, duration_s)
        true = float((edges[2::2] - edges[1::2]).sum() / duration_s)
        looks = max(1, round(self.looks_per_s * duration_s))
        at = (np.arange(looks) + spells.random()) / looks * duration_s
        slow = int((np.searchsorted(edges, at, side="right") % 2 == 0).sum())
        return true, looks, slow

    def _regime(self, at_s: float, seed: int) -> tuple[float, float]:
        """Returns the regime at a time; the same seed has the same regimes, whatever is asked for."""
        changes = np.random.default_rng([seed, 1])
        ends = 0.0
        while True:
            ends += float(changes.exponential(self.regime_s))
            regime = self.regimes[int(changes.integers(len(self.regimes)))]
            if at_s < ends:
                return regime
