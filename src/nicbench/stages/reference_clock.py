"""The clock of the DUT's machine from run to run: read before the first trial, and kept after the last."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from nicbench.core.clocks.reference_clock import ReferenceClock
from nicbench.stats.looks import CoreLooks
from nicbench.store.folder import RunFolder
from nicbench.system.machine_clock import Machine, identify, keep_highest, read_reference
from nicbench.testbed.labs.base import Testbed

ENOUGH_LOOKS: Final = 100
"""The highest of fewer looks is known too badly to be kept."""


@dataclass(frozen=True, slots=True)
class MachineClock:
    """The machine whose cores the DUT uses, and the highest clock that it had shown before the run.

    ``machine`` is None where there is none to know: a simulated one, or one that cannot be told from others.
    """

    machine: Machine | None
    reference: ReferenceClock | None

    @classmethod
    async def of(cls, testbed: Testbed, cpus: Iterable[int], folder: RunFolder) -> MachineClock:
        """Reads it; a run that goes on, or has made a turn already, keeps the one that it began with."""
        if testbed.simulated or not tuple(cpus):
            return cls(None, None)
        machine = await identify(testbed.dut or testbed.tester)
        begun = folder.plan()
        if begun is not None:
            return cls(machine, begun.reference_clock)
        return cls(machine, None if machine is None else read_reference(machine))

    def keep(self, seen: Iterable[CoreLooks]) -> None:
        """Keeps the highest clock of these trials, if the machine has shown none that is higher."""
        if self.machine is None:
            return
        clocks = [looks.highest_clock_hz for looks in seen if looks.looks >= ENOUGH_LOOKS and looks.highest_clock_hz]
        if clocks:
            keep_highest(self.machine, max(clocks))
