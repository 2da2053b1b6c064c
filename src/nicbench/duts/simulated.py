"""The DUT of the simulated lab (`simulated`): the engine's simulated port plays it; here are its addresses."""

from __future__ import annotations

from typing import Any

from nicbench.duts._networks import MOST_PORTS
from nicbench.duts._ways import routed, ways_back, ways_between
from nicbench.duts.base import Addressing, FrameDut
from nicbench.labs.base import Testbed
from nicbench.model.base import Frozen
from nicbench.model.pattern import Way
from nicbench.tuning.changes import Changes

# For ports that have none of their own. Locally administered (IEEE 802c), and the same in every run.
_TESTER_MACS = ("02:00:00:00:10:01", "02:00:00:00:11:01")
_DUT_MACS = ("02:00:00:00:10:02", "02:00:00:00:11:02")


class SimulatedOptions(Frozen):
    """``dut: {kind: simulated}``: what it does to frames is said in the lab's options."""


class Simulated(FrameDut):
    """A router between two ports that exists only in the engine; between more, a switch, which goes by MAC address."""

    kind = "simulated"
    Options = SimulatedOptions
    most_ports = MOST_PORTS
    returns_on_same_port = True
    port_kind = "simulated"

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        """Nothing to set up, and nothing changed."""

    def addressing(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        return tuple(_way(testbed, ip, way) for way in ways_between(len(testbed.tester_ports)))

    def returning(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        return tuple(_way(testbed, ip, way) for way in ways_back(len(testbed.tester_ports)))

    async def drops(self) -> dict[str, int]:
        """The simulation counts nothing but what the tester sees."""
        return {}

    def disclosure(self) -> dict[str, Any]:
        return {"kind": self.kind, "statement": "simulated: no frame left the engine"}


def _way(testbed: Testbed, ip: int, way: Way) -> Addressing:
    here, there = way
    ports = len(testbed.tester_ports)
    testers = [port.mac or _TESTER_MACS[index] for index, port in enumerate(testbed.tester_ports)]
    is_switched = ports != 2 or here == there
    destination = testers[there] if is_switched else testbed.dut_ports[here].mac or _DUT_MACS[here]
    return routed(ip, ports, way, source_mac=testers[here], destination_mac=destination)
