"""Virtual functions (SR-IOV) of the test interfaces that are physical ones, and how they are set."""

from __future__ import annotations

from typing import Any, TypedDict

from nicbench.core.errors import UnknownFactError
from nicbench.hosts.asking import output_of
from nicbench.hosts.base import Host
from nicbench.system.adapters.links import parse_links, virtual_functions
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.facts._per_interface import ask_interfaces


class _Function(TypedDict):
    """One virtual function."""

    number: int | None
    mac: str | None
    spoof_check: bool | None
    trusted: bool | None
    link_state: str | None
    rate: dict[str, int] | None
    vlans: list[int | None]


class VirtualFunctions(Fact):
    """From ``ip -j link show``; how many there could be is in ``pci_adapters``."""

    kind = "virtual_functions"
    shape = dict[str, list[_Function]]

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        async def ask(device: str) -> Any:
            functions = virtual_functions(
                parse_links(await output_of(host, "ip", "-j", "-d", "link", "show", "dev", device))[0]
            )
            if not functions:
                raise UnknownFactError("no virtual functions")
            return functions

        return await ask_interfaces(devices, ask)
