"""How firmware and kernel set each network adapter's PCI Express function: payload, read requests, ASPM, ordering."""

from __future__ import annotations

from typing import Any, TypedDict

from nicbench.core.errors import UnknownFactError
from nicbench.hosts.asking import output_of
from nicbench.hosts.base import Host
from nicbench.system.adapters.pci import parse_pci_express
from nicbench.system.inventory.base import Fact


class _Function(TypedDict):
    """One function of an adapter, by its PCI address."""

    payload_bytes: int | None
    payload_possible_bytes: int | None
    read_request_bytes: int | None
    aspm: str | None
    relaxed_ordering: bool | None
    extended_tags: bool | None
    no_snoop: bool | None
    link_degraded: bool | None
    product: str | None
    part: str | None


class PciExpress(Fact):
    """From ``lspci -D -vv``, which needs root."""

    kind = "pci_express"
    shape = dict[str, _Function]
    of_machine = True

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        found = parse_pci_express(await output_of(host, "lspci", "-D", "-vv"))
        if not found:
            raise UnknownFactError("no network adapter with a PCI Express capability that lspci may read")
        return found
