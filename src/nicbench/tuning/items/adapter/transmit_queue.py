"""How many frames wait in an interface's queueing discipline: ``ip link set txqueuelen`` (ip-link(8))."""

from __future__ import annotations

from pydantic import Field

from nicbench.core.plan import Values
from nicbench.system.adapters.links import parse_links
from nicbench.tuning.items._adapter import answer_of, device_of, run_setter
from nicbench.tuning.items.base import DeviceOptions, Item, Phase, Place
from nicbench.tuning.setting import CannotSetError


class TransmitQueueOptions(DeviceOptions):
    """Of a discipline that has no limit of its own (pfifo_fast); it is read when the discipline is made."""

    frames: int = Field(ge=0, le=2**31 - 1)


class TransmitQueue(Item):
    """Before the disciplines, which take it over."""

    kind = "transmit_queue"
    Options = TransmitQueueOptions
    options: TransmitQueueOptions
    scope = "device"
    phase = Phase.RINGS
    alone = "frames"

    async def read(self, place: Place) -> Values:
        links = await answer_of(place, parse_links, "ip", "-j", "link", "show", "dev", device_of(place))
        if not links or not isinstance(links[0].get("txqlen"), int):
            raise CannotSetError("it has no transmit queue")
        return {"transmit_queue_frames": links[0]["txqlen"]}

    def target_values(self, now: Values) -> Values:
        return {"transmit_queue_frames": self.options.frames}

    async def write(self, place: Place, values: Values) -> None:
        frames = str(values["transmit_queue_frames"])
        await run_setter(place, "ip", "link", "set", "dev", device_of(place), "txqueuelen", frames)
