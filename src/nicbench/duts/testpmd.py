"""DPDK's own forwarder, dpdk-testpmd, as a second process (`testpmd`): io, mac, macswap, csum or 5tswap.

It is started with an interactive command line on pipes: statistics are asked for between trials, and at the end of its
input it ends, so that nothing outlives the controller. ``--record-core-cycles`` gives the cycles of the time-stamp
counter that it spent on packets; polls that found nothing are not among them (DPDK 22.11).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

from pydantic import Field

from nicbench.duts import _testpmd_output as output
from nicbench.duts._core_clock import core_clock_hz
from nicbench.duts._dpdk_options import DpdkOptions, eal_arguments, file_prefix
from nicbench.duts._dpdk_process import prepare
from nicbench.duts._memif_ports import (
    MOST_PORTS,
    DutCores,
    card_macs,
    dut_cores,
    forwarded,
    goes_back,
    in_pairs,
    pairs_only,
    require_user_space,
)
from nicbench.duts._process import DutProcess, require_program
from nicbench.duts.base import Addressing, FrameDut, Refusal
from nicbench.errors import HostError
from nicbench.labs.base import Testbed
from nicbench.model.base import Frozen
from nicbench.model.pattern import Pattern
from nicbench.model.trial import DutWork
from nicbench.tuning.changes import Changes

_PROGRAM = "dpdk-testpmd"
_START_S = 60.0  # huge pages are zeroed one by one
_ANSWER_S = 10.0


class TestpmdOptions(DpdkOptions):
    """``dut: {kind: testpmd, forward_mode: macswap}``; defaults are testpmd's own but for ``total_mbufs``."""

    __test__ = False  # not a test class for pytest

    forward_mode: Literal["io", "mac", "macswap", "csum", "5tswap"] = "macswap"
    cores: int = Field(default=1, ge=1, le=128)
    receive_descriptors: int = Field(default=1024, ge=32, le=32_768)
    transmit_descriptors: int = Field(default=1024, ge=32, le=32_768)
    burst: int = Field(default=32, ge=1, le=512)
    mbuf_cache: int = Field(default=250, ge=0, le=512)
    total_mbufs: int = Field(default=16_384, ge=1024, le=1_000_000)
    record_core_cycles: bool = True


class Testpmd(FrameDut):
    """One process; the lab's ports are its ports."""

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
        self._process: DutProcess | None = None
        self._cores: DutCores | None = None
        self._command: tuple[str, ...] = ()
        self._streams: tuple[str, ...] = ()
        self._version: str | None = None
        self._asked = 0

    def refusal(self, ports: int, pattern: Pattern) -> Refusal | None:
        return pairs_only(self.kind, ports, pattern)

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        host = require_user_space(testbed, self.kind)
        self._cores = dut_cores(testbed, self.options.cores, self.kind)
        await require_program(host, _PROGRAM, "apt-get install --no-install-recommends dpdk-dev")
        prefix = file_prefix(changes.run_id)
        self._command = command_line(self.options, testbed, self._cores, prefix)
        await prepare(changes, host, self.options, testbed, prefix)
        self._process = await DutProcess.start(host, changes, self._command, self.kind, self.options.environment)
        await self._ask("show config fwd", within_s=_START_S)
        await self._ask("start")
        self._streams = output.streams(await self._ask("show config fwd"))
        self._version = output.version(self._process.stderr)

    def addressing(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        return forwarded(testbed, ip, in_pairs(testbed), card_macs(testbed))

    def cpus(self, testbed: Testbed) -> tuple[int, ...]:
        return ()  # it polls there: its own time would count as another program's

    async def waiting_ns(self) -> int | None:
        return None if self._process is None else await self._process.waiting_ns()

    async def failure(self) -> str | None:
        return None if self._process is None else await self._process.failure()

    async def drops(self) -> dict[str, int]:
        return {} if self._process is None else output.dropped(await self._statistics())

    async def overruns(self) -> dict[int, int]:
        return {} if self._process is None else output.not_taken(await self._statistics())

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
            "command": list(self._command),
            "port_queue_core_map": list(self._streams),
            "environment": dict(self.options.environment),
            "patch": "none",
            "statistics": "asked for between trials, on its command line",
        }

    async def _forward(self, mode: str) -> None:
        for command in ("stop", f"set fwd {mode}", "start"):
            await self._ask(command)

    async def _statistics(self) -> output.ForwardStatistics:
        return output.forward_statistics(await self._ask("show fwd stats all"))

    async def _ask(self, command: str, within_s: float = _ANSWER_S) -> list[str]:
        """What it prints between the command and a comment after it, which its command line repeats."""
        if self._process is None:
            raise HostError("testpmd was not started")
        self._asked += 1
        mark = f"# nicbench {self._asked}."
        await self._process.write_line(command)
        await self._process.write_line(mark)
        lines = await self._process.wait_for(lambda line: mark in line, within_s, f"answer `{command}`")
        refused = output.refusal(lines)
        if refused is not None:
            raise HostError(f"testpmd refused `{command}`: {refused}")
        return lines


def command_line(options: TestpmdOptions, testbed: Testbed, cores: DutCores, prefix: str) -> tuple[str, ...]:
    """The whole command; `stdbuf` makes its lines come when they are complete, though its output is a pipe."""
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
        f"--port-topology={'loop' if goes_back(testbed) else 'paired'}",
        f"--nb-cores={options.cores}",
        f"--rxd={options.receive_descriptors}",
        f"--txd={options.transmit_descriptors}",
        f"--burst={options.burst}",
        f"--mbcache={options.mbuf_cache}",
        f"--total-num-mbufs={options.total_mbufs}",
        *(f"--eth-peer={number},{port.mac}" for number, port in enumerate(testbed.tester_ports) if port.mac),
        *(("--record-core-cycles",) if options.record_core_cycles else ()),
        "--no-lsc-interrupt",
        "--disable-link-check",  # the tester comes later; testpmd would wait 9 s for it
    )
