"""Simulated DUTs behind a simulated tester, by class: what a search asks of them, and the rate that is true of each.

The rate is computed from the model before any search runs: the load at which half of the trials meet the goal. Drawing
the same class with the same seed gives the same worlds, and the n-th trial of a world is always the same.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

import numpy as np

from nicbench.core.reading import Counts
from nicbench.core.result import Bounded, LimitedBy
from nicbench.search.base import Goal, Limits, Sample

PRECISION = 0.005
TRIAL_S = 1.0
BESIDE_S = 0.3
"""What a trial takes beside its duration."""


@dataclass(frozen=True)
class Dut:
    """A DUT that forwards ``capacity`` frames per second, times a share that each trial draws anew.

    ``noise`` is the deviation of that share, ``alike`` its correlation from one trial to the next, ``drift_per_s`` its
    fall. Next to a neighbour (``slope``) the share falls with the part of the trial that the neighbour takes, which is
    a random walk between 0 and 0.8. ``floor`` is lost at any load; ``early`` begins before the capacity and grows by e
    with each ``knee_width``; from ``onset`` of the capacity on the loss grows linearly by ``growth``. ``queue`` frames
    wait, ``bucket`` frames pass at once. With ``livelock`` a DUT that is offered twice its capacity forwards so much
    less. ``bursts_per_s`` losses of ``burst`` frames come at any load. ``slow`` is the share that it forwards in its
    second state, in which it stays for ``dwell_s``.
    """

    capacity: float
    noise: float = 0.0
    alike: float = 0.0
    drift_per_s: float = 0.0
    slope: float = 0.0
    floor: float = 0.0
    early: float = 0.0
    knee_width: float = 0.01
    onset: float = 1.0
    growth: float = 0.0
    queue: float = 0.0
    bucket: float = 0.0
    livelock: float = 0.0
    bursts_per_s: float = 0.0
    burst: int = 1
    slow: float = 1.0
    dwell_s: float = 10.0

    def expected_ratio(self, load: float, share: float = 1.0) -> float:
        """The loss ratio without queue, bucket and chance."""
        capacity = self.capacity * share
        over = max(0.0, load / capacity - 1.0)
        forwarded = capacity * max(0.05, 1.0 - self.livelock * over)
        excess = max(0.0, 1.0 - forwarded / load) if load > capacity else 0.0
        early = self.early * math.exp(min(0.0, (load / capacity - 1.0) / self.knee_width)) if self.early else 0.0
        linear = self.growth * max(0.0, load / capacity - self.onset)
        return min(1.0, self.floor + early + linear + excess)


@dataclass
class World:
    """One DUT and one tester; ``measure`` is what a search is given."""

    dut: Dut
    maximum: float
    seed: int
    ceiling: float | None = None
    sent_share: float = 1.0
    trial_s: float = TRIAL_S
    precision: float = PRECISION
    pauses: float = 0.0
    """How often a second the tester pauses for some milliseconds; its frames then leave late, in a burst."""
    limited_by: LimitedBy = LimitedBy.LINE_RATE
    trials: list[Sample] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    now_s: float = 0.0
    _noise: float = 0.0
    _taken: float = 0.3
    _is_slow: bool = False

    def limits(
        self, maximum_trials: int = 60, time_s: float | None = None, validation_s: float | None = None
    ) -> Limits:
        """The limits of a search of this world."""
        return Limits(
            minimum_load_frames_per_s=1.0,
            maximum_load_frames_per_s=self.maximum,
            maximum_limited_by=self.limited_by,
            precision=self.precision,
            trial_duration_s=self.trial_s,
            validation_duration_s=validation_s,
            maximum_trials=maximum_trials,
            time_s=time_s,
        )

    def measure(self, load_frames_per_s: float, duration_s: float) -> Sample:
        """Makes one trial."""
        dut, draw = self.dut, np.random.default_rng([self.seed, len(self.trials)])
        share = self._next_share(draw, duration_s)
        intended = max(1, int(load_frames_per_s * duration_s))
        rate = min(load_frames_per_s * self.sent_share, self.ceiling or math.inf)
        paused_s = sum(draw.exponential(0.008) for _ in range(draw.poisson(self.pauses * duration_s)))
        longest_s = min(paused_s, 0.01 + 0.5 * paused_s) if paused_s else 0.0
        offered = max(1, min(intended, int(rate * duration_s * (1.0 - 0.3 * min(1.0, paused_s / duration_s)))))
        load = offered / duration_s
        capacity = dut.capacity * share
        over = max(0.0, load / capacity - 1.0)
        forwarded = capacity * max(0.05, 1.0 - dut.livelock * over)
        fits = int(forwarded * duration_s + dut.bucket + 1e-9)
        queued = max(0.0, min(dut.queue, offered - fits)) if load > forwarded else 0.0
        lost = max(0, offered - fits - int(queued))
        burst = int(paused_s * load_frames_per_s * 0.5)
        if burst and load > 0.97 * capacity and not dut.bucket:
            lost += max(0, burst - int(max(0.0, capacity - load) * duration_s))
        soft = dut.expected_ratio(load, share) - max(0.0, 1.0 - forwarded / load if load > capacity else 0.0)
        lost += int(draw.binomial(max(0, offered - lost), min(1.0, max(0.0, soft))))
        lost += int(draw.poisson(dut.bursts_per_s * duration_s)) * dut.burst
        lost = min(offered, lost)
        uneven = longest_s > 0.02 or paused_s > 0.05 * duration_s
        sample = Sample(
            load_frames_per_s=load_frames_per_s,
            duration_s=duration_s,
            counts=Counts(
                intended=intended, sent=offered, unsent_tester=intended - offered, received=offered - lost, lost=lost
            ),
            is_even=not uneven and offered >= 0.999 * intended,
            held_up_share=min(1.0, paused_s / duration_s),
            longest_pause_share=longest_s / duration_s,
            queued_s=queued / forwarded,
            core_shared=dut.slope > 0.0 and self._taken > 0.04,
            took_s=duration_s + BESIDE_S,
            trial_ids=(f"trial-{len(self.trials)}",),
        )
        self.trials.append(sample)
        self.shares.append(share)
        self.now_s += duration_s + BESIDE_S
        return sample

    def _next_share(self, draw: np.random.Generator, duration_s: float) -> float:
        dut = self.dut
        fresh = float(draw.standard_normal())
        first = not self.trials
        self._noise = fresh if first else dut.alike * self._noise + math.sqrt(1.0 - dut.alike**2) * fresh
        share = math.exp(dut.noise * self._noise) * max(0.01, 1.0 - dut.drift_per_s * self.now_s)
        if dut.slope:
            self._taken = min(0.8, max(0.0, self._taken + 0.15 * float(draw.standard_normal())))
            share *= 1.0 - dut.slope * self._taken
        if dut.slow < 1.0:
            if draw.random() < -math.expm1(-(duration_s + BESIDE_S) / dut.dwell_s):
                self._is_slow = not self._is_slow
            share *= dut.slow if self._is_slow else 1.0
        return share

    @property
    def reachable(self) -> float:
        """The highest load that can be offered."""
        return min(self.maximum * self.sent_share, self.ceiling or math.inf)

    def truth(self, goal: Goal, share: float = 1.0) -> float:
        """The load at which half of the trials meet the goal, with this share of the capacity; at most what can be
        offered.
        """
        dut = self.dut
        low, high = 0.0, self.reachable
        for _ in range(60):
            middle = (low + high) / 2.0
            frames = middle * self.trial_s
            expected = frames * dut.expected_ratio(middle, share) - dut.bucket
            allowed = goal.loss_ratio * frames
            random_part = frames * (dut.expected_ratio(min(middle, dut.capacity * share), share))
            met = expected <= (allowed if random_part <= 0.0 else max(math.log(2.0), allowed))
            low, high = (middle, high) if met else (low, middle)
        return low

    def truths(self, goal: Goal) -> tuple[float, float]:
        """The lowest and the highest rate that may be called true, by the model or in the trials made."""
        dut = self.dut
        if not (dut.noise or dut.drift_per_s or dut.slope or dut.slow < 1.0):
            truth = self.truth(goal)
            return truth, truth
        if dut.noise and not (dut.alike or dut.drift_per_s or dut.slope):
            truth = self.truth(goal)
            return truth, truth
        middle = self.truth(goal, float(np.median(self.shares)))
        return middle, middle


def _sharp(draw: random.Random, capacity: float) -> Dut:
    return Dut(capacity)


def _soft(draw: random.Random, capacity: float) -> Dut:
    return Dut(capacity, early=10.0 ** draw.uniform(-5, -2), knee_width=draw.uniform(0.005, 0.03))


def _linear(draw: random.Random, capacity: float) -> Dut:
    return Dut(capacity, onset=draw.uniform(0.1, 1.0), growth=10.0 ** draw.uniform(-4, 1))


def _noise(draw: random.Random, capacity: float) -> Dut:
    return Dut(capacity, noise=draw.uniform(0.002, 0.03))


def _alike(draw: random.Random, capacity: float) -> Dut:
    return Dut(capacity, noise=draw.uniform(0.002, 0.03), alike=0.8)


def _drift(draw: random.Random, capacity: float) -> Dut:
    return Dut(capacity, drift_per_s=draw.choice((-1, 1)) * draw.uniform(0.0005, 0.005))


def _floor(draw: random.Random, capacity: float) -> Dut:
    return Dut(capacity, floor=10.0 ** draw.uniform(-6, -2))


def _queue(draw: random.Random, capacity: float) -> Dut:
    return Dut(capacity, queue=min(capacity, 10.0 ** draw.uniform(0, 5)))


def _livelock(draw: random.Random, capacity: float) -> Dut:
    return Dut(capacity, livelock=draw.uniform(0.05, 1.0))


def _collapse(draw: random.Random, capacity: float) -> Dut:
    return Dut(capacity, livelock=10.0 ** draw.uniform(0.0, 2.5))


def _rare(draw: random.Random, capacity: float) -> Dut:
    return Dut(
        capacity, bursts_per_s=math.exp(-draw.uniform(math.log(100), math.log(1800))), burst=draw.randint(1, 500)
    )


def _neighbour(draw: random.Random, capacity: float) -> Dut:
    return Dut(capacity, noise=0.005, slope=draw.uniform(0.1, 0.5))


def _bistable(draw: random.Random, capacity: float) -> Dut:
    return Dut(capacity, slow=draw.uniform(0.6, 0.97), dwell_s=draw.uniform(2.0, 60.0))


HELD = 0.9
"""The number of intervals of a class that hold the rate; docs/searches.md has the shares of a thousand of each."""
CLASSES = {
    "sharp": _sharp,
    "soft": _soft,
    "linear loss": _linear,
    "noise": _noise,
    "autocorrelated": _alike,
    "drift": _drift,
    "floor": _floor,
    "queue": _queue,
    "livelock": _livelock,
    "collapse": _collapse,
    "rare loss": _rare,
    "neighbour": _neighbour,
    "bistable": _bistable,
    "capped": _sharp,
    "short tester": _sharp,
    "share of the load": _sharp,
    "slow": _sharp,
    "paused tester": _sharp,
}


def draw_world(name: str, seed: int) -> World:
    """Returns one world of a class."""
    draw = random.Random(f"{name}/{seed}")
    maximum = draw.uniform(1e6, 15e6)
    capacity = maximum * math.exp(draw.uniform(math.log(0.01), math.log(0.9)))
    if name == "slow":
        capacity = 2.0 * 10.0 ** draw.uniform(0, 3)
    world = World(CLASSES[name](draw, capacity), maximum, draw.getrandbits(32))
    if name == "capped":
        world.maximum, world.limited_by = capacity * draw.uniform(0.2, 0.95), LimitedBy.MAXIMUM_LOAD
    elif name == "short tester":
        world.ceiling = capacity * draw.uniform(0.5, 1.2)
    elif name == "share of the load":
        world.sent_share = 1.0 - math.exp(draw.uniform(math.log(0.001), math.log(0.5)))
    elif name == "paused tester":
        world.pauses = draw.uniform(0.5, 5.0)
    return world


def holds(world: World, goal: Goal, rate: Bounded) -> bool:
    """Whether the interval of an answer holds the true rate."""
    low, high = world.truths(goal)
    frame = 1.5 / max(sample.duration_s for sample in world.trials)
    if rate.value is None:
        return rate.loss_floor is not None or (rate.upper is not None and low <= rate.upper)
    assert rate.lower is not None
    if rate.upper is None:
        least = world.reachable * (1.0 - 1.5 * world.precision)
        return rate.value >= least and low >= least
    return rate.lower - frame <= high and low <= rate.upper + frame
