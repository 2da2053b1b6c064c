"""Bisection in the manner of RFC 2544 section 26.1: start at the maximum, go below what fails and above what passes.

With ``trials_per_bound`` above 1 the remaining bounds are repeated until a majority settles them, so that one trial
with a loss of its own cannot decide a result.
"""

from __future__ import annotations

from collections.abc import Sequence

from nicbench.search._drive import NarrowingSearch
from nicbench.search._interval import Reading
from nicbench.search._narrowing import halve
from nicbench.search.base import Limits, Sample


class Bisect(NarrowingSearch):
    """Halves the interval between the highest load that passed and the lowest that failed."""

    kind = "bisect"

    def choose(self, reading: Reading, samples: Sequence[Sample], limits: Limits) -> float:
        return halve(reading, samples, limits)
