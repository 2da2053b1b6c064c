"""A simulated lab (`simulated`): ports inside the engine, joined by a simulated DUT with seeded faults. Needs no root.

Time advances by computation, so that a run with the same seed gives the same results, on any machine.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any, ClassVar, Final, Self

from pydantic import Field, model_validator

from nicbench.core.base import Frozen
from nicbench.core.quantity import BitsPerSecond, FramesPerSecond, Ratio, Seconds
from nicbench.hosts.base import Host
from nicbench.testbed.cores import CoreMap
from nicbench.testbed.labs.base import DutPort, FrameLab, SimulatedPower, Testbed, TesterPort
from nicbench.testbed.labs.veth import dut_ipv4, dut_ipv6, mac
from nicbench.tuning.changes import Changes

_STATEMENTS = ("Everything here is simulated: no frame was sent, and no machine or card was measured.",)

LARGEST_QUEUE_FRAMES: Final = 2**32 - 1
"""The largest number that the protocol can express; the engine itself may hold fewer."""

# The bounds of the engine: what it would refuse is refused when the bench file is read, with its position.
_Rate = Annotated[FramesPerSecond, Field(ge=1e-3, le=1e9)]
_Pause = Annotated[Seconds, Field(le=3600.0)]
_LONGEST_WAY_S: Final = 1000.0
"""A frame that is under way for longer may have the age of one that was for a moment: its signature has 40 bits."""


class SimulatedOptions(Frozen):
    """``lab: {kind: simulated, capacity: 500 kpps, queue_frames: 100}``.

    Options of the DUT in each direction (protocol/README.md, ``dut``) are its capacity and queue, its delays, the share
    of each fault, and foreign frames; ``egress_capacity`` limits each of its output ports. Options of the tester are a
    ceiling and pauses.
    """

    ports: int = Field(default=2, ge=1, le=64)
    """Number of ports. Of two, each sends to the other; of more, a frame arrives at the port whose MAC address it
    carries.
    """
    link: BitsPerSecond = Field(default=10e9, ge=1e3, le=1e13)
    """Speed of the ports."""
    capacity: _Rate | None = None
    """Frames per second that the DUT forwards from each port; without it, it forwards everything."""
    queue_frames: int = Field(default=256, ge=0, le=LARGEST_QUEUE_FRAMES)
    """Frames that may wait in the DUT at each port."""
    egress_capacity: _Rate | None = None
    """Frames per second that leave the DUT through each port; without it the rate is not limited."""
    egress_queue_frames: int = Field(default=256, ge=0, le=LARGEST_QUEUE_FRAMES)
    """Frames that may wait to leave through each port."""
    delay: Seconds = 0.0
    """Delay that the DUT adds to each frame: with `jitter` 1000 s at most."""
    jitter: Seconds = 0.0
    """Variation of that delay."""
    loss: Ratio = 0.0
    """Share of the frames that is lost."""
    duplicate: Ratio = 0.0
    """Share of the frames that is sent twice."""
    reorder: Ratio = 0.0
    """Share of the frames that is reordered."""
    corrupt: Ratio = 0.0
    """Share of the frames that is altered."""
    swap: int = Field(default=1, ge=1, le=LARGEST_QUEUE_FRAMES)
    """How far a reordered frame moves, in frames: behind as many as come after it, where those are fewer, or slower
    than 1 frame/s.
    """
    foreign: FramesPerSecond = Field(default=0.0, le=1e9)
    """Frames per second from somebody else that arrive."""
    tester_ceiling: _Rate | None = None
    """The most frames per second that the tester can send; without it the rate is not limited."""
    pause_every: Annotated[Seconds, Field(ge=1e-6, le=86_400.0)] | None = None
    """How often the tester is held up; without it never."""
    pause: _Pause = 0.0
    """How long the tester is held up."""
    dead: bool = False
    """No frame comes back."""
    card_clock_ppm: float | None = Field(default=None, ge=-1000.0, le=1000.0)
    """The cards have clocks that run this many parts per million too fast, for `timestamps: card`."""
    power: SimulatedPower | None = None
    """What the simulated machine draws and how its meters show it, for the method `power`; without it, it has none."""
    seed: int = Field(default=1, ge=0, le=2**62)
    """The seed of the faults, and of the noise of what is drawn."""

    @model_validator(mode="after")
    def _check_shares(self) -> Self:
        if self.loss + self.duplicate + self.reorder + self.corrupt > 1.0 + 1e-9:
            raise ValueError("loss, duplicate, reorder and corrupt are more than 100 % together; a frame has one fault")
        return self

    @model_validator(mode="after")
    def _check_delays(self) -> Self:
        if self.delay + self.jitter > _LONGEST_WAY_S:
            raise ValueError(
                f"delay and jitter make {self.delay + self.jitter:.0f} s, and latencies are read up to "
                f"{_LONGEST_WAY_S:.0f} s: make them shorter"
            )
        return self


class SimulatedLab(FrameLab):
    """The lab; with two ports frames go from one to the other, with more to the port of their destination MAC."""

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
            power=self.options.power,
            seed=self.options.seed,
        )

    @asynccontextmanager
    async def without_dut(self, testbed: Testbed, changes: Changes) -> AsyncIterator[bool]:
        yield False  # the engine's simulated ports cannot be joined in another way

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
            # The port by which frames to unknown addresses leave.
            "sends_to": min(index ^ 1, self.options.ports - 1),
            "dut": protocol_dut(self.options, index),
            "egress": {
                "capacity_frames_per_s": self.options.egress_capacity,
                "queue_frames": self.options.egress_queue_frames,
            },
        }
        if self.options.card_clock_ppm is not None:
            # Real cards are not switched on at the same moment, so their clocks differ by an offset.
            engine["card_clock"] = {"ppm": self.options.card_clock_ppm, "offset": (index + 1) * 10**15}
        return TesterPort(name=name, engine=engine, mac=mac(0, index))


def protocol_dut(options: SimulatedOptions, index: int) -> dict[str, Any]:
    """The protocol's ``dut``. Each direction has its own seed, or both would lose the same frames."""
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
