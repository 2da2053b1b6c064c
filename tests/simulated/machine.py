"""A deterministic simulation behind ``measure``: a tester and a DUT whose true rate is known.

The DUT loses each frame with a probability that rises with the load; a trial may also lose some for its own reason.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nicbench.core.reading import Counts
from tests.simulated.neighbour import HIGHEST_CLOCK_HZ, RecordedNeighbour, SimulatedNeighbour
from nicbench.search.base import CeilingReached, Sample

PAUSE_S = 0.3
"""Between two trials, in which a neighbour goes on."""

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class SimulatedDut:
    """A DUT that carries ``capacity_frames_per_s`` and loses what is above it.

    ``floor`` is a loss at every load. ``early`` and ``knee_width`` begin the loss before the capacity: its probability
    is ``early`` there and falls by e with every ``knee_width`` (a share of the capacity) below it. A ``spurious_share``
    of the trials loses ``spurious_loss`` of its frames besides; ``bursts_per_s`` times a second on average, at any
    load, ``burst_frames`` are lost. ``noise`` is the standard deviation of each second's capacity, a share of it. A
    ``slow`` below 1 makes the DUT bistable: it carries that share of its capacity half of the time, and stays in a
    state for ``dwell_s`` on average. From the share ``onset`` of the capacity on the probability grows linearly, by
    ``growth`` for each further capacity. ``lossless`` ones refuse frames instead of losing them, ``exact`` ones lose
    just what is above the capacity, with no chance in it. One that is not ``is_limited_by_core`` carries as much
    whatever a neighbour takes of the core.
    """

    capacity_frames_per_s: float
    exact: bool = False
    floor: float = 0.0
    early: float = 0.0
    knee_width: float = 0.01
    spurious_share: float = 0.0
    spurious_loss: float = 0.0
    bursts_per_s: float = 0.0
    burst_frames: int = 1
    noise: float = 0.0
    slow: float = 1.0
    dwell_s: float = 10.0
    lossless: bool = False
    onset: float = 1.0
    growth: float = 0.0
    is_limited_by_core: bool = True

    def loss_probability(self, load_frames_per_s: float) -> float:
        """Returns the probability that one frame is lost at this load, without noise."""
        return float(self._loss_probabilities(load_frames_per_s, np.ones(1))[0])

    def lost(self, load_frames_per_s: float, duration_s: float, random: np.random.Generator) -> int:
        """Returns the frames lost in one trial."""
        frames = int(load_frames_per_s * duration_s)
        if self.exact:
            return max(0, frames - int(self.capacity_frames_per_s * duration_s + 1e-6))
        shares = self._capacity_shares(duration_s, random)
        probabilities = self._loss_probabilities(load_frames_per_s, shares)
        lost = int(random.binomial(_divide(frames, len(shares)), probabilities).sum())
        if self.spurious_share and random.random() < self.spurious_share:
            lost += int(frames * self.spurious_loss)
        if self.bursts_per_s:
            lost += int(random.poisson(self.bursts_per_s * duration_s)) * self.burst_frames
        return min(frames, lost)

    def _capacity_shares(self, duration_s: float, random: np.random.Generator) -> Numbers:
        """Returns the capacity in each second of a trial, as a share of the stated one."""
        if not self.noise and self.slow == 1.0:
            return np.ones(1)
        seconds = max(1, math.ceil(duration_s))
        shares = 1.0 + self.noise * random.standard_normal(seconds)
        if self.slow < 1.0:
            flips = random.random(seconds) < -math.expm1(-duration_s / seconds / self.dwell_s)
            states = (int(random.integers(2)) + np.cumsum(flips)) % 2
            shares *= np.where(states == 0, self.slow, 1.0)
        return shares

    def _loss_probabilities(self, load_frames_per_s: float, capacity_shares: Numbers) -> Numbers:
        if self.capacity_frames_per_s <= 0.0:
            return np.ones(len(capacity_shares))
        capacities = self.capacity_frames_per_s * np.maximum(capacity_shares, 1e-6)
        excess = np.maximum(0.0, 1.0 - capacities / load_frames_per_s)
        below = np.minimum(0.0, (load_frames_per_s / capacities - 1.0) / self.knee_width)
        linear = self.growth * np.maximum(0.0, load_frames_per_s / capacities - self.onset)
        return np.minimum(1.0, self.floor + self.early * np.exp(below) + linear + excess)


def _divide(frames: int, parts: int) -> NDArray[np.int64]:
    """Divides frames into whole parts that are as equal as possible."""
    return np.diff(np.arange(parts + 1) * frames // parts)


class SimulatedMachine:
    """A tester with a DUT behind it.

    The n-th trial at a load is always the same, in whatever order they are made, unless there is a neighbour. The
    tester sends ``sent_share`` of what it is asked for, and no more than its ceiling.
    """

    def __init__(
        self,
        dut: SimulatedDut,
        seed: int,
        *,
        ceiling_frames_per_s: float | None = None,
        says_ceiling: bool = True,
        sent_share: float = 1.0,
        neighbour: SimulatedNeighbour | RecordedNeighbour | None = None,
    ) -> None:
        self.trials: list[Sample] = []
        self._dut = dut
        self._seed = seed
        self._ceiling = ceiling_frames_per_s
        self._says_ceiling = says_ceiling
        self._sent_share = sent_share
        self._neighbour = neighbour
        self._now_s = 0.0
        self._made: Counter[tuple[float, float]] = Counter()

    def measure(self, load_frames_per_s: float, duration_s: float) -> Sample:
        """Makes one trial; beyond the ceiling it raises CeilingReached, or with ``says_ceiling`` false sends less."""
        self._made[load_frames_per_s, duration_s] += 1
        sent_rate = load_frames_per_s * self._sent_share
        if self._ceiling is not None and sent_rate > self._ceiling:
            if self._says_ceiling:
                raise CeilingReached(self._ceiling)
            sent_rate = self._ceiling
        key = [
            self._seed,
            int(load_frames_per_s * 1000),
            int(duration_s * 1e6),
            self._made[load_frames_per_s, duration_s],
        ]
        dut, slow_share, looks, independent, clock_hz = self._dut, None, 0, None, None
        if self._neighbour is not None:
            seen = self._neighbour.observe(self._now_s, duration_s, self._seed)
            slow_share, looks, clock_hz = seen.slow_looks / seen.looks, seen.looks, seen.clock_hz
            independent = seen.independent_looks
            if dut.is_limited_by_core:
                left = (1.0 - self._neighbour.slope * seen.slow_share) * clock_hz / HIGHEST_CLOCK_HZ
                dut = replace(dut, capacity_frames_per_s=dut.capacity_frames_per_s * left)
        self._now_s += duration_s + PAUSE_S
        lost = dut.lost(sent_rate, duration_s, np.random.default_rng(key))
        intended, offered = int(load_frames_per_s * duration_s), int(sent_rate * duration_s)
        refused = lost if self._dut.lossless else 0
        sample = Sample(
            load_frames_per_s=load_frames_per_s,
            duration_s=duration_s,
            counts=Counts(
                intended=intended,
                sent=offered - refused,
                unsent_tester=intended - offered,
                unsent_backpressure=refused,
                received=offered - lost,
                lost=lost - refused,
            ),
            slow_share=slow_share,
            looks=looks,
            independent_looks=independent,
            clock_hz=clock_hz,
            highest_clock_hz=HIGHEST_CLOCK_HZ if clock_hz else None,
            trial_ids=(f"trial-{len(self.trials)}",),
        )
        self.trials.append(sample)
        return sample
