"""FD.io's VPP as a router between the DUT's ports (`vpp`), which are packet sockets (AF_PACKET) on kernel interfaces.

Addresses, neighbours and routes are those of `kernel-forward`, in VPP's own tables: the kernel has none of them. VPP
answers to MAC addresses of its own, so that the kernel drops its copies of the frames at once. The configuration, the
command line's socket and all else that VPP writes is in a folder that is removed at the end.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, Literal

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError, NotReadyError, UsageError
from nicbench.core.frozen import frozen
from nicbench.core.machine import DutWork
from nicbench.core.quantity import Bytes
from nicbench.hosts.base import Host
from nicbench.testbed.addressing import MOST_PORTS, tester_macs
from nicbench.testbed.duts._dpdk import DutCores, dut_cores
from nicbench.testbed.duts._kernel import (
    ForwardingDut,
    ForwardingPort,
    PassageDut,
    Passed,
    dut_devices,
    forwarding_ports,
    link_packets,
    neighbour_of,
    require_host,
)
from nicbench.testbed.duts._process import DutProcess, require_programs
from nicbench.testbed.labs.base import Testbed
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.files import RemovePath
from nicbench.tuning.undo.network import EndPromiscuity

_INSTALL: Final = (
    "install it (packages of FD.io are at https://packagecloud.io/fdio/release, Debian 12 has none), or name its path "
    "by `program` under `dut`"
)
_ANSWERS_WITHIN_S: Final = 60.0
_BETWEEN_TRIES_S: Final = 0.1
_NAME: Final = re.compile(r"(\S{1,64}) +\d{1,9} +(?:up|down) +[\d/]{1,64}(?=\s|$)")
_COUNT: Final = re.compile(r"\d{1,20}")
_CYCLES: Final = re.compile(r"\d{1,3}(?:\.\d{1,9})?(?:e[+-]?\d{1,2})?")
_SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - shm_overview(7): where the C library has it
_SEGMENTS: Final = ("global_vm", "vpe-api")
_INPUT: Final = "af-packet-input"
_AFTER_INPUT: Final = "ethernet-input"
"""It is called with what the input took, and so never for nothing."""
_ERRORS: Final = ("error", "warning", "warn")
_NODE_FIELDS: Final = 7  # name, state, calls, vectors, suspends, clocks for each packet, packets for each call


class VppOptions(Frozen):
    """``dut: {kind: vpp, workers: 1}``."""

    program: str = Field(default="vpp", pattern=r"^\S+$")
    """VPP, by its name or path; `vppctl` is the one beside it."""
    workers: int = Field(default=0, ge=0, le=64)
    """Worker threads, each on a CPU of its own; without them the main thread forwards."""
    receive: Literal["polling", "interrupt", "adaptive"] = "polling"
    """How threads take frames from the sockets (`set interface rx-mode`)."""
    packet_sockets: Literal["v2", "v3"] = "v2"
    """The version of their rings: `v3` (VPP's own choice) hands frames over in blocks, which adds up to 1 ms."""
    buffers: int = Field(default=16_384, ge=4_096, le=4_000_000)
    """Buffers of each NUMA node, of 2 KiB."""
    heap: Bytes = Field(default=256 * 2**20, ge=64 * 2**20)
    """Memory for tables and the like."""


class Vpp(PassageDut, ForwardingDut):
    """A VPP of nicbench's own on the DUT's host, independent of any that runs already."""

    kind = "vpp"
    layer = "VPP"
    when_silent = "see `show errors` and `show ip fib` of VPP: it has no route for these frames, or drops them"
    Options = VppOptions
    fewest_ports = 2
    most_ports = MOST_PORTS
    options: VppOptions

    def __init__(self, options: Frozen) -> None:
        super().__init__(options)
        self._folder = ""
        self._cores: DutCores | None = None
        self._startup = ""
        self._version = ""
        self._entered: list[str] = []
        self._worked = DutWork(source="VPP's show runtime", packets=0, tsc_cycles=0, batches=0, counts_empty_polls=True)

    def programs(self) -> Mapping[str, str]:
        program = self.options.program
        return dict.fromkeys((program, vppctl_beside(program)), _INSTALL)

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        host, own = require_host(testbed, self.kind), self.options
        devices = await dut_devices(testbed, self.kind, fewest=self.fewest_ports, most=self.most_ports)
        await require_programs(host, self.programs())
        self._host, self._has_ipv6 = host, True
        self._cores = dut_cores(testbed, max(1, own.workers), self.kind)
        ports = forwarding_ports(testbed, devices, tester_macs(testbed))
        self._ports = tuple(replace(port, mac=own_mac(port.mac)) for port in ports)
        self._folder = (await host.run(("mktemp", "-d", "--tmpdir", "nicbench-vpp.XXXXXX"))).stdout.strip()
        await changes.make(host, RemovePath(path=self._folder))
        for segment in _SEGMENTS:  # which VPP leaves in memory however it ends
            await changes.make(host, RemovePath(path=f"{_SHARED_MEMORY}/{_prefix(self._folder)}-{segment}"))
        for device in devices.names:
            # Without it a card would take no frames to VPP's addresses.
            hear_all = partial(_run, host, ("ip", "link", "set", "dev", device, "promisc", "on"))
            await changes.make(host, EndPromiscuity(device=device), hear_all)
        self._startup = startup_configuration(own, self._cores, self._folder)
        await self._start(host, changes)
        for command in setup_commands(own, self._ports):
            await self._enter(command)

    async def _start(self, host: Host, changes: Changes) -> None:
        """Starts VPP, and waits until it answers."""
        await host.write_file(f"{self._folder}/startup.conf", self._startup)
        command = (self.options.program, "-c", f"{self._folder}/startup.conf")
        self._process = await DutProcess.start(host, changes, command, self.kind)
        for _ in range(int(_ANSWERS_WITHIN_S / _BETWEEN_TRIES_S)):
            if failed := await self.failure():
                raise NotReadyError(f"VPP does not start: {failed}", place=f"dut, on {host.name}")
            if (await host.run(("test", "-S", f"{self._folder}/cli.sock"), check=False)).status == 0:
                said = await self._ask("show version", check=False)
                if said.startswith("vpp "):
                    self._version = said.partition(" built by ")[0].strip()
                    return
            await asyncio.sleep(_BETWEEN_TRIES_S)
        raise NotReadyError("VPP does not answer", place=f"dut, on {host.name}", next_step="run it by hand to see more")

    async def _ask(self, command: str, *, check: bool = True) -> str:
        """What VPP's command line answers to ``command``; a refusal is an answer too."""
        words = (vppctl_beside(self.options.program), "-s", f"{self._folder}/cli.sock", *command.split())
        return (await self._require_up().run(words, check=check)).stdout.replace("\r", "")

    async def _enter(self, command: str) -> None:
        """Enters a command that answers nothing, or the name of the interface that it made."""
        said = (await self._ask(command)).strip()
        if said and not (command.startswith("create ") and said.startswith("host-") and len(said.split()) == 1):
            raise NotReadyError(
                f"VPP refused `{command}`: {' '.join(said.split())[:300]}",
                place=f"dut, on {self._require_up().name}",
                next_step="see whether this VPP has the plugin af_packet; `packet_sockets: v3` needs no recent one",
            )
        self._entered.append(command)

    def _require_up(self) -> Host:
        if self._host is None:
            raise UsageError("VPP is not set up", next_step="call up first")
        return self._host

    async def _read_passed(self) -> Passed:
        """Reads the counters of VPP's interfaces and of the ports."""
        counted = parse_interfaces(await self._ask("show interface"))
        names = [f"host-{port.device}" for port in self._ports]
        if gone := [name for name in names if name not in counted]:
            raise HostError(f"VPP has no interface {gone[0]}", place="dut of kind vpp", next_step="start the run again")
        sent = await link_packets(self._require_up(), *(port.device for port in self._ports))
        return Passed(
            into=sum(counted[name].get("rx packets", 0) for name in names),
            through=sum(counted[name].get("tx packets", 0) for name in names),
            sent=sum(sent for _, sent in sent.values()),
        )

    def cpus(self, testbed: Testbed) -> tuple[int, ...]:
        return ()  # it polls, and its own time would count as another program's

    async def drops(self) -> dict[str, int]:
        return {} if self._process is None or await self.failure() else parse_errors(await self._ask("show errors"))

    async def work(self) -> DutWork | None:
        """Adds up what VPP counted since it was asked last: it gives cycles by packet, with three digits."""
        if self._process is None or await self.failure():
            return None
        nodes = parse_runtime(await self._ask("show runtime"))
        await self._ask("clear runtime")
        before = self._worked
        self._worked = before.replace(
            packets=before.packets + sum(node.vectors for node in nodes if node.name == _INPUT),
            tsc_cycles=before.tsc_cycles + round(sum(node.cycles for node in nodes)),
            batches=(before.batches or 0) + sum(node.calls for node in nodes if node.name == _AFTER_INPUT),
        )
        return self._worked

    def disclosure(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "version": self._version,
            "startup_configuration": self._startup.splitlines(),
            "commands": list(self._entered),
            "core_cpus": [] if self._cores is None else list(self._cores.workers),
            "ports": {
                port.device: {"mac": port.mac, "addresses": list(port.addresses), "tester_mac": port.tester_mac}
                for port in self._ports
            },
            "statistics": "asked for between trials, on its command line",
        }


def vppctl_beside(program: str) -> str:
    """The client of the command line that belongs to this ``program``."""
    folder, slash, _ = program.rpartition("/")
    return f"{folder}{slash}vppctl"


def _prefix(folder: str) -> str:
    """What the names of this VPP's shared memory begin with."""
    return folder.rpartition("/")[2]


def own_mac(mac: str) -> str:
    """VPP's MAC address on an interface: a locally administered one, by the interface's, that differs from it."""
    first = int(mac[:2], 16)
    return f"{(first | 2) ^ 4:02x}{mac[2:]}"


def startup_configuration(options: VppOptions, cores: DutCores, folder: str) -> str:
    """The text of startup.conf: no API socket, no huge pages, and of the plugins af_packet alone."""
    main = cores.main if options.workers else cores.workers[0]
    workers = f" corelist-workers {','.join(map(str, cores.workers))}" if options.workers else ""
    return "\n".join(
        (
            f"unix {{ nodaemon nosyslog nobanner nocolor cli-listen {folder}/cli.sock runtime-dir {folder} }}",
            f"cpu {{ main-core {main}{workers} }}",
            f"memory {{ main-heap-size {options.heap} main-heap-page-size 4k }}",
            f"buffers {{ buffers-per-numa {options.buffers} page-size 4k }}",
            f"statseg {{ socket-name {folder}/stats.sock size 32m page-size 4k }}",
            f"api-segment {{ prefix {_prefix(folder)} }}",
            "plugins { plugin default { disable } plugin af_packet_plugin.so { enable } }",
            "",
        )
    )


def setup_commands(options: VppOptions, ports: tuple[ForwardingPort, ...]) -> tuple[str, ...]:
    """The commands that make the router; the tester is a static neighbour at each port."""
    version = "v2 " if options.packet_sockets == "v2" else ""
    commands = []
    for port in ports:
        name = f"host-{port.device}"
        commands += [
            f"create host-interface {version}name {port.device} hw-addr {port.mac} cksum-gso-disable",
            f"set interface state {name} up",
            f"set interface rx-mode {name} {options.receive}",
        ]
        for address, network in zip(port.addresses, port.networks, strict=True):
            commands += [
                f"set interface ip address {name} {address}",
                f"set ip neighbor {name} {neighbour_of(address)} {port.tester_mac} static",
                f"ip route add {network} via {neighbour_of(address)} {name}",
            ]
        commands.append(f"ip6 nd {name} ra-suppress")
    return tuple(commands)


def parse_interfaces(shown: str) -> dict[str, dict[str, int]]:
    """The counters of ``show interface`` by interface and name; those that are 0 are not shown."""
    found: dict[str, dict[str, int]] = {}
    counters: dict[str, int] | None = None
    for line in shown.splitlines():
        rest = line
        if header := _NAME.match(line):
            counters = found.setdefault(header[1], {})
            rest = line[header.end() :]
        *name, value = rest.split() or [""]
        if counters is not None and name and _COUNT.fullmatch(value):
            counters[" ".join(name)] = int(value)
    return found


def parse_errors(shown: str) -> dict[str, int]:
    """Frames by node and reason, of the errors and warnings of ``show errors``; each thread has a line.

    The input counts blocks of its rings there as well, whether or not a frame was lost.
    """
    found: dict[str, int] = {}
    for line in shown.splitlines():
        words = line.split()
        if len(words) > 3 and words[-1] in _ERRORS and _COUNT.fullmatch(words[0]):
            if words[1] == _INPUT and "block" in words:
                continue
            name = f"{words[1]}: {' '.join(words[2:-1])}"
            found[name] = found.get(name, 0) + int(words[0])
    return found


@frozen
class Node:
    """A node of VPP's graph on one thread: how often it was called, with how many packets, and its cycles in all."""

    name: str
    calls: int
    vectors: int
    cycles: float


def parse_runtime(shown: str) -> tuple[Node, ...]:
    """The nodes of ``show runtime`` that handled packets; cycles have the three digits that VPP gives."""
    nodes = []
    for line in shown.splitlines():
        words = line.split()
        if len(words) < _NODE_FIELDS:
            continue
        calls, vectors, _, cycles, _ = words[-5:]
        if _COUNT.fullmatch(calls) and _COUNT.fullmatch(vectors) and int(vectors) and _CYCLES.fullmatch(cycles):
            nodes.append(Node(words[0], int(calls), int(vectors), int(vectors) * float(cycles)))
    return tuple(nodes)


async def _run(host: Host, command: tuple[str, ...]) -> None:
    await host.run(command)
