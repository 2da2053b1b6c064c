"""CPU figures as in docs/studies.md: per client and overall, minimum, maximum, mean; CPU per Gb/s; cycles per byte.

The kernel counts times of CPUs in ticks (10 ms on most machines): a share of one interval of 100 ms is exact to 10 %,
of 1 s to 1 %; over many intervals the error is that of the first and the last tick.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

BUSY = ("user", "nice", "system", "irq", "softirq", "guest")
"""States in which a CPU works (proc(5)). The rest: idle, iowait, and steal, in which a hypervisor had taken it away."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Time of one CPU, or of several added up, over one interval: by state, nanoseconds."""

    by_state: Mapping[str, int]

    @property
    def total_ns(self) -> int:
        """Of all states; interval times CPUs, but for the tick in which it was read."""
        return sum(self.by_state.values())

    @property
    def busy_ns(self) -> int:
        """Of the states in which it works."""
        return sum(self.by_state.get(state, 0) for state in BUSY)

    def share(self, *states: str) -> float | None:
        """0..1 of its time in these states; None where no time has passed."""
        total = self.total_ns
        return sum(self.by_state.get(state, 0) for state in states) / total if total > 0 else None


@dataclass(frozen=True, slots=True)
class Utilisation:
    """Shares of time, 0..1: the least and the greatest of any interval, and that of all intervals together.

    ``mean`` is weighted by time, so that intervals of different lengths count for what they are.
    """

    minimum: float
    mean: float
    maximum: float
    samples: int


def added(parts: Iterable[Spent]) -> Spent:
    """Several CPUs, or several intervals, as one."""
    sums: dict[str, int] = {}
    for part in parts:
        for state, time_ns in part.by_state.items():
            sums[state] = sums.get(state, 0) + time_ns
    return Spent(MappingProxyType(sums))


def utilisation(intervals: Iterable[Spent], states: Sequence[str] = BUSY) -> Utilisation | None:
    """Share of time in ``states``; None where no time has passed in any interval."""
    known = [each for each in intervals if each.total_ns > 0]
    if not known:
        return None
    shares = [share for each in known if (share := each.share(*states)) is not None]
    mean = added(known).share(*states)
    if mean is None:
        return None
    return Utilisation(min(shares), mean, max(shares), len(shares))


@dataclass(frozen=True, slots=True)
class ClientsUtilisation:
    """Of each client, and ``overall``: over every interval of every client; the mean is weighted by time."""

    by_client: Mapping[str, Utilisation]
    overall: Utilisation


def over_clients(clients: Mapping[str, Sequence[Spent]], states: Sequence[str] = BUSY) -> ClientsUtilisation | None:
    """docs/studies.md. A client without a sample is left out; None where none has one."""
    by_client = {name: found for name, spent in clients.items() if (found := utilisation(spent, states)) is not None}
    overall = utilisation((each for spent in clients.values() for each in spent), states)
    return None if overall is None else ClientsUtilisation(MappingProxyType(by_client), overall)


def cores_per_gigabit_per_s(busy_ns: float, moved_bits: float) -> float | None:
    """CPU per Gb/s: how many cores it took, fully busy, for each Gb/s (10^9 bits) moved; None where nothing was moved.

    Busy cores over rate is busy time over amount: the time in which both were measured cancels out.
    """
    return (busy_ns / 1e9) / (moved_bits / 1e9) if moved_bits > 0 else None


def cycles_per_byte(busy_ns: float, clock_hz: float | None, moved_bytes: float) -> float | None:
    """Cycles of ``clock_hz`` for each byte moved. Say of which clock: core cycles and TSC cycles are two figures.

    None where the clock is not known or nothing was moved.
    """
    return busy_ns * 1e-9 * clock_hz / moved_bytes if clock_hz and moved_bytes > 0 else None
