"""The network adapters on the PCI bus, also those that DPDK has taken, with what they are called."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nicbench.doctor.checks._interfaces import Interface
from nicbench.hosts.base import Host
from nicbench.system.adapters.pci import PATTERNS, parse_pci

Adapters = dict[str, dict[str, Any]]


async def adapters(host: Host) -> Adapters:
    """By their addresses, as ``nicbench.system.adapters.pci`` tells them; empty where there is no such bus."""
    done = await host.run(("sh", "-c", f'grep -sH "" {" ".join(PATTERNS)}; true'), check=False)
    return parse_pci(done.stdout)


def without_way_out(found: Adapters, interfaces: Iterable[Interface]) -> Adapters:
    """Those that the machine is not reached by."""
    taken = {one.pci_address for one in interfaces if one.reaches_others}
    return {address: adapter for address, adapter in found.items() if address not in taken}


def name_adapter(address: str, interfaces: Iterable[Interface]) -> str:
    """``eth1 (0000:03:00.1)``, or the address alone."""
    names = [one.name for one in interfaces if one.pci_address == address]
    return f"{', '.join(names)} ({address})" if names else address
