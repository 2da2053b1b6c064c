"""DPDK's example router as a second process (`l3fwd`): longest prefix match between the test networks.

It is built once by ``nicbench doctor --build l3fwd`` (`duts/l3fwd.py` has the sources and the patch). Its counters
are read over DPDK's telemetry socket between trials. It does not record cycles.
"""

from __future__ import annotations

import os
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, ValidationError

from nicbench.core.base import Frozen
from nicbench.core.described import Unit
from nicbench.core.errors import HostError, NotReadyError, UsageError
from nicbench.hosts.base import Host
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
    version,
)
from nicbench.testbed.duts._process import DutProcess
from nicbench.testbed.duts.base import Addressing, FrameDut
from nicbench.testbed.labs.base import Queues, Testbed
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.files import RemovePath

# Builds l3fwd, DPDK's example router, from Debian's sources (package dpdk-doc) into a cache of this machine.
#
# One line is patched: l3fwd requires ports that verify checksums in hardware, which rings in memory cannot do.


SOURCES: Final = "/usr/share/dpdk/examples"
PACKAGE: Final = "dpdk-doc"
BUILD_COMMAND: Final = "nicbench doctor --build l3fwd"
INSTALL_COMMAND: Final = "apt-get install --no-install-recommends dpdk-doc libdpdk-dev gcc make pkgconf"

REQUIRED: Final = ".offloads = RTE_ETH_RX_OFFLOAD_CHECKSUM"
REPLACEMENT: Final = ".offloads = 0"
PATCH: Final = f"main.c: `{REQUIRED}` became `{REPLACEMENT}`: rings in memory have no checksum offload"
_RECORD: Final = "build.json"
_BUILD_S: Final = 600.0


class Constants(Frozen):
    """What l3fwd has as constants in its sources; the defaults are its own."""

    burst: int = 32
    mbuf_cache: int = 256
    rss: Literal["ip", "udp"] = "ip"

    @property
    def folder(self) -> str:
        """The folder of the program with these constants, below the cache folder."""
        return "l3fwd" if self == Constants() else f"l3fwd-{self.burst}-{self.mbuf_cache}-{self.rss}"

    @property
    def edits(self) -> tuple[tuple[str, str, str], ...]:
        """What is replaced by what in which file; each occurs there once."""
        own = Constants()
        hashed = ("main.c", ".rss_hf = RTE_ETH_RSS_IP,", ".rss_hf = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP,")
        burst, cache = "#define MAX_PKT_BURST     ", "#define MEMPOOL_CACHE_SIZE "
        return (
            ("main.c", REQUIRED, REPLACEMENT),
            *([("l3fwd.h", f"{burst}{own.burst}\n", f"{burst}{self.burst}\n")] if self.burst != own.burst else []),
            *(
                [("l3fwd.h", f"{cache}{own.mbuf_cache}\n", f"{cache}{self.mbuf_cache}\n")]
                if self.mbuf_cache != own.mbuf_cache
                else []
            ),
            *([hashed] if self.rss != own.rss else []),
        )

    @property
    def patch(self) -> str:
        """The edits in words, for the report."""
        return "; ".join(
            (PATCH, *(f"{file}: `{old.strip()}` became `{new.strip()}`" for file, old, new in self.edits[1:]))
        )


DEFAULT: Final = Constants()


class L3fwdBuild(Frozen):
    """The record of a build, stored next to the program."""

    sources: str
    """Version of the package that the sources came from."""
    library: str
    """Version of DPDK that it was built with."""
    compiler: str
    patch: str


def cache_folder() -> Path:
    """The cache folder: that of the machine for root, that of the user otherwise (XDG base directories)."""
    if os.geteuid() == 0:
        return Path("/var/cache/nicbench")
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given else Path.home() / ".cache") / "nicbench"


def program(constants: Constants = DEFAULT, cache: Path | None = None) -> Path:
    """The path of the program with these constants once it is built."""
    return (cache or cache_folder()) / constants.folder / "l3fwd"


async def read_build(host: Host, constants: Constants = DEFAULT, cache: Path | None = None) -> L3fwdBuild | None:
    """The record of the build on ``host``; None without a build, and where nicbench did not build the program."""
    place = program(constants, cache)
    if (await host.run(("test", "-x", str(place)), check=False)).status != 0:
        return None
    try:
        return L3fwdBuild.model_validate_json(await host.read_file(str(place.with_name(_RECORD))) or "")
    except ValidationError:
        return None


async def find_or_build(host: Host, constants: Constants, cache: Path | None = None) -> L3fwdBuild:
    """The record of the program with these constants on ``host``, which is built where it is missing.

    NotReadyError where it cannot be built there.
    """
    found = await read_build(host, constants, cache)
    return found if found is not None else await build(host, constants, cache)


