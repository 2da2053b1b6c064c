"""Pause frames of an adapter (IEEE 802.3 annex 31B): ``ethtool -A`` (ethtool(8))."""

from __future__ import annotations

from nicbench.core.plan import Values
from nicbench.system.adapters.ethtool_link import parse_pause
from nicbench.tuning.items._adapter import answer_of, carrier, device_of, run_setter, wait_for_link
from nicbench.tuning.items.base import DeviceOptions, Item, Phase, Place
from nicbench.tuning.setting import CannotSetError

_LINK_TIMEOUT_S = 30.0


class FlowControlOptions(DeviceOptions):
    """``rx``: obeys pause frames; ``tx``: sends them; ``autonegotiate``: as both ends agree."""

    rx: bool | None = None
    tx: bool | None = None
    autonegotiate: bool | None = None


class FlowControl(Item):
    """A link that was there is waited for: it is negotiated anew. What was agreed on is read as ``rx_negotiated``."""

    kind = "flow_control"
    Options = FlowControlOptions
    options: FlowControlOptions
    scope = "device"
    phase = Phase.LINK

    async def read(self, place: Place) -> Values:
        found = await answer_of(place, parse_pause, "ethtool", "-a", device_of(place))
        return dict(found)

    def target_values(self, now: Values) -> Values:
        asked = self.options.model_dump(exclude={"devices"}, exclude_none=True)
        if lacking := [name for name in asked if now.get(name) is None]:
            raise CannotSetError(f"the driver has no {', '.join(lacking)} of flow control")
        return dict(asked)

    async def write(self, place: Place, values: Values) -> None:
        had = await carrier(place)
        words = {"autonegotiate": "autoneg"}
        arguments = [word for name, on in values.items() for word in (words.get(name, name), "on" if on else "off")]
        await run_setter(place, "ethtool", "-A", device_of(place), *arguments)
        await wait_for_link(place, had, _LINK_TIMEOUT_S)
