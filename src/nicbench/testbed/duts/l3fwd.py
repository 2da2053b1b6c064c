"""DPDK's example router as a second process (`l3fwd`): longest prefix match between the test networks.

It is built once by ``nicbench doctor --build l3fwd`` (`l3fwd_build.py` has the sources and the patch). Its counters
are read over DPDK's telemetry socket between trials. It does not record cycles.
"""

from __future__ import annotations

from ipaddress import ip_network
from typing import Annotated, Any

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.described import Unit
from nicbench.core.errors import UsageError
from nicbench.hosts.base import Host
from nicbench.testbed import l3fwd_build as builder
from nicbench.testbed.addressing import network_behind, ways_back, ways_between
from nicbench.testbed.duts._dpdk import (
    MOST_PORTS,
    DutCores,
    ForwarderOptions,
    address_ways,
    ask_telemetry,
    common_arguments,
    disclose_settings,
    dut_cores,
    file_prefix,
    port_statistics,
    prepare,
    queue_counters,
    require_user_space,
    returns_frames,
    socket_path,
)
from nicbench.testbed.duts._process import DutProcess
from nicbench.testbed.duts._testpmd_output import version
from nicbench.testbed.duts.base import Addressing, FrameDut
from nicbench.testbed.labs.base import Queues, Testbed
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.files import RemovePath

Entry = tuple[int, int, int]
"""Port, queue and core of an entry of l3fwd's ``--config``; cores are counted from 0."""


def rules(ip: int, ports: int) -> str:
    """The longest-prefix-match table: each port gets the network behind it; a single port gets both networks."""
    networks = range(max(2, ports))
    lines = (
        f"R{_spell_out(network_behind(ip, network, len(networks)))} {min(network, ports - 1)}" for network in networks
    )
    return "".join(f"{line}\n" for line in lines)


_PLACE = "dut, port_queue_core_map"
_MOST_QUEUES_OF_A_CORE = 16
"""l3fwd is built for so many (MAX_RX_QUEUE_PER_LCORE)."""


def default_map(ports: int, cores: int, queues: int = 1) -> tuple[Entry, ...]:
    """The queues of each port in order, on the cores in turn."""
    return tuple((port, queue, (port * queues + queue) % cores) for port in range(ports) for queue in range(queues))


def check_map(entries: tuple[Entry, ...], ports: int, cores: int, queues: int = 1) -> tuple[Entry, ...]:
    """Gives the map back; UsageError where it names a missing port, queue or core, or leaves a queue out."""
    for port, queue, core in entries:
        if not (0 <= port < ports and 0 <= core < cores and 0 <= queue < queues):
            raise UsageError(
                f"the entry ({port},{queue},{core}) of the map is out of range: the ports are 0 to "
                f"{ports - 1}, the queues of each 0 to {queues - 1}, the cores 0 to {cores - 1}",
                place=_PLACE,
                next_step="correct the entry, set `queues` or `cores`, or remove the map",
            )
    named = sorted((port, queue) for port, queue, _ in entries)
    if named != [(port, queue) for port in range(ports) for queue in range(queues)]:
        raise UsageError(
            f"the map must name each queue of each port once: {ports} x {queues} entries",
            place=_PLACE,
            next_step="correct the map, or remove it",
        )
    for core in range(cores):
        served = sum(entry[2] == core for entry in entries)
        if served > _MOST_QUEUES_OF_A_CORE:
            raise UsageError(
                f"core {core} is to serve {served} queues, and l3fwd is built for {_MOST_QUEUES_OF_A_CORE}",
                place=_PLACE,
                next_step="use more `cores`, or fewer `queues`",
            )
    return entries


def config_argument(entries: tuple[Entry, ...]) -> str:
    """The value of ``--config``, as in ``(0,0,0),(1,0,0)``."""
    return ",".join(f"({port},{queue},{core})" for port, queue, core in entries)


def _spell_out(network: str) -> str:
    """The network as l3fwd reads it: IPv6 addresses with all their groups written out."""
    parsed = ip_network(network)
    return f"{parsed.network_address.exploded}/{parsed.prefixlen}"


