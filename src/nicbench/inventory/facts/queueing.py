"""Queueing disciplines of each test interface."""

from __future__ import annotations

from typing import Any

from nicbench.adapters.queueing import parse_qdiscs
from nicbench.hosts.base import Host
from nicbench.inventory._asking import output_of
from nicbench.inventory.base import Fact
from nicbench.inventory.facts._per_interface import each


class Queueing(Fact):
    """From ``tc -j qdisc``."""

    kind = "queueing"

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        async def ask(device: str) -> Any:
            return parse_qdiscs(await output_of(host, "tc", "-j", "qdisc", "show", "dev", device))

        return await each(devices, ask)
