"""Examines network adapters: drivers, clocks, links, slots, NUMA nodes, and the IOMMU."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from nicbench.core.frozen import frozen
from nicbench.core.machine import cpu_list, parse_cpu_list
from nicbench.core.proof import Outcome, Proof, ProvenPort
from nicbench.doctor.base import (
    Adapters,
    Check,
    Examination,
    Interface,
    adapters,
    drop_way_out,
    interfaces,
    measuring_cpus,
    name_adapter,
    ok,
    select_measurable,
    values,
    warning,
)
from nicbench.hosts.base import Host
from nicbench.store.proofs import find_proof
from nicbench.system.adapters.ethtool import parse_link_settings, parse_time_stamping
from nicbench.system.hypervisor import is_virtual_machine
from nicbench.system.identity import identify_port
from nicbench.system.inventory.base import NOT_UNDERSTOOD

_LINK = "link"
_MODE = re.compile(r"^(\d{2,7})base")


class Links(Examination):
    """Links: one that runs below its port's speed, at half duplex, or not at all.

    Source: ethtool(8); IEEE 802.3 clause 28 for what two ends agree on.

    From ``ethtool`` of each interface that a device stands behind and that could be measured.
    """

    kind = "links"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        checks = []
        for interface in await select_measurable(host):
            done = await host.run(("ethtool", interface.name), check=False)
            try:
                checks.append(judge_links(interface.name, parse_link_settings(done.stdout)))
            except NOT_UNDERSTOOD:
                checks.append(ok(f"{_LINK} of {interface.name}", f"{interface.driver} does not report its link"))
        return tuple(checks) or (ok(_LINK, "no card's interface, except those that carry a default route"),)


def judge_links(device: str, settings: Mapping[str, Any]) -> Check:
    """``settings`` as ``nicbench.system.adapters.ethtool`` tells them."""
    name = f"{_LINK} of {device}"
    if settings["link"] is False:
        why = f" ({settings['why_no_link']})" if settings["why_no_link"] else ""
        return ok(name, f"none{why}: plug in the cable; a run brings the interface up itself")
    speed, most = settings["speed_bits_per_s"], fastest(settings["supported_modes"])
    if speed is None:
        return ok(name, "its driver does not report a speed: give `link:` in the bench file")
    if settings["duplex"] == "half":
        text = f"{_gbps(speed)} at half duplex: sending and receiving share it, so results would not be a port's"
        return warning(name, text, f"ethtool --change {device} autoneg on")
    if most is None or speed >= most:
        return ok(name, f"{_gbps(speed)}, {'duplex unknown' if settings['duplex'] is None else 'full duplex'}")
    text = f"runs at {_gbps(speed)} and could at {_gbps(most)}: the line limits the port and the DUT"
    partner, offered = fastest(settings["partner_modes"]), fastest(settings["advertised_modes"])
    if partner is not None and partner < most:
        return warning(
            name, f"{text}. The other end offers {_gbps(partner)} at most: change it, the cable or transceiver"
        )
    if settings["autonegotiation"] is False or (offered is not None and offered < most):
        return warning(
            name, f"{text}. It is configured so; to negotiate again:", f"ethtool --change {device} autoneg on"
        )
    return warning(name, f"{text}. Look at the other end, the cable and the transceiver (`ethtool -m {device}`)")


def fastest(modes: Iterable[str]) -> int | None:
    """Bits per second of the fastest mode in ethtool's words (``25000baseCR/Full``)."""
    return max((int(found[1]) * 1_000_000 for mode in modes if (found := _MODE.match(mode))), default=None)


def _gbps(bits_per_s: int) -> str:
    return f"{bits_per_s / 1e9:g} Gb/s" if bits_per_s >= 1e9 else f"{bits_per_s / 1e6:g} Mb/s"


_SLOT = "PCI Express"


