"""A mirror made of XDP (`xdp-tx`): a program on each port sends every frame back out of it (XDP_TX).

MAC addresses are swapped and nothing else, as by the `reflector` and by testpmd's `macswap`: addresses and ports of the
layers above stay, so that checksums hold and no byte of the payload is touched. For labs of one port, and for the
pattern `same-port`. A frame to a group of stations is left to the kernel.
"""

from __future__ import annotations

from typing import Any

from nicbench.core.base import Frozen
from nicbench.core.errors import UsageError
from nicbench.core.pattern import Pattern
from nicbench.testbed.addressing import MOST_PORTS, make_addressing, tester_macs, ways_back
from nicbench.testbed.duts._ports import dut_devices
from nicbench.testbed.duts._xdp_ports import XdpDut, XdpOptions
from nicbench.testbed.duts.base import Addressing, Refusal
from nicbench.testbed.labs.base import Testbed
from nicbench.tuning.changes import Changes

_PROGRAM = "xdp_tx"


class XdpTxOptions(XdpOptions):
    """``dut: {kind: xdp-tx}``."""


class XdpTx(XdpDut):
    """Every port of the DUT's host sends back what it receives."""

    kind = "xdp-tx"
    Options = XdpTxOptions
    most_ports = MOST_PORTS
    returns_on_same_port = True
    fates = ("returned", "malformed", "to a group of stations")
    """In the order of `enum fate` of the program."""
    options: XdpTxOptions

    def __init__(self, options: Frozen) -> None:
        super().__init__(options)
        self._macs: tuple[str, ...] = ()

    def refusal(self, ports: int, pattern: Pattern) -> Refusal | None:
        if ports == 1 or pattern is Pattern.SAME_PORT:
            return None
        return Refusal(
            "xdp-tx sends each frame back out of its port", "write `pattern: same-port`, or choose xdp-forward"
        )

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        devices = await dut_devices(testbed, self.kind, fewest=self.fewest_ports, most=self.most_ports)
        self._macs = devices.macs
        await self._attach(testbed, changes, devices, _PROGRAM)

    def addressing(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        return ()  # no frame goes from one port to another

    def returning(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        if not self._macs:
            raise UsageError("a DUT of kind xdp-tx is not set up", place="dut", next_step="call up first")
        macs = tester_macs(testbed)
        return tuple(
            make_addressing(ip, len(macs), way, source_mac=macs[way[0]], destination_mac=self._macs[way[0]])
            for way in ways_back(len(macs))
        )

    def disclosure(self) -> dict[str, Any]:
        return {"kind": self.kind, **self._disclose_programs(_PROGRAM), "macs": list(self._macs)}
