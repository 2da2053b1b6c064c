"""NUMA nodes of a machine: which CPUs are near which memory."""

from __future__ import annotations

from nicbench.model.base import Frozen


class NumaNode(Frozen):
    """A node that has CPUs, by the kernel's number."""

    number: int
    cpus: tuple[int, ...]


class RanOn(Frozen):
    """Where a process was while it worked, by its own ``/proc/PID``: not where it was asked to be."""

    cpus: tuple[int, ...]
    """Those that the kernel allowed it (``Cpus_allowed_list``)."""
    pages: dict[int, int] | None = None
    """Of its own memory, by node (``numa_maps``, anonymous pages); None where the kernel does not tell."""
