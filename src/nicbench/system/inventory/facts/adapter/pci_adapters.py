"""Every network adapter on the host's PCI bus: what it is, where it sits, its link, and what that could be."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from nicbench.core.described import NotEverywhere
from nicbench.core.errors import UnknownFactError
from nicbench.hosts.asking import output_of
from nicbench.hosts.base import Host
from nicbench.system.adapters.pci import PATTERNS, parse_names, parse_pci
from nicbench.system.inventory.base import Fact

_NAMES = ("vendor", "model", "subsystem_vendor", "subsystem")


class _Slot(TypedDict):
    """A link of PCI Express."""

    speed_gt_per_s: float
    lanes: int | None
    bandwidth_bits_per_s: float | None


class _Adapter(TypedDict):
    """One function of an adapter, by its PCI address."""

    vendor: str | None
    model: str | None
    subsystem_vendor: str | None
    subsystem: str | None
    id: str | None
    subsystem_id: str | None
    revision: str | None
    driver: str | None
    numa_node: Annotated[int | None, NotEverywhere]
    local_cpus: str | None
    link: _Slot | None
    link_possible: _Slot | None
    slot_possible: _Slot | None
    virtual_functions: int | None
    virtual_functions_possible: int | None


class PciAdapters(Fact):
    """From ``/sys/bus/pci``, so also those that DPDK has taken; names from ``lspci -D -vmm`` where it is installed."""

    kind = "pci_adapters"
    shape = dict[str, _Adapter]
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
