"""Switches that only one driver has: ``ethtool --set-priv-flags`` (ethtool(8))."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from nicbench.core.plan import Values
from nicbench.system.adapters.ethtool_queues import parse_private_flags
from nicbench.tuning.items._adapter import answer_of, carrier, device_of, run_setter, wait_for_link
from nicbench.tuning.items.base import DeviceOptions, Item, Phase, Place
from nicbench.tuning.setting import CannotSetError

Flag = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_ .-]*$", max_length=64)]
_LINK_TIMEOUT_S = 30.0


class PrivateFlagOptions(DeviceOptions):
    """``private_flags: {flags: {rx_cqe_compress: true}}``: the driver's own names."""

    flags: dict[Flag, bool] = Field(min_length=1, max_length=64)


class PrivateFlags(Item):
    """Early: many of them reset the adapter."""

    kind = "private_flags"
    Options = PrivateFlagOptions
    options: PrivateFlagOptions
    scope = "device"
    phase = Phase.FUNCTION

    async def read(self, place: Place) -> Values:
        found = await answer_of(place, parse_private_flags, "ethtool", "--show-priv-flags", device_of(place))
        return dict(found)

    def target_values(self, now: Values) -> Values:
        if lacking := [flag for flag in self.options.flags if flag not in now]:
            raise CannotSetError(f"the driver has no {', '.join(lacking)}; it has: {', '.join(now) or 'none'}")
        return dict(self.options.flags)

    async def write(self, place: Place, values: Values) -> None:
        had = await carrier(place)
        arguments = [word for flag, on in values.items() for word in (flag, "on" if on else "off")]
        await run_setter(place, "ethtool", "--set-priv-flags", device_of(place), *arguments)
        await wait_for_link(place, had, _LINK_TIMEOUT_S)
