"""What every kernel DUT needs of a testbed: its host, and the interfaces of its ports with their indexes."""

from __future__ import annotations

import json
from dataclasses import dataclass

from nicbench.core.errors import NotReadyError, UsageError
from nicbench.hosts.base import Host
from nicbench.testbed.labs.base import Testbed


@dataclass(frozen=True, slots=True)
class DutDevices:
    """Interface names and indexes of the DUT's ports, in order."""

    names: tuple[str, ...]
    indexes: tuple[int, ...]
    macs: tuple[str, ...]


def require_host(testbed: Testbed, kind: str) -> Host:
    """The DUT's host; UsageError where the testbed has none to run commands on."""
    if testbed.dut is None:
        raise UsageError(
            f"a DUT of kind {kind} needs a host to be set up on, and this testbed has none for its DUT",
            place="dut",
            next_step="name its host under `hosts` and its ports under `ports`, or use `dut: {kind: external}`",
        )
    return testbed.dut


def require_ports(testbed: Testbed, kind: str, *, fewest: int = 2, most: int = 2) -> None:
    """Raises UsageError unless ``fewest`` to ``most`` ports are there, each with a link to one of the tester's."""
    ports = len(testbed.dut_ports)
    if ports != len(testbed.tester_ports) or not fewest <= ports <= most:
        joins = "two" if most == 2 else f"{fewest} to {most}"
        raise UsageError(
            f"a DUT of kind {kind} joins {joins} ports; this testbed has {ports} on the DUT and "
            f"{len(testbed.tester_ports)} on the tester",
            place="links",
            next_step="give a link for each, e.g. `links: [t0 <-> d0, t1 <-> d1]`",
        )


async def dut_devices(testbed: Testbed, kind: str, *, fewest: int = 2, most: int = 2) -> DutDevices:
    """Looks up the interfaces on the DUT's host; NotReadyError where one is missing or down."""
    host = require_host(testbed, kind)
    require_ports(testbed, kind, fewest=fewest, most=most)
    names: list[str] = []
    indexes: list[int] = []
    macs: list[str] = []
    for port in testbed.dut_ports:
        if port.device is None:
            raise UsageError(
                f"the DUT's port {port.name} has no device", place=f"ports, {port.name}", next_step="name its `device`"
            )
        done = await host.run(("ip", "-j", "link", "show", "dev", port.device), check=False)
        if done.status != 0:
            raise NotReadyError(
                f"there is no interface {port.device}",
                place=f"{host.name}, port {port.name}",
                next_step="see `ip link` on that host, and name an interface that exists",
            )
        link = json.loads(done.stdout)[0]
        if "UP" not in link["flags"]:
            raise NotReadyError(
                f"the interface {port.device} is down",
                place=f"{host.name}, port {port.name}",
                next_step=f"ip link set dev {port.device} up",
            )
        names.append(port.device)
        indexes.append(int(link["ifindex"]))
        macs.append(str(link["address"]))
    return DutDevices(tuple(names), tuple(indexes), tuple(macs))
