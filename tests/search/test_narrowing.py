"""Where the next trial goes while nothing passes."""

from __future__ import annotations

from nicbench.core.reading import Counts
from nicbench.core.result import LimitedBy
from nicbench.search._interval import read
from nicbench.search._narrowing import halve
from nicbench.search.base import PDR, Limits, Sample

LIMITS = Limits(
    minimum_load_frames_per_s=10_000, maximum_load_frames_per_s=650_000, maximum_limited_by=LimitedBy.LINE_RATE,
    precision=0.05, trial_duration_s=1.0, maximum_trials=8,
)  # fmt: skip


def sample(load: int, loss_ratio: float) -> Sample:
    lost = round(load * loss_ratio)
    counts = Counts(intended=load, sent=load, received=load - lost, lost=lost)
    return Sample(load_frames_per_s=load, duration_s=1.0, counts=counts)


def next_below(*samples: Sample) -> float:
    return halve(read(samples, PDR, LIMITS), samples, LIMITS)


def test_steps_down_grow_while_nothing_has_passed() -> None:
    first, second, third = sample(650_000, 0.2), sample(500_000, 0.1), sample(400_000, 0.1)
    assert next_below(first, second) <= 0.8 * 500_000
    assert next_below(first, second, third) <= 0.6 * 400_000


def test_below_a_load_that_passed_once_they_begin_anew() -> None:
    above = [sample(650_000, 0.75), sample(173_000, 0.06), sample(164_000, 0.02), sample(164_500, 0.02)]
    wavering = [sample(156_000, 0.001), sample(156_000, 0.007)]
    assert 0.89 * 156_000 <= next_below(*above, *wavering) <= 0.95 * 156_000
    assert 0.79 * 140_000 <= next_below(*above, *wavering, sample(140_000, 0.02)) <= 0.85 * 140_000
