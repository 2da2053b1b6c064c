"""The largest packet of an interface: ``ip link set mtu`` (ip-link(8)). Under ``all`` it is set at both ends."""

from __future__ import annotations

from pydantic import Field

from nicbench.core.plan import Values
from nicbench.system.adapters.links import parse_links
from nicbench.tuning.items._adapter import answer_of, carrier, device_of, run_setter, wait_for_link
from nicbench.tuning.items.base import DeviceOptions, Item, Phase, Place
from nicbench.tuning.setting import CannotSetError

_LINK_TIMEOUT_S = 30.0


class MtuOptions(DeviceOptions):
    """Bytes above the link layer: a frame of 1518 bytes carries 1500. Whether the path carries it: ``path_mtu``."""

    bytes: int = Field(ge=68, le=65535)


class Mtu(Item):
    """Some drivers take the link down for it."""

    kind = "mtu"
    Options = MtuOptions
    options: MtuOptions
    scope = "device"
    phase = Phase.LINK
    alone = "bytes"

    async def read(self, place: Place) -> Values:
        links = await answer_of(place, parse_links, "ip", "-j", "-d", "link", "show", "dev", device_of(place))
        if not links or not isinstance(links[0].get("mtu"), int):
            raise CannotSetError("it has no MTU")
        return {"mtu_bytes": links[0]["mtu"], **{name: links[0].get(name) for name in ("min_mtu", "max_mtu")}}

    def target_values(self, now: Values) -> Values:
        least, most = now.get("min_mtu"), now.get("max_mtu")
        # A driver that does not say has 0.
        if isinstance(most, int) and 0 < most < self.options.bytes:
            raise CannotSetError(f"{self.options.bytes} bytes are more than the driver's {most}")
        if isinstance(least, int) and self.options.bytes < least:
            raise CannotSetError(f"{self.options.bytes} bytes are less than the driver's {least}")
        return {"mtu_bytes": self.options.bytes}

    async def write(self, place: Place, values: Values) -> None:
        had = await carrier(place)
        await run_setter(place, "ip", "link", "set", "dev", device_of(place), "mtu", str(values["mtu_bytes"]))
        await wait_for_link(place, had, _LINK_TIMEOUT_S)
