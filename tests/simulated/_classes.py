"""Classes of simulated DUTs, 50 of each, and the rates that a search should find for them."""

from __future__ import annotations

import base64
import functools
import json
import math
import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nicbench.core.result import LimitedBy
from nicbench.search._simulated import SimulatedDut, SimulatedMachine
from nicbench.search._simulated_neighbour import RecordedNeighbour, SimulatedNeighbour
from nicbench.search.base import Goal, Limits

OF_EACH_CLASS = 50
PRECISION = 0.005
TRIAL_S = 1.0
FULL_S = 60.0
REPETITIONS = 21
LOOKS_PER_S = 250.0
CLOCKS = (1.0, 0.975, 0.925, 0.9, 0.875)
"""Of a core whose processor has other guests, in shares of the highest."""
RECORDED = Path(__file__).parent / "looks.json"
"""Looks at a virtual CPU: of each the clock in steps, and a bit where it found the core slow."""


@dataclass(frozen=True)
class Subject:
    """One DUT of the comparison, behind a tester."""

    dut: SimulatedDut
    maximum_frames_per_s: float
    ceiling_frames_per_s: float | None
    says_ceiling: bool
    seed: int
    neighbour: SimulatedNeighbour | RecordedNeighbour | None = None
    sent_share: float = 1.0

    def machine(self) -> SimulatedMachine:
        """A fresh one: every search meets the same DUT."""
        return SimulatedMachine(
            self.dut,
            self.seed,
            ceiling_frames_per_s=self.ceiling_frames_per_s,
            says_ceiling=self.says_ceiling,
            sent_share=self.sent_share,
            neighbour=self.neighbour,
        )

    def limits(self, trial_s: float, validation_s: float | None) -> Limits:
        """The same precision for every search, and more trials than any needs."""
        return Limits(
            minimum_load_frames_per_s=self.maximum_frames_per_s / 1000,
            maximum_load_frames_per_s=self.maximum_frames_per_s,
            maximum_limited_by=LimitedBy.LINE_RATE,
            precision=PRECISION,
            trial_duration_s=trial_s,
            validation_duration_s=validation_s,
            maximum_trials=1000,
        )

    def truth(self, goal: Goal) -> float:
        """The load at which half of the trials of full length meet the goal, rare bursts apart; what can be sent."""
        reachable = min(self.maximum_frames_per_s * self.sent_share, self.ceiling_frames_per_s or math.inf)
        low, high = 0.0, reachable
        if self._is_met(goal, high):
            return high
        while high - low > PRECISION / 10 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if self._is_met(goal, middle) else (low, middle)
        return low

    def _is_met(self, goal: Goal, load: float) -> bool:
        dut, frames = self.dut, int(load * FULL_S)
        if dut.noise == 0.0 and dut.slow == 1.0:
            expected = frames * dut.loss_probability(load)
            return expected <= max(math.log(2.0), goal.loss_ratio * frames)
        draws = np.random.default_rng([self.seed, int(load)])
        quiet = SimulatedDut(dut.capacity_frames_per_s, noise=dut.noise, slow=dut.slow, dwell_s=dut.dwell_s)
        met = sum(quiet.lost(load, FULL_S, draws) <= goal.loss_ratio * frames for _ in range(REPETITIONS))
        return 2 * met > REPETITIONS


def subjects(seed: int, of_each: int = OF_EACH_CLASS) -> dict[str, list[Subject]]:
    """By the name of the class; the same seed draws the same."""
    return {name: [_drawn(f"{seed}/{name}/{number}", draw) for number in range(of_each)] for name, draw in CLASSES}


def _drawn(seed: str, draw_dut: Callable[[random.Random, float], SimulatedDut]) -> Subject:
    draw = random.Random(seed)
    maximum = draw.uniform(1e6, 15e6)
    capacity = maximum * draw.uniform(0.05, 0.98)
    ceiling = None
    if draw_dut is _saturation:
        ceiling = capacity
    dut = draw_dut(draw, capacity)
    neighbour: SimulatedNeighbour | RecordedNeighbour | None = None
    if draw_dut in (_neighbour, _beside):
        neighbour = SimulatedNeighbour(looks_per_s=LOOKS_PER_S, clocks=CLOCKS)
    elif draw_dut is _recorded:
        neighbour = recorded_neighbour()
    says_ceiling, own_seed = draw.random() < 0.5, draw.getrandbits(32)
    sent_share = 1.0 - math.exp(draw.uniform(math.log(0.001), math.log(0.5))) if draw_dut is _falls_short else 1.0
    return Subject(dut, maximum, ceiling, says_ceiling, own_seed, neighbour, sent_share)


