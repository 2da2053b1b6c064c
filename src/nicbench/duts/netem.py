"""A wire with faults (`netem`): a Linux bridge whose outgoing ports delay, lose, double, reorder and alter frames.

What it injects is known, so that it shows whether each method says what it should, and how a workload fares on a bad
path. It is the kernel's network emulator, the queueing discipline netem (tc-netem(8)). Its own ways, which the docs
tell as well:

- ``limit`` is how many frames wait in it; one more is dropped, and counted together with those of ``loss``. The
  kernel's 1000 frames are a delay of 1 ms at 1 Mpps, so that without a ``limit`` as many are allowed as the link
  brings; the report says up to which load the queue holds.
- ``jitter`` draws each frame's delay by itself, so that frames overtake one another and are reordered by it.
- ``reorder`` sends that share of the frames at once, past those that wait: the frames that were overtaken, many for
  each that overtakes, arrive reordered by RFC 4737.
- ``corrupt`` flips one bit anywhere in the frame: in signature or payload it is seen; in an address it may lead the
  frame astray; in a header field that is not compared it is not seen.
- ``duplicate``: the copy meets loss, delay and corruption for itself.
- ``rate`` is of bits of the frame without its FCS, preamble and gap (layer 2).
- It draws from the kernel's own random numbers: before Linux 6.6 there is no seed, so that no two trials suffer the
  same frames. Shares are therefore compared within the interval of as many draws.
- Timers of the kernel end each wait: a frame leaves at its time or a little later, never sooner.
"""

from __future__ import annotations

import json
from typing import Any, Final, Literal

from pydantic import Field

from nicbench.duts._netem_words import Faults, differing, holds_frames_per_s, injects, limit_frames, words
from nicbench.duts._networks import MOST_PORTS
from nicbench.duts._ports import dut_devices, require_host
from nicbench.duts._transparent import transparent_addressing
from nicbench.duts.base import Addressing, FrameDut, Refusal
from nicbench.duts.bridge import Bridge, BridgeOptions
from nicbench.errors import HostError, NotReadyError
from nicbench.hosts.base import Host
from nicbench.labs.base import Testbed
from nicbench.model.base import Frozen
from nicbench.model.pattern import Pattern
from nicbench.tuning.changes import Changes
from nicbench.tuning.items.base import CannotSetError, Place
from nicbench.tuning.items.qdisc import Qdisc, QdiscOptions

_KIND: Final = "netem"
# The kernel's words, by tc, for a queueing discipline that it has not.
_NOT_THERE: Final = ("qdisc kind is unknown", "No such file or directory")
_IN_A_VM: Final = (
    "load the module (modprobe sch_netem; Debian: package linux-image-amd64), or have a kernel that has it: "
    "`hosts: {guest: {kind: vm}}` and `lab: {kind: veth, on: guest}`"
)


class NetemOptions(Faults):
    """``dut: {kind: netem, delay: 1 ms, loss: 1 %}``.

    ``ways``: ``forward`` is from the first port of a pair to the second, ``reverse`` the other way. ``device`` names
    the bridge.
    """

    ways: Literal["both", "forward", "reverse"] = "both"
    device: str = Field(default="nicbench-br", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$")


class Netem(FrameDut):
    """A bridge between the ports, with the faults at the ports by which frames leave."""

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
            f"`ways: {self.options.ways}` is one of the two ways of a pair of ports, and {pattern.value} has others",
            "write `ways: both`, or `traffic: {pattern: one-to-one}`",
        )

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        host = require_host(testbed, self.kind)
        devices = await dut_devices(testbed, self.kind, fewest=self.fewest_ports, most=self.most_ports)
        self._limit = limit_frames(self.options, testbed.link_bits_per_s)
        self._words = words(self.options, self._limit)
        if not self.options.are_none:
            await _load_module(host)
            for device in self._outgoing(devices.names):
                await self._inject(host, changes, device)
        await self._bridge.up(testbed, changes)

    def _outgoing(self, devices: tuple[str, ...]) -> tuple[str, ...]:
        """Frames of the forward way leave by the second port of each pair."""
        first = {"both": 0, "forward": 1, "reverse": 0}[self.options.ways]
        return devices[first :: 1 if self.options.ways == "both" else 2]

    async def _inject(self, host: Host, changes: Changes, device: str) -> None:
        """Sets it, undo first, as the tuning item `qdisc` does; and reads back what the kernel has taken."""
        place = Place(host, device)
        item = Qdisc(QdiscOptions(kind=_KIND, parameters=self._words))
        try:
            before = await item.now(place)
            await item.apply(changes, place, before, item.wanted(before))
        except CannotSetError as error:
            raise NotReadyError(
                f"{device} cannot be given netem: {error}",
                place=host.name,
                next_step=f"remove its queueing discipline: tc qdisc del dev {device} root",
            ) from error
        except HostError as error:
            if any(text in error.message for text in _NOT_THERE):
                raise NotReadyError(
                    "this kernel has no network emulator (sch_netem)", place=host.name, next_step=_IN_A_VM
                ) from error
            raise
        listed = json.loads((await host.run(("tc", "-j", "qdisc", "show", "dev", device))).stdout)
        root = next(entry for entry in listed if entry.get("root"))
        if wrong := differing(self.options, self._limit or 0, root.get("options") or {}):
            raise HostError(f"netem did not take what was asked: {'; '.join(wrong)}", place=f"{host.name}, {device}")
        self._at.append(device)

    def addressing(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        return transparent_addressing(testbed, ip)

    async def drops(self) -> dict[str, int]:
        """None of its own: what netem dropped is counted by the kernel at the qdisc (``nicbench.ledger``)."""
        return {}

    def disclosure(self) -> dict[str, Any]:
        holds = holds_frames_per_s(self.options, self._limit) if self._limit else None
        return {
            "kind": self.kind,
            "name": "Linux bridge with netem" if self._at else "Linux bridge",
            "injects": injects(self.options) or "nothing",
            "ways": self.options.ways,
            "at_ports": list(self._at),
            "netem": " ".join(self._words) if self._at else "none",
            **({"queue_limit_frames": self._limit} if self._at else {}),
            **({"queue_holds_up_to_frames_per_s": holds} if holds else {}),
            "random_numbers": "the kernel's, without a seed: other frames in every trial",
            "bridge": self._bridge.disclosure(),
        }


async def _load_module(host: Host) -> None:
    """A kernel that has it built in, or no modprobe, says so by taking or refusing the qdisc."""
    await host.run(("modprobe", "-q", "sch_netem"), check=False)
