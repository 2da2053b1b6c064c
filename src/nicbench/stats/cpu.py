"""CPU time by state, and the share of it that was work (docs/studies.md).

The kernel counts CPU time in ticks (10 ms on most machines): a share of one interval of 100 ms is exact to 10 %, of 1 s
to 1 %. Over many intervals the error is that of the first and the last tick.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

BUSY = ("user", "nice", "system", "irq", "softirq", "guest")
"""States in which a CPU works (proc(5)). The others are idle, iowait and steal (the hypervisor had taken it away)."""


@dataclass(frozen=True, slots=True)
class CpuStates:
    """The time of one CPU, or of several added up, over one interval: nanoseconds by state."""

    by_state: Mapping[str, int]

    @property
    def total_ns(self) -> int:
        """The time in all states: the interval times the number of CPUs, to within a tick."""
        return sum(self.by_state.values())

    @property
    def busy_ns(self) -> int:
        """The time in the states in which a CPU works."""
        return sum(self.by_state.get(state, 0) for state in BUSY)

    def share(self, *states: str) -> float | None:
        """Returns the share of time in these states, 0..1; None where no time has passed."""
        total = self.total_ns
        return sum(self.by_state.get(state, 0) for state in states) / total if total > 0 else None


@dataclass(frozen=True, slots=True)
class Utilisation:
    """Shares of time, 0..1: least and greatest of any interval, and the mean over all.

    ``mean`` is weighted by time, so that longer intervals count for more.
    """

    minimum: float
    mean: float
    maximum: float
    samples: int


def add_times(parts: Iterable[CpuStates]) -> CpuStates:
    """Adds up several CPUs, or several intervals."""
    sums: dict[str, int] = {}
    for part in parts:
        for state, time_ns in part.by_state.items():
            sums[state] = sums.get(state, 0) + time_ns
    return CpuStates(MappingProxyType(sums))


def utilisation(intervals: Iterable[CpuStates], states: Sequence[str] = BUSY) -> Utilisation | None:
    """Computes the share of time in ``states``; None where no time has passed in any interval."""
    known = [each for each in intervals if each.total_ns > 0]
    if not known:
        return None
    shares = [share for each in known if (share := each.share(*states)) is not None]
    mean = add_times(known).share(*states)
    if mean is None:
        return None
    return Utilisation(min(shares), mean, max(shares), len(shares))
