"""What a watched machine moved over time, from monitor.parquet: bytes of its interfaces, and of its drives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_MOST: Final = 6
"""Interfaces or drives that are drawn and told, of each kind: those that moved most."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What is moved where. ``ways`` has the metric of each way and how it is called."""

    name: str
    of: str
    ways: Mapping[str, str]


KINDS: Final = (
    Kind("Network", "interface", {"receive_bytes": "received", "transmit_bytes": "sent"}),
    Kind("Drives", "drive", {"disk_read_bytes": "read", "disk_written_bytes": "written"}),
)
METRICS: Final = tuple(metric for kind in KINDS for metric in kind.ways)


@dataclass(frozen=True, slots=True)
class Step:
    """Bytes over one interval, which began and ended so many seconds after the recording had begun."""

    begin_s: float
    end_s: float
    moved_bytes: int

    @property
    def bytes_per_s(self) -> float:
        """On average over the interval."""
        return self.moved_bytes / (self.end_s - self.begin_s)


@dataclass(frozen=True, slots=True)
class Flow:
    """One way through one interface or drive. Rates are bytes/s; ``greatest`` is that of one interval."""

    name: str
    steps: tuple[Step, ...]

    @property
    def mean_bytes_per_s(self) -> float:
        """Over the time of all intervals."""
        return sum(each.moved_bytes for each in self.steps) / sum(each.end_s - each.begin_s for each in self.steps)

    @property
    def greatest_bytes_per_s(self) -> float:
        """Of the interval in which most was moved in the time."""
        return max(each.bytes_per_s for each in self.steps)

    @property
    def moved_bytes(self) -> int:
        """In all."""
        return sum(each.moved_bytes for each in self.steps)


@dataclass(frozen=True, slots=True)
class MovedData:
    """All of one kind on one machine. ``others`` are those that are not told, ``idle`` those that moved nothing."""

    kind: Kind
    flows: tuple[Flow, ...]
    others: int = 0
    idle: tuple[str, ...] = ()


def moved_data(columns: Mapping[str, Sequence[object]], host: str) -> tuple[MovedData, ...]:
    """Of the rows of one machine in monitor.parquet, by column; nothing of a kind of which nothing was recorded."""
    steps: dict[tuple[str, str], list[Step]] = {}
    names = ("host", "metric", "of", "at_s", "interval_ns", "value")
    for row_host, metric, of, at_s, interval_ns, value in zip(*(columns[name] for name in names), strict=True):
        if row_host != host or value is None or int(str(interval_ns)) <= 0:
            continue
        end_s = float(str(at_s))
        step = Step(end_s - int(str(interval_ns)) / 1e9, end_s, int(str(value)))
        steps.setdefault((str(metric), str(of)), []).append(step)
    return tuple(_of_kind(kind, steps) for kind in KINDS if any(metric in kind.ways for metric, _ in steps))


def _of_kind(kind: Kind, steps: Mapping[tuple[str, str], list[Step]]) -> MovedData:
    amounts: dict[str, int] = {}
    for (metric, of), each in steps.items():
        if metric in kind.ways:
            amounts[of] = amounts.get(of, 0) + sum(step.moved_bytes for step in each)
    busy = sorted((of for of, amount in amounts.items() if amount), key=lambda of: (-amounts[of], of))
    told = busy[:_MOST]
    return MovedData(
        kind,
        tuple(_flows(kind, told, steps)),
        others=len(busy) - len(told),
        idle=tuple(sorted(of for of, amount in amounts.items() if not amount)),
    )


def _flows(kind: Kind, told: Sequence[str], steps: Mapping[tuple[str, str], list[Step]]) -> Iterator[Flow]:
    for of in told:
        for metric, way in kind.ways.items():
            if (metric, of) in steps:
                yield Flow(f"{of}, {way}", tuple(steps[metric, of]))
