"""What DUTs built on DPDK share: options and EAL arguments, preparation, telemetry, and their ports, cores and ways of
frames.

Their options are what published results disclose (docs/bench-file.md): memory, devargs, environment, scheduling class.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterable
from itertools import cycle, islice
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from nicbench.core.base import Frozen
from nicbench.core.described import Label
from nicbench.core.errors import HostError, UsageError
from nicbench.core.frozen import frozen
from nicbench.core.pattern import Pattern, Way
from nicbench.core.quantity import Bytes
from nicbench.hosts.base import Host
from nicbench.testbed.addressing import SWEPT_ADDRESSES, make_addressing, swept_address, tester_macs, ways_back
from nicbench.testbed.duts.base import Addressing, Refusal
from nicbench.testbed.labs.base import DutPort, Queues, Testbed
from nicbench.tuning.changes import Changes
from nicbench.tuning.preparation import raise_huge_pages
from nicbench.tuning.undo.files import RemovePath

MOST_QUEUES = 64

_Word = Annotated[str, StringConstraints(pattern=r"^\S+$", max_length=1000)]
_Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class Scheduling(Frozen):
    """``scheduling: {policy: fifo, priority: 50}``: the scheduling class of sched(7), by default the ordinary one."""

    policy: Literal["other", "batch", "fifo", "rr"] = "other"
    """The scheduling class; `fifo` and `rr` need a `priority`."""
    priority: int | None = Field(default=None, ge=1, le=99)
    """The priority of `fifo` and `rr`."""

    @model_validator(mode="after")
    def _check_priority(self) -> Self:
        real_time = self.policy in ("fifo", "rr")
        if real_time and self.priority is None:
            raise ValueError(f"the policy {self.policy} needs a `priority`, 1 to 99")
        if not real_time and self.priority is not None:
            raise ValueError(f"the policy {self.policy} has no priority: only fifo and rr have one")
        return self

    def prefix(self) -> tuple[str, ...]:
        """The words to put in front of the DUT's command."""
        if self.policy == "other":
            return ()
        return ("chrt", f"--{self.policy}", str(self.priority or 0))


class DpdkOptions(Frozen):
    """Options of a DPDK process; ``devargs`` are added to each port, ``eal`` to the arguments of the EAL."""

    huge_pages: bool = True
    """Memory in huge pages, made and given back as those of the tester."""
    memory: Bytes = Field(default=512 * 2**20, ge=64 * 2**20)
    """Memory for its DPDK."""
    devargs: str = Field(default="", pattern=r"^\S*$")
    """Arguments that are added to each of its ports, for example `mprq_en=1`."""
    eal: tuple[_Word, ...] = ()
    """Further arguments of its EAL."""
    environment: dict[_Variable, str] = Field(default_factory=dict)
    """Environment variables, for example `{MLX5_SHUT_UP_BF: "1"}`."""
    scheduling: Scheduling = Scheduling()
    """The scheduling class of its process."""


class ForwarderOptions(DpdkOptions):
    """What published results of DPDK's own forwarders disclose: cores, queues and rings of each port, and RSS."""

    cores: int = Field(default=1, ge=1, le=128)
    """Cores that forward."""
    share_cpus: bool = False
    """Cores beyond the CPUs of the machine take turns on them, which the report says. It serves to try a setup of more
    cores than there are; how long the DUT waited for a CPU is then not judged.
    """
    queues: Annotated[int, Label("queues of each port")] = Field(default=1, ge=1, le=MOST_QUEUES)
    """Queues of each port. In the memif lab the rings match, and the tester spreads its flows over them by a hash of
    addresses and ports, as a card does.
    """
    receive_descriptors: int = Field(default=1024, ge=32, le=32_768)
    """Length of a card's receive ring, for each queue."""
    transmit_descriptors: int = Field(default=1024, ge=32, le=32_768)
    """Length of a card's transmit ring, for each queue."""
    rss: Annotated[Literal["ip", "udp"], Label("receive side scaling by")] = "ip"
    """What the card's hash uses to choose a queue: `ip` addresses, or `udp` ports as well."""


