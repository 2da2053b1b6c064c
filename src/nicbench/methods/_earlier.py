"""The rate of an earlier test at one frame size: what a method works on that needs the throughput beforehand."""

from __future__ import annotations

from nicbench.methods.base import Context
from nicbench.model.frame_size import Size, label_of, size_label, words_of
from nicbench.model.rate import Bounded

NDR = "NDR"


def earlier_rate(context: Context, test: str, goal: str, size: Size) -> Bounded:
    """Frames per second of one port; without a value, and with the reason, where that test found none."""
    for result in context.results_of(test):
        if label_of(result.parameters) == size_label(size):
            rate = result.values.get(f"{goal.lower()}_frames_per_s")
            if isinstance(rate, Bounded) and rate.value:
                return rate
    return Bounded(value=None, reason_null=f"{test} found no {goal} at {words_of(size)}")


def not_the_throughput(of: str, section: str) -> tuple[str, ...]:
    """RFC 1242 section 3.17: the throughput is without loss. Said, for the report, of any other rate."""
    return () if of == NDR else (f"100 % is the {of}, {section} takes the throughput, which is without loss",)
