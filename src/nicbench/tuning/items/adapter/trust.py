"""What an adapter takes a frame's priority from: ``dcb apptrust`` (iproute2 6.3, Linux 6.2)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nicbench.core.plan import Values
from nicbench.system.adapters.traffic_control import parse_trust
from nicbench.tuning.items._adapter import answer_of, device_of, run_setter
from nicbench.tuning.items.base import DeviceOptions, Item, Phase, Place


class TrustOptions(DeviceOptions):
    """``trust: [dscp]``: what is looked at first, and what after it."""

    order: tuple[Literal["dscp", "pcp", "ethtype", "stream-port", "dgram-port", "port"], ...] = Field(max_length=6)


class Trust(Item):
    """With priority flow control and traffic classes."""

    kind = "trust"
    Options = TrustOptions
    options: TrustOptions
    scope = "device"
    phase = Phase.LINK
    alone = "order"

    async def read(self, place: Place) -> Values:
        order = await answer_of(place, parse_trust, "dcb", "-j", "apptrust", "show", "dev", device_of(place))
        return {"order": list(order)}

    def target_values(self, now: Values) -> Values:
        return {"order": list(self.options.order)}

    async def write(self, place: Place, values: Values) -> None:
        order = values["order"]
        words = [str(word) for word in order] if isinstance(order, list) else []
        await run_setter(place, "dcb", "apptrust", "set", "dev", device_of(place), "order", *words)