def disclose_settings(options: ForwarderOptions, testbed: Testbed, cores: DutCores, queues: Queues) -> dict[str, Any]:
    """The settings as they are in effect, for the report."""
    rings = all(port.vdev is not None for port in testbed.dut_ports)
    hashed = "addresses" if options.rss == "ip" else "addresses and UDP ports"
    return {
        "cores": len(cores.workers),
        "core_cpus": list(cores.workers),
        **({"shared_cpus": SHARED} if cores.take_turns else {}),
        "receive_queues_of_each_port": queues.receive,
        "transmit_queues_of_each_port": queues.transmit,
        "receive_descriptors": options.receive_descriptors,
        "transmit_descriptors": options.transmit_descriptors,
        **({"ring_frames": testbed.facts.get("ring_frames")} if rings else {}),
        "rss": f"by the tester, over {hashed}: rings in memory have none" if rings else f"of {hashed}",
        "memory": f"{options.memory // 2**20} MiB, {'huge' if options.huge_pages else 'ordinary'} pages",
        "devargs": options.devargs or "none",
        "scheduling": " ".join(options.scheduling.prefix()) or "the system's",
    }


SHARED = "several cores share one CPU, so rates do not apply to a machine with one CPU for each"


def file_prefix(run_id: str) -> str:
    """The file prefix of the DUT's EAL, by which two runs, and the tester, never share files."""
    return f"nicbench_dut_{hashlib.sha256(run_id.encode()).hexdigest()[:12]}"


