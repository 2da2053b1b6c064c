"""The golden DUT in the kernel (`policer`): an XDP token bucket of known rate and burst between the ports of a pair.

How much passes is known beforehand: a trial of T seconds that begins with a full bucket passes at most
rate x T + burst frames (RFC 2697 section 3; the program in policer.bpf.c is the equivalent Generic Cell Rate Algorithm
of ITU-T I.371). A search that does not find rate + burst / T is wrong. Each direction has its own bucket, which is full
again after burst / rate seconds without traffic. With ``per_queue`` each receive queue has one, as a core that serves a
queue has a limit of its own: what a queue passes is then known.
"""

from __future__ import annotations

import asyncio
import struct
import sys
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, model_validator

from nicbench.core.base import Frozen
from nicbench.core.described import Unit
from nicbench.core.errors import HostError, NotReadyError, UsageError
from nicbench.core.frozen import frozen
from nicbench.core.pattern import Pattern, Way, ways_of
from nicbench.core.quantity import FramesPerSecond
from nicbench.hosts.base import Host
from nicbench.testbed.addressing import MOST_PORTS, transparent_addressing
from nicbench.testbed.duts._kernel import DutDevices, dut_devices, require_host
from nicbench.testbed.duts.base import Addressing, FrameDut, Refusal
from nicbench.testbed.duts.xdp import open_receive_queues
from nicbench.testbed.labs.base import Testbed
from nicbench.tuning import bpf, xdp
from nicbench.tuning.changes import Changes

_PICOSECONDS_PER_SECOND = 10**12
_PROGRAM = "policer"
_SETTINGS = struct.Struct("=QQQQIIII")  # struct settings of policer.bpf.c
_BUCKET = struct.Struct("=IIQQQQQ")  # struct bucket of policer.bpf.c
_MOST_QUEUES = 64  # MAXIMUM_QUEUES of policer.bpf.c
_MARK: Final = 1
_FAULTS: Final = {"marks-not-ect": 2, "clears-ce": 4}


