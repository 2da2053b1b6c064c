"""A deterministic stand-in: it remembers what it was told, and watches nothing."""

from __future__ import annotations

from dataclasses import dataclass, field

from nicbench.model.monitor import MonitorPlan
from nicbench.model.round import MachineCpu
from nicbench.monitor.base import Monitors


@dataclass
class FakeMonitors(Monitors):
    """``heard`` is what a run told it, in order."""

    heard: list[str] = field(default_factory=list)

    async def begin_trial(self, number: int, duration_s: float) -> None:
        self.heard.append(f"trial {number} of {duration_s:g} s")

    async def end_trial(self) -> None:
        self.heard.append("end")

    async def begin_round(self, number: int) -> None:
        self.heard.append(f"round {number}")

    async def end_round(self) -> tuple[MachineCpu, ...]:
        self.heard.append("end")
        return ()

    async def close(self) -> None:
        self.heard.append("close")

    @property
    def plans(self) -> tuple[MonitorPlan, ...]:
        return ()
