"""Bonds, bridges and VLANs of a host, whether the test names them or only stands on their members.

Of a bond also the order in which its ports joined it, which its hashing counts by.
"""

from __future__ import annotations

from typing import Any

from nicbench.core.errors import UnknownFactError
from nicbench.hosts.asking import output_of
from nicbench.hosts.base import Host
from nicbench.system.adapters.links import aggregates, parse_links, parse_order
from nicbench.system.inventory.base import Fact


class Aggregates(Fact):
    """From ``ip -j -d link`` and sysfs, of every interface in the namespace."""

    kind = "aggregates"
    shape = dict[str, dict[str, Any]]

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        found = aggregates(parse_links(await output_of(host, "ip", "-j", "-d", "link", "show")))
        if any(one["kind"] == "bond" for one in found.values()):
            for name, ports in (await _orders(host)).items():
                found.get(name, {}).update(order=list(ports))
        return found


async def _orders(host: Host) -> dict[str, tuple[str, ...]]:
    try:
        return parse_order(await output_of(host, "sh", "-c", 'grep -sH "" /sys/class/net/*/bonding/slaves'))
    except UnknownFactError:
        return {}
