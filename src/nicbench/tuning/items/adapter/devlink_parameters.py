"""Parameters of an adapter's driver that act at once: ``devlink dev param set .. cmode runtime`` (devlink-dev(8))."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from nicbench.core.plan import Values
from nicbench.system.adapters.device_firmware import parse_parameters
from nicbench.tuning.items._adapter import address_of, answer_of, run_setter
from nicbench.tuning.items.base import DeviceOptions, Item, Phase, Place
from nicbench.tuning.setting import CannotSetError

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=64)]


class DevlinkOptions(DeviceOptions):
    """``devlink_parameters: {values: {flow_steering_mode: smfs}}``."""

    values: dict[Name, bool | int | str] = Field(min_length=1, max_length=64)


class DevlinkParameters(Item):
    """Those that wait for a reload or a reset are refused here: see ``firmware_settings``."""

    kind = "devlink_parameters"
    Options = DevlinkOptions
    options: DevlinkOptions
    scope = "device"
    phase = Phase.FUNCTION

    async def read(self, place: Place) -> Values:
        handle = f"pci/{await address_of(place)}"
        found = await answer_of(place, parse_parameters, "devlink", "-j", "dev", "param", "show", handle)
        if not found.get(handle):
            raise CannotSetError("its driver has no devlink parameters")
        return dict(found[handle])

    def target_values(self, now: Values) -> Values:
        for name in self.options.values:
            if name not in now:
                later = [key for key in now if key.startswith(f"{name}, ")]
                reason = f"{name} takes effect only after a reload or a reset" if later else f"the driver has no {name}"
                raise CannotSetError(reason)
        return dict(self.options.values)

    async def write(self, place: Place, values: Values) -> None:
        handle = f"pci/{await address_of(place)}"
        for name, value in values.items():
            word = str(value).lower() if isinstance(value, bool) else str(value)
            await run_setter(
                place, *("devlink", "dev", "param", "set", handle, "name", name, "value", word, "cmode", "runtime")
            )

    def is_same(self, key: str, one: object, other: object) -> bool:
        return str(one).lower() == str(other).lower()
