"""The link as it is expected to be once everything is set, at each end that is named: only checked (ethtool(8))."""

from __future__ import annotations

from contextlib import suppress
from typing import Literal

from pydantic import Field

from nicbench.core.errors import HostError
from nicbench.core.plan import Values
from nicbench.core.quantity import BitsPerSecond, Seconds
from nicbench.system.adapters.ethtool_link import parse_fec, parse_link_settings
from nicbench.tuning.items._adapter import answer_of, carrier, device_of, wait_for_link
from nicbench.tuning.items.base import DeviceOptions, Item, Phase, Place


class LinkStateOptions(DeviceOptions):
    """``link_state: {speed: 100 Gb/s, fec: rs}`` under ``all`` is of both ends. ``wait`` is for the link to come up."""

    speed: BitsPerSecond | None = None
    duplex: Literal["full", "half"] | None = None
    fec: Literal["none", "rs", "baser", "llrs"] | None = None
    wait: Seconds = Field(default=30.0)
    required: bool = False


class LinkState(Item):
    """After all that takes a link down, at whichever end."""

    kind = "link_state"
    Options = LinkStateOptions
    options: LinkStateOptions
    scope = "device"
    phase = Phase.QUEUES
    only_checks = True

    async def read(self, place: Place) -> Values:
        with suppress(HostError):  # that there is none is what it reads
            await wait_for_link(place, (await carrier(place)) is not None, self.options.wait)
        found = await answer_of(place, parse_link_settings, "ethtool", device_of(place))
        values: Values = {"link": found["link"], "why_no_link": found["why_no_link"]}
        values |= {name: found[name] for name in ("speed_bits_per_s", "duplex")}
        if self.options.fec is not None:
            fec = await answer_of(place, parse_fec, "ethtool", "--show-fec", device_of(place))
            values["fec_active"] = " ".join(fec["active"]).lower()
        return values

    def target_values(self, now: Values) -> Values:
        asked: Values = {"link": True}
        if self.options.speed is not None:
            asked["speed_bits_per_s"] = round(self.options.speed)
        if self.options.duplex is not None:
            asked["duplex"] = self.options.duplex
        if self.options.fec is not None:
            asked["fec_active"] = self.options.fec
        return asked

    def is_same(self, key: str, one: object, other: object) -> bool:
        # Drivers say None or Off where there is none.
        none = ("none", "off")
        return one == other or (key == "fec_active" and one in none and other in none)