class Proofs(Examination):
    """Proofs of ports: what `nicbench prove` found on this machine, and whether it still holds of the port."""

    kind = "proofs"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        kernel = (await host.read_file("/proc/sys/kernel/osrelease") or "").strip()
        checks = []
        for interface in await select_measurable(host):
            port = await identify_port(host, interface.name)
            checks.append(judge_proof(port, find_proof(port.fingerprint), kernel))
        return tuple(checks)


def judge_proof(port: ProvenPort, proof: Proof | None, kernel: str) -> Check:
    """Judges whether the proof still holds of the port, and what it says; None: the port has no proof."""
    name, again = f"proof of {port.device}", f"sudo nicbench prove {port.device} OTHER-END"
    if proof is None:
        return ok(name, f"none: what it can be relied on for is tried by `{again}`")
    if changed := proof.aged(port, kernel):
        return warning(name, f"it is of {proof.made_at[:10]} and no longer holds: {', '.join(changed)}", again)
    failures = proof.with_outcome(Outcome.FAILED)
    if failures:
        told = "; ".join(f"{each.name}: {each.seen}" for each in failures[:3])
        return warning(name, f"{len(failures)} of {len(proof.findings)} findings failed: {told}", again)
    return ok(name, f"of {proof.made_at[:10]}: {len(proof.with_outcome(Outcome.PROVEN))} things proven, none failed")


class Slots(Examination):
    """PCI Express links: a card in a slow or narrow slot, or whose link came up below what card and slot can.

    Source: Documentation/ABI/testing/sysfs-bus-pci (current_link_speed, max_link_speed and their widths).

    From ``/sys/bus/pci``: the adapter and the port that it is plugged into.
    """

    kind = "slots"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        known = await interfaces(host)
        return judge_slots(drop_way_out(await adapters(host), known), known)


def judge_slots(found: Adapters, known: Collection[Interface]) -> tuple[Check, ...]:
    """One check for each adapter that says its link; of virtual ones none does."""
    told = {address: adapter for address, adapter in found.items() if adapter["link"]}
    if not told:
        return (ok(_SLOT, "no adapter to measure with reports its PCIe link"),)
    return tuple(_judge_slot(name_adapter(address, known), adapter) for address, adapter in told.items())


def _judge_slot(who: str, adapter: Mapping[str, Any]) -> Check:
    name = f"{_SLOT} of {who}"
    link, possible, slot = adapter["link"], adapter["link_possible"], adapter["slot_possible"]
    if possible is None or link["bandwidth_bits_per_s"] >= possible["bandwidth_bits_per_s"]:
        return ok(name, f"{_describe(link)}{'' if possible is None else ', all that the card can'}")
    text = f"{_describe(link)}, and the card could {_describe(possible)}: frames beyond that rate are lost in the card"
    if slot is not None and slot["bandwidth_bits_per_s"] < possible["bandwidth_bits_per_s"]:
        return warning(name, f"{text}. Its slot gives {_describe(slot)} at most: put it into a faster one")
    # Where the slot does not say either, nothing else is known of it.
    return warning(name, f"{text}. Reseat it, and look whether the BIOS limits the slot's speed or splits its lanes")


def _describe(link: Mapping[str, Any]) -> str:
    return (
        f"x{link['lanes']} at {link['speed_gt_per_s']:g} GT/s ({link['bandwidth_bits_per_s'] / 1e9:.1f} Gb/s each way)"
    )


_NUMA = "NUMA"


class Nearness(Examination):
    """NUMA: a card at another processor than the cores that measure. Each frame then crosses the link between
    processors.

    Source: Documentation/ABI/testing/sysfs-bus-pci (numa_node, local_cpulist).

    From ``/sys/bus/pci`` and ``/sys/devices/system/node``.
    """

    kind = "nearness"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        nodes = len(await values(host, "/sys/devices/system/node/node*/cpulist"))
        known = await interfaces(host)
        return judge_nearness(nodes, drop_way_out(await adapters(host), known), known, await measuring_cpus(host))


