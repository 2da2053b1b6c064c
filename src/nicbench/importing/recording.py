"""What another program recorded of a machine while results came to be: samples, in the metrics of our own monitor."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reading:
    """One value of a sample, by the names of monitor.parquet. A ``gauge`` was read, a ``count`` is over the interval.

    ``of`` is the CPU, interface or drive, "" of the machine; None: the recording says nothing of it.
    """

    metric: str
    of: str
    kind: str
    value: int | None


@dataclass(frozen=True, slots=True)
class Sample:
    """What was read at one time. ``at_s`` is when the interval ended: seconds since 1970 by the machine's own clock.

    The clock's time zone is not known, so that only differences mean something.
    """

    at_s: float
    interval_s: float
    readings: tuple[Reading, ...]


@dataclass(frozen=True, slots=True)
class Recording:
    """Of one machine. ``recorder`` names the program and its version; ``left_out`` what it says and nobody reads."""

    host: str
    recorder: str
    interval_s: float
    samples: tuple[Sample, ...]
    left_out: tuple[str, ...] = ()
