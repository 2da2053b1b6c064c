"""Facts of the queues of each interface of the test: channels, rings, offloads, interrupts and steering."""

from __future__ import annotations

import re
from shlex import quote
from typing import Annotated, Any, TypedDict

from nicbench.core.described import Label, NotEverywhere, OneLine, Unit
from nicbench.core.errors import UnknownFactError
from nicbench.hosts.asking import output_of, text_of, values_of
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import outermost
from nicbench.system.adapters.ethtool import (
    describe_table,
    parse_coalescing,
    parse_features,
    parse_limits,
    parse_private_flags,
    parse_receive_hashing,
)
from nicbench.system.adapters.links import parse_qdiscs
from nicbench.system.adapters.pci import interrupts_of_device, numbers_of, parse_interrupts
from nicbench.system.inventory.base import EthtoolFact, Fact, InterfaceFact, ask_interfaces


class Channels(EthtoolFact):
    """Channels of each test interface: how many queues it has, and could.

    From ``ethtool -l``.
    """

    kind = "channels"
    shape = Annotated[dict[str, Any], NotEverywhere]
    options = ("-l",)
    parse = staticmethod(parse_limits)


class Rings(EthtoolFact):
    """Rings of each test interface: how many frames a queue holds, and could.

    From ``ethtool -g``.
    """

    kind = "rings"
    shape = Annotated[dict[str, Any], NotEverywhere]
    options = ("-g",)
    parse = staticmethod(parse_limits)


class Coalescing(EthtoolFact):
    """Interrupt coalescing of each test interface.

    From ``ethtool -c``.
    """

    kind = "coalescing"
    shape = dict[str, dict[str, Any]]
    options = ("-c",)
    parse = staticmethod(parse_coalescing)


class Offloads(EthtoolFact):
    """Offloads of each test interface that are on, whether or not they could be off.

    From ``ethtool -k``.
    """

    kind = "offloads_on"
    shape = dict[str, list[str]]
    options = ("-k",)
    as_json = True

    def parse(self, text: str) -> Any:
        return [name for name, feature in parse_features(text).items() if feature.on]


class PrivateFlags(EthtoolFact):
    """Switches that only the driver of a test interface has.

    From ``ethtool --show-priv-flags``.
    """

    kind = "private_flags"
    shape = dict[str, dict[str, bool]]
    options = ("--show-priv-flags",)
    parse = staticmethod(parse_private_flags)


class _Hashing(TypedDict):
    """The answer for one interface."""

    queues: int | None
    entries: int | None
    table: str | None
    key: str | None
    function: str | None


class ReceiveHashingFact(EthtoolFact):
    """How each test interface spreads flows over its receive queues (RSS): table, key, hash function.

    From ``ethtool -x``.
    """

    kind = "receive_hashing"
    shape = dict[str, _Hashing]
    options = ("-x",)

    def parse(self, text: str) -> dict[str, Any]:
        """The table in words that say all of it."""
        hashing = parse_receive_hashing(text)
        return {
            "queues": hashing.queues,
            "entries": len(hashing.table) or None,
            "table": describe_table(hashing.table),
            "key": hashing.key,
            "function": hashing.function,
        }


class _Qdisc(TypedDict):
    """One queueing discipline; its parameters are its own."""

    kind: str
    handle: str | None
    parent: str | None
    parameters: dict[str, Any]


class Queueing(InterfaceFact):
    """Queueing disciplines of each test interface, from ``tc -j qdisc``."""

    kind = "queueing"
    shape = dict[str, list[_Qdisc]]

    async def ask(self, host: Host, device: str) -> Any:
        return parse_qdiscs(await output_of(host, "tc", "-j", "qdisc", "show", "dev", device))


class _Interrupt(TypedDict):
    """One interrupt."""

    number: int
    name: str
    queue: int | None
    cpus_allowed: str | None
    cpus: str | None


class Interrupts(Fact):
    """Interrupts of each test interface: number, queue, and the CPUs that may take them and that do.

    From ``device/msi_irqs``, ``/proc/interrupts`` and ``/proc/irq``.
    """

    kind = "interrupts"
    shape = dict[str, list[_Interrupt]]

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        names = parse_interrupts(await text_of(host, "/proc/interrupts"))

        async def ask(device: str) -> Any:
            base = f"/sys/class/net/{quote(device)}/device"
            try:
                # A virtio device sits on its PCI function.
                msi = numbers_of(await values_of(host, (f"{base}/msi_irqs/*", f"{base}/../msi_irqs/*")))
            except UnknownFactError:
                msi = []
            ours = interrupts_of_device(device, None, msi, names)
            if not ours:
                raise UnknownFactError("no interrupts of its own")
            files = [f"/proc/irq/{irq.number}/{kind}" for irq in ours for kind in _FILES]
            cpus = await values_of(outermost(host), files)
            return [
                {
                    "number": irq.number,
                    "name": irq.name,
                    "queue": irq.queue,
                    **{name: cpus.get(f"/proc/irq/{irq.number}/{kind}") for kind, name in _FILES.items()},
                }
                for irq in ours
            ]

        return await ask_interfaces(devices, ask)


_FILES = {"smp_affinity_list": "cpus_allowed", "effective_affinity_list": "cpus"}


_FILE = re.compile(r"/net/([^/]+)/queues/([rt]x-\d+)/(xps_cpus|xps_rxqs|rps_flow_cnt)$")


class FlowSteering(Fact):
    """Which CPUs send on which queue (XPS), and flows steered to where they are read (RFS), of the test interfaces.

    From ``/sys/class/net/DEVICE/queues``; receive packet steering (RPS) is in ``rps_cpu_masks``.
    """

    kind = "flow_steering"
    shape = dict[str, dict[str, str]]

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        if not devices:
            raise UnknownFactError("this host has no kernel interface in the test")
        files = ("tx-*/xps_cpus", "tx-*/xps_rxqs", "rx-*/rps_flow_cnt")
        return parse_steering(
            await values_of(host, [f"/sys/class/net/{quote(name)}/queues/{file}" for name in devices for file in files])
        )


def parse_steering(values: dict[str, str]) -> dict[str, dict[str, str]]:
    """By kind, ``d0 tx-0`` to a mask in hex or a number of flows; what is 0, so not used, is left out."""
    found: dict[str, dict[str, str]] = {}
    for path, value in values.items():
        if (file := _FILE.search(path)) and value.strip("0,"):
            found.setdefault(file[3], {})[f"{file[1]} {file[2]}"] = value
    return found


_QUEUE = re.compile(r"/net/([^/]+)/queues/(rx-\d+)/rps_cpus$")


class PacketSteering(Fact):
    """Receive packet steering (RPS) of the test interfaces: which CPUs take over received frames, queue by queue.

    From ``/sys/class/net/DEVICE/queues``.
    """

    kind = "rps_cpu_masks"
    shape = Annotated[dict[str, str], Label("RPS CPU masks"), Unit.CPU_MASK, OneLine()]

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, str]:
        if not devices:
            raise UnknownFactError("this host has no kernel interface in the test")
        paths = [f"/sys/class/net/{quote(name)}/queues/rx-*/rps_cpus" for name in devices]
        return parse_masks(await values_of(host, paths))


def parse_masks(values: dict[str, str]) -> dict[str, str]:
    """``d0 rx-0`` to a mask in hex; 0 is: the CPU that received it."""
    return {f"{found[1]} {found[2]}": mask for path, mask in values.items() if (found := _QUEUE.search(path))}
