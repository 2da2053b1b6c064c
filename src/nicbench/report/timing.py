"""How the frames of a table of latencies were timed: by which timestamps and clocks, with the latency tail of each
trial.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from nicbench.core.errors import NicbenchError
from nicbench.core.reading import Stamps
from nicbench.core.trial import Latency, Trial
from nicbench.core.units import format_digits
from nicbench.store.samples import decode

_SENT: Mapping[str, str] = MappingProxyType(
    {
        "software": "software when their burst is handed to the port",
        "program": "the program in the kernel that makes them, each when it is made",
        "scheduled": "the schedule, with the time at which they were due",
    }
)
_RECEIVED: Mapping[str, str] = MappingProxyType(
    {
        "tsc": "software (TSC) when their burst has been received",
        "program": "the program in the driver's hook (CLOCK_MONOTONIC), each when it gets it",
        "card": "the card, each when it arrives",
        "kernel": "the kernel, each when the driver hands it up",
    }
)


class ClockRow(NamedTuple):
    """The clock of one port during the trial of one frame size."""

    size: str
    port: str
    stamps: Stamps


def words(latencies: Iterable[Latency]) -> tuple[str, ...]:
    """Returns a sentence for each pair of timestamp sources, with the resolution of the coarser one."""
    said: dict[str, None] = {}
    for latency in latencies:
        sent = _SENT.get(latency.source, latency.source)
        received = _RECEIVED.get(latency.received_by, latency.received_by)
        resolution = "" if latency.resolution_ns is None else f", in steps of {format_digits(latency.resolution_ns)} ns"
        sample = "" if latency.sample_of is None else ": a sample of the frames, not every one"
        said[f"sent frames are stamped by {sent}, received ones by {received}{resolution}{sample}"] = None
    return tuple(said)


def clock_rows(trials: Iterable[tuple[str, Trial]]) -> tuple[ClockRow, ...]:
    """Returns a row for every port whose frames carry timestamps of its own clock; each trial comes with its frame
    size.
    """
    return tuple(
        ClockRow(size, port.name, port.timestamps)
        for size, trial in trials
        for port in trial.reading.ports
        if port.timestamps is not None
    )


def warnings(size: str, trial: Trial) -> tuple[str, ...]:
    """Returns a sentence for each thing that cannot be right about the timestamps of a trial."""
    said = []
    latency = trial.reading.latency
    if latency is not None and latency.negative:
        said.append(
            f"{latency.negative} of {latency.count} frames of {size} arrived, by their stamps, up to "
            f"{latency.negative_maximum_ns} ns before they were sent; they are timed as 0"
        )
    for port in trial.reading.ports:
        stamps = port.timestamps
        if stamps is None:
            continue
        if stamps.unstamped or stamps.implausible:
            said.append(
                f"of the frames of {size} at port {port.name}, {stamps.unstamped} bore no stamp and "
                f"{stamps.implausible} one that cannot be: they have the time at which software had received them"
            )
        if stamps.early:
            said.append(
                f"{stamps.early} stamps of {size} at port {port.name} are up to {stamps.early_maximum_ns} ns later "
                "than the moment at which their frames had been received"
            )
    return tuple(said)


_POINTS_PER_DECADE = 40  # of the share of frames: more than a screen can show


class Timing(NamedTuple):
    """The timed trials of a table, each with the label of its frame size."""

    trials: tuple[tuple[str, Trial], ...]
    simulated: bool = False

    @property
    def _latencies(self) -> Sequence[Latency]:
        return [trial.reading.latency for _, trial in self.trials if trial.reading.latency is not None]

    @property
    def stamped_by(self) -> tuple[str, ...]:
        """What stamped the frames, in a clause for each pair of sources."""
        return words(self._latencies)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Which frames were timed, and what stamped them."""
        is_sample = any(latency.sample_of is not None for latency in self._latencies)
        timed = (
            "A sample of the frames is timed, for this tester stamps no others."
            if is_sample
            else "Every frame of the trial is timed."
        )
        if self.simulated and not self.clocks:
            return (timed, "Time is computed; there are no time stamps.")
        return (timed, f"Time stamps: {'; '.join(self.stamped_by)}.") if self.stamped_by else (timed,)

    @property
    def clocks(self) -> tuple[ClockRow, ...]:
        """The clocks of the ports that stamped frames themselves."""
        return clock_rows(self.trials)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What cannot be right about the timestamps, in sentences."""
        return tuple(said for size, trial in self.trials for said in warnings(_size_words(size), trial))

    @property
    def tails(self) -> tuple[tuple[str, tuple[tuple[float, float], ...]], ...]:
        """The latency tail of each frame size that has one, with its label: "64 B"."""
        found = ((size, tail(trial.reading.latency)) for size, trial in self.trials)
        return tuple((f"{size} B" if size.isdigit() else size, points) for size, points in found if points)


def _size_words(size: str) -> str:
    return f"{size} bytes" if size.isdigit() else size


def tail(latency: Latency | None) -> tuple[tuple[float, float], ...]:
    """Returns points (latency in ns, share of frames above it) from all frames down to the last one; empty where
    unknown.
    """
    if latency is None or latency.histogram is None:
        return ()
    try:
        histogram = decode(latency.histogram)
    except NicbenchError:
        return ()  # the table's numbers do not depend on it
    counts = np.ctypeslib.as_array(histogram.counts)
    indices = np.flatnonzero(counts)
    total = int(counts[indices].sum())
    if total == 0:
        return ()
    points = [(float(latency.minimum_ns), 1.0)]
    above, last_decade = total, 0.0
    for index in indices:
        above -= int(counts[index])
        share = max(above, 1) / total  # the last frame ends the line at 1/N: zero has no place on a logarithmic axis
        decade = -math.log10(share) * _POINTS_PER_DECADE
        if decade - last_decade >= 1.0 or above == 0:
            highest_ns = histogram.get_highest_equivalent_value(histogram.get_value_from_index(int(index)))
            points.append((float(min(highest_ns, latency.maximum_ns)), share))
            last_decade = decade
    if points[-1] != (float(latency.maximum_ns), 1 / total):
        points.append((float(latency.maximum_ns), 1 / total))
    return tuple(points)
