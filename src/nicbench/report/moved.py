"""What a watched machine transferred over time, from monitor.parquet: bytes through its interfaces and its drives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_MOST: Final = 6
"""The most interfaces, and the most drives, that are drawn and described: those that transferred most."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of transfer. ``of`` is the word for what it goes through; ``ways`` maps the metric of each direction to
    the word for that direction.
    """

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
    """Bytes within one interval, whose begin and end are seconds since the recording began."""

    begin_s: float
    end_s: float
    moved_bytes: int

    @property
    def bytes_per_s(self) -> float:
        """The mean rate over the interval."""
        return self.moved_bytes / (self.end_s - self.begin_s)


@dataclass(frozen=True, slots=True)
class Flow:
    """One direction through one interface or drive; rates are bytes/s."""

    name: str
    steps: tuple[Step, ...]

    @property
    def mean_bytes_per_s(self) -> float:
        """The mean rate over all intervals."""
        return sum(each.moved_bytes for each in self.steps) / sum(each.end_s - each.begin_s for each in self.steps)

    @property
    def greatest_bytes_per_s(self) -> float:
        """The rate of the interval with the highest rate."""
        return max(each.bytes_per_s for each in self.steps)

    @property
    def moved_bytes(self) -> int:
        """The bytes of all intervals."""
        return sum(each.moved_bytes for each in self.steps)


@dataclass(frozen=True, slots=True)
class MovedData:
    """All transfers of one kind on one machine. ``others`` is the number of interfaces or drives that are left out,
    ``idle`` has the names of those that transferred nothing.
    """

    kind: Kind
    flows: tuple[Flow, ...]
    others: int = 0
    idle: tuple[str, ...] = ()


def moved_data(columns: Mapping[str, Sequence[object]], host: str) -> tuple[MovedData, ...]:
    """Returns what one machine transferred, of each kind that was recorded; ``columns`` are those of
    monitor.parquet.
    """
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
