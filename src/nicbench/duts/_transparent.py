"""Addressing through a DUT that changes nothing in a frame: each tester port addresses the other one directly."""

from __future__ import annotations

from nicbench.duts._networks import SWEPT_ADDRESSES, swept_address
from nicbench.duts.base import Addressing
from nicbench.errors import UsageError
from nicbench.labs.base import Testbed


def tester_macs(testbed: Testbed) -> tuple[str, ...]:
    """MAC addresses of the tester's ports; UsageError where one is unknown."""
    macs: list[str] = []
    for port in testbed.tester_ports:
        if port.mac is None:
            raise UsageError(
                f"the MAC address of the tester's port {port.name} is not known",
                place=f"ports, {port.name}",
                next_step="name its `mac` in the bench file",
            )
        macs.append(port.mac)
    return tuple(macs)


def transparent_addressing(testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
    """Forward and reverse, from each tester port to the other's MAC; the IP addresses mean nothing to such a DUT."""
    macs = tester_macs(testbed)
    return tuple(
        Addressing(
            transmit=here,
            receive=there,
            source_mac=macs[here],
            destination_mac=macs[there],
            ip=ip,
            source_address=swept_address(ip, here),
            destination_address=swept_address(ip, there),
            source_address_count=SWEPT_ADDRESSES,
            destination_address_count=SWEPT_ADDRESSES,
        )
        for here, there in ((0, 1), (1, 0))
    )
