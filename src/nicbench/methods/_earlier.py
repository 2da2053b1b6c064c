"""The rate of an earlier test at one frame size: what a method works on that needs the throughput beforehand."""

from __future__ import annotations

from nicbench.methods.base import Context
from nicbench.model.frame_size import Size, label_of, size_label, words_of
from nicbench.model.rate import Bounded


def earlier_rate(context: Context, test: str, goal: str, size: Size) -> Bounded:
    """Frames per second of one port; without a value, and with the reason, where that test found none."""
    for result in context.results_of(test):
        if label_of(result.parameters) == size_label(size):
            rate = result.values.get(f"{goal.lower()}_frames_per_s")
            if isinstance(rate, Bounded) and rate.value:
                return rate
    return Bounded(value=None, reason_null=f"{test} found no {goal} at {words_of(size)}")
