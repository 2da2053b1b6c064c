"""How firmware and kernel set each network adapter's PCI Express function: payload, read requests, ASPM, ordering."""

from __future__ import annotations

from typing import Any

from nicbench.adapters.pci_express import parse_pci_express
from nicbench.hosts.base import Host
from nicbench.inventory._asking import output_of
from nicbench.inventory.base import Fact, UnknownFactError


class PciExpress(Fact):
    """From ``lspci -D -vv``, which needs root."""

    kind = "pci_express"
    of_machine = True

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        found = parse_pci_express(await output_of(host, "lspci", "-D", "-vv"))
        if not found:
            raise UnknownFactError("no network adapter with a PCI Express capability that lspci may read")
        return found
