"""Firmware versions and parameters of adapters as devlink knows them."""

from __future__ import annotations

from typing import Any

from nicbench.core.errors import UnknownFactError
from nicbench.hosts.asking import output_of
from nicbench.hosts.base import Host
from nicbench.system.adapters.device_firmware import parse_info, parse_parameters
from nicbench.system.inventory.base import Fact


class Devlink(Fact):
    """From ``devlink -j dev info`` and ``dev param show``."""

    kind = "devlink"
    shape = dict[str, dict[str, Any]]
    of_machine = True

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        found = parse_info(await output_of(host, "devlink", "-j", "dev", "info"))
        if not found:
            raise UnknownFactError("devlink knows no adapter")
        try:
            parameters = parse_parameters(await output_of(host, "devlink", "-j", "dev", "param", "show"))
        except UnknownFactError:
            parameters = {}
        return {handle: {**facts, "parameters": parameters.get(handle)} for handle, facts in found.items()}
