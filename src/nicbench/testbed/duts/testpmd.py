"""DPDK's test forwarder, dpdk-testpmd, as a second process (`testpmd`): io, mac, macswap, csum or 5tswap.

It runs with an interactive command line on pipes: statistics are read between trials, and it ends with its input, so
that it does not outlive the controller. ``--record-core-cycles`` counts the cycles of the time-stamp counter that it
spends on packets, without polls of empty queues (DPDK 22.11). The clock of its core, which is not that of the counter,
is probed between trials by a second engine on simulated ports: 1 ms of timed multiplications.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.described import Unit
from nicbench.core.errors import HostError, NicbenchError
from nicbench.core.machine import DutWork
from nicbench.core.pattern import Pattern
from nicbench.engine.binaries import deploy_binary
from nicbench.engine.client import EngineClient
from nicbench.hosts.base import Host
from nicbench.testbed.duts import _dpdk as output
from nicbench.testbed.duts._dpdk import (
    MOST_PORTS,
    DutCores,
    ForwarderOptions,
    address_ways,
    card_macs,
    disclose_settings,
    dut_cores,
    eal_arguments,
    file_prefix,
    paired_ways,
    prepare,
    refuse_other_than_pairs,
    require_user_space,
    returns_frames,
)
from nicbench.testbed.duts._process import DutProcess, require_programs
from nicbench.testbed.duts.base import Addressing, FrameDut, Refusal
from nicbench.testbed.labs.base import Queues, Testbed
from nicbench.tuning.changes import Changes

_TRIAL_S = 0.001
_SIMULATED = {"name": "probe", "kind": "simulated", "link_bits_per_s": 1e9, "sends_to": 0, "dut": {}}
_STREAM = {
    "name": "probe",
    "transmit_port": 0,
    "receive_port": 0,
    "frame_bytes": 64,
    "rate_frames_per_s": 1000.0,
    "source_mac": "02:00:00:00:00:01",
    "destination_mac": "02:00:00:00:00:02",
    "ip": 4,
    "source_address": "198.18.0.1",
    "destination_address": "198.19.0.1",
}


async def core_clock_hz(host: Host, cpu: int) -> tuple[float, ...]:
    """The clock of ``cpu`` in Hz, probed twice; empty where it cannot be probed."""
    try:
        binary = await deploy_binary(host, "nicbench-packets")
        client = EngineClient(await host.start((binary,)), "clock probe")
    except NicbenchError:
        return ()
    try:
        await client.greet()
        await client.request(
            "configure", run_key="0" * 16, clock="tsc", worker_cpu=cpu, watch_cpus=[], huge_pages=False,
            memory_mib=64, eal=[], ports=[_SIMULATED],
        )  # fmt: skip
        await client.request("start", trial=1, duration_s=_TRIAL_S, streams=[_STREAM])
        await client.wait_for("transmitted", within_s=5.0, trial=1)
        reading = await client.request("drain", duration_s=0.0)
        return tuple(reading["health"].get("core_clock_hz") or ())
    except (NicbenchError, KeyError):
        return ()
    finally:
        await client.close()


_PROGRAM = "dpdk-testpmd"
_START_S = 60.0  # huge pages are zeroed one by one
_ANSWER_S = 10.0
_FEWEST_MBUFS = 16_384


class TestpmdOptions(ForwarderOptions):
    """``dut: {kind: testpmd, forward_mode: macswap}``; the defaults are testpmd's own, except for ``total_mbufs``."""

    __test__ = False  # not a test class for pytest

    forward_mode: Literal["io", "mac", "macswap", "csum", "5tswap"] = "macswap"
    """The forwarding mode."""
    burst: Annotated[int, Unit.FRAMES] = Field(default=32, ge=1, le=512)
    """Frames taken at once."""
    mbuf_cache: int = Field(default=250, ge=0, le=512)
    """Buffers that a core keeps to itself."""
    total_mbufs: int | None = Field(default=None, ge=1024, le=8_000_000)
    """Buffers in all; without it what all rings hold, at least 16384."""
    record_core_cycles: bool = True
    """Record the cycles of the time-stamp counter that are spent on packets."""


