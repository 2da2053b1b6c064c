"""Huge pages: a run that wants them raises their number itself, where the kernel has any."""

from __future__ import annotations

from nicbench.doctor.base import Check, Examination, ok, warning
from nicbench.hosts.base import Host
from nicbench.tuning.preparation import HugePages, huge_pages_of_meminfo


class HugePagesCheck(Examination):
    """From ``/proc/meminfo``."""

    kind = "huge_pages"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        return (judge(huge_pages_of_meminfo(await host.read_file("/proc/meminfo") or "")),)


def judge(pages: HugePages | None) -> Check:
    """They are never required: the engine also runs without."""
    if pages is None:
        return warning("huge pages", "this kernel has none; use `huge_pages: false`")
    return ok(
        "huge pages",
        f"{pages.available} of {pages.total} free, {pages.page_kib} KiB each; a run that wants more makes them",
    )
