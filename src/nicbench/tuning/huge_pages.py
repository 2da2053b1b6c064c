"""Huge pages: raised by what a run lacks, and put back after it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from nicbench.core.errors import HostError, NotReadyError
from nicbench.hosts.base import Host
from nicbench.tuning.changes import Changes

_NUMBER_PATH = "/proc/sys/vm/nr_hugepages"
_LINE = re.compile(r"^(\w+):\s+(\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class HugePages:
    """What /proc/meminfo says of huge pages of the default size. ``available`` are free and not promised to anybody."""

    page_kib: int
    total: int
    available: int

    def lacking(self, needed_bytes: int) -> int:
        """How many more pages are needed to have ``needed_bytes`` available."""
        pages = -(-needed_bytes // (self.page_kib * 1024))
        return max(0, pages - self.available)


def huge_pages_of_meminfo(text: str) -> HugePages | None:
    """Parses /proc/meminfo; None where the kernel has no huge pages."""
    values = {name: int(number) for name, number in _LINE.findall(text)}
    if "Hugepagesize" not in values or "HugePages_Total" not in values:
        return None
    available = values.get("HugePages_Free", 0) - values.get("HugePages_Rsvd", 0)
    return HugePages(values["Hugepagesize"], values["HugePages_Total"], max(0, available))


async def raise_huge_pages(
    changes: Changes, host: Host, needed_bytes: int, option: str = "tester.huge_pages"
) -> HugePages:
    """Makes sure that ``needed_bytes`` are available; gives the state before.

    NotReadyError where the kernel finds no more of them; it names the bench file's ``option`` that does without.
    """
    before = huge_pages_of_meminfo(await host.read_file("/proc/meminfo") or "")
    if before is None:
        raise NotReadyError(
            "this kernel has no huge pages", place=host.name, next_step=f"set {option}: false in the bench file"
        )
    lacking = before.lacking(needed_bytes)
    if lacking:
        try:
            await changes.set_file(host, _NUMBER_PATH, str(before.total + lacking))
        except HostError as error:
            raise NotReadyError(
                f"{lacking} more huge pages of {before.page_kib} KiB are needed: {error.message}",
                place=host.name,
                next_step=f"free memory or reboot, or set {option}: false in the bench file",
            ) from error
    return before
