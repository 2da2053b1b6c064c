"""The IOMMU: vfio-pci needs it to hand a card to DPDK, and translating costs the kernel's own drivers transfers.

Source: Documentation/driver-api/vfio.rst, Documentation/ABI/testing/sysfs-kernel-iommu_groups.
"""

from __future__ import annotations

from nicbench.doctor.base import Check, Examination, ok, warning
from nicbench.doctor.checks._files import values
from nicbench.doctor.checks.hypervisor import is_virtual
from nicbench.hosts.base import Host

_TYPES = "/sys/kernel/iommu_groups/*/type"
_ADAPTERS = "grep -ls '^0x02' /sys/bus/pci/devices/*/class"  # PCI base class 02h: network controllers
_PASSTHROUGH = "identity"


class Iommu(Examination):
    """From ``/sys/kernel/iommu_groups``."""

    kind = "iommu"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        groups = await values(host, _TYPES)
        adapters = (await host.run(("sh", "-c", _ADAPTERS), check=False)).stdout.split()
        cpuinfo = await host.read_file("/proc/cpuinfo") or ""
        is_intel = "GenuineIntel" in cpuinfo
        return (judge(sorted(groups.values()), len(adapters), is_intel=is_intel, virtual=is_virtual(cpuinfo)),)


def judge(types: list[str], adapters: int, *, is_intel: bool, virtual: bool) -> Check:
    """``types`` is one for each group: DMA, DMA-FQ, identity; none of them, and there is no IOMMU at work."""
    name = "IOMMU"
    words = "intel_iommu=on iommu=pt" if is_intel else "iommu=pt"
    if not types and not adapters:
        return ok(name, "none, and no network adapter on the PCI bus that would need one")
    if not types and virtual:
        text = "none: a virtual machine gets one from its host (QEMU: -device intel-iommu,intremap=on,caching-mode=on);"
        return ok(name, f"{text} without, vfio-pci takes cards in its unsafe mode only")
    if not types:
        bios = "VT-d" if is_intel else "AMD-Vi"
        text = f"none at work: vfio-pci cannot hand a card to DPDK; switch {bios} on in the BIOS, then boot with it"
        return warning(name, text, _boot_with(words))
    if any(kind != _PASSTHROUGH for kind in types):
        text = (
            f"at work for {len(types)} groups, and it translates each transfer of the kernel's drivers, which costs "
            "them rate (vfio-pci needs it, and loses little with huge pages)"
        )
        return warning(name, text, _boot_with(words))
    return ok(name, f"at work for {len(types)} groups; the kernel's drivers pass it by (iommu=pt)")


def _boot_with(words: str) -> str:
    setting = f'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {words}"'
    return f"echo '{setting}' > /etc/default/grub.d/nicbench-iommu.cfg && update-grub && reboot"
