"""Simulated neighbours of the DUT's core: how much of it there is, how fast it runs, and how much of that is seen.

On the other hyperthread of the core slow spells of some milliseconds alternate with quiet ones. Neighbours on other
cores of the processor lower the clock. How much there is of both changes by the minute, as programs of somebody else
come and go.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nicbench.stats.looks import count_independent

Numbers = NDArray[np.float64]

HIGHEST_CLOCK_HZ = 4e9
CLOCK_WAVERS = 0.01
"""The deviation of a trial's clock from that of its minute, relative."""


class Observed(NamedTuple):
    """A core during a trial: what was true of it, and of how many looks how many found it slow."""

    slow_share: float
    looks: int
    slow_looks: int
    independent_looks: float
    clock_hz: float


@dataclass(frozen=True)
class SimulatedNeighbour:
    """``slope`` is by how much of it the capacity falls while the core is slow; looks come at equal intervals.

    Each regime is the mean quiet and the mean slow spell, in seconds; a regime lasts ``regime_s`` on average. So does
    each of the ``clocks``, shares of the highest.
    """

    slope: float = 0.4
    regimes: tuple[tuple[float, float], ...] = ((0.014, 0.002), (0.1, 0.002), (0.004, 0.003), (0.002, 0.008))
    regime_s: float = 30.0
    looks_per_s: float = 1000.0
    clocks: tuple[float, ...] = (1.0,)

    def observe(self, began_s: float, duration_s: float, seed: int) -> Observed:
        """Returns what a trial finds; the same trial of the same seed finds the same."""
        spells = np.random.default_rng([seed, int(began_s * 1e6)])
        quiet_s, slow_s = self.regimes[self._choice(began_s, seed, 1, len(self.regimes))]
        pairs = math.ceil(1.5 * duration_s / (quiet_s + slow_s)) + 50
        lengths = np.empty(2 * pairs)
        lengths[0::2] = spells.exponential(quiet_s, pairs)
        lengths[1::2] = spells.exponential(slow_s, pairs)
        edges = np.concatenate([[0.0], np.cumsum(lengths)])
        edges = np.minimum(edges, duration_s)
        true = float((edges[2::2] - edges[1::2]).sum() / duration_s)
        looks = max(1, round(self.looks_per_s * duration_s))
        at = (np.arange(looks) + spells.random()) / looks * duration_s
        slow = np.searchsorted(edges, at, side="right") % 2 == 0
        clock = self.clocks[self._choice(began_s, seed, 2, len(self.clocks))]
        if len(self.clocks) > 1:
            clock = min(1.0, clock * (1.0 + CLOCK_WAVERS * float(spells.standard_normal())))
        independent = count_independent(slow.tolist())
        return Observed(true, looks, int(slow.sum()), independent, clock * HIGHEST_CLOCK_HZ)

    def _choice(self, at_s: float, seed: int, purpose: int, choices: int) -> int:
        """Returns which of the choices holds at a time; the same seed has the same ones, whatever is asked for."""
        changes = np.random.default_rng([seed, purpose])
        ends = 0.0
        while True:
            ends += float(changes.exponential(self.regime_s))
            choice = int(changes.integers(choices))
            if at_s < ends:
                return choice


@dataclass(frozen=True)
class RecordedNeighbour:
    """Looks that were recorded at a real core, replayed from a moment that the seed draws, again and again.

    ``slow`` and ``clocks_hz`` have one value for each look. The search sees every second look, so that it knows the
    core as little as it would have then.
    """

    slow: NDArray[np.bool_]
    clocks_hz: Numbers
    looks_per_s: float
    slope: float = 0.4

    def observe(self, began_s: float, duration_s: float, seed: int) -> Observed:
        """Returns what a trial finds; the same trial of the same seed finds the same."""
        start = int(np.random.default_rng(seed).integers(len(self.slow))) + int(began_s * self.looks_per_s)
        window = np.arange(start, start + max(2, int(duration_s * self.looks_per_s))) % len(self.slow)
        seen = self.slow[window[::2]]
        true, clock_hz = float(self.slow[window].mean()), float(self.clocks_hz[window].mean())
        return Observed(true, len(seen), int(seen.sum()), count_independent(seen.tolist()), clock_hz)
