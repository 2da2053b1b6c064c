"""Every network adapter on the host's PCI bus: what it is, where it sits, its link, and what that could be."""

from __future__ import annotations

from typing import Any

from nicbench.adapters.pci import PATTERNS, parse_names, parse_pci
from nicbench.hosts.base import Host
from nicbench.inventory._asking import output_of
from nicbench.inventory.base import Fact, UnknownFactError

_NAMES = ("vendor", "model", "subsystem_vendor", "subsystem")


class PciAdapters(Fact):
    """From ``/sys/bus/pci``, so also those that DPDK has taken; names from ``lspci -D -vmm`` where it is installed."""

    kind = "pci_adapters"
    of_machine = True

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        found = parse_pci(await output_of(host, "sh", "-c", f'grep -sH "" {" ".join(PATTERNS)}; true'))
        if not found:
            raise UnknownFactError("no network adapter on its PCI bus")
        try:
            names = parse_names(await output_of(host, "lspci", "-D", "-vmm"))
        except UnknownFactError:
            names = {}  # the numbers say the same
        unnamed = dict.fromkeys(_NAMES)
        return {address: {**unnamed, **names.get(address, {}), **facts} for address, facts in found.items()}
