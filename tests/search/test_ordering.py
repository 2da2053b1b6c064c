"""The rates of one search are in the order of its goals, whatever the trials were (RFC 9004)."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from nicbench.core.reading import Counts
from nicbench.search.base import Goal, Limits, Outcome, Sample, Search
from nicbench.search.bisect import Bisect
from nicbench.search.estimate import EstimateSearch
from nicbench.search.mlr import Mlr
from nicbench.search.step_down import StepDown

GOALS = (Goal(name="NDR", loss_ratio=0.0), Goal(name="PDR", loss_ratio=0.005), Goal(name="loose", loss_ratio=0.02))


class _Capricious:
    """A DUT whose losses, pauses and neighbours are drawn anew for every trial."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._rate = dice.uniform(5_000, 120_000)
        self._spread = dice.choice([0.02, 0.2, 0.6])
        self._looked = dice.random() < 0.5

    def measure(self, load: float, duration_s: float) -> Sample:
        dice = self._dice
        sent = max(1, round(load * duration_s))
        excess = max(0.0, 1.0 - self._rate * dice.lognormvariate(0.0, self._spread) / load)
        lost = min(sent, round(sent * (excess + dice.choice([0.0, 0.0, 0.001, 0.01]))))
        return Sample(
            load_frames_per_s=load,
            duration_s=duration_s,
            counts=Counts(intended=sent, sent=sent, received=sent - lost, lost=lost),
            valid=dice.random() < 0.8,
            pacing_uncertainty=dice.choice([0.0, 0.1]),
            slow_share=dice.choice([0.0, 0.1, 0.5]) if self._looked else None,
            looks=1000 if self._looked else 0,
            clock_hz=dice.choice([3e9, 4e9]) if self._looked else None,
        )


def _ends(outcome: Outcome) -> tuple[float, float, float]:
    rate = outcome.rate
    if rate.value is None:
        return 0.0, 0.0, 0.0
    return rate.lower or 0.0, rate.value, math.inf if rate.upper is None else rate.upper


@pytest.mark.parametrize("validation_s", [None, 10.0], ids=["short trials", "validated"])
@pytest.mark.parametrize("search", [Bisect(), EstimateSearch(), Mlr(), StepDown()], ids=lambda search: search.kind)
def test_values_and_both_ends_rise_with_the_loss_that_a_goal_tolerates(
    search: Search, validation_s: float | None, draw: random.Random
) -> None:
    wanted = Limits.model_validate(
        {
            "minimum_load_frames_per_s": 1_000,
            "maximum_load_frames_per_s": 100_000,
            "maximum_limited_by": "line_rate",
            "precision": 0.02,
            "trial_duration_s": 1.0,
            "validation_duration_s": validation_s,
            "maximum_trials": draw.randint(2, 12),
        }
    )
    for _ in range(4):
        found = search.run(_Capricious(draw).measure, draw.sample(GOALS, 3), wanted)
        for strict, tolerant in itertools.pairwise(found[goal.name] for goal in GOALS):
            one, other = _ends(strict), _ends(tolerant)
            assert all(low <= high for low, high in zip(one, other, strict=True)), (strict, tolerant)
        for outcome in found.values():
            lower, value, upper = _ends(outcome)
            assert lower <= value <= upper, outcome