class Testpmd(FrameDut):
    """One testpmd process on the lab's ports."""

    __test__ = False
    kind = "testpmd"
    Options = TestpmdOptions
    port_kind = "memif"
    takes_cards = True
    most_ports = MOST_PORTS
    returns_on_same_port = True
    can_be_sink = True
    options: TestpmdOptions

    def __init__(self, options: Frozen) -> None:
        super().__init__(options)
        self._cores: DutCores | None = None
        self._command: tuple[str, ...] = ()
        self._streams: tuple[str, ...] = ()
        self._rings: output.Rings | None = None
        self._testbed: Testbed | None = None
        self._version: str | None = None
        self._commands_sent = 0

    def refusal(self, ports: int, pattern: Pattern) -> Refusal | None:
        return refuse_other_than_pairs(self.kind, ports, pattern)

    def queues(self) -> Queues:
        return Queues(self.options.queues, self.options.queues)

    def programs(self) -> Mapping[str, str]:
        return {_PROGRAM: "apt-get install --no-install-recommends dpdk-dev"}

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        host, own = require_user_space(testbed, self.kind), self.options
        self._cores = dut_cores(testbed, own.cores, self.kind, share_cpus=own.share_cpus)
        self._testbed = testbed
        await require_programs(host, self.programs())
        prefix = file_prefix(changes.run_id)
        self._command = command_line(self.options, testbed, self._cores, prefix)
        await prepare(changes, host, self.options, testbed, prefix)
        self._process = await DutProcess.start(host, changes, self._command, self.kind, self.options.environment)
        await self._ask("show config fwd", within_s=_START_S)
        await self._ask("start")
        self._streams = output.list_streams(await self._ask("show config fwd"))
        self._rings = output.rings(await self._ask("show config rxtx"))
        self._version = output.version(self._process.stderr)

    def addressing(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        return address_ways(testbed, ip, paired_ways(testbed), card_macs(testbed))

    def cpus(self, testbed: Testbed) -> tuple[int, ...]:
        return ()  # it polls all the time, and its own time would count as another program's

    async def waiting_ns(self) -> int | None:
        if self._cores is None or self._cores.take_turns:
            return None  # cores that take turns wait for one another
        return await super().waiting_ns()

    async def drops(self) -> dict[str, int]:
        return {} if self._process is None else output.count_drops(await self._statistics())

    async def queue_frames(self) -> tuple[tuple[int, ...], ...]:
        if self._process is None or self.options.queues == 1:
            return ()
        return output.queue_frames(await self._ask("show port xstats all"))

    async def overruns(self) -> dict[int, int]:
        return {} if self._process is None else output.count_overruns(await self._statistics())

    async def work(self) -> DutWork | None:
        if self._process is None or self._cores is None or not self.options.record_core_cycles:
            return None
        statistics = await self._statistics()
        return DutWork(
            source="testpmd --record-core-cycles",
            packets=statistics.packets or 0,
            tsc_cycles=statistics.cycles or 0,
            tsc_hz=statistics.tsc_hz,
            counts_empty_polls=False,
            core_clock_hz=await core_clock_hz(self._process.host, self._cores.workers[0]),
        )

    @asynccontextmanager
    async def as_sink(self) -> AsyncIterator[bool]:
        if self._process is None:
            yield False
            return
        await self._forward("rxonly")
        try:
            yield True
        finally:
            await self._forward(self.options.forward_mode)

    def disclosure(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "name": f"testpmd {self.options.forward_mode}",
            "version": self._version,
            "settings_in_effect": self._settings(),
            "command": list(self._command),
            "port_queue_core_map": list(self._streams),
            "environment": dict(self.options.environment),
            "patch": "none",
            "statistics": "asked for between trials, on its command line",
        }

    def _settings(self) -> dict[str, Any]:
        """The settings in effect; the lengths of rings as testpmd gave them back."""
        if self._testbed is None or self._cores is None:
            return {}
        own = self.options
        return {
            **disclose_settings(own, self._testbed, self._cores, self.queues()),
            **({} if self._rings is None else asdict(self._rings)),
            "burst": own.burst,
            "mbuf_cache": own.mbuf_cache,
            "total_mbufs": total_mbufs(own, len(self._testbed.dut_ports)),
        }

    async def _forward(self, mode: str) -> None:
        for command in ("stop", f"set fwd {mode}", "start"):
            await self._ask(command)

    async def _statistics(self) -> output.ForwardStatistics:
        return output.forward_statistics(await self._ask("show fwd stats all"))

    async def _ask(self, command: str, within_s: float = _ANSWER_S) -> list[str]:
        """The lines that it prints after a command, up to the echo of a comment that is sent after the command."""
        if self._process is None:
            raise HostError("testpmd is not running")
        self._commands_sent += 1
        mark = f"# nicbench {self._commands_sent}."
        await self._process.write_line(command)
        await self._process.write_line(mark)
        lines = await self._process.wait_for(lambda line: mark in line, within_s, f"answer `{command}`")
        refused = output.refusal(lines)
        if refused is not None:
            raise HostError(f"testpmd refused `{command}`: {refused}")
        return lines


def total_mbufs(options: TestpmdOptions, ports: int) -> int:
    """The buffers of the pool that all ports share."""
    of_queue = options.receive_descriptors + options.transmit_descriptors + options.burst
    held = ports * options.queues * of_queue + (options.cores + 1) * options.mbuf_cache
    return options.total_mbufs or max(_FEWEST_MBUFS, held)


def command_line(options: TestpmdOptions, testbed: Testbed, cores: DutCores, prefix: str) -> tuple[str, ...]:
    """The command line of testpmd; `stdbuf` makes it write whole lines at once, though its output is a pipe."""
    return (
        *options.scheduling.prefix(),
        "stdbuf",
        "-oL",
        _PROGRAM,
        *eal_arguments(options, testbed, prefix, main_cpu=cores.main, worker_cpus=cores.workers),
        "--no-telemetry",
        "--",
        "--interactive",
        f"--forward-mode={options.forward_mode}",
        f"--port-topology={'loop' if returns_frames(testbed) else 'paired'}",
        f"--nb-cores={options.cores}",
        f"--rxq={options.queues}",
        f"--txq={options.queues}",
        *((f"--rss-{options.rss}",) if options.queues > 1 else ()),
        f"--rxd={options.receive_descriptors}",
        f"--txd={options.transmit_descriptors}",
        f"--burst={options.burst}",
        f"--mbcache={options.mbuf_cache}",
        f"--total-num-mbufs={total_mbufs(options, len(testbed.dut_ports))}",
        *(f"--eth-peer={number},{port.mac}" for number, port in enumerate(testbed.tester_ports) if port.mac),
        *(("--record-core-cycles",) if options.record_core_cycles else ()),
        "--no-lsc-interrupt",
        "--disable-link-check",  # the tester connects later, and testpmd would wait 9 s for it
    )