class PolicerOptions(Frozen):
    """``dut: {kind: policer, rate: 200 kpps, burst: 4000}``, for each direction.

    ``burst`` is in frames. It must cover what a tester sends at once to catch up after a delay: 4000 frames are 20 ms
    at the default rate.
    """

    rate: Annotated[FramesPerSecond, Field(ge=1, le=1e9)] = 200_000.0
    """What passes, each way between the ports of a pair."""
    rates: tuple[Annotated[FramesPerSecond, Field(ge=1, le=1e9)], ...] | None = Field(default=None, min_length=1)
    """What passes each pair of ports, in turn, in place of `rate`: a DUT that serves its ports unequally."""
    burst: Annotated[int, Unit.FRAMES] = Field(default=4000, ge=1, le=10_000_000)
    """Frames that pass at once after a pause."""
    per_queue: bool = False
    """Each receive queue of a port has a bucket of its own, of this rate and burst."""
    mark: bool = False
    """Frames over the rate get CE where they are of a sender that knows ECN (RFC 3168, RFC 5670 section 3.3), and are
    dropped only where they are not.
    """
    mark_faults: tuple[Literal["marks-not-ect", "clears-ce"], ...] = ()
    """With `mark`, what it does wrong, for tests: it marks frames of senders that do not know ECN too, or clears the CE
    that frames came with.
    """

    @model_validator(mode="after")
    def _marks_to_be_wrong(self) -> Self:
        if self.mark_faults and not self.mark:
            raise ValueError("`mark_faults` are of a policer that marks: add `mark: true`")
        return self

    @model_validator(mode="after")
    def _are_whole(self) -> Self:
        if any(rate != int(rate) for rate in (self.rate, *(self.rates or ()))):
            raise ValueError("the policer's rate is a whole number of frames per second")
        return self

    @property
    def rate_frames_per_s(self) -> int:
        """The rate, which is whole, as the exact number that the program needs."""
        return int(self.rate)

    def of_port(self, port: int) -> PolicerOptions:
        """The options of one port, with the rate of its pair."""
        if self.rates is None:
            return self
        return self.replace(rate=self.rates[port // 2 % len(self.rates)], rates=None)

    @property
    def marking(self) -> int:
        """How the program marks: bits of ``marking`` in policer.bpf.c."""
        return (_MARK if self.mark else 0) | sum(_FAULTS[fault] for fault in set(self.mark_faults))


@frozen
class Bucket:
    """The counters of one direction's bucket since it was attached."""

    forwarded_frames: int
    dropped_frames: int
    marked_frames: int = 0


@frozen
class _Direction:
    """One attached copy of the program, for one direction."""

    name: str
    port: int
    bucket_map: int
    queues: int
    """How many buckets it has."""


def expected_frames(rate_frames_per_s: float, burst_frames: int, duration_s: float) -> float:
    """The most frames that a full bucket passes in ``duration_s`` (RFC 2697 section 3: CIR x T + CBS)."""
    return rate_frames_per_s * duration_s + burst_frames


def pack_settings(options: PolicerOptions, output_interface: int) -> bytes:
    """Packs ``struct settings``: the interval with its remainder, so that no rate drifts, and I.371's tolerance."""
    interval_ps, remainder = divmod(_PICOSECONDS_PER_SECOND, options.rate_frames_per_s)
    tolerance_ps = (options.burst - 1) * _PICOSECONDS_PER_SECOND // options.rate_frames_per_s
    return _SETTINGS.pack(
        options.rate_frames_per_s,
        interval_ps,
        remainder,
        tolerance_ps,
        output_interface,
        options.per_queue,
        options.marking,
        0,
    )


def unpack_bucket(data: bytes) -> Bucket:
    """Unpacks the counters of ``struct bucket``; its other fields are internal to the program."""
    _lock, _started, _arrival, _remainder, forwarded, dropped, marked = _BUCKET.unpack(data)
    return Bucket(forwarded_frames=forwarded, dropped_frames=dropped, marked_frames=marked)


class Policer(FrameDut):
    """Attaches the program to every port, each redirecting to its neighbour: the first and the second, and so on."""

    kind = "policer"
    Options = PolicerOptions
    fewest_ports = 2
    most_ports = MOST_PORTS
    options: PolicerOptions

    def __init__(self, options: Frozen) -> None:
        super().__init__(options)
        self._host: Host | None = None
        self._directions: tuple[_Direction, ...] = ()
        self._devices: tuple[str, ...] = ()
        self._passing: tuple[str, ...] = ()

    def known_rate_frames_per_s(self, trial_s: float) -> float | None:
        if self.options.mark or self.options.per_queue or self.options.rates is not None:
            return None  # marked frames all pass, or it depends on how flows are spread, or differs by direction
        return expected_frames(self.options.rate_frames_per_s, self.options.burst, trial_s) / trial_s

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        host = require_host(testbed, self.kind)
        devices = await dut_devices(testbed, self.kind, fewest=self.fewest_ports, most=self.most_ports)
        self._host, self._devices = host, devices.names
        program = await bpf.deploy_program(host, _PROGRAM)
        self._directions = tuple(
            [await self._attach(changes, host, program, devices, here, there) for here, there in _pairs(testbed)]
        )
        self._passing = await open_receive_queues(testbed, changes)

    async def _attach(
        self, changes: Changes, host: Host, program: Path, devices: DutDevices, here: int, there: int
    ) -> _Direction:
        """Attaches one copy and writes its settings; before that it forwards nothing."""
        device = devices.names[here]
        number = await xdp.attach(changes, host, device, program)
        settings = pack_settings(self.options.of_port(here), devices.indexes[there])
        settings_map = await bpf.map_id(host, number, "policer_settings")
        wanted = int.from_bytes(settings, sys.byteorder)
        await bpf.write_map(host, settings_map, 0, wanted, value_bytes=len(settings))
        if await bpf.read_map(host, settings_map, 0) != wanted:
            raise HostError("the policer did not accept its settings", place=f"{host.name}, {device}")
        name, bucket_map = f"{device} to {devices.names[there]}", await bpf.map_id(host, number, "policer_bucket")
        return _Direction(name, here, bucket_map, await self._count_queues(host, device))

    async def _count_queues(self, host: Host, device: str) -> int:
        """How many buckets a port takes; NotReadyError where it has more receive queues than there is room for."""
        if not self.options.per_queue:
            return 1
        listed = await host.run(("ls", f"/sys/class/net/{device}/queues"))
        queues = sum(name.startswith("rx-") for name in listed.stdout.split())
        if queues > _MOST_QUEUES:
            raise NotReadyError(
                f"{device} has {queues} receive queues, and the policer has room for {_MOST_QUEUES}",
                place=f"{host.name}, {device}",
                next_step=f"take fewer: ethtool -L {device} combined {_MOST_QUEUES}",
            )
        return queues

    def addressing(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        pairs = _pairs(testbed)
        return tuple(way for way in transparent_addressing(testbed, ip) if (way.transmit, way.receive) in pairs)

    def refusal(self, ports: int, pattern: Pattern) -> Refusal | None:
        if pattern is Pattern.ONE_TO_ONE:
            return None
        return Refusal("a policer only joins pairs of ports", "write `pattern: one-to-one`, or choose another DUT")

    def cpus(self, testbed: Testbed) -> tuple[int, ...]:
        return ()  # an XDP program on a veth runs on the sender's CPU, whatever packet steering says

    async def buckets(self) -> dict[str, Bucket]:
        """The counters of each bucket, by names like ``d0 to d1``, and ``d0 to d1, queue 2`` where queues have some."""
        if self._host is None:
            raise UsageError("the policer is not set up", next_step="call up first")
        queues = [(direction, queue) for direction in self._directions for queue in range(direction.queues)]
        reading = [bpf.read_map(self._host, direction.bucket_map, queue) for direction, queue in queues]
        return {
            f"{direction.name}, queue {queue}" if self.options.per_queue else direction.name: unpack_bucket(
                number.to_bytes(_BUCKET.size, sys.byteorder)
            )
            for (direction, queue), number in zip(queues, await asyncio.gather(*reading), strict=True)
        }

    async def queue_frames(self) -> tuple[tuple[int, ...], ...]:
        if self._host is None or not self.options.per_queue:
            return ()
        frames = iter([each.forwarded_frames + each.dropped_frames for each in (await self.buckets()).values()])
        by_port = {each.port: tuple(next(frames) for _ in range(each.queues)) for each in self._directions}
        return tuple(by_port[port] for port in sorted(by_port))

    async def drops(self) -> dict[str, int]:
        if self._host is None:
            return {}
        # Frames dropped at a full queue of the other device are counted by that device, not by the bucket.
        return {f"policer {name}": bucket.dropped_frames for name, bucket in (await self.buckets()).items()}

    def disclosure(self) -> dict[str, Any]:
        rate, burst, rates = self.options.rate_frames_per_s, self.options.burst, self.options.rates
        return {
            "kind": self.kind,
            "rate_frames_per_s": rate if rates is None else ", ".join(f"{each:.0f}" for each in rates),
            "burst_frames": burst,
            "marks": self.options.mark,
            "mark_faults": list(self.options.mark_faults),
            "bucket_full_again_after_s": burst / min(rates or (rate,)),
            "known_answer": f"rate + burst / trial duration, per {'queue' if self.options.per_queue else 'direction'}",
            "program": f"{_PROGRAM}.bpf.c, XDP, driver mode",
            "attached_to": list(self._devices),
            "xdp_pass_on_tester_ports": list(self._passing),
        }


def _pairs(testbed: Testbed) -> tuple[Way, ...]:
    """Each pair of neighbouring ports, in both directions."""
    return ways_of(Pattern.ONE_TO_ONE, len(testbed.dut_ports), bidirectional=True).loaded
