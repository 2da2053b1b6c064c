"""Bonds, bridges and VLANs of a host, whether the test names them or only stands on their members."""

from __future__ import annotations

from typing import Any

from nicbench.adapters.links import aggregates, parse_links
from nicbench.hosts.base import Host
from nicbench.inventory._asking import output_of
from nicbench.inventory.base import Fact


class Aggregates(Fact):
    """From ``ip -j -d link``, of every interface in the namespace."""

    kind = "aggregates"

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        return aggregates(parse_links(await output_of(host, "ip", "-j", "-d", "link", "show")))
