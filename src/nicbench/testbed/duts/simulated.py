"""The DUT of the simulated lab (`simulated`): the engine's simulated port acts as the DUT; here are its addresses."""

from __future__ import annotations

from typing import Any

from nicbench.core.base import Frozen
from nicbench.core.pattern import Way
from nicbench.testbed.addressing import MOST_PORTS, make_addressing, ways_back, ways_between
from nicbench.testbed.duts.base import Addressing, FrameDut
from nicbench.testbed.labs.base import Testbed
from nicbench.tuning.changes import Changes

# MAC addresses for ports without their own: locally administered (IEEE 802c), and the same in every run.
_TESTER_MACS = ("02:00:00:00:10:01", "02:00:00:00:11:01")
_DUT_MACS = ("02:00:00:00:10:02", "02:00:00:00:11:02")


class SimulatedOptions(Frozen):
    """``dut: {kind: simulated}``: the options of the lab say what it does to frames."""


class Simulated(FrameDut):
    """A DUT that exists only in the engine: a router between two ports, a switch by MAC address between more."""

    kind = "simulated"
    Options = SimulatedOptions
    most_ports = MOST_PORTS
    returns_on_same_port = True
    port_kind = "simulated"

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        """Does nothing: there is nothing to set up."""

    def addressing(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        return tuple(_address_way(testbed, ip, way) for way in ways_between(len(testbed.tester_ports)))

    def returning(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        return tuple(_address_way(testbed, ip, way) for way in ways_back(len(testbed.tester_ports)))

    def disclosure(self) -> dict[str, Any]:
        return {"kind": self.kind, "statement": "simulated: no frame left the engine"}


def _address_way(testbed: Testbed, ip: int, way: Way) -> Addressing:
    here, there = way
    ports = len(testbed.tester_ports)
    testers = [port.mac or _TESTER_MACS[index] for index, port in enumerate(testbed.tester_ports)]
    is_switched = ports != 2 or here == there
    destination = testers[there] if is_switched else testbed.dut_ports[here].mac or _DUT_MACS[here]
    return make_addressing(ip, ports, way, source_mac=testers[here], destination_mac=destination)
