"""Connection tracking of the Linux kernel (nf_conntrack) in one network namespace."""

from __future__ import annotations

from typing import Final

from nicbench.core.base import Frozen

SETTINGS: Final = "/proc/sys/net/netfilter"
LIMIT: Final = f"{SETTINGS}/nf_conntrack_max"
COUNT: Final = f"{SETTINGS}/nf_conntrack_count"
STATISTICS: Final = "/proc/net/stat/nf_conntrack"
LOOK_SCRIPT: Final = f"cat {LIMIT} {COUNT} {STATISTICS}"


class TableLook(Frozen):
    """The table of connections at one moment: its size, how many it holds, and cumulative counts."""

    limit: int
    held: int
    refused: int
    """Packets of new connections that found the table full."""
    replaced: int
    """Connections that gave their place to others."""


def read_statistics(text: str) -> dict[str, int]:
    """Returns the sum over all CPUs of each column of ``STATISTICS``; empty where it printed nothing."""
    head, *cpus = [line.split() for line in text.splitlines() if line.strip()] or [[]]
    return {column: sum(int(fields[at], 16) for fields in cpus) for at, column in enumerate(head) if cpus}


def read_look(text: str) -> TableLook | None:
    """Returns what ``LOOK_SCRIPT`` printed; None where the kernel tracks no connections."""
    limit, _, rest = text.partition("\n")
    held, _, statistics = rest.partition("\n")
    if not (limit.isdecimal() and held.isdecimal()):
        return None
    counts = read_statistics(statistics)
    # A frame that could not be inserted for another reason may be counted in `drop` as well.
    refused = max(0, counts.get("drop", 0) - counts.get("insert_failed", 0))
    return TableLook(limit=int(limit), held=int(held), refused=refused, replaced=counts.get("early_drop", 0))
