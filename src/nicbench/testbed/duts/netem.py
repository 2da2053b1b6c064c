"""A wire with faults (`netem`): a Linux bridge whose outgoing ports delay, drop, duplicate, reorder and corrupt frames.

The faults are known, so that a method's results can be checked against them, and workloads can be run on a bad path.
They are made by the kernel's network emulator, the queueing discipline netem (tc-netem(8)), which has peculiarities
(they are in the docs as well):

- ``limit`` is the length of its queue in frames; a frame too many is dropped, and counted together with those of
  ``loss``. The kernel's 1000 frames are a delay of 1 ms at 1 Mpps, so that without a ``limit`` the queue holds as many
  as the link delivers; the report says up to which load.
- ``jitter`` draws the delay of each frame independently, so that frames overtake one another and are reordered.
- ``reorder`` sends that share of the frames at once, before those that wait: the overtaken frames, many for each one
  that overtakes, are the reordered ones by RFC 4737.
- ``corrupt`` flips one bit anywhere in the frame: it is detected in the signature and the payload; in an address it may
  misdirect the frame; in a header field that is not compared it is not detected.
- ``duplicate``: the copy has its own loss, delay and corruption.
- ``rate`` counts bits of the frame without FCS, preamble and gap (layer 2).
- It draws from the kernel's random numbers: before Linux 6.6 they have no seed, so that each trial has other faults.
  Shares are therefore compared within the confidence interval for the number of draws.
- Kernel timers end each wait: a frame leaves on time or a little later, never earlier.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, model_validator

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError, NotReadyError
from nicbench.core.pattern import Pattern
from nicbench.core.quantity import BitsPerSecond, Ratio, Seconds
from nicbench.core.units import format_bits_per_s, format_duration_s, format_ratio, line_rate_frames_per_s
from nicbench.hosts.base import Host
from nicbench.testbed.addressing import MOST_PORTS, transparent_addressing
from nicbench.testbed.duts._kernel import dut_devices, require_host
from nicbench.testbed.duts.base import Addressing, FrameDut, Refusal
from nicbench.testbed.duts.bridge import Bridge, BridgeOptions
from nicbench.testbed.labs.base import Testbed
from nicbench.tuning.changes import Changes
from nicbench.tuning.items.queues import Qdisc, QdiscOptions
from nicbench.tuning.setting import CannotSetError, Place

KERNEL_LIMIT_FRAMES: Final = 1000
"""netem's queue limit where tc names none."""
MOST_FRAMES: Final = 100_000
"""The largest limit set without being asked for: each waiting frame takes some kilobytes of kernel memory."""
_ROOM: Final = 1.1
_SMALLEST_FRAME_BYTES: Final = 64
_TABLE_REACH: Final = 4.0
"""Entries of tc's distribution tables lie within ±4 times the jitter (16 bits, where 8192 is one jitter)."""
_READ_BACK_S: Final = 1.001e-6
"""tc prints delays in whole microseconds, rounded down, so that up to 1 µs less is read than is set."""
_READ_BACK_RATIO: Final = 1e-6
"""The kernel stores shares in 32 bits; tc prints them with six digits."""

Share = Annotated[Ratio, Field(ge=0.0)]
_Time = Annotated[Seconds, Field(le=60.0)]


class Faults(Frozen):
    """Faults for each frame; every share is drawn independently for each frame, except with ``reorder_correlation``."""

    delay: _Time = 0.0
    """Delay of every frame."""
    jitter: _Time = 0.0
    """How far the delay of a frame lies from `delay`: at most so far (`uniform`), or its standard deviation (the other
    distributions).
    """
    distribution: Literal["uniform", "normal", "pareto", "paretonormal"] = "uniform"
    """`uniform` is even over the range; the others are the tables of tc, which reach at most four times as far."""
    loss: Share = 0.0
    """Share of the frames that is dropped."""
    duplicate: Share = 0.0
    """Share that is sent twice. The copy meets the other faults by itself."""
    reorder: Share = 0.0
    """Share that is sent at once, ahead of the frames that wait. It needs a `delay`."""
    reorder_correlation: Share = 0.0
    """How much each draw depends on the one before. The share is then no longer exact."""
    reorder_gap: int = Field(default=1, ge=1, le=1_000_000)
    """The least number of frames of which one is sent at once."""
    corrupt: Share = 0.0
    """Share in which one bit is flipped, anywhere in the frame."""
    rate: Annotated[BitsPerSecond, Field(ge=8_000.0, le=1e12)] | None = None
    """Bits per second of what leaves: frames without FCS, preamble and gap. `limit` frames wait."""
    limit: int | None = Field(default=None, ge=1, le=10_000_000)
    """The most frames that wait; one more is dropped. Without it as many as the link brings in the longest delay (1000
    to 100,000), and with a `rate` the kernel's 1000. The report says which load the queue holds.
    """

    @model_validator(mode="after")
    def _check_dependencies(self) -> Self:
        if self.reorder and not self.delay:
            raise ValueError("`reorder` needs a `delay`: a frame overtakes others that wait")
        if self.jitter and not self.delay:
            raise ValueError("`jitter` needs a `delay` that it varies")
        if self.distribution == "uniform" and self.jitter > self.delay:
            raise ValueError("`jitter` is more than the `delay`: no frame can leave before it arrives")
        if self.distribution != "uniform" and not self.jitter:
            raise ValueError("`distribution` needs a `jitter`")
        if not self.reorder and (self.reorder_correlation or self.reorder_gap != 1):
            raise ValueError("`reorder_correlation` and `reorder_gap` need a `reorder`")
        return self

    @property
    def are_none(self) -> bool:
        """Whether every frame passes unchanged and at once."""
        return not any((self.delay, self.loss, self.duplicate, self.corrupt, self.rate))

    @property
    def longest_s(self) -> float:
        """The longest time that a frame waits, without the time that ``rate`` adds."""
        reach = 1.0 if self.distribution == "uniform" else _TABLE_REACH
        return self.delay + self.jitter * reach


