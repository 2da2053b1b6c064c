"""BIOS settings, as the management controller tells them: what no file of the machine says."""

from __future__ import annotations

from typing import Any, TypedDict

from nicbench.core.errors import UnknownFactError
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact
from nicbench.system.redfish.bios import bios_settings


class _Settings(TypedDict):
    """Names and values are the BIOS maker's; ``pending`` are set at the next start."""

    attributes: dict[str, Any]
    pending: dict[str, Any]


class BiosSettings(Fact):
    """From Redfish's ComputerSystem and Bios resources (DSP0268)."""

    kind = "bios_settings"
    shape = _Settings
    of_machine = True

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        if self.controller is None:
            raise UnknownFactError("the bench file names no management controller of it (`redfish`)")
        return await bios_settings(self.controller)
