"""Rows of the table: two things measured in turn, and the median of their ratios with its interval."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from core_watch import SHARED_SHARE, CoreWatch

RESAMPLES = 10_000
# A target is met when the lower bound reaches it less this (benchmarks/README.md).
TOLERANCE = 0.02
ATTEMPTS = 5
# So many times the pairs that are wanted are taken at most, until enough of them are quiet.
BUDGET = 2


@dataclass(frozen=True, slots=True)
class Pair:
    """One sample of each; ``quiet``: nobody else was seen on the physical cores during either."""

    ours: float
    peer: float
    quiet: bool


@dataclass
class Row:
    """``ours`` and ``peer`` each take one sample: higher is better, as in frames a second."""

    work: str
    peer_name: str
    target: float | None
    ours: Callable[[], float]
    peer: Callable[[], float]
    watch: CoreWatch
    unit: str = "Mpps"
    scale: float = 1e-6
    # What ours must reach by itself, whatever the peer does.
    wanted_rate: float | None = None
    # What else is to be said, when all is taken.
    note: Callable[[], str] | None = None
    taken: list[Pair] = field(default_factory=list)
    void: str | None = None

    def take(self) -> None:
        """One pair; every second one runs the other way round."""
        self.watch.shares.clear()
        if len(self.taken) % 2 == 0:
            ours = sample(self.ours)
            peer = sample(self.peer)
        else:
            peer = sample(self.peer)
            ours = sample(self.ours)
        self.taken.append(Pair(ours, peer, quiet=max(self.watch.shares) <= SHARED_SHARE))

    def is_complete(self, wanted: int) -> bool:
        """Enough quiet pairs, or all that are taken at most."""
        return len(self.quiet()) >= wanted or len(self.taken) >= BUDGET * wanted

    def quiet(self) -> list[Pair]:
        """The pairs for which the cores were ours."""
        return [pair for pair in self.taken if pair.quiet]

    def judged(self, wanted: int) -> list[Pair]:
        """The quiet pairs; all of them where too few were quiet. Which they are never depends on a rate."""
        return quiet if len(quiet := self.quiet()) >= wanted else self.taken

    def ratio(self, wanted: int, seed: int = 1) -> tuple[float, float, float]:
        """Median of the pairs' ratios and its 95 % interval by the percentile bootstrap."""
        return median_with_interval([pair.ours / pair.peer for pair in self.judged(wanted)], seed)

    def line(self, wanted: int) -> str:
        """As printed."""
        pairs = self.judged(wanted)
        ours, peer = (
            np.array(values) * self.scale for values in ([pair.ours for pair in pairs], [pair.peer for pair in pairs])
        )
        median, lower, upper = self.ratio(wanted)
        columns = [
            self.work,
            self.peer_name,
            *(f"{np.median(each):.2f} ({each.min():.2f} to {each.max():.2f}) {self.unit}" for each in (ours, peer)),
            f"{len(self.quiet())} of {len(self.taken)}",
            f"{median:.3f} [{lower:.3f}, {upper:.3f}]",
            self.wanted(),
            "; ".join(text for text in (self.verdict(wanted), self.note() if self.note else "") if text),
        ]
        return f"| {' | '.join(columns)} |"

    def wanted(self) -> str:
        """The target, as printed."""
        if self.wanted_rate is not None:
            return f">= {self.wanted_rate * self.scale:g} {self.unit}"
        return "" if self.target is None else f">= {self.target:g}"

    def verdict(self, wanted: int, seed: int = 1) -> str:
        """Whether the target is met; where the cores were shared too often, a miss says nothing of the programs."""
        if self.void:
            return f"void: {self.void}"
        if self.wanted_rate is not None:
            _, lower, _ = median_with_interval([pair.ours for pair in self.judged(wanted)], seed)
            is_met = lower >= self.wanted_rate
        elif self.target is not None:
            is_met = self.ratio(wanted)[1] >= self.target - TOLERANCE
        else:
            return ""
        if is_met:
            return "met"
        return "not reached" if len(self.quiet()) >= wanted else "not shown: the cores were shared"


@dataclass
class CpuRow(Row):
    """CPU time of the pairs of another row: what is done for a second of it, so that higher is better here too."""

    rates: Row | None = None

    def take(self) -> None:
        """That of the pair which the other row has just taken."""
        assert self.rates is not None
        self.taken.append(Pair(self.ours(), self.peer(), self.rates.taken[-1].quiet))


def sample(take: Callable[[], float]) -> float:
    """One sample; taken again where nothing passed at all: a peer in memory may have begun to poll too late."""
    for _ in range(ATTEMPTS):
        value = take()
        if value > 0:
            return value
    raise RuntimeError(f"nothing passed in {ATTEMPTS} samples")


HEADER = (
    "| work | peer | nicbench: median (range) | peer: median (range) | quiet pairs | ratio [95 %] | target | |\n"
    "|---|---|---|---|---|---|---|---|"
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