def limit_frames(faults: Faults, link_bits_per_s: float) -> int:
    """The queue limit in frames: the given one, else as many as the link delivers in the longest delay.

    It is at least the kernel's 1000 and at most 100,000. With a ``rate`` it is the kernel's: the queue of a bottleneck.
    """
    if faults.limit is not None:
        return faults.limit
    if faults.rate is not None:
        return KERNEL_LIMIT_FRAMES
    needed = math.ceil(line_rate_frames_per_s(link_bits_per_s, _SMALLEST_FRAME_BYTES) * faults.longest_s * _ROOM)
    return min(MOST_FRAMES, max(KERNEL_LIMIT_FRAMES, needed))


def holds_frames_per_s(faults: Faults, limit: int) -> float | None:
    """The load above which the queue is full and netem drops more than ``loss``; None where no frame waits."""
    return limit / faults.longest_s if faults.longest_s else None


def netem_arguments(faults: Faults, limit: int) -> tuple[str, ...]:
    """The arguments that follow ``tc qdisc add dev X root netem``."""
    arguments = ["limit", str(limit)]
    if faults.delay:
        arguments += ["delay", _time(faults.delay)]
    if faults.jitter:
        arguments += [_time(faults.jitter)]
        # Without a table netem draws uniformly; tc has no table of that name.
        arguments += ["distribution", faults.distribution] if faults.distribution != "uniform" else []
    if faults.loss:
        arguments += ["loss", "random", _percent(faults.loss)]
    if faults.duplicate:
        arguments += ["duplicate", _percent(faults.duplicate)]
    if faults.reorder:
        correlation = [_percent(faults.reorder_correlation)] if faults.reorder_correlation else []
        arguments += ["reorder", _percent(faults.reorder), *correlation, "gap", str(faults.reorder_gap)]
    if faults.corrupt:
        arguments += ["corrupt", _percent(faults.corrupt)]
    if faults.rate is not None:
        arguments += ["rate", f"{round(faults.rate)}bit"]
    return tuple(arguments)


def describe_faults(faults: Faults) -> dict[str, str]:
    """The faults in words, by the name of the option; empty without faults."""
    descriptions = {}
    if faults.delay:
        descriptions["delay"] = format_duration_s(faults.delay)
    if faults.jitter:
        descriptions["jitter"] = f"±{format_duration_s(faults.jitter)}, {faults.distribution}"
    descriptions |= {
        name: format_ratio(share)
        for name in ("loss", "duplicate", "reorder", "corrupt")
        if (share := getattr(faults, name))
    }
    if faults.rate is not None:
        descriptions["rate"] = format_bits_per_s(faults.rate)
    return descriptions


def list_differences(faults: Faults, limit: int, read: Mapping[str, Any]) -> list[str]:
    """A sentence for each of the ``options`` of ``tc -j qdisc show`` that differs from what was asked for."""
    delay, rate = read.get("delay") or {}, read.get("rate") or {}
    pairs = [
        ("limit", float(limit), float(read.get("limit", 0)), 0.0),
        ("delay", faults.delay, float(delay.get("delay", 0.0)), _READ_BACK_S),
        ("jitter", faults.jitter, float(delay.get("jitter", 0.0)), _READ_BACK_S),
        # tc gives bytes per second.
        ("rate", faults.rate or 0.0, float(rate.get("rate", 0.0)) * 8.0, 8.0),
    ]
    shares = {"loss": "loss-random", "duplicate": "duplicate", "reorder": "reorder", "corrupt": "corrupt"}
    pairs += [
        (name, getattr(faults, name), float((read.get(place) or {}).get(name, 0.0)), _READ_BACK_RATIO)
        for name, place in shares.items()
    ]
    return [
        f"{name}: asked for {asked:g}, is {got:g}" for name, asked, got, within in pairs if abs(asked - got) > within
    ]


def _time(seconds: float) -> str:
    """A time in microseconds with decimals: tc 6.1 refuses nanoseconds."""
    return f"{_plain(seconds * 1e6)}us"


