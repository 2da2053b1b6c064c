"""What the other end of each test interface's cable says of itself, where an LLDP daemon runs."""

from __future__ import annotations

from typing import Any

from nicbench.adapters.lldp import parse_neighbours
from nicbench.hosts.base import Host
from nicbench.inventory._asking import outermost, output_of
from nicbench.inventory.base import Fact, UnknownFactError
from nicbench.inventory.facts._per_interface import each


class LldpNeighbours(Fact):
    """From ``lldpcli``. The daemon stands in the host's own namespace and sees what is there."""

    kind = "lldp_neighbours"

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        if not devices:
            raise UnknownFactError("this host has no kernel interface in the test")
        found = parse_neighbours(await output_of(outermost(host), "lldpcli", "-f", "json", "show", "neighbors"))

        async def ask(device: str) -> Any:
            if outermost(host) is not host or device not in found:
                raise UnknownFactError("no neighbour announced itself")
            return found[device]

        return await each(devices, ask)
