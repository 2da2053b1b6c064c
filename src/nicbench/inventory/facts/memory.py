"""Main memory and swap."""

from __future__ import annotations

from nicbench.hosts.base import Host
from nicbench.inventory._asking import text_of
from nicbench.inventory.base import Fact
from nicbench.inventory.meminfo import parse_meminfo

_WANTED = {"MemTotal": "total_bytes", "MemAvailable": "available_bytes", "SwapTotal": "swap_bytes"}


class Memory(Fact):
    """From ``/proc/meminfo``."""

    kind = "memory"
    of_machine = True

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, int | None]:
        found = parse_meminfo(await text_of(host, "/proc/meminfo"))
        return {name: found.get(field) for field, name in _WANTED.items()}
