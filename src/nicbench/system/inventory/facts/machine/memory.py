"""Main memory and swap."""

from __future__ import annotations

from typing import TypedDict

from nicbench.hosts.asking import text_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.meminfo import parse_meminfo

_WANTED = {"MemTotal": "total_bytes", "MemAvailable": "available_bytes", "SwapTotal": "swap_bytes"}


class _Memory(TypedDict):
    """Of the whole machine."""

    total_bytes: int | None
    available_bytes: int | None
    swap_bytes: int | None


class Memory(Fact):
    """From ``/proc/meminfo``."""

    kind = "memory"
    shape = _Memory
    of_machine = True

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, int | None]:
        found = parse_meminfo(await text_of(host, "/proc/meminfo"))
        return {name: found.get(field) for field, name in _WANTED.items()}