def edit_source(source: str, file: str, old: str, new: str) -> str:
    """A source with this edit; NotReadyError where it is not the version that the edit was made for."""
    if source.count(old) != 1:
        raise NotReadyError(
            f"the sources of l3fwd are of another version: `{old.strip()}` occurs in them {source.count(old)} times",
            place=f"{SOURCES}/l3fwd/{file}",
            next_step=f"install Debian's {PACKAGE} 22.11, or use `dut: {{kind: testpmd}}`",
        )
    return source.replace(old, new)


async def build(host: Host, constants: Constants = DEFAULT, cache: Path | None = None) -> L3fwdBuild:
    """Builds l3fwd on ``host`` in a fresh folder, in place of an older build; NotReadyError where it cannot."""
    folder = cache or cache_folder()
    sources: dict[str, str] = {}
    for file, old, new in constants.edits:
        source = sources.get(file) or await host.read_file(f"{SOURCES}/l3fwd/{file}")
        if source is None:
            message = f"l3fwd is not built, and its sources are missing: {SOURCES}/l3fwd"
            raise NotReadyError(message, place=host.name, next_step=INSTALL_COMMAND)
        sources[file] = edit_source(source, file, old, new)
    # With this mode the engine's binaries may lie in it too (nicbench.engine.binaries); parents keep the usual one.
    await host.run(("install", "-d", "-m", "700", str(folder)))
    work = folder / f"{constants.folder}.new"
    await host.run(("rm", "-rf", "--", str(work)))
    await host.run(("mkdir", "-p", str(work)))
    await host.run(("cp", "-r", f"{SOURCES}/l3fwd", f"{SOURCES}/common", str(work)))
    for file, source in sources.items():
        await host.write_file(f"{work}/l3fwd/{file}", source)
    try:
        await host.run(("make", "-C", f"{work}/l3fwd", "shared"), timeout_s=_BUILD_S)
    except (HostError, NotReadyError) as error:
        raise NotReadyError(
            f"l3fwd was not built: {error.message}", place=host.name, next_step=INSTALL_COMMAND
        ) from error
    record = L3fwdBuild(
        sources=await _version(host, PACKAGE),
        library=(await host.run(("pkg-config", "--modversion", "libdpdk"))).stdout.strip(),
        compiler=(await host.run(("cc", "--version"))).stdout.partition("\n")[0],
        patch=constants.patch,
    )
    await host.run(("mv", "-f", f"{work}/l3fwd/build/l3fwd-shared", f"{work}/program"))
    made = program(constants, folder)
    await host.run(("mkdir", "-p", str(made.parent)))
    await host.write_file(f"{work}/{_RECORD}", record.model_dump_json(indent=1) + "\n")
    await host.run(("mv", "-f", f"{work}/program", str(made)))
    await host.run(("mv", "-f", f"{work}/{_RECORD}", str(made.with_name(_RECORD))))
    await host.run(("rm", "-rf", "--", str(work)))
    return record


async def _version(host: Host, package: str) -> str:
    query = ("dpkg-query", "--show", "--showformat", "${Version}", package)
    return (await host.run(query, check=False)).stdout.strip() or "unknown"


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
"""The maximum that l3fwd is built for (MAX_RX_QUEUE_PER_LCORE)."""


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
        self._is_forwarding = False
        self._ports = 0
        self._telemetry = ""
        self._command: tuple[str, ...] = ()
        self._rules: dict[str, str] = {}
        self._build: L3fwdBuild | None = None
        self._version: str | None = None
        self._cores: DutCores | None = None
        self._testbed: Testbed | None = None

    @property
    def _constants(self) -> Constants:
        own = self.options
        return Constants(burst=own.burst, mbuf_cache=own.mbuf_cache, rss=own.rss)

    def queues(self) -> Queues:
        # Each core has a transmit queue of its own at each port.
        return Queues(receive=self.options.queues, transmit=self.options.cores)

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        host = require_user_space(testbed, self.kind)
        self._cores = dut_cores(testbed, self.options.cores, self.kind, share_cpus=self.options.share_cpus)
        self._testbed, self._ports = testbed, len(testbed.dut_ports)
        self._build = await find_or_build(host, self._constants)
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
        if self._cores is None or self._cores.take_turns:
            return None  # cores that take turns wait for one another
        return await super().waiting_ns()

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
            "built_from": None if build is None else f"Debian's {PACKAGE} {build.sources}",
            "built_with": None if build is None else f"{build.compiler}, DPDK {build.library}",
            "cycles": "it keeps no record",
        }


_MISSED = ("imissed", "ierrors", "rx_nombuf", "oerrors")


def command_line(
    options: L3fwdOptions, testbed: Testbed, workers: tuple[int, ...], prefix: str, folder: str
) -> tuple[str, ...]:
    """The command line of l3fwd, on which every lcore forwards, also the main one."""
    ports = len(testbed.dut_ports)
    constants = Constants(burst=options.burst, mbuf_cache=options.mbuf_cache, rss=options.rss)
    return (
        *options.scheduling.prefix(),
        "stdbuf",
        "-oL",
        str(program(constants)),
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
