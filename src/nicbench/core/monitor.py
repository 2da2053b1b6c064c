"""The monitor: what a bench file asks of it, and what a report discloses."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from nicbench.core.base import Frozen
from nicbench.core.quantity import Seconds


class MonitorSettings(Frozen):
    """``monitor: {interval: 100 ms}``, or ``monitor: off``."""

    interval: Seconds = Field(default=1.0, ge=0.1, le=60.0)
    """Time from one sample to the next."""
    enabled: bool = True


def _off(value: Any) -> Any:
    """Accepts ``off``, which is a word in YAML 1.2 and not a boolean."""
    return {"enabled": value == "on"} if value in ("off", "on") else value


Monitoring = Annotated[MonitorSettings, BeforeValidator(_off)]
"""The section ``monitor`` of a bench file."""


class MonitorPlan(Frozen):
    """How a host was watched, decided before its first trial.

    ``cpus`` is where the monitor was bound to, empty where it was not. ``during_trials`` says in words what it did
    while frames were sent; with ``paused`` a trial is one sample, from its beginning to its end.
    """

    host: str
    interval_s: float
    cpus: tuple[int, ...] = ()
    paused: bool
    during_trials: str
    version: str | None = None
    missing: dict[str, str] = Field(default_factory=dict)
    """Sources that this host lacks, and why."""
    recorder: str | None = Field(default=None, exclude_if=lambda recorder: recorder is None)
    """Of imported results: the program that recorded it, with its version; None: our own monitor."""


class MonitorCost(Frozen):
    """What a monitor cost, by its own account (getrusage(2)): CPU time of user mode and kernel, nanoseconds."""

    cpu_ns: int
    elapsed_ns: int
    samples: int
    maximum_sample_ns: int
    resident_bytes: int | None = None

    @property
    def share_of_a_core(self) -> float | None:
        """Share of one CPU, 0..1; None before any time has passed."""
        return self.cpu_ns / self.elapsed_ns if self.elapsed_ns > 0 else None
