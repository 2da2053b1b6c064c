"""Addressing through a DUT that changes nothing in a frame: each tester port addresses the others directly."""

from __future__ import annotations

from nicbench.duts._ways import routed, ways_between
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
    """From each tester port to every other's MAC, forward first; the IP addresses mean nothing to such a DUT."""
    macs = tester_macs(testbed)
    return tuple(
        routed(ip, len(macs), way, source_mac=macs[way[0]], destination_mac=macs[way[1]])
        for way in ways_between(len(macs))
    )
