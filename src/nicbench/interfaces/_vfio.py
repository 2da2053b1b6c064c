"""A PCI device given to a program of user space, or to a virtual machine, by vfio-pci; and what forbids it.

Documentation/driver-api/vfio.rst of the kernel: an IOMMU keeps it apart, with its whole group.
"""

from __future__ import annotations

from typing import Final

from nicbench.errors import HostError, NotReadyError
from nicbench.hosts.base import Host
from nicbench.tuning.changes import Changes
from nicbench.tuning.drivers import bound_driver, folder_of, overridden, set_driver
from nicbench.tuning.undo import RestoreDriver

VFIO: Final = "vfio-pci"
_IFF_UP: Final = 1
_BRIDGES: Final = ("pcieport", "pci-stub", "")
"""Drivers of other devices of a group that are no obstacle; "" is none."""


async def bind_to_vfio(changes: Changes, machine: Host, address: str, place: str) -> None:
    """With the driver that it has now put back in the end. NotReadyError where no IOMMU keeps it apart."""
    await require_apart(machine, address, place)
    now = await bound_driver(machine, address)
    if now == VFIO:
        return
    device, up = await _interface(machine, address) if now else (None, False)
    await machine.run(("modprobe", VFIO), check=False)
    if (await machine.run(("test", "-d", f"/sys/bus/pci/drivers/{VFIO}"), check=False)).status != 0:
        raise NotReadyError(
            "the kernel has no driver vfio-pci", place=place, next_step="modprobe vfio-pci; it is in Debian's kernels"
        )
    before = await overridden(machine, address)
    undo = RestoreDriver(address=address, driver=now, override=before, asked=VFIO, device=device, up=up)
    try:
        await changes.make(machine, undo, lambda: set_driver(machine, address, VFIO, override=VFIO))
    except HostError as error:
        raise NotReadyError(
            f"vfio-pci does not take {address}: {error.message}", place=place, next_step="`dmesg` on that host says why"
        ) from error


async def _interface(machine: Host, address: str) -> tuple[str | None, bool]:
    """What the card's interface is called, and whether it is up."""
    found = (await machine.run(("ls", f"{folder_of(address)}/net"), check=False)).stdout.split()
    if not found:
        return None, False
    flags = await machine.read_file(f"/sys/class/net/{found[0]}/flags") or "0x0"
    return found[0], bool(int(flags, 16) & _IFF_UP)


async def require_apart(machine: Host, address: str, place: str) -> None:
    """That an IOMMU translates for it, and nobody else's device is in its group."""
    folder = folder_of(address)
    if (await machine.run(("test", "-e", folder), check=False)).status != 0:
        raise NotReadyError(
            f"there is no PCI device {address}", place=place, next_step="`lspci -D` lists those of that host"
        )
    listed = await machine.run(("ls", f"{folder}/iommu_group/devices"), check=False)
    if listed.status != 0:
        raise NotReadyError(
            f"no IOMMU keeps {address} apart, so vfio-pci does not take it",
            place=place,
            next_step="switch VT-d or AMD-Vi on in the BIOS and boot with `intel_iommu=on iommu=pt` "
            "(tuning: `boot_parameters` checks it)",
        )
    for other in listed.stdout.split():
        driver = await bound_driver(machine, other)
        if other != address and driver not in (*_BRIDGES, VFIO):
            raise NotReadyError(
                f"{address} shares its IOMMU group with {other}, which {driver} uses",
                place=place,
                next_step="use a slot or a function in a group of its own (ACS), or free the other one",
            )
