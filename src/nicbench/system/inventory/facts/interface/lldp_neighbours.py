"""What the other end of each test interface's cable says of itself, where an LLDP daemon runs."""

from __future__ import annotations

from typing import Any, TypedDict

from nicbench.core.errors import UnknownFactError
from nicbench.hosts.asking import output_of
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import outermost
from nicbench.system.adapters.links import parse_neighbours
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.facts._per_interface import ask_interfaces


class _Neighbour(TypedDict):
    """What stands at the other end of a cable."""

    name: str | None
    description: str | None
    chassis: str | None
    port: str | None
    port_description: str | None
    maximum_frame_bytes: int | None
    speed: str | None
    vlan: str | None
    protocol: str | None


class LldpNeighbours(Fact):
    """From ``lldpcli``. The daemon stands in the host's own namespace and sees what is there."""

    kind = "lldp_neighbours"
    shape = dict[str, list[_Neighbour]]

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        if not devices:
            raise UnknownFactError("this host has no kernel interface in the test")
        found = parse_neighbours(await output_of(outermost(host), "lldpcli", "-f", "json", "show", "neighbors"))

        async def ask(device: str) -> Any:
            if outermost(host) is not host or device not in found:
                raise UnknownFactError("no neighbour announced itself")
            return found[device]

        return await ask_interfaces(devices, ask)
