"""The monitor: its settings in a bench file, and what a report discloses about it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from nicbench.core.base import Frozen
from nicbench.core.quantity import Seconds


class MonitorSettings(Frozen):
    """The settings of the monitor: ``monitor: {interval: 100 ms}``, or ``monitor: off``."""

    interval: Seconds = Field(default=1.0, ge=0.1, le=60.0)
    """Time from one sample to the next."""
    enabled: bool = True
    """`false`, or `monitor: off`: nothing is sampled, and CPU time used by other programs during a round is not looked
    for. What others change on the path of frames still is.
    """


def _off(value: Any) -> Any:
    """Accepts ``off``, which YAML 1.2 reads as a string and not as a boolean."""
    return {"enabled": value == "on"} if value in ("off", "on") else value


Monitoring = Annotated[MonitorSettings, BeforeValidator(_off)]
"""The section ``monitor`` of a bench file."""


class MonitorPlan(Frozen):
    """How a host is monitored, decided before its first trial.

    ``cpus`` are the CPUs that the monitor is bound to, empty where it is not bound. ``during_trials`` describes in
    words what the monitor does while frames are sent; with ``paused`` a trial is one sample, from its beginning to its
    end.
    """

    host: str
    interval_s: float
    cpus: tuple[int, ...] = ()
    paused: bool
    during_trials: str
    version: str | None = None
    missing: dict[str, str] = Field(default_factory=dict)
    """Sources that this host lacks, each with the reason."""
    recorder: str | None = Field(default=None, exclude_if=lambda recorder: recorder is None)
    """For imported results, the program that recorded them, with its version; None for nicbench's own monitor."""


class MonitorCost(Frozen):
    """The cost of a monitor by its own account (getrusage(2)): CPU time in user mode and in the kernel, nanoseconds."""

    cpu_ns: int
    elapsed_ns: int
    samples: int
    maximum_sample_ns: int
    resident_bytes: int | None = None

    @property
    def share_of_a_core(self) -> float | None:
        """The share of one CPU that the monitor used, 0..1; None before any time has passed."""
        return self.cpu_ns / self.elapsed_ns if self.elapsed_ns > 0 else None
