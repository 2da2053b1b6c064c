"""NUMA nodes with their CPUs and distances, and the node of each test interface."""

from __future__ import annotations

import re
from shlex import quote
from typing import Annotated, Any, TypedDict

from nicbench.core.described import Label, NotEverywhere, OneLine
from nicbench.hosts.asking import values_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact

_NODE = re.compile(r"/node(\d+)/cpulist$")
_DISTANCE = re.compile(r"/node(\d+)/distance$")
_DEVICE = re.compile(r"/net/([^/]+)/device/numa_node$")


class _Nodes(TypedDict):
    """CPUs and interfaces by node."""

    cpus_by_node: Annotated[dict[str, str], Label("NUMA", alone=True), OneLine("node {name}: CPUs {value}", "; ")]
    distances_by_node: dict[str, str]
    node_by_interface: Annotated[dict[str, Annotated[int | None, NotEverywhere]], OneLine()]


class Numa(Fact):
    """From ``/sys/devices/system/node`` and ``/sys/class/net/DEVICE/device/numa_node``."""

    kind = "numa"
    shape = _Nodes

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        paths = ["/sys/devices/system/node/node*/cpulist", "/sys/devices/system/node/node*/distance"]
        paths += [f"/sys/class/net/{quote(device)}/device/numa_node" for device in devices]
        return parse_nodes(await values_of(host, paths), devices)


def parse_nodes(values: dict[str, str], devices: tuple[str, ...]) -> dict[str, Any]:
    """CPUs by node; an interface without a node of its own (a virtual one, or -1) has null."""
    cpus = {found[1]: value for path, value in values.items() if (found := _NODE.search(path))}
    nodes = {found[1]: int(value) for path, value in values.items() if (found := _DEVICE.search(path))}
    distances = {found[1]: value for path, value in values.items() if (found := _DISTANCE.search(path))}
    return {
        "cpus_by_node": cpus,
        # From each node to every node; 10 is its own (ACPI, System Locality Information Table).
        "distances_by_node": distances if len(distances) > 1 else {},
        "node_by_interface": {name: nodes[name] if nodes.get(name, -1) >= 0 else None for name in devices},
    }
