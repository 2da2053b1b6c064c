"""BIOS settings, as the management controller tells them: what no file of the machine says."""

from __future__ import annotations

from typing import Any

from nicbench.hosts.base import Host
from nicbench.inventory.base import Fact, UnknownFactError
from nicbench.redfish.bios import bios_settings


class BiosSettings(Fact):
    """From Redfish's ComputerSystem and Bios resources (DSP0268)."""

    kind = "bios_settings"
    of_machine = True

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        if self.controller is None:
            raise UnknownFactError("the bench file names no management controller of it (`redfish`)")
        return await bios_settings(self.controller)
