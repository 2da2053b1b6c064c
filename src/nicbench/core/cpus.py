"""CPUs as the kernel lists them, and the NUMA nodes they belong to."""

from __future__ import annotations

from collections.abc import Iterable

from nicbench.core.base import Frozen

# Lists of CPUs as the kernel and taskset(1) write them: ``0-2,5``.


_MOST_CPUS = 8192  # CONFIG_NR_CPUS of arch/x86/Kconfig at most


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """Parses a list of CPUs; each CPU appears once, in the order of the list. An empty list gives no CPU.

    Raises ValueError for text that is not a CPU list, or that has more CPUs than Linux supports.
    """
    cpus: list[int] = []
    for part in filter(str.strip, text.split(",")):
        first, dash, last = part.partition("-")
        start, end = int(first), int(last) if dash else int(first)
        if not 0 <= start <= end < _MOST_CPUS:
            raise ValueError(f"{part[:20]!r} is no range of CPUs")
        cpus.extend(range(start, end + 1))
        if len(cpus) > 2 * _MOST_CPUS:
            raise ValueError(f"{text[:20]!r} names more CPUs than there can be")
    return tuple(dict.fromkeys(cpus))


def cpu_list(cpus: Iterable[int]) -> str:
    """Formats CPUs as a list like ``0-2,5``, each once and in ascending order."""
    parts: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if parts and parts[-1][-1] == cpu - 1:
            parts[-1].append(cpu)
        else:
            parts.append([cpu])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


# NUMA nodes.


class NumaNode(Frozen):
    """A NUMA node that has CPUs; its number is the kernel's."""

    number: int
    cpus: tuple[int, ...]


class RanOn(Frozen):
    """Where a process actually ran, according to ``/proc/PID``, as opposed to where it was asked to run."""

    cpus: tuple[int, ...]
    """The CPUs on which the kernel allowed the process to run (``Cpus_allowed_list``)."""
    pages: dict[int, int] | None = None
    """Anonymous pages of the process's memory by node (``numa_maps``); None where the kernel does not report them."""
