"""The kernel interfaces behind a port that DPDK reaches in its own way: they must be free to use as any other."""

from __future__ import annotations

from pathlib import PurePosixPath

from nicbench.errors import NotReadyError
from nicbench.hosts.base import Host
from nicbench.hosts.netns import NetnsHost
from nicbench.labs._host_interfaces import interfaces_of
from nicbench.labs._interfaces import check_free, check_interface
from nicbench.labs._vdev import (
    addresses_of_vdev,
    interfaces_of_vdev,
    other_values_of_vdev,
    pci_address,
    runs_commands,
)


async def check_vdev(host: Host, vdev: str, place: str) -> None:
    """NotReadyError where a virtual device stands on an interface that may not be used."""
    if runs_commands(vdev):
        raise NotReadyError(
            "this virtual device learns from a command or a file what it stands on, which cannot be checked",
            place=place,
            next_step="name its devices with `dev(...)`",
        )
    needed = interfaces_of_vdev(vdev)
    others = other_values_of_vdev(vdev)
    if needed or others:
        interfaces = await interfaces_of(host)
        for device in needed:
            check_interface(interfaces, device, place, for_tester=True)
        for value in others:
            name = interfaces.name_of(value)
            if name is not None:
                check_free(interfaces, name, place, for_tester=True)
    for address in addresses_of_vdev(vdev):
        await check_address(host, address, place)


async def check_address(host: Host, address: str, place: str) -> None:
    """NotReadyError where the kernel uses the card at this PCI address. A card of DPDK's own has no interface.

    DPDK takes a card whatever namespace its interface is in, so the namespace's outer host is asked as well.
    """
    seen_from: Host | None = host
    while seen_from is not None:
        devices = await _interfaces_at(seen_from, address)
        if devices:
            interfaces = await interfaces_of(seen_from)
            for device in devices:
                check_free(interfaces, device, f"{place}, {address}", for_tester=True)
        seen_from = seen_from.inner if isinstance(seen_from, NetnsHost) else None


async def _interfaces_at(host: Host, address: str) -> list[str]:
    """In ``net/`` of the card, or of the virtio device that it carries."""
    folder = f"/sys/bus/pci/devices/{pci_address(address)}/"
    listed = await host.run(("find", folder, "-maxdepth", "3", "-path", "*/net/*"), check=False)
    paths = (PurePosixPath(line) for line in listed.stdout.splitlines())
    return sorted({path.name for path in paths if path.parent.name == "net"})
