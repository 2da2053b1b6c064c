"""How the frames of a table of latencies were timed: by which stamps and clocks, and the tail of each trial."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nicbench.core.errors import NicbenchError
from nicbench.core.trial import Latency, Trial
from nicbench.report.stamps import ClockRow, clock_rows, warnings, words
from nicbench.store.histograms import decode

_POINTS_PER_DECADE = 40  # of the tail's share: more than a screen can show


@dataclass(frozen=True, slots=True)
class Timing:
    """The timed trials of a table, each with the label of its frame size."""

    trials: tuple[tuple[str, Trial], ...]
    simulated: bool = False

    @property
    def _latencies(self) -> Sequence[Latency]:
        return [trial.reading.latency for _, trial in self.trials if trial.reading.latency is not None]

    @property
    def stamped_by(self) -> tuple[str, ...]:
        """By what frames were stamped, a clause for each way."""
        return words(self._latencies)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Which frames were timed, and by what they were stamped."""
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
        """Of the ports whose own clocks stamped frames."""
        return clock_rows(self.trials)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What of the stamps cannot be right."""
        return tuple(said for size, trial in self.trials for said in warnings(_size_words(size), trial))

    @property
    def tails(self) -> tuple[tuple[str, tuple[tuple[float, float], ...]], ...]:
        """Of each frame size that has one: "64 B"."""
        found = ((size, tail(trial.reading.latency)) for size, trial in self.trials)
        return tuple((f"{size} B" if size.isdigit() else size, points) for size, points in found if points)


def _size_words(size: str) -> str:
    return f"{size} bytes" if size.isdigit() else size


def tail(latency: Latency | None) -> tuple[tuple[float, float], ...]:
    """Points (latency in ns, share of frames above it), from all frames down to the last one; empty where unknown."""
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
