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
- It draws from the kernel's random numbers: before Linux 6.6 there is no seed, so that each trial has other faults.
  Shares are therefore compared within the confidence interval for the number of draws.
- Kernel timers end each wait: a frame leaves on time or a little later, never earlier.
"""

from __future__ import annotations

import json
from typing import Any, Final, Literal

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError, NotReadyError
from nicbench.core.pattern import Pattern
from nicbench.hosts.base import Host
from nicbench.testbed.addressing import MOST_PORTS, transparent_addressing
from nicbench.testbed.duts._netem_faults import (
    Faults,
    describe_faults,
    holds_frames_per_s,
    limit_frames,
    list_differences,
    netem_arguments,
)
from nicbench.testbed.duts._ports import dut_devices, require_host
from nicbench.testbed.duts.base import Addressing, FrameDut, Refusal
from nicbench.testbed.duts.bridge import Bridge, BridgeOptions
from nicbench.testbed.labs.base import Testbed
from nicbench.tuning.changes import Changes
from nicbench.tuning.items.adapter.qdisc import Qdisc, QdiscOptions
from nicbench.tuning.items.base import CannotSetError, Place

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
    device: str = Field(default="nicbench-br", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$")


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
            before = await item.now(place)
            await item.apply(changes, place, before, item.wanted(before))
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

    async def drops(self) -> dict[str, int]:
        """No counters of its own: the kernel counts netem's drops at the qdisc (``nicbench.measure.ledger``)."""
        return {}

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
