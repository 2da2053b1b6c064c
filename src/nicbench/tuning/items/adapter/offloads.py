"""What an adapter or the kernel does for many frames at once: ``ethtool -K`` (ethtool(8))."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated

from pydantic import Field, StringConstraints

from nicbench.core.plan import Values
from nicbench.system.adapters.ethtool_queues import parse_features
from nicbench.tuning.items._adapter import answer_of, device_of, run_setter
from nicbench.tuning.items.base import DeviceOptions, Item, Phase, Place
from nicbench.tuning.setting import CannotSetError

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$", max_length=64)]

_SHORT = MappingProxyType(
    {
        "rx": "rx-checksumming",
        "tx": "tx-checksumming",
        "sg": "scatter-gather",
        "tso": "tcp-segmentation-offload",
        "gso": "generic-segmentation-offload",
        "gro": "generic-receive-offload",
        "lro": "large-receive-offload",
        "rxvlan": "rx-vlan-offload",
        "txvlan": "tx-vlan-offload",
        "ntuple": "ntuple-filters",
        "rxhash": "receive-hashing",
    }
)
"""ethtool's short names, which are what ``-K`` takes, and its long ones, which are what ``-k`` prints."""
_LONG = MappingProxyType({long: short for short, long in _SHORT.items()})
_GROUPS = MappingProxyType(
    {
        "tx-checksumming": "tx-checksum-",
        "scatter-gather": "tx-scatter-gather",
        "tcp-segmentation-offload": "tx-tcp",
    }
)
"""Long names that stand for several features, by how these begin: each of them has a value of its own to go back to."""
_FIXED = ", fixed"


class OffloadOptions(DeviceOptions):
    """``offloads: {features: {gro: false, tso: false}}``: ethtool's short or long names, or those of the kernel."""

    features: dict[Name, bool] = Field(min_length=1, max_length=100)


class Offloads(Item):
    """Of a name that stands for several features each is recorded and put back on its own."""

    kind = "offloads"
    Options = OffloadOptions
    options: OffloadOptions
    scope = "device"
    phase = Phase.RINGS

    async def read(self, place: Place) -> Values:
        found = await answer_of(place, parse_features, "ethtool", "-k", device_of(place))
        values: Values = {name: feature.on for name, feature in found.items()}
        return values | {f"{name}{_FIXED}": True for name, feature in found.items() if feature.fixed}

    def target_values(self, now: Values) -> Values:
        asked: Values = {}
        for name, on in self.options.features.items():
            members = _members(name, now)
            if not members:
                raise CannotSetError(f"there is no offload {name}")
            free = [member for member in members if f"{member}{_FIXED}" not in now]
            if not free and any(now[member] is not on for member in members):
                raise CannotSetError(f"{name} is fixed {'off' if on else 'on'} in this driver")
            asked |= dict.fromkeys(free or members, on)
        return asked

    async def write(self, place: Place, values: Values) -> None:
        arguments = [word for name, on in values.items() for word in (_LONG.get(name, name), "on" if on else "off")]
        await run_setter(place, "ethtool", "-K", device_of(place), *arguments)


def _members(name: str, now: Values) -> list[str]:
    long = _SHORT.get(name, name)
    if prefix := _GROUPS.get(long):
        members = [key for key in now if key.startswith(prefix) and not key.endswith(_FIXED)]
        if members:
            return members
    return [long] if long in now else []
