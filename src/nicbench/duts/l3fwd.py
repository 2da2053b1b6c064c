"""DPDK's example router as a second process (`l3fwd`): longest prefix match between the test networks.

It is built once by ``nicbench doctor --build l3fwd`` (`_l3fwd_build.py` says from what, and the one line that differs).
Its counters are asked for over DPDK's telemetry socket, between trials. It keeps no record of cycles.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from nicbench.duts import _l3fwd_build as builder
from nicbench.duts._dpdk_options import DpdkOptions, common_arguments, file_prefix
from nicbench.duts._dpdk_process import prepare
from nicbench.duts._dpdk_telemetry import ask, port_statistics, socket_path
from nicbench.duts._l3fwd_rules import Entry, checked_map, config_argument, default_map, rules
from nicbench.duts._memif_ports import MOST_PORTS, dut_cores, forwarded, goes_back, require_user_space
from nicbench.duts._process import DutProcess
from nicbench.duts._testpmd_output import version
from nicbench.duts._ways import ways_back, ways_between
from nicbench.duts.base import Addressing, FrameDut
from nicbench.errors import NotReadyError, UsageError
from nicbench.labs.base import Testbed
from nicbench.model.base import Frozen
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo import RemovePath

_START_S = 60.0
# It looks for its ports' links ten times a second, and goes on without them after 9 s.
_FORWARDING_S = 15.0


class L3fwdOptions(DpdkOptions):
    """``dut: {kind: l3fwd}``. The map has entries ``[port, queue, core]``; without it cores take ports in turn."""

    cores: int = Field(default=1, ge=1, le=128)
    port_queue_core_map: tuple[Entry, ...] | None = Field(default=None, min_length=1)


class L3fwd(FrameDut):
    """One process; it addresses what it forwards to the tester's ports."""

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

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        host = require_user_space(testbed, self.kind)
        if not host.shares_files:  # its program is built here, and its counters are asked for over a socket here
            raise UsageError(
                f"l3fwd runs on the machine that nicbench runs on, and {host.name} is another",
                place="dut",
                next_step="remove `on` from `lab`, or use `dut: {kind: testpmd}`",
            )
        cores = dut_cores(testbed, self.options.cores, self.kind)
        self._build = builder.built()
        if self._build is None:
            raise NotReadyError("l3fwd is not built", place=str(builder.program()), next_step=builder.BUILD_COMMAND)
        self._ports = len(testbed.dut_ports)
        prefix = file_prefix(changes.run_id)
        folder = f"/run/{prefix}"
        await changes.make(host, RemovePath(path=folder), lambda: _run(host.run, ("mkdir", "-m", "700", folder)))
        self._rules = {f"{folder}/ipv{ip}.cfg": rules(ip, self._ports) for ip in (4, 6)}
        for path, text in self._rules.items():
            await host.write_file(path, text)
        self._command = command_line(self.options, testbed, cores.workers, prefix, folder)
        self._telemetry = socket_path(prefix)
        await prepare(changes, host, self.options, testbed, prefix)
        self._process = await DutProcess.start(host, changes, self._command, self.kind, self.options.environment)
        # What it says last before it looks for links. It goes on when the tester has connected.
        last = f"Port {self._ports - 1}: softly parse"
        await self._process.wait_for(lambda line: line.startswith(last), _START_S, "open its ports")
        self._version = version(self._process.stderr)

    def addressing(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        macs = [port.mac for port in testbed.dut_ports]
        if any(mac is None for mac in macs):
            raise UsageError("the MAC addresses of l3fwd's ports are not known", place="dut")
        ways = ways_back(len(macs)) if goes_back(testbed) else ways_between(len(macs))
        return forwarded(testbed, ip, ways, tuple(str(mac) for mac in macs))

    def cpus(self, testbed: Testbed) -> tuple[int, ...]:
        return ()  # it polls there: its own time would count as another program's

    async def begin_trial(self, number: int) -> None:
        if self._process is not None and not self._is_forwarding:
            last = f"Port {self._ports - 1} Link"
            await self._process.wait_for(lambda line: line.startswith(last), _FORWARDING_S, "begin to forward")
            self._is_forwarding = True

    async def waiting_ns(self) -> int | None:
        return None if self._process is None else await self._process.waiting_ns()

    async def failure(self) -> str | None:
        return None if self._process is None else await self._process.failure()

    async def drops(self) -> dict[str, int]:
        """What it received and neither counts as sent nor as missed it threw away: no route, or a full ring."""
        if self._process is None or not self._is_forwarding:
            return {}
        ports = [port_statistics(await ask(self._telemetry, f"/ethdev/stats,{port}")) for port in range(self._ports)]
        received, sent = (sum(port.get(name, 0) for port in ports) for name in ("ipackets", "opackets"))
        missed = {f"l3fwd d{number} {name}": port.get(name, 0) for number, port in enumerate(ports) for name in _MISSED}
        return {"l3fwd received and not sent": max(0, received - sent), **missed}

    def disclosure(self) -> dict[str, Any]:
        build = self._build
        return {
            "kind": self.kind,
            "name": "DPDK's l3fwd",
            "version": self._version,
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
    """The whole command. Every lcore forwards, the main one too; telemetry stays on for its counters."""
    ports, cores = len(testbed.dut_ports), len(workers)
    entries = options.port_queue_core_map or default_map(ports, cores)
    return (
        *options.scheduling.prefix(),
        "stdbuf",
        "-oL",
        str(builder.program()),
        f"--lcores={','.join(f'{number}@{cpu}' for number, cpu in enumerate(workers))}",
        "-m",
        str(max(1, options.memory // 2**20)),
        f"--file-prefix={prefix}",
        *common_arguments(options, testbed),
        "--",
        "-P",
        "-p",
        hex((1 << ports) - 1),
        f"--config={config_argument(checked_map(entries, ports, cores))}",
        "--lookup=lpm",
        f"--rule_ipv4={folder}/ipv4.cfg",
        f"--rule_ipv6={folder}/ipv6.cfg",
        "--parse-ptype",
        *(f"--eth-dest={number},{port.mac}" for number, port in enumerate(testbed.tester_ports) if port.mac),
    )


async def _run(run: Any, command: tuple[str, ...]) -> None:
    await run(command)
