"""Queueing disciplines of each test interface."""

from __future__ import annotations

from typing import Any, TypedDict

from nicbench.hosts.asking import output_of
from nicbench.hosts.base import Host
from nicbench.system.adapters.traffic_control import parse_qdiscs
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.facts._per_interface import ask_interfaces


class _Qdisc(TypedDict):
    """One queueing discipline; its parameters are its own."""

    kind: str
    handle: str | None
    parent: str | None
    parameters: dict[str, Any]


class Queueing(Fact):
    """From ``tc -j qdisc``."""

    kind = "queueing"
    shape = dict[str, list[_Qdisc]]

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        async def ask(device: str) -> Any:
            return parse_qdiscs(await output_of(host, "tc", "-j", "qdisc", "show", "dev", device))

        return await ask_interfaces(devices, ask)
