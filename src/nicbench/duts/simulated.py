"""The DUT of the simulated lab (`simulated`): the engine's simulated port plays it; here are its addresses."""

from __future__ import annotations

from typing import Any

from nicbench.duts._networks import SWEPT_ADDRESSES, swept_address
from nicbench.duts.base import Addressing, Dut
from nicbench.labs.base import Testbed
from nicbench.model.base import Frozen
from nicbench.tuning.changes import Changes

# For ports that have none of their own. Locally administered (IEEE 802c), and the same in every run.
_TESTER_MACS = ("02:00:00:00:10:01", "02:00:00:00:11:01")
_DUT_MACS = ("02:00:00:00:10:02", "02:00:00:00:11:02")


class SimulatedOptions(Frozen):
    """``dut: {kind: simulated}``: what it does to frames is said in the lab's options."""


class Simulated(Dut):
    """A router that exists only in the engine."""

    kind = "simulated"
    Options = SimulatedOptions
    port_kind = "simulated"

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        """Nothing to set up, and nothing changed."""

    def addressing(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        return tuple(
            Addressing(
                transmit=here,
                receive=there,
                source_mac=testbed.tester_ports[here].mac or _TESTER_MACS[here],
                destination_mac=testbed.dut_ports[here].mac or _DUT_MACS[here],
                ip=ip,
                source_address=swept_address(ip, here),
                destination_address=swept_address(ip, there),
                source_address_count=SWEPT_ADDRESSES,
                destination_address_count=SWEPT_ADDRESSES,
            )
            for here, there in ((0, 1), (1, 0))
        )

    async def drops(self) -> dict[str, int]:
        """The simulation counts nothing but what the tester sees."""
        return {}

    def disclosure(self) -> dict[str, Any]:
        return {"kind": self.kind, "statement": "simulated: no frame left the engine"}