@functools.cache
def recorded_neighbour() -> RecordedNeighbour:
    """The looks of the file, which a program took of a virtual CPU for ten minutes."""
    recorded = json.loads(RECORDED.read_text())
    looks = np.frombuffer(zlib.decompress(base64.b64decode(recorded["looks"])), dtype=np.uint8)
    return RecordedNeighbour(
        slow=looks >= recorded["slow_from"],
        clocks_hz=(looks % recorded["slow_from"]) * recorded["clock_step_hz"],
        looks_per_s=recorded["looks_per_s"],
    )


def _sharp(draw: random.Random, capacity: float) -> SimulatedDut:
    return SimulatedDut(capacity)


def _soft(draw: random.Random, capacity: float) -> SimulatedDut:
    return SimulatedDut(capacity, early=10.0 ** draw.uniform(-5, -2), knee_width=draw.uniform(0.005, 0.03))


def _linear(draw: random.Random, capacity: float) -> SimulatedDut:
    """From 70 to 100 % of the capacity on it loses more and more; of a load that is a tenth higher 0.1 to 10 %."""
    return SimulatedDut(capacity, onset=draw.uniform(0.1, 1.0), growth=10.0 ** draw.uniform(-4, 1))


def _noise(draw: random.Random, capacity: float) -> SimulatedDut:
    return SimulatedDut(capacity, noise=draw.uniform(0.002, 0.02))


def _rare_loss(draw: random.Random, capacity: float) -> SimulatedDut:
    """Once in 100 s to once in half an hour, at any load: one validation trial in two to one in thirty is hit."""
    return SimulatedDut(
        capacity,
        bursts_per_s=1.0 / math.exp(draw.uniform(math.log(100), math.log(1800))),
        burst_frames=draw.randint(1, 500),
    )


def _saturation(draw: random.Random, capacity: float) -> SimulatedDut:
    """``capacity`` is what the tester sends; the DUT carries a little less, or more."""
    return SimulatedDut(capacity * draw.uniform(0.9, 2.0))


def _falls_short(draw: random.Random, capacity: float) -> SimulatedDut:
    """A sharp one, whose tester sends 50 to 99.9 % of what it is asked for, at every load."""
    return SimulatedDut(capacity)


def _neighbour(draw: random.Random, capacity: float) -> SimulatedDut:
    """A sharp one; its core is shared, and its rate is that of a dedicated core."""
    return SimulatedDut(capacity, noise=draw.choice((0.0, 0.002, 0.01)))


def _recorded(draw: random.Random, capacity: float) -> SimulatedDut:
    """The same on a core whose looks were recorded on a virtual machine with neighbours."""
    return _neighbour(draw, capacity)


def _beside(draw: random.Random, capacity: float) -> SimulatedDut:
    """A sharp one that a policer limits and not its core: what a neighbour takes must not be added to its rate."""
    return SimulatedDut(capacity, noise=draw.choice((0.0, 0.0005)), is_limited_by_core=False)


def _bistable(draw: random.Random, capacity: float) -> SimulatedDut:
    return SimulatedDut(capacity, slow=draw.uniform(0.6, 0.97), dwell_s=draw.uniform(2.0, 60.0))


CLASSES: tuple[tuple[str, Callable[[random.Random, float], SimulatedDut]], ...] = (
    ("sharp knee", _sharp),
    ("soft knee", _soft),
    ("linear loss", _linear),
    ("noise", _noise),
    ("rare loss", _rare_loss),
    ("tester saturates", _saturation),
    ("tester falls short", _falls_short),
    ("neighbour", _neighbour),
    ("recorded neighbour", _recorded),
    ("policer beside a neighbour", _beside),
    ("bistable", _bistable),
)
