"""Main memory and swap."""

from __future__ import annotations

from typing import TypedDict

from nicbench.core.described import Facts, Subject, Write
from nicbench.hosts.asking import text_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.meminfo import parse_meminfo
from nicbench.system.inventory.subjects import part_of

_WANTED = {"MemTotal": "total_bytes", "MemAvailable": "available_bytes", "SwapTotal": "swap_bytes"}


class _Memory(TypedDict):
    """Of the whole machine."""

    total_bytes: int | None
    available_bytes: int | None
    swap_bytes: int | None


def _tell_memory(facts: Facts, write: Write) -> str | None:
    modules, memory = part_of(facts, "memory_modules"), part_of(facts, "memory")
    total = modules.get("total_bytes") or memory.get("total_bytes")
    return write("_bytes", total) if total else None


class Memory(Fact):
    """From ``/proc/meminfo``."""

    kind = "memory"
    shape = _Memory
    of_machine = True
    subjects = (Subject("Memory", 180, _tell_memory),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, int | None]:
        found = parse_meminfo(await text_of(host, "/proc/meminfo"))
        return {name: found.get(field) for field, name in _WANTED.items()}
