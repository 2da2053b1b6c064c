"""CPU figures as in docs/studies.md: utilisation per client and overall, cores per Gb/s, cycles per byte.

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


@dataclass(frozen=True, slots=True)
class ClientsUtilisation:
    """The utilisation of each client, and ``overall``: over every interval of every client, weighted by time."""

    by_client: Mapping[str, Utilisation]
    overall: Utilisation


def utilisation_of_clients(
    clients: Mapping[str, Sequence[CpuStates]], states: Sequence[str] = BUSY
) -> ClientsUtilisation | None:
    """Computes the utilisation by client (docs/studies.md). Clients without a sample are left out; None if none has
    one.
    """
    by_client = {name: found for name, spent in clients.items() if (found := utilisation(spent, states)) is not None}
    overall = utilisation((each for spent in clients.values() for each in spent), states)
    return None if overall is None else ClientsUtilisation(MappingProxyType(by_client), overall)


def cores_per_gigabit_per_s(busy_ns: float, moved_bits: float) -> float | None:
    """Computes the fully busy cores for each Gb/s (10^9 bits) moved; None where nothing was moved.

    Busy cores over rate is busy time over amount: the measuring time cancels out.
    """
    return (busy_ns / 1e9) / (moved_bits / 1e9) if moved_bits > 0 else None


def cycles_per_byte(busy_ns: float, clock_hz: float | None, moved_bytes: float) -> float | None:
    """Computes the cycles of ``clock_hz`` for each byte moved; None where either is not known.

    Callers must name the clock: core cycles and TSC cycles are two different figures.
    """
    return busy_ns * 1e-9 * clock_hz / moved_bytes if clock_hz and moved_bytes > 0 else None
