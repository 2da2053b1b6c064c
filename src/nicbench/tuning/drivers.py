"""Which driver of the kernel has a PCI device, and giving it to another: by ``driver_override``
(Documentation/ABI/testing/sysfs-bus-pci).
"""

from __future__ import annotations

import asyncio
from typing import Final

from nicbench.core.errors import HostError
from nicbench.hosts.base import Host

_TRIES: Final = 50
_STEP_S: Final = 0.1


def folder_of(address: str) -> str:
    """What /sys has of the device."""
    return f"/sys/bus/pci/devices/{address}"


async def bound_driver(host: Host, address: str) -> str:
    """The name of its driver; "" where none has it."""
    done = await host.run(("readlink", f"{folder_of(address)}/driver"), check=False)
    return done.stdout.strip().rpartition("/")[2]


async def driver_override(host: Host, address: str) -> str:
    """The only driver that it may be given to; "" where any that knows it may have it."""
    text = (await host.read_file(f"{folder_of(address)}/driver_override") or "").strip()
    return "" if text == "(null)" else text


async def set_driver(host: Host, address: str, driver: str, *, override: str) -> None:
    """Takes it from the driver that it has, and gives it to ``driver`` ("": to none). HostError where it is not so."""
    folder = folder_of(address)
    await host.write_file(f"{folder}/driver_override", f"{override}\n")
    now = await bound_driver(host, address)
    if now == driver:
        return
    if now:
        await host.write_file(f"{folder}/driver/unbind", address)
    if not driver:
        return
    if override == driver:
        await host.write_file("/sys/bus/pci/drivers_probe", address)
    else:
        await host.write_file(f"/sys/bus/pci/drivers/{driver}/bind", address)
    for _ in range(_TRIES):
        if await bound_driver(host, address) == driver:
            return
        await asyncio.sleep(_STEP_S)
    now = await bound_driver(host, address)
    raise HostError(
        f"the PCI device {address} should be driven by {driver}, and is by {now or 'none'}",
        place=host.name,
    )


async def interface_of(host: Host, address: str) -> str | None:
    """The interface that the card's driver makes of it, called as whoever names interfaces there has called it."""
    listing = ("ls", f"{folder_of(address)}/net")
    for _ in range(_TRIES):
        if (await host.run(listing, check=False)).stdout.split():
            break
        await asyncio.sleep(_STEP_S)
    await host.run(("udevadm", "settle", "--timeout=10"), check=False)  # where there is one, it gives names too
    found = (await host.run(listing, check=False)).stdout.split()
    return found[0] if found else None
