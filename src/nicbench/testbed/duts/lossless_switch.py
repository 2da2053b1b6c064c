"""A switch with PFC in user space (`lossless-switch`): queues, head room and watchdog of known size, for real frames.

It is the golden DUT of tests of pause frames: it obeys PFC (IEEE 802.1Q clause 36) and PAUSE frames (IEEE 802.3 annex
31B) at its outputs, sends them at its inputs when a lossless class fills, and has a watchdog as SONiC's switches. It is
a process of Python (`_lossless_switch.py`) on raw sockets: some ten thousand frames per second.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, model_validator

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError
from nicbench.core.headers import MOST_QUANTA, pause_seconds
from nicbench.core.quantity import BitsPerSecond, Bytes, Seconds
from nicbench.testbed.addressing import transparent_addressing
from nicbench.testbed.duts._kernel import dut_devices, require_host
from nicbench.testbed.duts._process import DutProcess, require_programs
from nicbench.testbed.duts.base import Addressing, FrameDut
from nicbench.testbed.labs.base import Testbed
from nicbench.tuning.changes import Changes

_PROGRAM: Final = Path(__file__).with_name("_lossless_switch.py")
_START_S: Final = 10.0
_ANSWER_S: Final = 10.0
_LATE_NS: Final = 2_000_000
"""So late the process may be woken without its line losing time."""
_NANOSECONDS: Final = 1e9
_REASONS: Final = {"full": "queue full", "watchdog": "dropped by the watchdog", "send_failed": "not sent"}


class Watchdog(Frozen):
    """What ends a storm of pause frames, as the PFC watchdog of SONiC."""

    detect: Annotated[Seconds, Field(ge=0.001, le=60.0)] = 0.2
    """A lossless queue that was paused for so long, with frames that wait, is in a storm."""
    restore: Annotated[Seconds, Field(ge=0.001, le=60.0)] = 0.2
    """The storm is over when no pause frame came for so long."""
    action: Literal["drop", "forward"] = "drop"
    """Meanwhile frames of the class are dropped, those that wait too; or sent in spite of the pause."""


class LosslessSwitchOptions(Frozen):
    """``dut: {kind: lossless-switch, xoff: 20 kB, head_room: 10 kB}``."""

    rate: Annotated[BitsPerSecond, Field(ge=1e6, le=1e9)] = 1e8
    """The rate of each port on the line, with preamble, gap and FCS; pause times are of this link."""
    lossless: tuple[Annotated[int, Field(ge=0, le=7)], ...] = Field(default=(3, 4), min_length=1)
    """The lossless classes. A frame's class is its DSCP divided by eight."""
    xoff: Annotated[Bytes, Field(ge=64, le=2**30)] = 20_000
    """A lossless queue with more bytes pauses the neighbour at the input."""
    xon: Annotated[Bytes, Field(ge=0, le=2**30)] = 10_000
    """The bytes in the queue at which it lets the neighbour go on."""
    head_room: Annotated[Bytes, Field(ge=0, le=2**30)] = 10_000
    """What a lossless queue takes beyond `xoff`."""
    buffer: Annotated[Bytes, Field(ge=64, le=2**30)] = 100_000
    """What the queue of any other class takes."""
    whole_link: bool = False
    """It sends PAUSE frames in place of PFC frames."""
    watchdog: Watchdog | None = None
    """Ends storms of pause frames; without it none ends before the frames do."""
    obeys: bool = True
    """`false`: a fault, for tests: pause frames hold nothing back."""

    @model_validator(mode="after")
    def _lets_go_on_before_it_pauses(self) -> Self:
        if self.xon >= self.xoff:
            raise ValueError("`xon` must be below `xoff`: the neighbour goes on when the queue is shorter than that")
        return self

    def settings(self, ports: tuple[tuple[str, str], ...]) -> dict[str, Any]:
        """Returns what the process reads: bytes, bits per second, nanoseconds."""
        watchdog = self.watchdog
        return {
            "ports": ports,
            "rate": round(self.rate),
            **self.model_dump(include={"lossless", "xoff", "xon", "head_room", "buffer", "whole_link", "obeys"}),
            "late_ns": _LATE_NS,
            "refresh_ns": round(pause_seconds(MOST_QUANTA, self.rate) * _NANOSECONDS / 2.0),
            "watchdog": watchdog
            and {
                "detect_ns": round(watchdog.detect * _NANOSECONDS),
                "restore_ns": round(watchdog.restore * _NANOSECONDS),
                "action": watchdog.action,
            },
        }


class LosslessSwitch(FrameDut):
    """One process that forwards between two ports."""

    kind = "lossless-switch"
    Options = LosslessSwitchOptions
    fewest_ports = 2
    options: LosslessSwitchOptions

    def programs(self) -> Mapping[str, str]:
        return {"python3": "apt-get install python3 on the DUT's host"}

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        host = require_host(testbed, self.kind)
        devices = await dut_devices(testbed, self.kind)
        await require_programs(host, self.programs())
        command = ("python3", "-c", _PROGRAM.read_text())
        self._process = await DutProcess.start(host, changes, command, self.kind)
        ports = tuple(zip(devices.names, devices.macs, strict=True))
        settings = {**self.options.settings(ports), "cpus": list(testbed.cores.dut)}
        await self._process.write_line(json.dumps(settings))
        await self._process.wait_for(lambda line: line == "forwarding", _START_S, "begin to forward")

    def addressing(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        return transparent_addressing(testbed, ip)

    def cpus(self, testbed: Testbed) -> tuple[int, ...]:
        return ()  # its own time would count as another program's

    async def statistics(self) -> dict[str, dict[str, int]]:
        """Its counters by interface, since it was started."""
        if self._process is None:
            return {}
        await self._process.write_line("stats")
        lines = await self._process.wait_for(lambda line: line.startswith("{"), _ANSWER_S, "answer")
        try:
            found: dict[str, dict[str, int]] = json.loads(lines[-1])
        except ValueError as error:
            where = self._process.host.name
            raise HostError(f"the DUT {self.kind} answered no counters: {error}", place=where) from error
        return found

    async def drops(self) -> dict[str, int]:
        return {
            f"{self.kind} {device} {words}": counts[name]
            for device, counts in (await self.statistics()).items()
            for name, words in _REASONS.items()
        }

    def disclosure(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            **self.options.model_dump(exclude={"obeys"}),
            "faults": [] if self.options.obeys else ["pause frames hold nothing back"],
            "program": f"{_PROGRAM.name}, raw sockets, Python of the DUT's host",
            "classes": "DSCP divided by eight",
        }
