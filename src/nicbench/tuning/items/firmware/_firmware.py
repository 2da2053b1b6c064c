"""Settings in an adapter's firmware, by ``mlxconfig`` (NVIDIA Firmware Tools): in force, and after the next reset."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from nicbench.core.plan import Values
from nicbench.system.adapters.device_firmware import forms_of, parse_mlxconfig
from nicbench.tuning.items._adapter import address_of, answer_of
from nicbench.tuning.items.base import DeviceOptions, Item, Place
from nicbench.tuning.setting import CannotSetError

Name = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]*$", max_length=64)]
AFTER_RESET = ", after the next reset"


class FirmwareOptions(DeviceOptions):
    """``{settings: {CQE_COMPRESSION: 1}}``: mlxconfig's names; values as numbers, or as it writes them."""

    settings: dict[Name, int | str] = Field(min_length=1, max_length=64)


class FirmwareItem(Item):
    """Reads both values of each setting that is asked for."""

    options: FirmwareOptions

    async def read(self, place: Place) -> Values:
        address = await address_of(place)
        found = await answer_of(place, parse_mlxconfig, "mlxconfig", "-d", address, "-e", "query")
        values: Values = {}
        for name in self.options.settings:
            if name not in found:
                raise CannotSetError(f"the firmware has no setting {name}")
            values[name] = found[name].get("current")
            values[f"{name}{AFTER_RESET}"] = found[name].get("next_boot")
        return values

    def is_same(self, key: str, one: object, other: object) -> bool:
        return bool(forms_of(str(one)) & forms_of(str(other)))
