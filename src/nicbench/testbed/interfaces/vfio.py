"""Gives cards to DPDK (``bind`` of a port) or to a virtual machine by vfio-pci, where an IOMMU isolates them; the undo
returns them.

An IOMMU isolates a device together with its whole group (Documentation/driver-api/vfio.rst of the kernel).
"""

from __future__ import annotations

from typing import Final

from nicbench.core.errors import HostError, NotReadyError
from nicbench.hosts.base import Host
from nicbench.testbed.interfaces.base import Making, origin_of, place_of
from nicbench.testbed.interfaces.dpdk_devices import check_address
from nicbench.testbed.interfaces.host_interfaces import check_free, interfaces_of
from nicbench.testbed.interfaces.options import Port
from nicbench.tuning.changes import Changes
from nicbench.tuning.drivers import bound_driver, folder_of, overridden, set_driver
from nicbench.tuning.undo.restore_driver import RestoreDriver

VFIO: Final = "vfio-pci"
_IFF_UP: Final = 1
_HARMLESS_DRIVERS: Final = ("pcieport", "pci-stub", "")
"""Other devices of a group may have these drivers; "" is no driver."""


async def bind_to_vfio(changes: Changes, machine: Host, address: str, place: str) -> None:
    """Binds the device to vfio-pci; the undo restores its driver. NotReadyError where no IOMMU isolates it."""
    await require_isolated(machine, address, place)
    now = await bound_driver(machine, address)
    if now == VFIO:
        return
    device, up = await _interface_state(machine, address) if now else (None, False)
    await machine.run(("modprobe", VFIO), check=False)
    if (await machine.run(("test", "-d", f"/sys/bus/pci/drivers/{VFIO}"), check=False)).status != 0:
        raise NotReadyError(
            "the kernel has no driver vfio-pci", place=place, next_step="modprobe vfio-pci; Debian's kernels have it"
        )
    before = await overridden(machine, address)
    undo = RestoreDriver(address=address, driver=now, override=before, asked=VFIO, device=device, up=up)
    try:
        await changes.make(machine, undo, lambda: set_driver(machine, address, VFIO, override=VFIO))
    except HostError as error:
        raise NotReadyError(
            f"vfio-pci does not take {address}: {error.message}", place=place, next_step="see `dmesg` on that host"
        ) from error


async def _interface_state(machine: Host, address: str) -> tuple[str | None, bool]:
    """The name of the card's interface, None without one, and whether it is up."""
    found = (await machine.run(("ls", f"{folder_of(address)}/net"), check=False)).stdout.split()
    if not found:
        return None, False
    flags = await machine.read_file(f"/sys/class/net/{found[0]}/flags") or "0x0"
    return found[0], bool(int(flags, 16) & _IFF_UP)


async def require_isolated(machine: Host, address: str, place: str) -> None:
    """Raises NotReadyError where no IOMMU isolates the device, or another driver's device is in its group."""
    folder = folder_of(address)
    if (await machine.run(("test", "-e", folder), check=False)).status != 0:
        raise NotReadyError(
            f"there is no PCI device {address}", place=place, next_step="`lspci -D` lists those of that host"
        )
    listed = await machine.run(("ls", f"{folder}/iommu_group/devices"), check=False)
    if listed.status != 0:
        raise NotReadyError(
            f"no IOMMU isolates {address}, so vfio-pci does not take it",
            place=place,
            next_step="enable VT-d or AMD-Vi in the BIOS and boot with `intel_iommu=on iommu=pt` "
            "(tuning: `boot_parameters` checks it)",
        )
    for other in listed.stdout.split():
        driver = await bound_driver(machine, other)
        if other != address and driver not in (*_HARMLESS_DRIVERS, VFIO):
            raise NotReadyError(
                f"{address} shares its IOMMU group with {other}, which {driver} uses",
                place=place,
                next_step="use a slot or a function in a group of its own (ACS), or unbind the other device",
            )


async def bind_cards(making: Making) -> None:
    """Binds the cards of all such ports; a port named by its interface then has a PCI address instead.

    NotReadyError where a card is in use.
    """
    for name, port in making.ports.items():
        if port.bind is None:
            continue
        place, host = place_of(port, name), origin_of(making, port)
        if port.device is not None:
            port = await _name_by_address(host, port, port.device, place)
        if port.address is not None:
            await check_address(host, port.address, place)
            await bind_to_vfio(making.changes, host.machine, port.address, place)
            making.tell("bound_cards", name, f"{port.address} to {port.bind}")
        making.ports[name] = port


async def _name_by_address(host: Host, port: Port, device: str, place: str) -> Port:
    """The port with the PCI address of its interface's card in place of the interface."""
    link = check_free(await interfaces_of(host), device, place, for_tester=True)
    done = await host.run(("readlink", f"/sys/class/net/{device}/device"), check=False)
    address = done.stdout.strip().rpartition("/")[2]
    if done.status != 0 or not address.count(":") == 2:
        raise NotReadyError(
            f"the interface {device} does not belong to a PCI card",
            place=place,
            next_step="remove `bind`, or name the interface of a card; `ls -l /sys/class/net` shows their devices",
        )
    return port.model_copy(update={"device": None, "address": address, "mac": port.mac or str(link["address"])})
