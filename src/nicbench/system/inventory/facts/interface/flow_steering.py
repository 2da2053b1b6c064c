"""Which CPUs send on which queue (XPS), and flows steered to where they are read (RFS), of the test interfaces."""

from __future__ import annotations

import re
from shlex import quote
from typing import Any

from nicbench.core.errors import UnknownFactError
from nicbench.hosts.asking import values_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact

_FILE = re.compile(r"/net/([^/]+)/queues/([rt]x-\d+)/(xps_cpus|xps_rxqs|rps_flow_cnt)$")


class FlowSteering(Fact):
    """From ``/sys/class/net/DEVICE/queues``; receive packet steering (RPS) is in ``rps_cpu_masks``."""

    kind = "flow_steering"
    shape = dict[str, dict[str, str]]

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        if not devices:
            raise UnknownFactError("this host has no kernel interface in the test")
        files = ("tx-*/xps_cpus", "tx-*/xps_rxqs", "rx-*/rps_flow_cnt")
        return parse_steering(
            await values_of(host, [f"/sys/class/net/{quote(name)}/queues/{file}" for name in devices for file in files])
        )


def parse_steering(values: dict[str, str]) -> dict[str, dict[str, str]]:
    """By kind, ``d0 tx-0`` to a mask in hex or a number of flows; what is 0, so not used, is left out."""
    found: dict[str, dict[str, str]] = {}
    for path, value in values.items():
        if (file := _FILE.search(path)) and value.strip("0,"):
            found.setdefault(file[3], {})[f"{file[1]} {file[2]}"] = value
    return found