_START_S = 60.0
# l3fwd checks the links of its ports ten times a second, and goes on without them after 9 s.
_FORWARDING_S = 15.0


class L3fwdOptions(ForwarderOptions):
    """``dut: {kind: l3fwd}``. The map has entries ``[port, queue, core]``; without it queues go to cores in turn.

    ``burst``, ``mbuf_cache`` and ``rss`` are constants in its sources: each choice of them is a program of its own.
    """

    burst: Annotated[int, Unit.FRAMES] = Field(default=32, ge=8, le=512)
    """Frames taken at once."""
    mbuf_cache: int = Field(default=256, ge=32, le=512)
    """Buffers that a core keeps to itself."""
    port_queue_core_map: tuple[Entry, ...] | None = Field(default=None, min_length=1)
    """Entries `[port, queue, core]`, cores counted from 0; without it queues go to the cores in turn."""


class L3fwd(FrameDut):
    """One l3fwd process, which addresses forwarded frames to the tester's ports."""

    kind = "l3fwd"
    Options = L3fwdOptions
    port_kind = "memif"
    takes_cards = True
    most_ports = MOST_PORTS
    returns_on_same_port = True
    options: L3fwdOptions

    def __init__(self, options: Frozen) -> None:
        super().__init__(options)
        self._process: DutProcess | None = None
        self._is_forwarding = False
        self._ports = 0
        self._telemetry = ""
        self._command: tuple[str, ...] = ()
        self._rules: dict[str, str] = {}
        self._build: builder.L3fwdBuild | None = None
        self._version: str | None = None
        self._cores: DutCores | None = None
        self._testbed: Testbed | None = None

    @property
    def _constants(self) -> builder.Constants:
        own = self.options
        return builder.Constants(burst=own.burst, mbuf_cache=own.mbuf_cache, rss=own.rss)

    def queues(self) -> Queues:
        # Each core has a transmit queue of its own at each port.
        return Queues(receive=self.options.queues, transmit=self.options.cores)

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        host = require_user_space(testbed, self.kind)
        self._cores = dut_cores(testbed, self.options.cores, self.kind, share_cpus=self.options.share_cpus)
        self._testbed, self._ports = testbed, len(testbed.dut_ports)
        self._build = await builder.find_or_build(host, self._constants)
        prefix = file_prefix(changes.run_id)
        folder = f"/run/{prefix}"
        await changes.make(host, RemovePath(path=folder), lambda: _run(host.run, ("mkdir", "-m", "700", folder)))
        self._rules = {f"{folder}/ipv{ip}.cfg": rules(ip, self._ports) for ip in (4, 6)}
        for path, text in self._rules.items():
            await host.write_file(path, text)
        self._command = command_line(self.options, testbed, self._cores.workers, prefix, folder)
        self._telemetry = socket_path(prefix)
        await prepare(changes, host, self.options, testbed, prefix)
        self._process = await DutProcess.start(host, changes, self._command, self.kind, self.options.environment)
        # The last line before it checks the links; it goes on once the tester has connected.
        last = f"Port {self._ports - 1}: softly parse"
        await self._process.wait_for(lambda line: line.startswith(last), _START_S, "open its ports")
        self._version = version(self._process.stderr)

    def addressing(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        macs = [port.mac for port in testbed.dut_ports]
        if any(mac is None for mac in macs):
            raise UsageError("the MAC addresses of l3fwd's ports are not known", place="dut")
        ways = ways_back(len(macs)) if returns_frames(testbed) else ways_between(len(macs))
        return address_ways(testbed, ip, ways, tuple(str(mac) for mac in macs))

    def cpus(self, testbed: Testbed) -> tuple[int, ...]:
        return ()  # it polls all the time, and its own time would count as another program's

    async def begin_trial(self, number: int) -> None:
        if self._process is not None and not self._is_forwarding:
            last = f"Port {self._ports - 1} Link"
            await self._process.wait_for(lambda line: line.startswith(last), _FORWARDING_S, "begin to forward")
            self._is_forwarding = True

    async def waiting_ns(self) -> int | None:
        if self._process is None or self._cores is None or self._cores.take_turns:
            return None  # cores that take turns wait for one another
        return await self._process.waiting_ns()

    async def failure(self) -> str | None:
        return None if self._process is None else await self._process.failure()

    async def drops(self) -> dict[str, int]:
        """Frames received and not sent, which it dropped for want of a route or of room in a ring, and missed ones."""
        if self._process is None or not self._is_forwarding:
            return {}
        ports = [port_statistics(answer) for answer in await self._statistics(self._process.host)]
        received, sent = (sum(port.get(name, 0) for port in ports) for name in ("ipackets", "opackets"))
        missed = {f"l3fwd d{number} {name}": port.get(name, 0) for number, port in enumerate(ports) for name in _MISSED}
        return {"l3fwd received and not sent": max(0, received - sent), **missed}

    async def queue_frames(self) -> tuple[tuple[int, ...], ...]:
        if self._process is None or not self._is_forwarding or self.options.queues == 1:
            return ()
        answers = await self._statistics(self._process.host)
        ports = tuple(queue_counters(answer, self.options.queues) for answer in answers)
        return ports if all(ports) else ()

    async def _statistics(self, host: Host) -> tuple[dict[str, Any], ...]:
        """The counters of each port."""
        return await ask_telemetry(host, self._telemetry, *(f"/ethdev/stats,{port}" for port in range(self._ports)))

    def _settings(self) -> dict[str, Any]:
        """The settings in effect."""
        if self._testbed is None or self._cores is None:
            return {}
        own = self.options
        return {
            **disclose_settings(own, self._testbed, self._cores, self.queues()),
            "burst": own.burst,
            "mbuf_cache": own.mbuf_cache,
            "port_queue_core_map": config_argument(_map_of(own, self._ports)),
        }

    def disclosure(self) -> dict[str, Any]:
        build = self._build
        return {
            "kind": self.kind,
            "name": "DPDK's l3fwd",
            "version": self._version,
            "settings_in_effect": self._settings(),
            "command": list(self._command),
            "rules": {path.rpartition("/")[2]: "; ".join(text.splitlines()) for path, text in self._rules.items()},
            "environment": dict(self.options.environment),
            "patch": None if build is None else build.patch,
            "built_from": None if build is None else f"Debian's {builder.PACKAGE} {build.sources}",
            "built_with": None if build is None else f"{build.compiler}, DPDK {build.library}",
            "cycles": "it keeps no record",
        }


_MISSED = ("imissed", "ierrors", "rx_nombuf", "oerrors")


def command_line(
    options: L3fwdOptions, testbed: Testbed, workers: tuple[int, ...], prefix: str, folder: str
) -> tuple[str, ...]:
    """The command line of l3fwd, on which every lcore forwards, also the main one."""
    ports = len(testbed.dut_ports)
    constants = builder.Constants(burst=options.burst, mbuf_cache=options.mbuf_cache, rss=options.rss)
    return (
        *options.scheduling.prefix(),
        "stdbuf",
        "-oL",
        str(builder.program(constants)),
        f"--lcores={','.join(f'{number}@{cpu}' for number, cpu in enumerate(workers))}",
        "-m",
        str(max(1, options.memory // 2**20)),
        f"--file-prefix={prefix}",
        *common_arguments(options, testbed),
        "--",
        "-P",
        "-p",
        hex((1 << ports) - 1),
        f"--config={config_argument(_map_of(options, ports))}",
        f"--rx-queue-size={options.receive_descriptors}",
        f"--tx-queue-size={options.transmit_descriptors}",
        "--lookup=lpm",
        f"--rule_ipv4={folder}/ipv4.cfg",
        f"--rule_ipv6={folder}/ipv6.cfg",
        "--parse-ptype",
        *(f"--eth-dest={number},{port.mac}" for number, port in enumerate(testbed.tester_ports) if port.mac),
    )


def _map_of(options: L3fwdOptions, ports: int) -> tuple[Entry, ...]:
    given = options.port_queue_core_map or default_map(ports, options.cores, options.queues)
    return check_map(given, ports, options.cores, options.queues)


async def _run(run: Any, command: tuple[str, ...]) -> None:
    await run(command)
