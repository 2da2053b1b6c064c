"""A guest's place on the machine with the cards that it gets, and QEMU's command line for it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from nicbench.core.errors import HostError, NotReadyError
from nicbench.core.frozen import frozen
from nicbench.core.machine import cpu_list, parse_cpu_list
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.vm import CHANNEL
from nicbench.hosts.options import Card, VmOptions
from nicbench.system.adapters.links import parse_links, virtual_functions
from nicbench.testbed.interfaces.cards import bind_to_vfio, check_address, require_isolated
from nicbench.tuning.changes import Changes
from nicbench.tuning.drivers import folder_of
from nicbench.tuning.undo.adapters import RestoreFunctionMac

# Places a guest on the machine, and gives it cards of the machine.
#
# Its CPUs are pinned by QEMU's monitor, its memory is put into pages of a size and on a node. Cards (``pci``) are
# given by vfio-pci, isolated by an IOMMU, and their MAC addresses set.


_ANSWER_S: Final = 30.0
_LONGEST_LINE: Final = 1 << 20


async def ask(path: str, command: str) -> Any:
    """The result of a command; HostError where QEMU does not answer or refuses."""
    try:
        async with asyncio.timeout(_ANSWER_S):
            return await _ask(path, command)
    except (OSError, TimeoutError, ValueError) as error:
        reason = f"no answer within {_ANSWER_S:g} s" if isinstance(error, TimeoutError) else str(error)
        raise HostError(f"QEMU does not answer `{command}`: {reason}", place=path) from error


async def _ask(path: str, command: str) -> Any:
    reader, writer = await asyncio.open_unix_connection(path, limit=_LONGEST_LINE)
    try:
        for word in ("qmp_capabilities", command):
            writer.write(json.dumps({"execute": word}).encode() + b"\n")
        answers: list[Any] = []
        while len(answers) < 2:
            line = await reader.readline()
            if not line:
                raise ValueError("it closed the connection")
            message = json.loads(line)
            if "error" in message:
                raise ValueError(str(message["error"].get("desc", message["error"])))
            if "return" in message:  # the greeting and events are not answers
                answers.append(message["return"])
        return answers[1]
    finally:
        writer.close()


_CPUS_ALLOWED: Final = re.compile(r"^Cpus_allowed_list:\s*(\S+)", re.MULTILINE)
_PAGES_ON_NODE: Final = re.compile(r"^N(\d+)=(\d+)$")


async def raise_pages(changes: Changes, local: Host, options: VmOptions, name: str) -> None:
    """Reserves the huge pages that a guest's memory needs on its nodes; NotReadyError where there are too few."""
    if options.huge_pages is None:
        for number in options.memory_nodes:
            if await local.read_file(f"/sys/devices/system/node/node{number}/meminfo") is None:
                raise NotReadyError(
                    f"this machine has no NUMA node {number}",
                    place=f"{name}, memory_nodes",
                    next_step="name another one: `ls /sys/devices/system/node` lists them",
                )
        return
    kib, each = int(options.huge_pages) // 1024, int(options.memory) // options.nodes // int(options.huge_pages)
    wanted: dict[int | None, int] = {}
    for node in options.memory_nodes or (None,) * options.nodes:
        wanted[node] = wanted.get(node, 0) + each
    for node, pages in wanted.items():
        where = "/sys/kernel/mm" if node is None else f"/sys/devices/system/node/node{node}"
        folder = f"{where}/hugepages/hugepages-{kib}kB"
        total, free = [await local.read_file(f"{folder}/{file}") for file in ("nr_hugepages", "free_hugepages")]
        if total is None or free is None:
            raise NotReadyError(
                f"there are no huge pages of {kib // 1024} MiB{'' if node is None else f' on node {node}'}",
                place=f"{local.name}, {name}",
                next_step=f"see {where}/hugepages for the sizes that exist",
            )
        if int(free) >= pages:
            continue
        try:
            await changes.set_file(local, f"{folder}/nr_hugepages", str(int(total) + pages - int(free)))
        except HostError as error:
            raise NotReadyError(
                f"{pages} huge pages of {kib // 1024} MiB are needed, but {int(free)} are free: {error.message}",
                place=f"{local.name}, {name}",
                next_step="reserve them when the machine boots (hugepagesz=1G hugepages=N), or write smaller pages",
            ) from error


async def place(local: Host, options: VmOptions, pid: int, qmp: str, name: str) -> dict[str, Any]:
    """Pins the CPUs of a running guest and verifies pins and memory; gives what a report discloses of both."""
    facts = {}
    if options.pin:
        facts["pins"] = await _pin(local, options.pin, pid, qmp, name)
    if options.huge_pages is not None or options.memory_nodes:
        facts["memory_pages"] = await _check_memory(local, options, pid, name)
    return facts


