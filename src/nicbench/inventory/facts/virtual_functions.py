"""Virtual functions (SR-IOV) of the test interfaces that are physical ones, and how they are set."""

from __future__ import annotations

from typing import Any

from nicbench.adapters.links import parse_links, virtual_functions
from nicbench.hosts.base import Host
from nicbench.inventory._asking import output_of
from nicbench.inventory.base import Fact, UnknownFactError
from nicbench.inventory.facts._per_interface import each


class VirtualFunctions(Fact):
    """From ``ip -j link show``; how many there could be is in ``pci_adapters``."""

    kind = "virtual_functions"

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        async def ask(device: str) -> Any:
            functions = virtual_functions(
                parse_links(await output_of(host, "ip", "-j", "-d", "link", "show", "dev", device))[0]
            )
            if not functions:
                raise UnknownFactError("no virtual functions")
            return functions

        return await each(devices, ask)
