"""Rows of the table: two things measured in turn, and the median of their ratios with its interval."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

RESAMPLES = 10_000
# A target is met when the lower bound reaches it less this (benchmarks/README.md).
TOLERANCE = 0.02
ATTEMPTS = 5


@dataclass
class Row:
    """``ours`` and ``peer`` each take one sample: higher is better, as in frames a second."""

    work: str
    peer_name: str
    target: float | None
    ours: Callable[[], float]
    peer: Callable[[], float]
    unit: str = "Mpps"
    scale: float = 1e-6
    samples: list[tuple[float, float]] = field(default_factory=list)
    void: str | None = None

    def take(self, number: int) -> None:
        """One pair; every second one runs the other way round."""
        if number % 2 == 0:
            first = sample(self.ours)
            self.samples.append((first, sample(self.peer)))
        else:
            first = sample(self.peer)
            self.samples.append((sample(self.ours), first))

    def ratio(self, seed: int = 1) -> tuple[float, float, float]:
        """Median of the pairs' ratios and its 95 % interval by the percentile bootstrap."""
        return median_with_interval([ours / peer for ours, peer in self.samples], seed)

    def line(self) -> str:
        """As printed."""
        ours, peer = (np.array(values) * self.scale for values in zip(*self.samples, strict=True))
        median, lower, upper = self.ratio()
        verdict = self.verdict(lower)
        columns = [
            self.work,
            self.peer_name,
            *(f"{np.median(each):.2f} ({each.min():.2f} to {each.max():.2f}) {self.unit}" for each in (ours, peer)),
            f"{median:.3f} [{lower:.3f}, {upper:.3f}]",
            "" if self.target is None else f">= {self.target:g}",
            verdict,
        ]
        return f"| {' | '.join(columns)} |"

    def verdict(self, lower: float) -> str:
        """Whether the target is met."""
        if self.void:
            return f"void: {self.void}"
        if self.target is None:
            return ""
        return "met" if lower >= self.target - TOLERANCE else "not reached"


def sample(take: Callable[[], float]) -> float:
    """One sample; taken again where nothing passed at all: a peer in memory may have begun to poll too late."""
    for _ in range(ATTEMPTS):
        value = take()
        if value > 0:
            return value
    raise RuntimeError(f"nothing passed in {ATTEMPTS} samples")


HEADER = (
    "| work | peer | nicbench: median (range) | peer: median (range) | ratio [95 %] | target | |\n"
    "|---|---|---|---|---|---|---|"
)


def median_with_interval(ratios: Iterable[float], seed: int) -> tuple[float, float, float]:
    """Median and its 95 % interval by the percentile bootstrap."""
    values = list(ratios)
    draws = np.random.default_rng(seed).choice(values, size=(RESAMPLES, len(values)))
    lower, upper = np.percentile(np.median(draws, axis=1), [2.5, 97.5])
    return float(np.median(values)), float(lower), float(upper)


@contextmanager
def held(*pids: int) -> Iterator[None]:
    """These processes stand still meanwhile: one that polls or naps on the same CPU would be measured too."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
