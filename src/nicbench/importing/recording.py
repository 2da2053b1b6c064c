"""Recordings of a machine by other programs: samples in the metrics of our own monitor."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reading:
    """One value of a sample, named as in monitor.parquet. A ``gauge`` was read, a ``count`` is over the interval.

    ``of`` is the CPU, interface or drive, "" for the machine. ``value`` is None where the recording does not give it.
    """

    metric: str
    of: str
    kind: str
    value: int | None


@dataclass(frozen=True, slots=True)
class Sample:
    """The readings of one time. ``at_s`` is the end of the interval: seconds since 1970 by the machine's own clock.

    The clock's time zone is not known, so that only differences are meaningful.
    """

    at_s: float
    interval_s: float
    readings: tuple[Reading, ...]


@dataclass(frozen=True, slots=True)
class Recording:
    """The recording of one machine. ``recorder`` is the program with its version; ``left_out`` lists sections not
    read.
    """

    host: str
    recorder: str
    interval_s: float
    samples: tuple[Sample, ...]
    left_out: tuple[str, ...] = ()
