"""NUMA nodes with their CPUs and distances, and the node of each test interface."""

from __future__ import annotations

import re
from shlex import quote
from typing import Annotated, Any, TypedDict

from nicbench.core.described import Facts, Label, NotEverywhere, OneLine, Subject, Write
from nicbench.hosts.asking import values_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.subjects import join_texts, part_of

_NODE = re.compile(r"/node(\d+)/cpulist$")
_DISTANCE = re.compile(r"/node(\d+)/distance$")
_DEVICE = re.compile(r"/net/([^/]+)/device/numa_node$")


class _Nodes(TypedDict):
    """CPUs and interfaces by node."""

    cpus_by_node: Annotated[dict[str, str], Label("NUMA", alone=True), OneLine("node {name}: CPUs {value}", "; ")]
    distances_by_node: dict[str, str]
    node_by_interface: Annotated[dict[str, Annotated[int | None, NotEverywhere]], OneLine()]


def _tell_numa(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "numa")
    nodes = part_of(found, "cpus_by_node")
    distances = part_of(found, "distances_by_node")
    if not nodes:
        return None
    told = "; ".join(f"node {node}: CPUs {cpus}" for node, cpus in nodes.items())
    return join_texts(told, f"distances {' / '.join(distances.values())}" if distances else None, by="; ")


class Numa(Fact):
    """From ``/sys/devices/system/node`` and ``/sys/class/net/DEVICE/device/numa_node``."""

    kind = "numa"
    shape = _Nodes
    subjects = (Subject("NUMA", 150, _tell_numa),)

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
