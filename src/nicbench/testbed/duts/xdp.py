"""DUTs that are an XDP program on each port: what they share, a mirror (`xdp-tx`), and forwarding (`xdp-forward`)."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from nicbench.core.base import Frozen
from nicbench.core.described import Words
from nicbench.core.errors import HostError, NotReadyError, UsageError
from nicbench.core.frozen import frozen
from nicbench.core.pattern import Pattern
from nicbench.hosts.base import Host
from nicbench.testbed.addressing import MOST_PORTS, make_addressing, tester_macs, ways_back
from nicbench.testbed.duts._kernel import DutDevices, ForwardingDut, dut_devices, require_host
from nicbench.testbed.duts.base import Addressing, FrameDut, Refusal
from nicbench.testbed.labs.base import Testbed
from nicbench.tuning import bpf, xdp
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.network import StopPollingThreads

# What DUTs share that are an XDP program on each port: their options, the counters of what became of frames, and the
# threads that poll the ports.
#
# A veth has no interrupt: in the driver's hook a frame is handled by the CPU that sent it, the tester's. Such a DUT
# could not be overloaded, and would slow the tester down. So where the lab has CPUs for the DUT, threads of the kernel
# poll its ports there (threaded NAPI, Documentation/networking/napi.rst). The interrupts of a card are left as they
# are.


_PASSING = "pass"
_COUNTS_MAP = "frame_counts"
_ATTACH_MODES = {"native": "xdpdrv", "generic": "xdpgeneric"}
_FIRST = "-20"
_SHOWN_NAME_BYTES = 15  # of a thread's name before Linux 5.17
# It succeeds also where no thread is found.
_FIND_THREADS = 'grep -H "^napi/" /proc/[0-9]*/comm 2>/dev/null || true'


class XdpOptions(Frozen):
    """``hook: generic`` runs the program behind the driver, on any interface; ``native`` needs a driver that can.

    ``polling_threads`` has threads of the kernel poll the ports on the DUT's CPUs; None: where the ports are veths.
    """

    hook: Annotated[Literal["native", "generic"], Words((("native", "in the driver"), ("generic", "behind it")))] = (
        "native"
    )
    """Where the program runs: `native`, in the driver, before the kernel makes anything of a frame; `generic`, behind
    the driver, on any interface.
    """
    polling_threads: bool | None = None
    """Kernel threads poll the ports on the DUT's CPUs (threaded NAPI, Linux 5.12); only with `native`. Without it they
    do on veths: a veth has no interrupts, so the program would run on the sender's CPU and could hardly be overloaded.
    """


@frozen
class XdpPort:
    """A port with its copy of the program."""

    device: str
    program: int
    counts_map: int


class XdpDut(FrameDut):
    """A DUT that is an XDP program on each of its ports; ``fates`` names what its counters count, in their order."""

    fates: tuple[str, ...]
    """The first is of frames that it sent on, the others of those that it left to the kernel."""
    options: XdpOptions

    def __init__(self, options: Frozen) -> None:
        super().__init__(options)
        self._host: Host | None = None
        self._attached: tuple[XdpPort, ...] = ()
        self._threads: dict[str, tuple[int, ...]] = {}
        self._runs_on_senders_cpu = False
        self._passing: tuple[str, ...] = ()

    async def _attach(self, testbed: Testbed, changes: Changes, devices: DutDevices, name: str) -> None:
        """Attaches a copy of the program ``NAME.bpf.c`` to each port."""
        self._host = host = require_host(testbed, self.kind)
        program = await bpf.deploy_program(host, name)
        mode = _ATTACH_MODES[self.options.hook]
        attached = []
        for device in devices.names:
            number = await xdp.attach(changes, host, device, program, mode=mode)
            attached.append(XdpPort(device, number, await bpf.map_id(host, number, _COUNTS_MAP)))
        self._attached = tuple(attached)
        if self.options.hook == "native":
            await self._poll(testbed, changes, host)
            self._passing = await open_receive_queues(testbed, changes)

    async def _poll(self, testbed: Testbed, changes: Changes, host: Host) -> None:
        """Has threads on the DUT's CPUs poll the ports, where they are wanted."""
        wanted, cpus = self.options.polling_threads, testbed.cores.dut
        on_veths = all([await _is_veth(host, port.device) for port in self._attached])
        if wanted is None:
            wanted = on_veths and bool(cpus) and not testbed.cores.shared
        if wanted:
            for port in self._attached:
                self._threads[port.device] = await start_polling_threads(changes, host, port.device, cpus)
        self._runs_on_senders_cpu = on_veths and not wanted

    def cpus(self, testbed: Testbed) -> tuple[int, ...]:
        return () if self._runs_on_senders_cpu else super().cpus(testbed)

    async def left_to_kernel(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for port in self._attached:
            counts = await self._read_counts(port)
            found |= {f"{port.device} {name}": counts[name] for name in self.fates[1:]}
        return found

    async def _read_counts(self, port: XdpPort) -> dict[str, int]:
        if self._host is None:
            raise HostError("no XDP program is attached", place="dut")
        return dict(zip(self.fates, await bpf.read_numbers(self._host, port.counts_map), strict=True))

    def _disclose_programs(self, name: str) -> dict[str, Any]:
        """What runs where, for the report."""
        where = "driver mode" if self.options.hook == "native" else "generic mode"
        return {
            "program": f"{name}.bpf.c, XDP, {where}",
            "attached_to": [port.device for port in self._attached],
            "polling_threads": {device: f"on CPUs {_words(cpus)}" for device, cpus in self._threads.items()}
            or ("none: the sender's CPU runs the program" if self._runs_on_senders_cpu else "none"),
            "xdp_pass_on_tester_ports": list(self._passing),
        }


def _words(cpus: Sequence[int]) -> str:
    return ", ".join(str(cpu) for cpu in cpus)


async def start_polling_threads(changes: Changes, host: Host, device: str, cpus: tuple[int, ...]) -> tuple[int, ...]:
    """Has the kernel poll ``device`` by threads on ``cpus``, before other programs there; gives these CPUs.

    The threads end with the setting, so that their CPUs and priorities need no undo.
    """
    before = await _find_threads(host, device)

    async def apply() -> None:
        await host.write_file(f"/sys/class/net/{device}/threaded", "1")

    await changes.make(host, StopPollingThreads(device=device), apply)
    started = sorted(await _find_threads(host, device) - before)
    if not started:
        raise NotReadyError(
            "the kernel was to poll by threads, and none has started",
            place=f"{host.name}, {device}",
            next_step="use Linux 5.12 or later, or write `polling_threads: false` under `dut`",
        )
    for thread in started:
        await host.run(("taskset", "-p", "-c", ",".join(str(cpu) for cpu in cpus), str(thread)))
        await host.run(("renice", "-n", _FIRST, "-p", str(thread)), check=False)
    return cpus


async def _find_threads(host: Host, device: str) -> set[int]:
    done = await host.run(("sh", "-c", _FIND_THREADS))
    return threads_of(done.stdout, device)


def threads_of(text: str, device: str) -> set[int]:
    """The threads that poll ``device``, or one of its name elsewhere, in lines like ``/proc/7/comm:napi/d0-8193``."""
    wanted = f"napi/{device}-"[:_SHOWN_NAME_BYTES]
    lines = (line.split(":", 1) for line in text.splitlines() if ":" in line)
    return {int(path.split("/")[2]) for path, name in lines if name.startswith(wanted)}


async def _is_veth(host: Host, device: str) -> bool:
    shown = await host.run(("ip", "-d", "-j", "link", "show", "dev", device))
    kind = json.loads(shown.stdout)[0].get("linkinfo", {}).get("info_kind")
    return bool(kind == "veth")


async def open_receive_queues(testbed: Testbed, changes: Changes) -> tuple[str, ...]:
    """Lets testers without an AF_XDP socket receive redirected frames; gives the devices that needed it.

    A veth accepts redirected frames only while its peer polls a receive queue (the kernel's veth_xdp_xmit). AF_XDP's
    program causes that; for a packet socket an XDP program that passes everything does.
    """
    needing = [port for port in testbed.tester_ports if port.device and port.engine.get("kind") == "af_packet"]
    opened = []
    for port in needing:
        host, device = testbed.host_of(port), port.device or ""
        if await bpf.attached_program(host, device) is None:
            program = await bpf.deploy_program(host, _PASSING)
            await xdp.attach(changes, host, device, program)
            opened.append(device)
    return tuple(opened)


# A mirror made of XDP (`xdp-tx`): a program on each port sends every frame back out of it (XDP_TX).
#
# MAC addresses are swapped and nothing else, as by the `reflector` and by testpmd's `macswap`: addresses and ports of
# the layers above stay, so that checksums hold and no byte of the payload is touched. For labs of one port, and for
# the pattern `same-port`. A frame to a group of stations is left to the kernel.


_MIRROR = "xdp_tx"


class XdpTxOptions(XdpOptions):
    """``dut: {kind: xdp-tx}``."""


class XdpTx(XdpDut):
    """Every port of the DUT's host sends back what it receives."""

    kind = "xdp-tx"
    Options = XdpTxOptions
    most_ports = MOST_PORTS
    returns_on_same_port = True
    fates = ("returned", "malformed", "to a group of stations")
    """In the order of `enum fate` of the program."""
    options: XdpTxOptions

    def __init__(self, options: Frozen) -> None:
        super().__init__(options)
        self._macs: tuple[str, ...] = ()

    def refusal(self, ports: int, pattern: Pattern) -> Refusal | None:
        if ports == 1 or pattern is Pattern.SAME_PORT:
            return None
        return Refusal(
            "xdp-tx sends each frame back out of its port", "write `pattern: same-port`, or choose xdp-forward"
        )

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        devices = await dut_devices(testbed, self.kind, fewest=self.fewest_ports, most=self.most_ports)
        self._macs = devices.macs
        await self._attach(testbed, changes, devices, _MIRROR)

    def addressing(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        return ()  # no frame goes from one port to another

    def returning(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        if not self._macs:
            raise UsageError("a DUT of kind xdp-tx is not set up", place="dut", next_step="call up first")
        macs = tester_macs(testbed)
        return tuple(
            make_addressing(ip, len(macs), way, source_mac=macs[way[0]], destination_mac=self._macs[way[0]])
            for way in ways_back(len(macs))
        )

    def disclosure(self) -> dict[str, Any]:
        return {"kind": self.kind, **self._disclose_programs(_MIRROR), "macs": list(self._macs)}


# IP forwarding by XDP (`xdp-forward`): a program on each port forwards by the kernel's own route table.
#
# The program asks the route table for each frame (``bpf_fib_lookup``), IPv4 and IPv6, lowers the hop limit, writes the
# MAC addresses of the next hop and redirects the frame to its port: no frame that it forwards becomes a socket buffer.
# Addresses, neighbours, routes and settings are those of `kernel-forward`, so that only the way through the kernel
# differs. A VLAN tag stays as it is, and what is behind it is forwarded. What the program cannot forward (no route, a
# hop limit of 1, options, another protocol) it leaves to the kernel and counts by reason; the trial lists these counts
# beside its losses.


_ROUTER = "xdp_forward"
_PORT_BYTES = 8  # struct port of xdp_forward.bpf.c


class XdpForwardOptions(XdpOptions):
    """``dut: {kind: xdp-forward}``."""


class XdpForward(ForwardingDut, XdpDut):
    """The DUT's host forwards between its ports in the hook of their drivers."""

    kind = "xdp-forward"
    Options = XdpForwardOptions
    # In the order of `enum fate` of the program; the first eleven are results of the lookup (linux/bpf.h).
    fates = (
        "forwarded",
        "route: blackhole",
        "route: unreachable",
        "route: prohibited",
        "no route",
        "forwarding is off",
        "route needs encapsulation",
        "no neighbour",
        "longer than the MTU",
        "no source address",
        "another result of the lookup",
        "lookup refused",
        "not for this port",
        "not IP",
        "malformed",
        "IP options",
        "hop limit reached",
        "to no port of the DUT",
    )
    options: XdpForwardOptions

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        devices = await self._set_up_routes(testbed, changes)
        await self._attach(testbed, changes, devices, _ROUTER)
        host = require_host(testbed, self.kind)
        for port, mac in zip(self._attached, devices.macs, strict=True):
            await _write_settings(host, port.program, mac, devices)

    def disclosure(self) -> dict[str, Any]:
        return {"kind": self.kind, **self._disclose_programs(_ROUTER), **self._disclose_routes()}


async def _write_settings(host: Host, program: int, mac: str, devices: DutDevices) -> None:
    """Writes the port's MAC address and the DUT's ports; before that the program forwards nothing."""
    targets = await bpf.map_id(host, program, "forward_to")
    for index in devices.indexes:
        await bpf.write_map(host, targets, index, index, value_bytes=4)
    own = await bpf.map_id(host, program, "forward_port")
    wanted = pack_mac(mac)
    await bpf.write_map(host, own, 0, wanted, value_bytes=_PORT_BYTES)
    if await bpf.read_map(host, own, 0) != wanted:
        raise HostError("the forwarding program did not accept its settings", place=f"{host.name}, {mac}")


def pack_mac(mac: str) -> int:
    """A MAC address as the number whose bytes, in the machine's order, are ``struct port``."""
    return int.from_bytes(bytes.fromhex(mac.replace(":", "")).ljust(_PORT_BYTES, b"\0"), sys.byteorder)
