"""Our own forwarder as a second process (`reflector`): as fast as possible, or with seeded faults.

It is the golden DUT in user space: the tester must report exactly the faults that it injects (delay, jitter, loss,
duplication, reordering, corruption, a limited rate). Its protocol is in protocol/reflect.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, model_validator

from nicbench.core.base import Frozen
from nicbench.core.described import Unit, Words
from nicbench.core.errors import HostError
from nicbench.core.machine import DutWork
from nicbench.core.pattern import Pattern
from nicbench.core.quantity import FramesPerSecond, Ratio, Seconds
from nicbench.core.units import format_rate
from nicbench.engine.binaries import deploy_binary
from nicbench.testbed.duts._dpdk import (
    MOST_PORTS,
    DpdkOptions,
    DutCores,
    address_ways,
    card_macs,
    dut_cores,
    paired_ways,
    refuse_other_than_pairs,
    require_user_space,
)
from nicbench.testbed.duts._process import DutProcess
from nicbench.testbed.duts.base import Addressing, FrameDut, Refusal
from nicbench.testbed.labs.base import DutPort, Testbed
from nicbench.tuning.changes import Changes
from nicbench.tuning.preparation import raise_huge_pages

SOURCE = "reflector: turns of its loop that moved a frame"
# The names in its events of what happens to a frame that it does not send on.
_DROPS = ("lost", "dropped_rate", "dropped_held_full", "dropped_at_end")


def parse_event(line: str) -> dict[str, Any]:
    """The event in a line; any other line, as a library may print it, is an event without a name."""
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def drops(stats: Mapping[str, Any]) -> dict[str, int]:
    """Frames that it did not send on, by direction and reason; some of them on purpose, as faults."""
    return {
        f"reflector d{way['from_port']} to d{way['to_port']} {name}": way[name]
        for way in stats["directions"]
        for name in _DROPS
    }


def count_overruns(stats: Mapping[str, Any]) -> dict[int, int]:
    """Frames that the ring towards the tester refused, by port."""
    refused: dict[int, int] = {}
    for way in stats["directions"]:
        refused[way["to_port"]] = refused.get(way["to_port"], 0) + way["dropped_transmit_full"]
    return refused


def work(stats: Mapping[str, Any]) -> DutWork:
    """Its cycles in turns that moved a frame, with the last probed clock of the core."""
    clock = stats.get("core_clock_hz")
    return DutWork(
        source=SOURCE,
        packets=sum(way["received"] for way in stats["directions"]),
        tsc_cycles=stats["busy_tsc_cycles"],
        tsc_hz=stats.get("tsc_hz"),
        counts_empty_polls=False,
        core_clock_hz=() if clock is None else (clock,),
    )


def failure_text(event: Mapping[str, Any]) -> str:
    """The message of an event ``failed``."""
    error = event.get("error") or {}
    text = str(error.get("message", "without a word"))
    return f"{text}; {error['next']}" if error.get("next") else text


_PROGRAM = "nicbench-packets"
MOST_HELD_FRAMES: Final = 12_000
_START_S = 60.0
_ANSWER_S = 10.0
_Delay = Annotated[Seconds, Field(le=1.0)]


class Faults(Frozen):
    """``faults: {loss: 1 %, delay: 20 us}``: a frame has at most one; delay, jitter and rate are for all frames."""

    seed: int = Field(default=1, ge=0, le=2**62)
    """The seed of the faults."""
    delay: _Delay = 0.0
    """Delay of every frame."""
    jitter: _Delay = 0.0
    """Variation of that delay."""
    loss: Ratio = 0.0
    """Share of the frames that is lost."""
    duplicate: Ratio = 0.0
    """Share of the frames that is sent twice."""
    reorder: Ratio = 0.0
    """Share of the frames that is reordered."""
    reorder_by: int = Field(default=1, ge=1, le=1024)
    """How far a reordered frame moves, in frames."""
    corrupt_payload: Ratio = 0.0
    """Share of the frames whose payload is altered."""
    corrupt_signature: Ratio = 0.0
    """Share of the frames whose signature is altered."""
    corrupt_length: Ratio = 0.0
    """Share of the frames whose length is altered."""
    rate: Annotated[FramesPerSecond, Field(ge=1, le=1e9)] | None = None
    """The most frames per second that pass; without it the rate is not limited."""
    rate_burst: int = Field(default=32, ge=1, le=1_000_000)
    """The bucket of `rate`, in frames, if it is a token bucket."""
    rate_queue: int | None = Field(default=None, ge=1, le=11_999)
    """`rate` is the rate of a server for which up to this number of frames wait; without it, of a token bucket."""
    outage: _Delay = 0.0
    """After a frame that came faster than `rate`, all frames are dropped for so long."""
    held_frames: int = Field(default=4096, ge=1, le=MOST_HELD_FRAMES)
    """The most frames that are delayed at a time."""

    @model_validator(mode="after")
    def _check_shares(self) -> Self:
        fates = (self.loss, self.duplicate, self.reorder, self.corrupt_payload, self.corrupt_signature)
        if sum(fates) + self.corrupt_length > 1.0 + 1e-9:
            raise ValueError("the shares of the faults are more than 100 % together; a frame has at most one fault")
        if self.rate is None and (self.rate_queue is not None or self.outage):
            raise ValueError("`rate_queue` and `outage` need a `rate`")
        if self.rate_queue is not None and self.rate_queue >= self.held_frames:
            raise ValueError("`rate_queue` must be less than `held_frames`: frames in that queue are held as well")
        self._check_held()
        return self

    def _check_held(self) -> None:
        """Raises ValueError where more frames are delayed at `rate` than are held, so that `rate` never passes."""
        longest_s = self.delay + self.jitter
        needed = math.ceil((self.rate or 0.0) * longest_s)
        if needed <= self.held_frames:
            return
        lower = "lower `rate` or `delay`"
        next_step = f"write `held_frames: {needed}`, or {lower}" if needed <= MOST_HELD_FRAMES else lower
        raise ValueError(
            f"of the frames that wait for `delay` and `jitter` only {self.held_frames} (`held_frames`) are held, which "
            f"passes at most {format_rate(self.held_frames / longest_s)}, less than `rate`: {next_step}"
        )

    @property
    def spoil_frames(self) -> bool:
        """Whether frames are lost or corrupted at any load."""
        return self.loss + self.corrupt_payload + self.corrupt_signature + self.corrupt_length > 0.0

    def protocol(self) -> dict[str, Any]:
        """The faults as in protocol/reflect.md; empty without faults, so that its loop only forwards."""
        if self == Faults(seed=self.seed):
            return {}
        values = self.model_dump(exclude={"delay", "jitter", "rate", "rate_burst", "rate_queue", "outage"})
        return {
            **values,
            "delay_ns": round(self.delay * 1e9),
            "jitter_ns": round(self.jitter * 1e9),
            "rate_frames_per_s": self.rate,
            "rate_burst_frames": self.rate_burst,
            "rate_queue_frames": self.rate_queue,
            "outage_ns": round(self.outage * 1e9),
        }


class ReflectorOptions(DpdkOptions):
    """``dut: {kind: reflector, faults: {loss: 1 %}}``."""

    mode: Annotated[Literal["forward", "mac_swap"], Words((("mac_swap", "MAC addresses swapped"),))] = "mac_swap"
    """`mac_swap`: MAC addresses are swapped. `forward`: frames are sent as they came."""
    burst: Annotated[int, Unit.FRAMES] = Field(default=32, ge=1, le=64)
    """Frames taken at once."""
    when_full: Literal["drop", "wait"] = "drop"
    """Frames that a full ring refuses: `drop` drops them, `wait` offers them again."""
    faults: Faults = Faults()
    """Known faults that it adds."""


class Reflector(FrameDut):
    """One reflector process on one core."""

    kind = "reflector"
    Options = ReflectorOptions
    port_kind = "memif"
    takes_cards = True
    takes_interfaces = True
    most_ports = MOST_PORTS
    returns_on_same_port = True
    options: ReflectorOptions

    def __init__(self, options: Frozen) -> None:
        super().__init__(options)
        self._command: tuple[str, ...] = ()
        self._configuration: dict[str, Any] = {}
        self._started: dict[str, Any] = {}

    def known_rate_frames_per_s(self, trial_s: float) -> float | None:
        faults = self.options.faults
        if faults.rate is None or faults.rate_queue is not None or faults.spoil_frames:
            return None
        return faults.rate + faults.rate_burst / trial_s

    def refusal(self, ports: int, pattern: Pattern) -> Refusal | None:
        return refuse_other_than_pairs(self.kind, ports, pattern)

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        host = require_user_space(testbed, self.kind, takes_interfaces=True)
        cores = dut_cores(testbed, 1, self.kind)
        if self.options.huge_pages:
            await raise_huge_pages(changes, host, self.options.memory + testbed.promised_bytes, "dut.huge_pages")
        self._configuration = configuration(self.options, testbed, cores)
        self._command = (*self.options.scheduling.prefix(), await deploy_binary(host, _PROGRAM), "reflect")
        self._process = await DutProcess.start(
            host, changes, self._command, self.kind, self.options.environment, last_line='{"command": "close"}'
        )
        await self._process.write_line(json.dumps(self._configuration))
        self._started = await self._event("forwarding", _START_S)

    def addressing(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        return address_ways(testbed, ip, paired_ways(testbed), card_macs(testbed))

    def cpus(self, testbed: Testbed) -> tuple[int, ...]:
        return ()  # it polls all the time, and its own time would count as another program's

    async def begin_trial(self, number: int) -> None:
        """Restarts the random sequences, so that a repeated or resumed trial has the same faults."""
        if self._process is not None:
            await self._ask(command="trial", trial=number)

    async def statistics(self) -> dict[str, Any]:
        """What it has done to frames since it was started (protocol/reflect.md, `stats`)."""
        return await self._ask(command="stats")

    async def drops(self) -> dict[str, int]:
        return {} if self._process is None else drops(await self.statistics())

    async def overruns(self) -> dict[int, int]:
        return {} if self._process is None else count_overruns(await self.statistics())

    async def work(self) -> DutWork | None:
        if self._process is None:
            return None
        return work(await self._ask(command="stats", probe_core_clock=True))

    def disclosure(self) -> dict[str, Any]:
        faulty = bool(self._configuration.get("faults"))
        return {
            "kind": self.kind,
            "name": "reference forwarder with faults" if faulty else "reference forwarder",
            "version": f"nicbench-packets, DPDK drivers {', '.join(self._drivers())}" if self._started else None,
            "command": list(self._command),
            "eal_arguments": self._started.get("eal_arguments"),
            "configuration": {
                name: value for name, value in self._configuration.items() if name not in ("ports", "eal")
            },
            "environment": dict(self.options.environment),
            "patch": "none",
        }

    def _drivers(self) -> list[str]:
        return sorted({str(port.get("driver")) for port in self._started.get("ports", ())})

    async def _ask(self, **command: Any) -> dict[str, Any]:
        if self._process is None:
            raise HostError("the reflector is not running")
        await self._process.write_line(json.dumps(command))
        return await self._event("stats", _ANSWER_S)

    async def _event(self, name: str, within_s: float) -> dict[str, Any]:
        """The next event of this name; HostError where an event ``failed`` comes instead."""
        if self._process is None:
            raise HostError("the reflector is not running")

        def is_answer(line: str) -> bool:
            return parse_event(line).get("event") in (name, "failed")

        event = parse_event((await self._process.wait_for(is_answer, within_s, f"give its event `{name}`"))[-1])
        if event["event"] == "failed":
            raise HostError(f"the reflector refused: {failure_text(event)}", place="dut")
        return event


def configuration(options: ReflectorOptions, testbed: Testbed, cores: DutCores) -> dict[str, Any]:
    """The first line that it reads (protocol/reflect.md)."""
    return {
        "worker_cpu": cores.workers[0],
        "huge_pages": options.huge_pages,
        "memory_mib": max(1, options.memory // 2**20),
        "eal": list(options.eal),
        "ports": [_engine_port(options, port) for port in testbed.dut_ports],
        "same_port": testbed.same_port,
        "mode": options.mode,
        "burst": options.burst,
        "when_full": options.when_full,
        "faults": options.faults.protocol(),
    }


def _engine_port(options: ReflectorOptions, port: DutPort) -> dict[str, Any]:
    """The port as in the protocol's ``configure``: a card, a ring in memory, or a kernel interface by AF_XDP."""
    if port.address is not None:
        return {"name": port.name, "kind": "pci", "address": port.address, "devargs": options.devargs}
    if port.vdev is not None:
        devargs = f",{options.devargs}" if options.devargs else ""
        return {"name": port.name, "kind": "vdev", "vdev": f"{port.vdev}{devargs}", "lossless": True}
    return {"name": port.name, "kind": "af_xdp", "device": port.device, "queue": 0, "xdp_program": None}
