"""Repeated tallies of the engine with their times, from which rates and link changes follow."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nicbench.engine.generator import ColumnTally, FlowColumns, Generator, PortCounts

LOOK_S: Final = 0.1
"""How often a transmission is looked at."""
_RATE_S: Final = 0.5
"""Rates are taken over at least so long, where a flow has been sending for that long."""
_KEPT: Final = 16


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A tally with its time (monotonic). ``flows`` has one value for each flow of the configuration, by its number."""

    at_s: float
    flows: FlowColumns
    ports: Sequence[PortCounts]


class Counting:
    """Asks the engine for tallies, and keeps the last ones."""

    def __init__(self, generator: Generator) -> None:
        self._generator = generator
        self._history: list[Snapshot] = []
        self.latest: ColumnTally | None = None
        """The last counts of all flows: what is left of a transmission whose engine is gone."""
        self._links: dict[str, tuple[bool | None, int]] = {}

    def forget(self) -> None:
        """Drops earlier tallies, when flows were replaced or begin anew: rates do not reach back beyond that."""
        self._history = []

    async def count(self) -> Snapshot:
        """Counts all flows and ports now."""
        self.latest = tally = await self._generator.tally_columns()
        now = Snapshot(time.monotonic(), tally.columns, tally.ports)
        if not self._history or now.at_s - self._history[-1].at_s >= LOOK_S / 2:
            self._history = [*self._history[1 - _KEPT :], now]
        for port in tally.ports:
            if port.name not in self._links or self._links[port.name][0] != port.link_up:
                self._links[port.name] = (port.link_up, time.time_ns())
        return now

    def before(self, now: Snapshot) -> Snapshot | None:
        """Returns the youngest tally that is old enough to take rates from, or the oldest."""
        old = [each for each in self._history if now.at_s - each.at_s >= _RATE_S]
        oldest = self._history[0] if self._history and self._history[0] is not now else None
        return old[-1] if old else oldest

    def link_changed_ns(self, port: str) -> int:
        """Returns when the link of a port was seen to change, or first seen (UNIX time); 0 where it never was."""
        return self._links[port][1] if port in self._links else 0