def judge_nearness(
    nodes: int, found: Adapters, known: Collection[Interface], measuring: tuple[int, ...]
) -> tuple[Check, ...]:
    """One check for each adapter at a known node, where there is more than one."""
    if nodes < 2:
        return (ok(_NUMA, "one node: every card is near every core"),)
    placed = {address: adapter for address, adapter in found.items() if adapter["numa_node"] is not None}
    if not placed:
        return (ok(_NUMA, f"{nodes} nodes, and no network adapter to measure with tells at which it is"),)
    return tuple(
        _judge_node(name_adapter(address, known), adapter["numa_node"], adapter["local_cpus"], measuring)
        for address, adapter in placed.items()
    )


def _judge_node(who: str, node: int, local: str | None, measuring: tuple[int, ...]) -> Check:
    name = f"{_NUMA} of {who}"
    far = sorted(set(measuring) - set(parse_cpu_list(local))) if local else []
    if not far:
        return ok(name, f"at node {node}, as the cores are that measure ({cpu_list(measuring)})")
    text = (
        f"at node {node} (CPUs {local}), and nicbench would measure on {cpu_list(measuring)}: each frame crosses "
        "the link between the processors, which costs rate and latency"
    )
    return warning(name, text, f"taskset --cpu-list {local} nicbench run BENCH.yaml")


_TAKING = ("vfio-pci", "uio_pci_generic", "igb_uio")
_SHARING = ("mlx4_core", "mlx5_core", "mana")
_DPDK = "DPDK drivers"
_LOADED = f"for d in {' '.join(_TAKING)}; do [ -e /sys/bus/pci/drivers/$d ] && echo $d; done; true"
_LOADABLE = f"for d in {' '.join(_TAKING)}; do modprobe --dry-run --quiet $d 2>/dev/null && echo $d; done; true"
_GROUPS = "ls /sys/kernel/iommu_groups 2>/dev/null; true"
_UNSAFE = "enable_unsafe_noiommu_mode"  # without an IOMMU a card, and so the program that drives it, may write anywhere


class DpdkDrivers(Examination):
    """DPDK's drivers in the kernel: vfio-pci, or a uio driver, is bound to a card instead of its own, and hands it to
    DPDK.

    Source: DPDK's Getting Started Guide for Linux, "Linux Drivers". Mellanox and Microsoft cards keep the kernel's
    driver.

    From ``/sys/bus/pci`` and a dry run of modprobe.
    """

    kind = "dpdk_drivers"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        async def list_folder(script: str) -> list[str]:
            return (await host.run(("sh", "-c", script), check=False)).stdout.split()

        known = await interfaces(host)
        found = drop_way_out(await adapters(host), known)
        loaded, loadable, groups = [await list_folder(script) for script in (_LOADED, _LOADABLE, _GROUPS)]
        return (judge_dpdk_drivers(found, known, loaded=loaded, loadable=loadable, iommu=bool(groups)),)


def judge_dpdk_drivers(
    found: Adapters, known: Collection[Interface], *, loaded: Collection[str], loadable: Collection[str], iommu: bool
) -> Check:
    """Which cards DPDK has, and how it gets another."""
    if not found:
        return ok(_DPDK, "no network adapter to hand to DPDK; its ports on AF_XDP, AF_PACKET and memif need none")
    taken = {address: str(adapter["driver"]) for address, adapter in found.items() if adapter["driver"] in _TAKING}
    if taken:
        listed = ", ".join(f"{address} ({driver})" for address, driver in taken.items())
        return ok(_DPDK, f"handed to DPDK: {listed}; name them in the bench file by these addresses")
    if all(adapter["driver"] in _SHARING for adapter in found.values()):
        return ok(_DPDK, "the cards here keep the kernel's driver: name them in the bench file by their addresses")
    address = next(address for address, adapter in found.items() if adapter["driver"] not in _SHARING)
    bind = f"dpdk-devbind.py --bind={{}} {address}"
    if driver := next((driver for driver in _TAKING if driver in loaded), None):
        text = f"{driver} is loaded and no card is bound to it: only ports on the kernel's drivers can be measured"
        before = "" if iommu or driver != "vfio-pci" else f"echo 1 > /sys/module/vfio/parameters/{_UNSAFE} && "
        return warning(_DPDK, f"{text}. To hand it {name_adapter(address, known)}:", before + bind.format(driver))
    if driver := next((driver for driver in _TAKING if driver in loadable), None):
        card = name_adapter(address, known)
        text = f"none is loaded: only ports on the kernel's drivers can be measured. To hand it {card}:"
        before = "" if iommu or driver != "vfio-pci" else f"modprobe vfio {_UNSAFE}=1 && "
        return warning(_DPDK, text, f"{before}modprobe {driver} && {bind.format(driver)}")
    return warning(_DPDK, f"this kernel has none of {', '.join(_TAKING)}: ports are measured over AF_XDP only")


