"""Energy-Efficient Ethernet (IEEE 802.3az), which delays the first frame after an idle time: ``ethtool --set-eee``."""

from __future__ import annotations

from nicbench.core.plan import Values
from nicbench.system.adapters.ethtool_link import parse_energy
from nicbench.tuning.items._adapter import answer_of, carrier, device_of, run_setter, wait_for_link
from nicbench.tuning.items.base import DeviceOptions, Item, Phase, Place
from nicbench.tuning.setting import CannotSetError

_LINK_TIMEOUT_S = 30.0


class EnergyOptions(DeviceOptions):
    """``energy_efficient_ethernet: false``."""

    on: bool


class EnergyEfficientEthernet(Item):
    """The link is negotiated anew for it."""

    kind = "energy_efficient_ethernet"
    Options = EnergyOptions
    options: EnergyOptions
    scope = "device"
    phase = Phase.LINK
    alone = "on"

    async def read(self, place: Place) -> Values:
        found = await answer_of(place, parse_energy, "ethtool", "--show-eee", device_of(place))
        if not found["supported"]:
            raise CannotSetError("the adapter does not support it")
        return {"enabled": found["enabled"], "active": found["active"]}

    def target_values(self, now: Values) -> Values:
        return {"enabled": self.options.on}

    async def write(self, place: Place, values: Values) -> None:
        had = await carrier(place)
        await run_setter(place, "ethtool", "--set-eee", device_of(place), "eee", "on" if values["enabled"] else "off")
        await wait_for_link(place, had, _LINK_TIMEOUT_S)
