"""Lists of CPUs as the kernel and taskset(1) write them: ``0-2,5``."""

from __future__ import annotations

from collections.abc import Iterable

_MOST_CPUS = 8192  # CONFIG_NR_CPUS of arch/x86/Kconfig at most


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """Each CPU once, in the order of the list; none of an empty one.

    ValueError for what is no list, or has more CPUs than Linux can.
    """
    cpus: list[int] = []
    for part in filter(str.strip, text.split(",")):
        first, dash, last = part.partition("-")
        start, end = int(first), int(last) if dash else int(first)
        if not 0 <= start <= end < _MOST_CPUS:
            raise ValueError(f"{part[:20]!r} is no range of CPUs")
        cpus.extend(range(start, end + 1))
    return tuple(dict.fromkeys(cpus))


def cpu_list(cpus: Iterable[int]) -> str:
    """The inverse, each CPU once and in rising order."""
    parts: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if parts and parts[-1][-1] == cpu - 1:
            parts[-1].append(cpu)
        else:
            parts.append([cpu])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)
