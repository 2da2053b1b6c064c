"""A lab of computation (`simulated`): ports of the engine's own, joined by a DUT with seeded faults. Needs no root.

Time advances by computation, so that a run with the same seed gives the same results, on any machine.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any, ClassVar, Final, Self

from pydantic import Field, model_validator

from nicbench.hosts.base import Host
from nicbench.labs._veth_names import dut_ipv4, dut_ipv6, mac
from nicbench.labs.base import CoreMap, DutPort, FrameLab, Testbed, TesterPort
from nicbench.model.base import Frozen
from nicbench.model.quantity import BitsPerSecond, FramesPerSecond, Ratio, Seconds
from nicbench.tuning.changes import Changes

_STATEMENTS = ("Everything here is simulated: no frame was sent, and no machine or card was measured.",)

LARGEST_QUEUE_FRAMES: Final = 2**32 - 1
"""As many as the protocol can say; what the engine can hold is less and is up to it."""

# The bounds of the engine: what it would refuse is refused in the bench file, with its place.
_Rate = Annotated[FramesPerSecond, Field(ge=1e-3, le=1e9)]
_Delay = Annotated[Seconds, Field(le=3600.0)]


class SimulatedOptions(Frozen):
    """``lab: {kind: simulated, capacity: 500 kpps, queue_frames: 100}``.

    What the DUT does to frames on the way, in each direction (protocol/README.md, ``dut``): its capacity and queue, its
    delays, the probabilities of each fault, frames of others; what leaves by each of its ports, of all that comes for
    it (``egress_capacity``); and what the tester suffers: a ceiling, pauses.
    """

    ports: int = Field(default=2, ge=1, le=64)
    link: BitsPerSecond = Field(default=10e9, ge=1e3, le=1e13)
    capacity: _Rate | None = None
    queue_frames: int = Field(default=256, ge=0, le=LARGEST_QUEUE_FRAMES)
    egress_capacity: _Rate | None = None
    egress_queue_frames: int = Field(default=256, ge=0, le=LARGEST_QUEUE_FRAMES)
    delay: _Delay = 0.0
    jitter: _Delay = 0.0
    loss: Ratio = 0.0
    duplicate: Ratio = 0.0
    reorder: Ratio = 0.0
    corrupt: Ratio = 0.0
    swap: int = Field(default=1, ge=1, le=LARGEST_QUEUE_FRAMES)
    foreign: FramesPerSecond = Field(default=0.0, le=1e9)
    tester_ceiling: _Rate | None = None
    pause_every: Annotated[Seconds, Field(ge=1e-6, le=86_400.0)] | None = None
    pause: _Delay = 0.0
    dead: bool = False
    card_clock_ppm: float | None = Field(default=None, ge=-1000.0, le=1000.0)
    """How much faster the clocks of the ports' cards are than they say; None: the cards have none."""
    seed: int = Field(default=1, ge=0, le=2**62)

    @model_validator(mode="after")
    def _a_frame_has_one_fate(self) -> Self:
        if self.loss + self.duplicate + self.reorder + self.corrupt > 1.0 + 1e-9:
            raise ValueError("loss, duplicate, reorder and corrupt are more than 100 % together; a frame has one fate")
        return self


class SimulatedLab(FrameLab):
    """Of two ports, port 0 sends to port 1 and back; of more, each to the one whose MAC address a frame names."""

    kind = "simulated"
    Options = SimulatedOptions
    touches_machine = False
    port_kind = "simulated"
    largest_frame_bytes = 9018  # as the engine's simulated ports are
    has_sink = False
    has_cable = False
    options: SimulatedOptions

    time_stamp_advice: ClassVar[dict[str, str]] = {
        "card": "write `card_clock_ppm: 0` (or another deviation) under `lab`, or `timestamps: tsc` under `tester`"
    }

    def time_stamps(self, driver: str) -> frozenset[str]:
        return frozenset({"card"} if self.options.card_clock_ppm is not None else ())

    async def up(self, changes: Changes, local: Host) -> Testbed:
        return Testbed(
            tester=local,
            dut=None,
            tester_ports=tuple(self._tester_port(index) for index in range(self.options.ports)),
            dut_ports=tuple(
                DutPort(name=f"d{index}", mac=mac(1, index), ipv4=dut_ipv4(index), ipv6=dut_ipv6(index))
                for index in range(self.options.ports)
            ),
            cores=CoreMap(worker=None, dut=(), housekeeping=(), shared=False),
            link_bits_per_s=self.options.link,
            link_is_nominal=True,
            simulated=True,
            statements=_STATEMENTS,
            facts={"lab": self.kind, **self.options.model_dump()},
        )

    @asynccontextmanager
    async def without_dut(self, testbed: Testbed, changes: Changes) -> AsyncIterator[bool]:
        yield False  # the engine's ports are joined for good

    @asynccontextmanager
    async def cable(self, testbed: Testbed, changes: Changes) -> AsyncIterator[bool]:
        yield False

    def _tester_port(self, index: int) -> TesterPort:
        name = f"t{index}"
        engine = {
            "name": name,
            "kind": "simulated",
            "link_bits_per_s": self.options.link,
            "mac": mac(0, index),
            # Where a frame comes out that names no port of ours.
            "sends_to": min(index ^ 1, self.options.ports - 1),
            "dut": protocol_dut(self.options, index),
            "egress": {
                "capacity_frames_per_s": self.options.egress_capacity,
                "queue_frames": self.options.egress_queue_frames,
            },
        }
        if self.options.card_clock_ppm is not None:
            # Two cards were not switched on at the same moment.
            engine["card_clock"] = {"ppm": self.options.card_clock_ppm, "offset": (index + 1) * 10**15}
        return TesterPort(name=name, engine=engine, mac=mac(0, index))


def protocol_dut(options: SimulatedOptions, index: int) -> dict[str, Any]:
    """The protocol's ``dut``. Each direction draws from a seed of its own, or both would lose the same frames."""
    return {
        "capacity_frames_per_s": options.capacity,
        "queue_frames": options.queue_frames,
        "delay_ns": round(options.delay * 1e9),
        "jitter_ns": round(options.jitter * 1e9),
        "loss": options.loss,
        "duplicate": options.duplicate,
        "reorder": options.reorder,
        "corrupt": options.corrupt,
        "swap": options.swap,
        "foreign_frames_per_s": options.foreign,
        "tester_ceiling_frames_per_s": options.tester_ceiling,
        "pause_every_s": options.pause_every,
        "pause_ns": round(options.pause * 1e9),
        "dead": options.dead,
        "seed": (max(2, options.ports) * options.seed + index) % 2**64,
    }
