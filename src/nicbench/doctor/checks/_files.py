"""Many small files of /proc and /sys at once."""

from __future__ import annotations

from nicbench.hosts.base import Host
from nicbench.inventory._asking import values_of
from nicbench.inventory.base import UnknownFactError


async def values(host: Host, *patterns: str) -> dict[str, str]:
    """Path and value of each that can be read; none of them is no error here."""
    try:
        return await values_of(host, patterns)
    except UnknownFactError:
        return {}


def cpus_in_words(cpus: tuple[int, ...] | list[int]) -> str:
    """``0-2,5``, as the kernel and taskset(1) take it."""
    parts: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if parts and parts[-1][-1] == cpu - 1:
            parts[-1].append(cpu)
        else:
            parts.append([cpu])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)