def eal_arguments(
    options: DpdkOptions, testbed: Testbed, prefix: str, *, main_cpu: int, worker_cpus: tuple[int, ...]
) -> tuple[str, ...]:
    """The arguments of the EAL: the main thread (lcore 0) sleeps and answers, the workers are lcores 1, 2, ..."""
    lcores = ",".join(f"{number}@{cpu}" for number, cpu in enumerate((main_cpu, *worker_cpus)))
    return (
        f"--lcores={lcores}",
        "--main-lcore=0",
        "-m",
        str(max(1, options.memory // 2**20)),
        f"--file-prefix={prefix}",
        *common_arguments(options, testbed),
    )


def common_arguments(options: DpdkOptions, testbed: Testbed) -> tuple[str, ...]:
    """The EAL arguments apart from cores: no other card, no files that outlive a killed process, print the version."""
    memory = ("--in-memory",) if options.huge_pages else ("--no-huge", "--no-shconf")
    devargs = f",{options.devargs}" if options.devargs else ""
    devices = tuple(
        f"--vdev={port.vdev}{devargs}" if port.address is None else f"--allow={port.address}{devargs}"
        for port in testbed.dut_ports
    )
    cards = any(port.address is not None for port in testbed.dut_ports)
    return ("-v", *(() if cards else ("--no-pci",)), *memory, *devices, *options.eal)


_RUNTIME_FOLDER = "/run/dpdk"


async def prepare(changes: Changes, host: Host, options: DpdkOptions, testbed: Testbed, prefix: str) -> None:
    """Reserves huge pages in addition to the tester's, and has the EAL's runtime folder removed at the end."""
    if options.huge_pages:
        await raise_huge_pages(changes, host, options.memory + testbed.promised_bytes, "dut.huge_pages")
    await remove_runtime_files(changes, host, prefix)


async def remove_runtime_files(changes: Changes, host: Host, prefix: str) -> None:
    """Has the undo remove the folder that the EAL always makes by its file prefix, and that a killed process leaves."""
    await changes.make(host, RemovePath(path=f"{_RUNTIME_FOLDER}/{prefix}"))


_ANSWER_S = 5.0
# A socket of its host's file system: it is asked there, by the Python that DPDK's own tools need too.
_ASK = """
import socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
    connection.settimeout(5)
    connection.connect(sys.argv[1])
    connection.recv(65536)
    for command in sys.argv[2:]:
        connection.sendall(command.encode())
        print(connection.recv(65536).decode())
"""


def socket_path(prefix: str) -> str:
    """The path of the telemetry socket of the process with this file prefix."""
    return f"/run/dpdk/{prefix}/dpdk_telemetry.v2"


async def ask_telemetry(host: Host, path: str, *commands: str) -> tuple[dict[str, Any], ...]:
    """The answer to each command, after the greeting that comes first; HostError where one is missing."""
    python = sys.executable if host.shares_files else "python3"
    told = await host.run((python, "-I", "-c", _ASK, path, *commands), check=False, timeout_s=2 * _ANSWER_S)
    try:
        answers = tuple(json.loads(line) for line in told.stdout.splitlines())
    except ValueError:
        answers = ()
    if told.status != 0 or len(answers) != len(commands):
        why = (told.stderr.strip() or told.stdout.strip()).rpartition("\n")[2][:200] or f"status {told.status}"
        raise HostError(f"DPDK's telemetry does not answer {', '.join(commands)}: {why}", place=f"{host.name}, {path}")
    return tuple(answer if isinstance(answer, dict) else {} for answer in answers)


def port_statistics(answer: dict[str, Any]) -> dict[str, int]:
    """The counters of an answer to ``/ethdev/stats,N`` by name, without those of single queues."""
    counters = answer.get("/ethdev/stats")
    if not isinstance(counters, dict):
        return {}
    return {name: value for name, value in counters.items() if isinstance(value, int)}


def queue_counters(answer: dict[str, Any], queues: int) -> tuple[int, ...]:
    """Frames received by queue, of an answer to ``/ethdev/stats,N``; empty where it counts fewer queues than these."""
    counters = answer.get("/ethdev/stats")
    found = counters.get("q_ipackets") if isinstance(counters, dict) else None
    if not isinstance(found, list) or len(found) < queues or not all(isinstance(each, int) for each in found):
        return ()
    return tuple(found[:queues])


MOST_PORTS = 32
"""The maximum number of ports that DPDK is built for (RTE_MAX_ETHPORTS)."""


@frozen
class DutCores:
    """CPUs of the DUT's process: one for the thread that sleeps and answers, the others forward."""

    main: int
    workers: tuple[int, ...]

    @property
    def take_turns(self) -> bool:
        """Whether several forwarding cores are on one CPU."""
        return len(set(self.workers)) < len(self.workers)


def require_user_space(testbed: Testbed, kind: str, *, takes_interfaces: bool = False) -> Host:
    """The DUT's host; UsageError where its ports are neither rings in memory nor cards that DPDK drives.

    Kernel interfaces will do as well where it ``takes_interfaces``.
    """

    def is_usable(port: DutPort) -> bool:
        return port.vdev is not None or port.address is not None or (takes_interfaces and port.device is not None)

    ports = testbed.dut_ports
    if testbed.dut is None or not ports or not all(is_usable(port) for port in ports):
        raise UsageError(
            f"a DUT of kind {kind} needs a lab of shared memory, or cards that DPDK drives",
            place="dut",
            next_step="use `lab: {kind: memif}`, or give its ports by `address`",
        )
    return testbed.dut


def card_macs(testbed: Testbed) -> tuple[str, ...] | None:
    """The MAC addresses that frames to the DUT's cards must have; None for rings, and where one is unknown."""
    macs = tuple(port.mac for port in testbed.dut_ports if port.address is not None and port.mac is not None)
    return macs if macs and len(macs) == len(testbed.dut_ports) else None


def dut_cores(testbed: Testbed, wanted: int, kind: str, *, share_cpus: bool = False) -> DutCores:
    """``wanted`` forwarding cores on the CPUs that the lab has for the DUT.

    UsageError where there are fewer, unless cores ``share_cpus``: then they are dealt to the CPUs in turn.
    """
    cores = testbed.cores
    available = (*cores.dut, *(() if cores.shared else cores.housekeeping))
    if share_cpus:
        available = tuple(islice(cycle(available), max(wanted, len(available))))
    if wanted > len(available):
        raise UsageError(
            f"{kind} is to forward on {wanted} cores; this machine has {len(available)} for it beside the tester's",
            place="dut, cores",
            next_step=f"write `cores: {len(available)}`, or use a machine with more; to try the setup alone, let cores "
            "take turns with `share_cpus: true`",
        )
    workers = available[:wanted]
    spare = [cpu for cpu in cores.housekeeping if cpu not in workers]
    # The main thread answers only between trials, when the tester's CPU is idle too.
    fallback = cores.worker if cores.worker is not None else workers[0]
    return DutCores(main=spare[0] if spare else fallback, workers=workers)


def returns_frames(testbed: Testbed) -> bool:
    """Whether frames leave by the port that they came in on."""
    return testbed.same_port or len(testbed.dut_ports) == 1


def refuse_other_than_pairs(kind: str, ports: int, pattern: Pattern) -> Refusal | None:
    """The refusal of a pattern that a DUT cannot do which joins its ports in pairs or each with itself; else None."""
    if ports <= 2 or pattern in (Pattern.ONE_TO_ONE, Pattern.SAME_PORT):
        return None
    return Refusal(
        f"{kind} forwards between the two ports of a pair, or back out of each, so not {pattern.value}",
        "write `pattern: one-to-one`, or choose l3fwd, which routes between all ports",
    )


def paired_ways(testbed: Testbed) -> tuple[Way, ...]:
    """The ways through a DUT that joins its ports in pairs; of each pair forward first, then reverse."""
    ports = len(testbed.dut_ports)
    if returns_frames(testbed):
        return ways_back(ports)
    return tuple((port, port ^ 1) for port in range(ports - ports % 2))


def address_ways(
    testbed: Testbed, ip: int, ways: tuple[Way, ...], destination_macs: tuple[str, ...] | None = None
) -> tuple[Addressing, ...]:
    """The addressing of these ways to ``destination_macs``; without them the tester's ports address each other."""
    macs = tester_macs(testbed)

    def address_way(way: Way) -> Addressing:
        here, there = way
        source_mac, destination_mac = macs[here], destination_macs[here] if destination_macs else macs[there]
        if len(macs) > 1:
            return make_addressing(ip, len(macs), way, source_mac=source_mac, destination_mac=destination_mac)
        # With one port both networks lie behind it.
        return Addressing(
            transmit=here,
            receive=there,
            source_mac=source_mac,
            destination_mac=destination_mac,
            ip=ip,
            source_address=swept_address(ip, 0),
            destination_address=swept_address(ip, 1),
            source_address_count=SWEPT_ADDRESSES,
            destination_address_count=SWEPT_ADDRESSES,
        )

    return tuple(address_way(way) for way in ways)


# Parses the output of dpdk-testpmd; the tests use recorded outputs of version 22.11. Pure.


_PORT = re.compile(r"-+ Forward statistics for port (\d+) ")
_END_OF_PORTS = "Accumulated forward statistics"
_COUNTER = re.compile(r"([RT]X-[a-z]+):\s*(\d+)")
_CYCLES = re.compile(r"\(total cycles=(\d+) / total \S+ packets=(\d+)\) at (\d+) MHz Clock")
_VERSION = re.compile(r"EAL: RTE Version: '([^']+)'")
_STREAM = re.compile(r"RX P=(\d+)/Q=(\d+) .*-> TX P=(\d+)/Q=(\d+)")
_LCORE = re.compile(r"Logical Core (\d+) ")
# rte_ethdev names them rx_q0_packets, mlx5 and others rx_q0packets, or rx_queue_0_packets.
_QUEUE_FRAMES = re.compile(r"rx_q(?:ueue_)?\d+_?(?:good_)?packets: (\d+)$")
_PROMPT = "testpmd> "


@frozen
class ForwardStatistics:
    """The result of ``show fwd stats all``: counters by port and name, and core cycles where they are recorded."""

    ports: dict[int, dict[str, int]]
    cycles: int | None = None
    packets: int | None = None
    tsc_hz: float | None = None


def forward_statistics(lines: Iterable[str]) -> ForwardStatistics:
    """Parses ``show fwd stats all``, which has cycles only with --record-core-cycles and after the first packet."""
    ports: dict[int, dict[str, int]] = {}
    counters = {}
    cycles = packets = tsc_mhz = None
    for line in lines:
        if (port := _PORT.search(line)) is not None:
            counters = ports.setdefault(int(port[1]), {})
        elif _END_OF_PORTS in line:
            counters = {}
        elif (found := _CYCLES.search(line)) is not None:
            cycles, packets, tsc_mhz = (int(number) for number in found.groups())
        else:
            counters.update({name: int(value) for name, value in _COUNTER.findall(line)})
    return ForwardStatistics(ports, cycles, packets, None if tsc_mhz is None else tsc_mhz * 1e6)


def count_drops(statistics: ForwardStatistics) -> dict[str, int]:
    """Frames that testpmd itself dropped, by place."""
    return {f"testpmd d{port} RX-dropped": counters.get("RX-dropped", 0) for port, counters in statistics.ports.items()}


def count_overruns(statistics: ForwardStatistics) -> dict[int, int]:
    """Frames that it could not send, by port, because the ring towards the tester was full."""
    return {port: counters.get("TX-dropped", 0) for port, counters in statistics.ports.items()}


def list_streams(lines: Iterable[str]) -> tuple[str, ...]:
    """The map of ports, queues and cores from ``show config fwd``: "port 0 queue 0 to port 1 queue 0 on lcore 1"."""
    lcore, found = "?", []
    for line in lines:
        if (core := _LCORE.search(line)) is not None:
            lcore = core[1]
        if (stream := _STREAM.search(line)) is not None:
            here, queue, there, other = stream.groups()
            found.append(f"port {here} queue {queue} to port {there} queue {other} on lcore {lcore}")
    return tuple(found)


@frozen
class Rings:
    """Lengths of the rings of each port's queues, as testpmd has them after the driver adjusted them."""

    receive_descriptors: int
    transmit_descriptors: int


def rings(lines: Iterable[str]) -> Rings | None:
    """Parses ``show config rxtx``, which prints those of the first queue of each port; None where it prints none."""
    text = "\n".join(lines)
    receive, transmit = (re.search(rf"{way} desc=(\d+)", text) for way in ("RX", "TX"))
    # 0: the driver chose.
    if receive is None or transmit is None or "0" in (receive[1], transmit[1]):
        return None
    return Rings(int(receive[1]), int(transmit[1]))


def queue_frames(lines: Iterable[str]) -> tuple[tuple[int, ...], ...]:
    """Frames received by port and queue, from ``show port xstats all``; a driver that counts none by queue has none."""
    ports: list[list[int]] = []
    for line in lines:
        if "NIC extended statistics for port" in line:
            ports.append([])
        elif (found := _QUEUE_FRAMES.match(line.strip())) is not None and ports:
            ports[-1].append(int(found[1]))
    return tuple(map(tuple, ports)) if all(ports) else ()


def version(stderr: str) -> str | None:
    """The version that the EAL prints with ``-v``; None where it is missing."""
    found = _VERSION.search(stderr)
    return found[1] if found else None


def refusal(lines: Iterable[str]) -> str | None:
    """The line by which testpmd refused a command; None where it did not."""
    words = ("Bad arguments", "Command not found", "Ambiguous command", "Invalid ")
    return next((line.removeprefix(_PROMPT) for line in lines if line.removeprefix(_PROMPT).startswith(words)), None)