async def _pin(local: Host, cpus: Sequence[int], pid: int, qmp: str, name: str) -> dict[str, str]:
    """Pins each CPU of the guest; QEMU's other threads go to the remaining CPUs, where there are any."""
    allowed = parse_cpu_list(_allowed_cpus(await local.read_file("/proc/self/status"), name))
    if missing := [cpu for cpu in cpus if cpu not in allowed]:
        raise NotReadyError(
            f"nicbench may not use the CPU {missing[0]}, only {cpu_list(allowed)}",
            place=f"{name}, pin",
            next_step="name other CPUs: `lscpu -e` lists them",
        )
    if others := [cpu for cpu in allowed if cpu not in cpus]:
        await local.run(("taskset", "--all-tasks", "--cpu-list", "--pid", cpu_list(others), str(pid)))
    pins = {}
    threads = {int(each["cpu-index"]): int(each["thread-id"]) for each in await ask(qmp, "query-cpus-fast")}
    for number, cpu in enumerate(cpus):
        thread = threads[number]
        await local.run(("taskset", "--cpu-list", "--pid", str(cpu), str(thread)))
        found = _allowed_cpus(await local.read_file(f"/proc/{pid}/task/{thread}/status"), name)
        if found != str(cpu):
            raise HostError(
                f"CPU {number} of the guest should run only on CPU {cpu}, but may run on {found}", place=name
            )
        pins[f"vCPU {number}"] = f"CPU {cpu}"
    return pins


def _allowed_cpus(status: str | None, name: str) -> str:
    found = _CPUS_ALLOWED.search(status or "")
    if found is None:
        raise HostError("the CPUs of a thread are unknown: its status is not in /proc", place=name)
    return found[1]


