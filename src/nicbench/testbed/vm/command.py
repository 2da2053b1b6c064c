"""Makes QEMU's command line for a guest, and the networks between guests: a hub in each, joined by sockets of this
machine. Pure.

No interface of this machine is used for these networks, so that their frames are nowhere else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nicbench.hosts.kinds.vm import CHANNEL
from nicbench.hosts.options import Card, VmOptions

_TAGS: Final = ("root", "modules")
_PXB_FIRST_BUS: Final = 32
_DISTANCE: Final = 21
"""The distance to another NUMA node; that to the own one is 10 (ACPI)."""


@dataclass(frozen=True, slots=True)
class Guest:
    """The parts of a guest beside its options; ``folder`` is for its sockets and its console."""

    folder: str
    kernel: Path
    modules: Path
    initrd: str
    accelerator: str


@dataclass(frozen=True, slots=True)
class Wire:
    """The hub of one network in one guest: its cards, and the sockets that it listens on or connects to."""

    network: str
    cards: tuple[str, ...]
    listens: tuple[str, ...] = ()
    goes_to: str | None = None


def qemu_arguments(options: VmOptions, guest: Guest, macs: dict[str, str], wires: tuple[Wire, ...]) -> tuple[str, ...]:
    """All arguments of QEMU, except for the program itself and the places of its own files."""
    return (
        *_machine(options, guest),
        *_file_systems(guest),
        *_channel(guest.folder),
        *_slots(options),
        *_cards(options, macs, wires),
        *("-append", " ".join(_kernel_parameters(options, guest.accelerator))),
    )


def _machine(options: VmOptions, guest: Guest) -> tuple[str, ...]:
    kvm = guest.accelerator == "kvm"
    accelerator = "kvm" if kvm else "tcg,thread=multi"
    split = ",kernel-irqchip=split" if options.has_iommu and kvm else ""
    parts = ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
    parts += ["-machine", f"q35,hpet=off{split}", "-accel", accelerator, "-cpu", "host" if kvm else "max"]
    parts += ["-smp", f"{options.cpus},sockets={options.nodes},cores={options.cpus // options.nodes}"]
    parts += ["-m", f"{int(options.memory) // 2**20}M", *_nodes(options)]
    if kvm and options.huge_pages is not None:
        parts += ["-overcommit", "mem-lock=on"]
    if options.has_iommu:
        parts += ["-device", "intel-iommu,intremap=on,caching-mode=on"]
    parts += ["-kernel", str(guest.kernel), "-initrd", guest.initrd]
    parts += ["-chardev", f"file,id=console,path={guest.folder}/console.log", "-serial", "chardev:console"]
    parts += ["-qmp", f"unix:{guest.folder}/qmp,server=on,wait=off"]
    return tuple(parts)


def _nodes(options: VmOptions) -> tuple[str, ...]:
    if options.nodes == 1:
        if options.huge_pages is None and not options.memory_nodes:
            return ()
        whole = _backend(options, 0, int(options.memory) // 2**20)
        return ("-object", whole, "-numa", "node,nodeid=0,memdev=memory0")
    each, cpus = int(options.memory) // 2**20 // options.nodes, options.cpus // options.nodes
    parts: list[str] = []
    for node in range(options.nodes):
        last = node * cpus + cpus - 1
        span = f"{node * cpus}-{last}" if cpus > 1 else str(last)
        size = each if node else int(options.memory) // 2**20 - each * (options.nodes - 1)
        parts += ["-object", _backend(options, node, size)]
        parts += ["-numa", f"node,nodeid={node},memdev=memory{node},cpus={span}"]
    for one in range(options.nodes):
        for other in range(one + 1, options.nodes):
            parts += ["-numa", f"dist,src={one},dst={other},val={_DISTANCE}"]
    return tuple(parts)


def _backend(options: VmOptions, node: int, size_mib: int) -> str:
    """The memory backend of one of the guest's nodes; placed memory is allocated before the guest starts."""
    if options.huge_pages is None:
        kind, pages = "memory-backend-ram", ""
    else:
        kind, pages = "memory-backend-memfd", f",hugetlb=on,hugetlbsize={int(options.huge_pages) // 2**20}M"
    there = ",prealloc=on" if options.huge_pages is not None or options.memory_nodes else ""
    bound = f",host-nodes={options.memory_nodes[node]},policy=bind" if options.memory_nodes else ""
    return f"{kind},id=memory{node},size={size_mib}M{pages}{there}{bound}"


def _file_systems(guest: Guest) -> tuple[str, ...]:
    paths = ("/", str(guest.modules))
    parts: list[str] = []
    for tag, path in zip(_TAGS, paths, strict=True):
        parts += ["-fsdev", f"local,id={tag},path={path},security_model=none,readonly=on,multidevs=remap"]
        parts += ["-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag},bus=pcie.0"]
    return tuple(parts)


