"""DPDK's drivers in the kernel: vfio-pci, or a uio driver, is bound to a card instead of its own, and hands it to DPDK.

Source: DPDK's Getting Started Guide for Linux, "Linux Drivers". Mellanox and Microsoft cards keep the kernel's driver.
"""

from __future__ import annotations

from collections.abc import Collection

from nicbench.doctor.base import Check, Examination, ok, warning
from nicbench.doctor.checks._interfaces import Adapters, Interface, adapters, drop_way_out, interfaces, name_adapter
from nicbench.hosts.base import Host

_TAKING = ("vfio-pci", "uio_pci_generic", "igb_uio")
_SHARING = ("mlx4_core", "mlx5_core", "mana")
_NAME = "DPDK drivers"
_LOADED = f"for d in {' '.join(_TAKING)}; do [ -e /sys/bus/pci/drivers/$d ] && echo $d; done; true"
_LOADABLE = f"for d in {' '.join(_TAKING)}; do modprobe --dry-run --quiet $d 2>/dev/null && echo $d; done; true"
_GROUPS = "ls /sys/kernel/iommu_groups 2>/dev/null; true"
_UNSAFE = "enable_unsafe_noiommu_mode"  # without an IOMMU a card, and so the program that drives it, may write anywhere


class DpdkDrivers(Examination):
    """From ``/sys/bus/pci`` and a dry run of modprobe."""

    kind = "dpdk_drivers"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        async def list_folder(script: str) -> list[str]:
            return (await host.run(("sh", "-c", script), check=False)).stdout.split()

        known = await interfaces(host)
        found = drop_way_out(await adapters(host), known)
        loaded, loadable, groups = [await list_folder(script) for script in (_LOADED, _LOADABLE, _GROUPS)]
        return (judge(found, known, loaded=loaded, loadable=loadable, iommu=bool(groups)),)


def judge(
    found: Adapters, known: Collection[Interface], *, loaded: Collection[str], loadable: Collection[str], iommu: bool
) -> Check:
    """Which cards DPDK has, and how it gets another."""
    if not found:
        return ok(_NAME, "no network adapter to hand to DPDK; its ports on AF_XDP, AF_PACKET and memif need none")
    taken = {address: str(adapter["driver"]) for address, adapter in found.items() if adapter["driver"] in _TAKING}
    if taken:
        listed = ", ".join(f"{address} ({driver})" for address, driver in taken.items())
        return ok(_NAME, f"handed to DPDK: {listed}; name them in the bench file by these addresses")
    if all(adapter["driver"] in _SHARING for adapter in found.values()):
        return ok(_NAME, "the cards here keep the kernel's driver: name them in the bench file by their addresses")
    address = next(address for address, adapter in found.items() if adapter["driver"] not in _SHARING)
    bind = f"dpdk-devbind.py --bind={{}} {address}"
    if driver := next((driver for driver in _TAKING if driver in loaded), None):
        text = f"{driver} is loaded and no card is bound to it: only ports on the kernel's drivers can be measured"
        before = "" if iommu or driver != "vfio-pci" else f"echo 1 > /sys/module/vfio/parameters/{_UNSAFE} && "
        return warning(_NAME, f"{text}. To hand it {name_adapter(address, known)}:", before + bind.format(driver))
    if driver := next((driver for driver in _TAKING if driver in loadable), None):
        card = name_adapter(address, known)
        text = f"none is loaded: only ports on the kernel's drivers can be measured. To hand it {card}:"
        before = "" if iommu or driver != "vfio-pci" else f"modprobe vfio {_UNSAFE}=1 && "
        return warning(_NAME, text, f"{before}modprobe {driver} && {bind.format(driver)}")
    return warning(_NAME, f"this kernel has none of {', '.join(_TAKING)}: ports are measured over AF_XDP only")
