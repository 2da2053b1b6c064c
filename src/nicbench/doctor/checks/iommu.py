"""The IOMMU: vfio-pci needs it to hand a card to DPDK, and translating costs the kernel's own drivers transfers.

Source: Documentation/driver-api/vfio.rst, Documentation/ABI/testing/sysfs-kernel-iommu_groups,
Documentation/admin-guide/kernel-parameters.txt (intel_iommu, iommu, iommu.passthrough).
"""

from __future__ import annotations

from dataclasses import dataclass

from nicbench.doctor.base import Check, Examination, ok, warning
from nicbench.doctor.checks._files import values
from nicbench.hosts.base import Host
from nicbench.system.hypervisor import is_virtual_machine

_TYPES = "/sys/kernel/iommu_groups/*/type"
_ADAPTERS = "grep -ls '^0x02' /sys/bus/pci/devices/*/class"  # PCI base class 02h: network controllers
_PASSTHROUGH = "identity"


@dataclass(frozen=True, slots=True)
class Platform:
    """What the makers of processors call an IOMMU, and how it is had."""

    name: str
    """As in the settings of the firmware."""
    to_start: tuple[str, ...]
    """Parameters of the kernel with which it is at work; none where it is whenever the firmware names one."""
    to_pass_by: tuple[str, ...]
    """Parameters with which the kernel's own drivers pass it by."""
    qemu_option: str


INTEL = Platform("VT-d", ("intel_iommu=on",), ("iommu=pt",), "-device intel-iommu,intremap=on,caching-mode=on")
AMD = Platform("AMD-Vi", (), ("iommu=pt",), INTEL.qemu_option)
ARM = Platform("the SMMU", (), ("iommu.passthrough=1",), "-machine virt,iommu=smmuv3")


def platform_of(cpuinfo: str) -> Platform:
    """The platform, from the text of /proc/cpuinfo; of x86 it names the vendor, of arm64 an implementer by number."""
    if "CPU implementer" in cpuinfo:
        return ARM
    return INTEL if "GenuineIntel" in cpuinfo else AMD


class Iommu(Examination):
    """From ``/sys/kernel/iommu_groups``."""

    kind = "iommu"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        groups = await values(host, _TYPES)
        adapters = (await host.run(("sh", "-c", _ADAPTERS), check=False)).stdout.split()
        platform = platform_of(await host.read_file("/proc/cpuinfo") or "")
        virtual = await is_virtual_machine(host) is True
        return (judge(sorted(groups.values()), len(adapters), platform, virtual=virtual),)


def judge(types: list[str], adapters: int, platform: Platform, *, virtual: bool) -> Check:
    """``types`` is one for each group: DMA, DMA-FQ, identity; none of them, and there is no IOMMU at work."""
    name = "IOMMU"
    words = " ".join((*platform.to_start, *platform.to_pass_by))
    if not types and not adapters:
        return ok(name, "none, and no network adapter on the PCI bus that would need one")
    if not types and virtual:
        text = f"none: a virtual machine gets one from its host (QEMU: {platform.qemu_option});"
        return ok(name, f"{text} without, vfio-pci takes cards in its unsafe mode only")
    if not types:
        text = f"none at work: vfio-pci cannot hand a card to DPDK; switch {platform.name} on in the firmware (BIOS)"
        text += ", then boot with it"
        return warning(name, text, _boot_with(words))
    if any(kind != _PASSTHROUGH for kind in types):
        text = (
            f"at work for {len(types)} groups, and it translates each transfer of the kernel's drivers, which costs "
            "them rate (vfio-pci needs it, and loses little with huge pages)"
        )
        return warning(name, text, _boot_with(words))
    return ok(
        name, f"at work for {len(types)} groups; the kernel's drivers pass it by ({' '.join(platform.to_pass_by)})"
    )


def _boot_with(words: str) -> str:
    setting = f'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {words}"'
    return f"echo '{setting}' > /etc/default/grub.d/nicbench-iommu.cfg && update-grub && reboot"
