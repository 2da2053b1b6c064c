"""IP forwarding by XDP (`xdp-forward`): a program on each port forwards by the kernel's own route table.

The program asks the route table for each frame (``bpf_fib_lookup``), IPv4 and IPv6, lowers the hop limit, writes the
MAC addresses of the next hop and redirects the frame to its port: no frame that it forwards becomes a socket buffer.
Addresses, neighbours, routes and settings are those of `kernel-forward`, so that only the way through the kernel
differs. A VLAN tag stays as it is, and what is behind it is forwarded. What the program cannot forward (no route, a hop
limit of 1, options, another protocol) it leaves to the kernel and counts by reason; the trial lists these counts beside
its losses.
"""

from __future__ import annotations

import sys
from typing import Any

from nicbench.core.errors import HostError
from nicbench.hosts.base import Host
from nicbench.testbed.duts._forwarding import ForwardingDut
from nicbench.testbed.duts._ports import DutDevices, require_host
from nicbench.testbed.duts._xdp_ports import XdpDut, XdpOptions
from nicbench.testbed.labs.base import Testbed
from nicbench.tuning import bpf
from nicbench.tuning.changes import Changes

_PROGRAM = "xdp_forward"
_PORT_BYTES = 8  # struct port of xdp_forward.bpf.c


class XdpForwardOptions(XdpOptions):
    """``dut: {kind: xdp-forward}``."""


class XdpForward(ForwardingDut, XdpDut):
    """The DUT's host forwards between its ports in the hook of their drivers."""

    kind = "xdp-forward"
    Options = XdpForwardOptions
    # In the order of `enum fate` of the program; the first eleven are results of the lookup (linux/bpf.h).
    fates = (
        "forwarded",
        "route: blackhole",
        "route: unreachable",
        "route: prohibited",
        "no route",
        "forwarding is off",
        "route needs encapsulation",
        "no neighbour",
        "longer than the MTU",
        "no source address",
        "another result of the lookup",
        "lookup refused",
        "not for this port",
        "not IP",
        "malformed",
        "IP options",
        "hop limit reached",
        "to no port of the DUT",
    )
    options: XdpForwardOptions

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        devices = await self._set_up_routes(testbed, changes)
        await self._attach(testbed, changes, devices, _PROGRAM)
        host = require_host(testbed, self.kind)
        for port, mac in zip(self._attached, devices.macs, strict=True):
            await _write_settings(host, port.program, mac, devices)

    def disclosure(self) -> dict[str, Any]:
        return {"kind": self.kind, **self._disclose_programs(_PROGRAM), **self._disclose_routes()}


async def _write_settings(host: Host, program: int, mac: str, devices: DutDevices) -> None:
    """Writes the port's MAC address and the DUT's ports; before that the program forwards nothing."""
    targets = await bpf.map_id(host, program, "forward_to")
    for index in devices.indexes:
        await bpf.write_map(host, targets, index, index, value_bytes=4)
    own = await bpf.map_id(host, program, "forward_port")
    wanted = pack_mac(mac)
    await bpf.write_map(host, own, 0, wanted, value_bytes=_PORT_BYTES)
    if await bpf.read_map(host, own, 0) != wanted:
        raise HostError("the settings of the forwarding program were not taken", place=f"{host.name}, {mac}")


def pack_mac(mac: str) -> int:
    """A MAC address as the number whose bytes, in the machine's order, are ``struct port``."""
    return int.from_bytes(bytes.fromhex(mac.replace(":", "")).ljust(_PORT_BYTES, b"\0"), sys.byteorder)