def _channel(folder: str) -> tuple[str, ...]:
    return (
        *("-device", "virtio-serial-pci,id=serial,bus=pcie.0"),
        *("-chardev", f"socket,id=channel,path={folder}/{CHANNEL},server=on,wait=off"),
        *("-device", "virtserialport,bus=serial.0,chardev=channel,name=nicbench"),
    )


def _slots(options: VmOptions) -> tuple[str, ...]:
    """A PCIe root complex (pxb-pcie) for each node with cards, and a root port for each card."""
    parts: list[str] = []
    for node in sorted({card.node for card in options.cards.values() if card.node is not None}):
        bus = f"pxb-pcie,id=node{node},bus_nr={_PXB_FIRST_BUS * (node + 1)},numa_node={node},bus=pcie.0"
        parts += ["-device", bus]
    for number, card in enumerate(options.cards.values()):
        bus = "pcie.0" if card.node is None else f"node{card.node}"
        port = f"pcie-root-port,id=slot{number},bus={bus},chassis={number + 1},slot={number + 1}"
        parts += ["-device", port]
    return tuple(parts)


def _cards(options: VmOptions, macs: dict[str, str], wires: tuple[Wire, ...]) -> tuple[str, ...]:
    """Each card on a port of its network's hub, which forwards every frame, also LACP, as a cable does."""
    hubs = {name: number for number, wire in enumerate(wires) for name in wire.cards}
    parts: list[str] = []
    for number, (name, card) in enumerate(options.cards.items()):
        if card.pci is not None:
            parts += ["-device", f"vfio-pci,host={card.pci},id=card{number},rombar=0,bus=slot{number}"]
            continue
        hub = hubs.get(name, len(wires) + number)
        parts += ["-netdev", f"hubport,id=net{number},hubid={hub}"]
        parts += ["-device", _device(number, card, macs[name])]
    for hub, wire in enumerate(wires):
        for number, path in enumerate(wire.listens):
            stream = f"wire{hub}-{number}"
            parts += ["-netdev", f"stream,id={stream},server=on,addr.type=unix,addr.path={path}"]
            parts += ["-netdev", f"hubport,id={stream}-hub,hubid={hub},netdev={stream}"]
        if wire.goes_to is not None:
            parts += ["-netdev", f"stream,id=wire{hub},server=off,addr.type=unix,addr.path={wire.goes_to}"]
            parts += ["-netdev", f"hubport,id=wire{hub}-hub,hubid={hub},netdev=wire{hub}"]
    return tuple(parts)


def _device(number: int, card: Card, mac: str) -> str:
    return f"{card.model},netdev=net{number},id=card{number},mac={mac},romfile=,bus=slot{number}"


def _kernel_parameters(options: VmOptions, accelerator: str) -> tuple[str, ...]:
    """The guest kernel's parameters: a console for messages of a dying kernel, no mitigations, which are useless here.

    The emulated time-stamp counter is that of this machine and reliable. Otherwise the kernel would check it against
    another clock and then use that one, whose reading goes through the emulator and may take long. Nor is it to check
    that its timer ticks: on a busy machine the ticks come too late, and the kernel panics.
    """
    emulated = ("tsc=reliable", "no_timer_check") if accelerator == "tcg" else ()
    iommu = ("intel_iommu=on", "iommu=pt") if options.has_iommu else ()
    return (
        "console=ttyS0",
        "quiet",
        "panic=-1",
        "mitigations=off",
        "net.ifnames=0",
        *emulated,
        *iommu,
        *options.boot_parameters,
    )


def wires_of(guests: Mapping[str, VmOptions], folders: Mapping[str, str]) -> dict[str, tuple[Wire, ...]]:
    """The wires of each guest. The first guest on a network listens for the others, which are started after it."""
    members: dict[str, dict[str, list[str]]] = {}
    for guest, options in guests.items():
        for name, card in options.cards.items():
            if card.network is not None:
                members.setdefault(card.network, {}).setdefault(guest, []).append(name)
    found: dict[str, list[Wire]] = {guest: [] for guest in guests}
    for network, cards in members.items():
        first, *others = cards
        paths = {other: f"{folders[first]}/wire-{network}-{number}" for number, other in enumerate(others)}
        found[first].append(Wire(network, tuple(cards[first]), listens=tuple(paths.values())))
        for other, path in paths.items():
            found[other].append(Wire(network, tuple(cards[other]), goes_to=path))
    return {guest: tuple(wires) for guest, wires in found.items()}


def macs_of(guest: str, options: VmOptions, given: Mapping[str, str] | None = None) -> dict[str, str]:
    """The MAC addresses of a guest's cards: given ones, those of real cards, else locally administered fixed ones."""
    begin = hashlib.sha256(guest.encode()).digest()[0]
    return {
        name: card.mac or (given or {}).get(name) or f"02:6e:62:10:{begin:02x}:{number:02x}"
        for number, (name, card) in enumerate(options.cards.items())
    }
