"""Items of ethtool that have a number for each kind of queue, with a maximum: rings and channels."""

from __future__ import annotations

from typing import ClassVar, Literal

from nicbench.core.tuning import Values
from nicbench.system.adapters.ethtool_queues import parse_limits
from nicbench.tuning.items._adapter import answer_of, device_of, set_by
from nicbench.tuning.items.base import CannotSetError, Item, Place

Amount = int | Literal["maximum"]
_MAXIMUM = "_maximum"


class LimitsItem(Item):
    """``read_option`` and ``write_option`` are ethtool's; the fields of the options are the rows it prints."""

    read_option: ClassVar[str]
    write_option: ClassVar[str]

    async def read(self, place: Place) -> Values:
        limits = await answer_of(place, parse_limits, "ethtool", self.read_option, device_of(place))
        values: Values = {name: row["current"] for name, row in limits.items() if row.get("current") is not None}
        return values | {f"{name}{_MAXIMUM}": limits[name].get("maximum") for name in values}

    def wanted(self, now: Values) -> Values:
        asked: Values = {}
        for name, amount in self.options.model_dump(exclude={"devices"}, exclude_none=True).items():
            most = now.get(f"{name}{_MAXIMUM}")
            if name not in now:
                there = ", ".join(key for key in now if not key.endswith(_MAXIMUM)) or "none"
                raise CannotSetError(f"the driver has no {name}; it has: {there}")
            if amount == "maximum" and not isinstance(most, int):
                raise CannotSetError(f"the driver does not say the maximum of {name}")
            if isinstance(amount, int) and isinstance(most, int) and amount > most:
                raise CannotSetError(f"{name} {amount} is more than the driver's {most}")
            asked[name] = most if amount == "maximum" else amount
        return asked

    async def write(self, place: Place, values: Values) -> None:
        arguments = [word for name, value in values.items() for word in (name.replace("_", "-"), str(value))]
        await set_by(place, "ethtool", self.write_option, device_of(place), *arguments)