def _percent(share: float) -> str:
    return f"{_plain(share * 100.0)}%"


def _plain(number: float) -> str:
    """A number without an exponent and without trailing zeros."""
    return f"{number:.7f}".rstrip("0").rstrip(".")


_KIND: Final = "netem"
# The messages of the kernel, through tc, for a queueing discipline that it does not have.
_NO_NETEM: Final = ("qdisc kind is unknown", "No such file or directory")
_LOAD_NETEM: Final = (
    "load the module (modprobe sch_netem; Debian: package linux-image-amd64), or have a kernel that has it: "
    "`hosts: {guest: {kind: vm}}` and `lab: {kind: veth, on: guest}`"
)


class NetemOptions(Faults):
    """``dut: {kind: netem, delay: 1 ms, loss: 1 %}``.

    ``ways`` has the direction with faults: ``forward`` is from the first port of a pair to the second, ``reverse`` the
    other. ``device`` names the bridge.
    """

    ways: Literal["both", "forward", "reverse"] = "both"
    """`forward`: from the first port of a pair to the second. `reverse`: the other way."""
    device: str = Field(default="nicbench-br", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$")
    """The name of the bridge."""


class Netem(FrameDut):
    """A bridge between the ports, with the faults at the ports that frames leave by."""

    kind = "netem"
    Options = NetemOptions
    fewest_ports = 2
    most_ports = MOST_PORTS
    options: NetemOptions

    def __init__(self, options: Frozen) -> None:
        super().__init__(options)
        self._bridge = Bridge(BridgeOptions(device=self.options.device))
        self._words: tuple[str, ...] = ()
        self._at: list[str] = []
        self._limit: int | None = None

    def refusal(self, ports: int, pattern: Pattern) -> Refusal | None:
        if self.options.ways == "both" or pattern is Pattern.ONE_TO_ONE:
            return None
        return Refusal(
            f"`ways: {self.options.ways}` is a direction between a pair of ports, and {pattern.value} has no pairs",
            "write `ways: both`, or `traffic: {pattern: one-to-one}`",
        )

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        host = require_host(testbed, self.kind)
        devices = await dut_devices(testbed, self.kind, fewest=self.fewest_ports, most=self.most_ports)
        self._limit = limit_frames(self.options, testbed.link_bits_per_s)
        self._words = netem_arguments(self.options, self._limit)
        if not self.options.are_none:
            await _load_module(host)
            for device in self._faulty_devices(devices.names):
                await self._inject(host, changes, device)
        await self._bridge.up(testbed, changes)

    def _faulty_devices(self, devices: tuple[str, ...]) -> tuple[str, ...]:
        """The devices that get the faults: frames of the forward way leave by the second port of each pair."""
        first = {"both": 0, "forward": 1, "reverse": 0}[self.options.ways]
        return devices[first :: 1 if self.options.ways == "both" else 2]

    async def _inject(self, host: Host, changes: Changes, device: str) -> None:
        """Sets netem on a device, undo first, as the tuning item `qdisc` does, and verifies what the kernel took."""
        place = Place(host, device)
        item = Qdisc(QdiscOptions(kind=_KIND, parameters=self._words))
        try:
            before = await item.read_checked(place)
            await item.apply(changes, place, before, item.target_values(before))
        except CannotSetError as error:
            raise NotReadyError(
                f"{device} cannot be given netem: {error}",
                place=host.name,
                next_step=f"remove its queueing discipline: tc qdisc del dev {device} root",
            ) from error
        except HostError as error:
            if any(text in error.message for text in _NO_NETEM):
                raise NotReadyError(
                    "this kernel has no network emulator (sch_netem)", place=host.name, next_step=_LOAD_NETEM
                ) from error
            raise
        listed = json.loads((await host.run(("tc", "-j", "qdisc", "show", "dev", device))).stdout)
        root = next(entry for entry in listed if entry.get("root"))
        if wrong := list_differences(self.options, self._limit or 0, root.get("options") or {}):
            raise HostError(f"netem was set differently: {'; '.join(wrong)}", place=f"{host.name}, {device}")
        self._at.append(device)

    def addressing(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        return transparent_addressing(testbed, ip)

    def disclosure(self) -> dict[str, Any]:
        holds = holds_frames_per_s(self.options, self._limit) if self._limit else None
        return {
            "kind": self.kind,
            "name": "Linux bridge with netem" if self._at else "Linux bridge",
            "injects": describe_faults(self.options) or "nothing",
            "ways": self.options.ways,
            "at_ports": list(self._at),
            "netem": " ".join(self._words) if self._at else "none",
            **({"queue_limit_frames": self._limit} if self._at else {}),
            **({"queue_holds_up_to_frames_per_s": holds} if holds else {}),
            "random_numbers": "the kernel's, without a seed: other frames in every trial",
            "bridge": self._bridge.disclosure(),
        }


async def _load_module(host: Host) -> None:
    """Loads the module where that is possible; otherwise the qdisc itself shows whether the kernel has netem."""
    await host.run(("modprobe", "-q", "sch_netem"), check=False)