async def _check_memory(local: Host, options: VmOptions, pid: int, name: str) -> dict[str, str]:
    """Checks the guest's memory by ``numa_maps``, which has the pages of each mapping on each node; gives them."""
    maps = await local.read_file(f"/proc/{pid}/numa_maps")
    if maps is None:
        raise HostError("the place of the guest's memory is unknown: the kernel has no numa_maps", place=name)
    found = pages_on_nodes(maps, None if options.huge_pages is None else int(options.huge_pages) // 1024)
    wanted = set(options.memory_nodes) or set(found)
    have = sum(count * kib for by_size in found.values() for kib, count in by_size.items()) * 1024
    if set(found) - wanted or have < int(options.memory):
        raise NotReadyError(
            f"the guest's memory is not where it should be: {_describe_pages(found)}",
            place=name,
            next_step="see /proc/PID/numa_maps of its QEMU, and the free pages of each node",
        )
    return {f"node {node}": _describe_pages({node: by_size}) for node, by_size in found.items()}


def pages_on_nodes(numa_maps: str, page_kib: int | None) -> dict[int, dict[int, int]]:
    """The pages of a guest's memory by node and by size in KiB (Documentation/filesystems/proc.rst of the kernel).

    With ``page_kib`` they are those of all mappings with pages of this size, without it those of the largest mapping.
    """
    every = []
    for line in numa_maps.splitlines():
        words = line.split()
        size = next((int(word.partition("=")[2]) for word in words if word.startswith("kernelpagesize_kB=")), 4)
        if page_kib is not None and size != page_kib:
            continue
        nodes = {int(match[1]): {size: int(match[2])} for word in words if (match := _PAGES_ON_NODE.match(word))}
        every.append(nodes)
    if page_kib is None:
        return max(every, key=lambda nodes: sum(sum(by.values()) for by in nodes.values()), default={})
    found: dict[int, dict[int, int]] = {}
    for nodes in every:
        for node, by_size in nodes.items():
            there = found.setdefault(node, {})
            for size, count in by_size.items():
                there[size] = there.get(size, 0) + count
    return found


def _describe_pages(found: dict[int, dict[int, int]]) -> str:
    parts = [
        f"{count} pages of {f'{kib // 1024} MiB' if kib >= 1024 else f'{kib} KiB'} on node {node}"
        for node, by_size in found.items()
        for kib, count in by_size.items()
    ]
    return ", ".join(parts) or "no such pages"


async def give_cards(
    changes: Changes, local: Host, options: VmOptions, guest: str
) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Gives the cards to the guest; returns their MAC addresses by name, and the ``modalias`` of their drivers.

    NotReadyError where a card does not exist, is in use, or cannot be isolated.
    """
    macs = {}
    aliases = []
    for name, card in options.cards.items():
        if card.pci is None:
            continue
        place = f"{guest}, card {name}"
        await require_isolated(local, card.pci, place)
        await check_address(local, card.pci, place)
        own = await _mac_of(local, card.pci)
        owner = await _owner(local, card.pci)
        if owner is not None and card.mac is not None:
            await _set_mac(changes, local, owner, card.mac, place)
        elif card.mac is not None and card.mac != own:
            raise NotReadyError(
                f"the card {card.pci} is not a virtual function: only its driver in the guest can set `mac`",
                place=place,
                next_step="remove `mac`",
            )
        mac = card.mac or own
        if mac is None:
            raise NotReadyError(
                f"the MAC address of {card.pci} is unknown: it has no kernel driver",
                place=place,
                next_step="write `mac`, by which the guest identifies its cards",
            )
        macs[name] = mac
        aliases.append((await local.read_file(f"{folder_of(card.pci)}/modalias") or "").strip())
        await bind_to_vfio(changes, local, card.pci, place)
    return macs, tuple(dict.fromkeys(filter(None, aliases)))


async def _mac_of(local: Host, address: str) -> str | None:
    shown = await local.run(("sh", "-c", f"cat {folder_of(address)}/net/*/address"), check=False)
    return shown.stdout.split()[0] if shown.status == 0 and shown.stdout.split() else None


async def _owner(local: Host, address: str) -> tuple[str, int] | None:
    """The interface of its physical function, and its number there; None for a card that is not a virtual function."""
    script = 'cd "$1/physfn" 2>/dev/null || exit 0; ls net; for f in virtfn*; do echo "$f $(readlink "$f")"; done'
    lines = (await local.run(("sh", "-c", script, "sh", folder_of(address)))).stdout.splitlines()
    for line in lines[1:]:
        link, _, target = line.partition(" ")
        if target.rpartition("/")[2] == address:
            return lines[0], int(link.removeprefix("virtfn"))
    return None


async def _set_mac(changes: Changes, local: Host, owner: tuple[str, int], mac: str, place: str) -> None:
    device, number = owner
    before = await _read_mac(local, device, number)
    if before == mac:
        return
    undo = RestoreFunctionMac(device=device, number=number, mac=before or "00:00:00:00:00:00", asked=mac)

    async def apply() -> None:
        await local.run(("ip", "link", "set", "dev", device, "vf", str(number), "mac", mac))

    await changes.make(local, undo, apply)
    if (found := await _read_mac(local, device, number)) != mac:
        raise NotReadyError(
            f"virtual function {number} of {device} should have the address {mac}, and has {found}",
            place=place,
            next_step="see `dmesg` for messages of the adapter's driver",
        )


async def _read_mac(local: Host, device: str, number: int) -> str | None:
    """The MAC address that the adapter has for a virtual function; None where it is unknown."""
    shown = await local.run(("ip", "-d", "-j", "link", "show", "dev", device))
    functions = [each for link in parse_links(shown.stdout) for each in virtual_functions(link)]
    return next((str(each["mac"]) for each in functions if each["number"] == number), None)


# Makes QEMU's command line for a guest, and the networks between guests: a hub in each, joined by sockets of this
# machine. Pure.
#
# No interface of this machine is used for these networks, so that their frames are nowhere else.


_TAGS: Final = ("root", "modules")
_PXB_FIRST_BUS: Final = 32
_DISTANCE: Final = 21
"""The distance to another NUMA node; that to the own one is 10 (ACPI)."""


@frozen
class Guest:
    """The parts of a guest beside its options; ``folder`` is for its sockets and its console."""

    folder: str
    kernel: Path
    modules: Path
    initrd: str
    accelerator: str


@frozen
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
        *_cards(options, guest.folder, macs, wires),
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
    parts = []
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
    parts = []
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
    parts = []
    for node in sorted({card.node for card in options.cards.values() if card.node is not None}):
        bus = f"pxb-pcie,id=node{node},bus_nr={_PXB_FIRST_BUS * (node + 1)},numa_node={node},bus=pcie.0"
        parts += ["-device", bus]
    for number, card in enumerate(options.cards.values()):
        bus = "pcie.0" if card.node is None else f"node{card.node}"
        port = f"pcie-root-port,id=slot{number},bus={bus},chassis={number + 1},slot={number + 1}"
        parts += ["-device", port]
    return tuple(parts)


def _cards(options: VmOptions, folder: str, macs: dict[str, str], wires: tuple[Wire, ...]) -> tuple[str, ...]:
    """Each card on a port of its network's hub, which forwards every frame, also LACP, as a cable does.

    One with a loop plug sends to the socket that it receives from.
    """
    hubs = {name: number for number, wire in enumerate(wires) for name in wire.cards}
    parts = []
    for number, (name, card) in enumerate(options.cards.items()):
        if card.pci is not None:
            parts += ["-device", f"vfio-pci,host={card.pci},id=card{number},rombar=0,bus=slot{number}"]
            continue
        hub = hubs.get(name, len(wires) + number)
        socket = ",".join(f"{end}.type=unix,{end}.path={folder}/loop-{name}" for end in ("local", "remote"))
        parts += ["-netdev", f"dgram,id=net{number},{socket}" if card.loop else f"hubport,id=net{number},hubid={hub}"]
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
