"""What a run sees of its monitors: they are told when a trial begins and ends, and keep off it."""

from __future__ import annotations

from abc import ABC, abstractmethod

from nicbench.model.monitor import MonitorPlan
from nicbench.model.round import MachineCpu


class Monitors(ABC):
    """All monitors of one turn of a run. What fails in them is told, and never ends a run."""

    @abstractmethod
    async def begin_trial(self, number: int, duration_s: float) -> None:
        """A trial begins that takes about ``duration_s``: samples that follow are of it."""

    @abstractmethod
    async def end_trial(self) -> None:
        """The trial is over."""

    @abstractmethod
    async def begin_round(self, number: int) -> None:
        """A round of workloads begins: samples that follow are of it, and go on through it."""

    @abstractmethod
    async def end_round(self) -> tuple[MachineCpu, ...]:
        """The round is over; how busy each machine was that is watched."""

    @abstractmethod
    async def close(self) -> None:
        """The last sample; never raises."""

    @property
    @abstractmethod
    def plans(self) -> tuple[MonitorPlan, ...]:
        """How each host is watched; empty where none is."""