_HARDWARE_CLOCK = "hardware clock"
_BY_SOFTWARE = "latencies are stamped by software, with the TSC"


class HardwareClocks(Examination):
    """PTP hardware clocks: which interfaces can stamp frames themselves, and whether every frame or those of PTP only.

    Source: Documentation/networking/timestamping.rst; ethtool(8), ``--show-time-stamping``.

    From ``ethtool -T`` of each interface that a device stands behind and that could be measured.
    """

    kind = "hardware_clocks"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        checks = []
        for interface in await select_measurable(host):
            done = await host.run(("ethtool", "--show-time-stamping", interface.name), check=False)
            try:
                checks.append(judge_hardware_clocks(interface.name, parse_time_stamping(done.stdout)))
            except NOT_UNDERSTOOD:
                checks.append(
                    ok(f"{_HARDWARE_CLOCK} of {interface.name}", f"{interface.driver} has none: {_BY_SOFTWARE}")
                )
        return tuple(checks) or (ok(_HARDWARE_CLOCK, f"no interface to measure on has one: {_BY_SOFTWARE}"),)


def judge_hardware_clocks(device: str, stamping: Mapping[str, Any]) -> Check:
    """Never a lack: software stamps work everywhere, and the report says their uncertainty."""
    name = f"{_HARDWARE_CLOCK} of {device}"
    clock, can = stamping["clock"], set(stamping["capabilities"])
    if clock is None or not {"hardware-transmit", "hardware-receive"} <= can:
        return ok(name, f"none that stamps frames: {_BY_SOFTWARE}")
    where = f"/dev/ptp{clock}"
    if "all" in stamping["receive_filters"]:
        way = "the port by its PCI address, or `driver: xdp` where its driver gives stamps to XDP"
        return ok(name, f"{where} stamps every frame; `timestamps: card` needs {way}")
    return ok(name, f"{where} stamps frames of PTP only, not those of a test: {_BY_SOFTWARE}")


_TYPES = "/sys/kernel/iommu_groups/*/type"
_ADAPTERS = "grep -ls '^0x02' /sys/bus/pci/devices/*/class"  # PCI base class 02h: network controllers
_PASSTHROUGH = "identity"


@frozen
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
    """The IOMMU: vfio-pci needs it to hand a card to DPDK, and translating costs the kernel's own drivers transfers.

    Source: Documentation/driver-api/vfio.rst, Documentation/ABI/testing/sysfs-kernel-iommu_groups,
    Documentation/admin-guide/kernel-parameters.txt (intel_iommu, iommu, iommu.passthrough).

    From ``/sys/kernel/iommu_groups``.
    """

    kind = "iommu"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        groups = await values(host, _TYPES)
        adapters = (await host.run(("sh", "-c", _ADAPTERS), check=False)).stdout.split()
        platform = platform_of(await host.read_file("/proc/cpuinfo") or "")
        virtual = await is_virtual_machine(host) is True
        return (judge_iommu(sorted(groups.values()), len(adapters), platform, virtual=virtual),)


def judge_iommu(types: list[str], adapters: int, platform: Platform, *, virtual: bool) -> Check:
    """``types`` has the type of each group: DMA, DMA-FQ, identity; it is empty if no IOMMU is at work."""
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
