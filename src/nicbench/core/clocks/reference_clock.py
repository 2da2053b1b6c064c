"""The clock for which rates are stated where a run did not see its machine at its fastest: part of plans and samples.

Two runs of one machine agree only if both state their rates for the same clock. What the machine has shown in earlier
runs is kept by ``system/machine_clock.py``.
"""

from __future__ import annotations

from datetime import date

from pydantic import Field

from nicbench.core.base import Frozen

FURTHEST = 0.1
"""A run whose own highest clock is lower by more than this share is not measured for the reference."""


class ReferenceClock(Frozen):
    """The highest clock that the cores of a machine have shown, and the day on which they did."""

    clock_hz: float = Field(gt=0.0)
    seen_on: date

    def applies_to(self, highest_hz: float | None) -> bool:
        """Returns whether a run that saw this clock at most states its rates for the reference."""
        return highest_hz is not None and (1.0 - FURTHEST) * self.clock_hz <= highest_hz < self.clock_hz

    @property
    def words(self) -> str:
        """Says where the clock is from, as in "at 4.20 GHz, ..."."""
        return f"the highest clock that this machine has shown (on {self.seen_on.isoformat()})"
