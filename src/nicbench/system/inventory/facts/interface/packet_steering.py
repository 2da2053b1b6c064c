"""Receive packet steering (RPS) of the test interfaces: which CPUs take over received frames, queue by queue."""

from __future__ import annotations

import re
from shlex import quote
from typing import Annotated

from nicbench.core.described import Label, OneLine, Unit
from nicbench.core.errors import UnknownFactError
from nicbench.hosts.asking import values_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact

_QUEUE = re.compile(r"/net/([^/]+)/queues/(rx-\d+)/rps_cpus$")


class PacketSteering(Fact):
    """From ``/sys/class/net/DEVICE/queues``."""

    kind = "rps_cpu_masks"
    shape = Annotated[dict[str, str], Label("RPS CPU masks"), Unit.CPU_MASK, OneLine()]

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, str]:
        if not devices:
            raise UnknownFactError("this host has no kernel interface in the test")
        paths = [f"/sys/class/net/{quote(name)}/queues/rx-*/rps_cpus" for name in devices]
        return parse_masks(await values_of(host, paths))


def parse_masks(values: dict[str, str]) -> dict[str, str]:
    """``d0 rx-0`` to a mask in hex; 0 is: the CPU that received it."""
    return {f"{found[1]} {found[2]}": mask for path, mask in values.items() if (found := _QUEUE.search(path))}
