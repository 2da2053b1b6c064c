"""What the machine of a simulated lab draws: a straight line over the rate that it forwards, with noise and drift.

It has two meters, as a server has: the reading of a management controller, which is of the whole machine, and an energy
counter of its processor package, which draws a share of that.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.quantity import Ratio, Seconds


class SimulatedPower(Frozen):
    """``power: {idle_watts: 120, joules_per_gigabit: 0.8}`` under ``lab``."""

    idle_watts: float = Field(default=100.0, gt=0.0, le=1e5)
    """What the machine draws without frames, in watts."""
    joules_per_gigabit: float = Field(default=1.0, ge=0.0, le=1e6)
    """What each gigabit that it forwards adds (layer 2), in joules."""
    package: Ratio = 0.6
    """The share of both that its processor package draws."""
    noise_watts: float = Field(default=0.5, ge=0.0, le=1e4)
    """Standard deviation of what the machine draws in a second, in watts."""
    drift_watts_per_hour: float = Field(default=0.0, ge=-1e6, le=1e6)
    """By how much what it draws without frames changes, in watts an hour."""
    averaging: Seconds = Field(default=1.0, ge=0.1, le=60.0)
    """Over how long the controller's reading averages."""
    counter_range_joules: float = Field(default=262_143.0, gt=0.0, le=1e12)
    """Where the energy counter wraps, in joules."""
    fault: Literal["none", "still", "wraps"] = "none"
    """What is wrong with its meters: `still` shows for ever what it showed first, `wraps` does not tell where its
    counter wraps.
    """
