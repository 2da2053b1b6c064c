"""Priority flow control, traffic classes and what each test interface trusts (DSCP or the VLAN's priority)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from nicbench.core.errors import UnknownFactError
from nicbench.hosts.asking import output_of
from nicbench.hosts.base import Host
from nicbench.system.adapters.traffic_control import parse_classes, parse_dscp, parse_pfc, parse_trust
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.facts._per_interface import ask_interfaces

_PARTS: Mapping[str, tuple[str, Callable[[str], Any]]] = MappingProxyType(
    {
        "priority_flow_control": ("pfc", parse_pfc),
        "traffic_classes": ("ets", parse_classes),
        "priority_by_dscp": ("app", parse_dscp),
        "trust": ("apptrust", parse_trust),
    }
)


class DataCentreBridging(Fact):
    """From ``dcb -j``; null for a part that the driver or an older dcb does not have."""

    kind = "data_centre_bridging"
    shape = dict[str, dict[str, Any]]

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        async def ask(device: str) -> Any:
            found: dict[str, Any] = {}
            reason = ""
            for name, (word, parse) in _PARTS.items():
                try:
                    found[name] = parse(await output_of(host, "dcb", "-j", word, "show", "dev", device))
                except UnknownFactError as error:
                    found[name], reason = None, reason or str(error)
                    if name == "priority_flow_control":
                        break  # a driver without it has nothing of the rest
            if not any(value is not None for value in found.values()):
                raise UnknownFactError(reason)
            return found

        return await ask_interfaces(devices, ask)
