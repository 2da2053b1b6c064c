"""Proof that frames pass the layer that a DUT is measured for: its own counters against those of the DUT's ports."""

from __future__ import annotations

import json
from abc import abstractmethod
from dataclasses import dataclass
from typing import Final

from nicbench.core.errors import HostError
from nicbench.hosts.base import Host
from nicbench.testbed.duts.base import FrameDut

_SLACK_FRAMES: Final = 16
"""Frames of the DUT's own, as neighbour discovery, by all its ports."""
_SLACK_RATIO: Final = 0.01
_ENOUGH_FRAMES: Final = 32
"""Of fewer frames into the layer nothing is said where none comes out."""
_STRAY_FRAMES: Final = 4
"""So many that come out are the DUT's own, such as reports of multicast listeners."""


@dataclass(frozen=True, slots=True)
class Passed:
    """Cumulative frames: into the layer and out of it, by its own count, and sent by the DUT's ports.

    ``plain`` are frames that crossed a wire within the layer and are none of its own.
    """

    into: int
    through: int
    sent: int
    plain: int = 0


_WHEN_SILENT: Final = "see whether both ends have the same keys, and whether the wire between them is up"


def check_passage(before: Passed, after: Passed, layer: str, place: str, when_silent: str = _WHEN_SILENT) -> None:
    """HostError where frames went past the layer, or crossed it plain, or where it gives back nothing that it takes.

    ``when_silent`` is the next step of the last.
    """
    plain = after.plain - before.plain
    if plain > _SLACK_FRAMES:
        raise HostError(
            f"{plain} frames went plain between the ends of {layer}",
            place=place,
            next_step="see `ip xfrm policy`, `ip rule` and `ip route` there: frames must be encrypted on the way",
        )
    into, through, sent = after.into - before.into, after.through - before.through, after.sent - before.sent
    if sent > through + _SLACK_FRAMES + _SLACK_RATIO * through:
        raise HostError(
            f"frames go past {layer}: the ports sent {sent}, and only {through} of them came through it",
            place=place,
            next_step="see `ip rule` and `ip route` there: something else forwards between these ports",
        )
    if into > _ENOUGH_FRAMES and through <= _STRAY_FRAMES:
        raise HostError(
            f"{layer} took {into} frames and gave {through or 'none'} back",
            place=place,
            next_step=when_silent,
        )


async def link_packets(host: Host, *devices: str) -> dict[str, tuple[int, int]]:
    """Cumulative packets received and sent of interfaces, by name; HostError where one is gone."""
    shown = json.loads((await host.run(("ip", "-j", "-s", "link", "show"))).stdout or "[]")
    counts = {
        str(link["ifname"]): (int(link["stats64"]["rx"]["packets"]), int(link["stats64"]["tx"]["packets"]))
        for link in shown
        if link.get("ifname") in devices
    }
    if gone := [device for device in devices if device not in counts]:
        raise HostError(f"the interface {gone[0]} of the DUT is gone", place=host.name, next_step="start the run again")
    return counts


class PassageDut(FrameDut):
    """A DUT with a layer that every frame must pass."""

    layer: str
    """What frames pass, in messages."""
    when_silent: str = _WHEN_SILENT
    """What to do where the layer takes frames and gives none back."""
    _before: Passed | None = None

    @abstractmethod
    async def _read_passed(self) -> Passed:
        """Reads what went into the layer, what came out, and what the ports sent."""

    async def mark_passage(self) -> None:
        self._before = await self._read_passed()

    async def check_passage(self) -> None:
        """Nothing is said of a process that has ended: ``failure`` tells that."""
        if self._before is not None and not await self.failure():
            after = await self._read_passed()
            check_passage(self._before, after, self.layer, f"dut of kind {self.kind}", self.when_silent)

    async def drops(self) -> dict[str, int]:
        """No counters of its own: those of the kernel are read on every host (``nicbench.measure.ledger``)."""
        return {}
