"""Who used the CPUs of each machine over the rounds of a run: the test, the kernel, nicbench, strangers, by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from nicbench.core.round import CpuUser, MachineCpu, Round
from nicbench.stats.cpu import greatest

USERS: Final[Mapping[CpuUser, str]] = MappingProxyType(
    {"own": "the test", "kernel": "the kernel", "nicbench": "nicbench", "stranger": "a stranger"}
)


@dataclass(frozen=True, slots=True)
class ProgramRow:
    """A program of a machine: its mean share over all rounds and its greatest in one; 0..1 of all CPUs."""

    name: str
    user: CpuUser
    mean: float
    greatest: float


@dataclass(frozen=True, slots=True)
class CpuUsers:
    """One machine: means over all rounds, weighted by their time, as shares 0..1 of all CPUs; None is unknown."""

    machine: str
    rounds: int
    own: float | None
    kernel: float | None
    nicbench: float | None
    strangers: float | None
    idle: float | None
    steal: float | None
    pressure: float | None
    programs: tuple[ProgramRow, ...]


def list_cpu_users(rounds: Iterable[Round]) -> tuple[CpuUsers, ...]:
    """Returns a row for each machine whose programs were told apart in any round; warm-ups do not count."""
    seen: dict[str, list[tuple[float, MachineCpu]]] = {}
    for one in rounds:
        for cpu in one.cpu:
            if cpu.own is not None and not one.warm_up:
                seen.setdefault(cpu.machine, []).append((max(one.measured_s, 1e-9), cpu))
    return tuple(_machine(machine, parts) for machine, parts in seen.items())


def _machine(machine: str, parts: list[tuple[float, MachineCpu]]) -> CpuUsers:
    def mean_of(name: str) -> float | None:
        known = [(weight, value) for weight, cpu in parts if (value := getattr(cpu, name)) is not None]
        return sum(weight * value for weight, value in known) / sum(weight for weight, _ in known) if known else None

    return CpuUsers(
        machine=machine,
        rounds=len(parts),
        programs=_programs(parts),
        **{name: mean_of(name) for name in ("own", "kernel", "nicbench", "strangers", "idle", "steal", "pressure")},
    )


def _programs(parts: list[tuple[float, MachineCpu]]) -> tuple[ProgramRow, ...]:
    """The greatest by their mean; a round in which a program is not among the ten greatest counts as none."""
    whole = sum(weight for weight, _ in parts)
    sums: dict[tuple[CpuUser, str], float] = {}
    highest: dict[tuple[CpuUser, str], float] = {}
    for weight, cpu in parts:
        for row in cpu.processes:
            key = row.user, row.name
            sums[key] = sums.get(key, 0.0) + weight * row.share
            highest[key] = max(highest.get(key, 0.0), row.share)
    rows = [ProgramRow(name, user, total / whole, highest[user, name]) for (user, name), total in sums.items()]
    return greatest(rows, lambda row: row.mean)
