"""BIOS settings by Redfish: checked, never changed, for it takes a reboot and may leave a machine that does not boot.

Names and values are those of the controller's attribute registry, as ``nicbench inventory`` prints them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from nicbench.core.plan import Values
from nicbench.system.redfish.bios import bios_settings
from nicbench.tuning.items.base import ExpectedOptions, Item, Phase, Place
from nicbench.tuning.setting import CannotSetError

Name = Annotated[str, StringConstraints(pattern=r"^[!-~]+$", max_length=128)]


class BiosSettingsOptions(ExpectedOptions):
    """``bios_settings: {expected: {SubNumaCluster: Disabled, SriovGlobalEnable: Enabled}}``."""

    expected: dict[Name, str | int | bool] = Field(min_length=1, max_length=100)


class BiosSettings(Item):
    """Each value in force; one that is set but waits for a reboot reads ``Disabled (pending until a reboot: Enabled)``.

    A setting that the controller does not list reads ``not listed``.
    """

    kind = "bios_settings"
    Options = BiosSettingsOptions
    options: BiosSettingsOptions
    scope = "machine"
    phase = Phase.SERVICE
    only_checks = True

    async def read(self, place: Place) -> Values:
        if place.controller is None:
            raise CannotSetError("the bench file names no management controller of this host (`redfish`)")
        found = await bios_settings(place.controller)
        waiting = found["pending"] or {}
        return {name: _value_of(name, found["attributes"], waiting) for name in self.options.expected}

    def target_values(self, now: Values) -> Values:
        return dict(self.options.expected)


def _value_of(name: str, attributes: Mapping[str, Any], waiting: Mapping[str, Any]) -> str | int | float | bool | None:
    if name not in attributes:
        return "not listed"
    value: str | int | float | bool | None = attributes[name]
    return f"{value} (pending until a reboot: {waiting[name]})" if name in waiting else value
