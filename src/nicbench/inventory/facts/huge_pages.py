"""Huge pages: how many there are, of which size, and whether the kernel makes transparent ones."""

from __future__ import annotations

import re
from typing import Any

from nicbench.hosts.base import Host
from nicbench.inventory._asking import text_of
from nicbench.inventory.base import Fact, UnknownFactError
from nicbench.inventory.meminfo import parse_meminfo

_TRANSPARENT = "/sys/kernel/mm/transparent_hugepage/enabled"


class HugePages(Fact):
    """From ``/proc/meminfo`` and ``/sys/kernel/mm/transparent_hugepage``."""

    kind = "huge_pages"
    of_machine = True

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        found = parse_meminfo(await text_of(host, "/proc/meminfo"))
        try:
            transparent = selected(await text_of(host, _TRANSPARENT))
        except UnknownFactError:
            transparent = None
        return {
            "pages": found.get("HugePages_Total"),
            "free_pages": found.get("HugePages_Free"),
            "page_bytes": found.get("Hugepagesize"),
            "transparent": transparent,
        }


def selected(text: str) -> str | None:
    """The word in brackets of ``always [madvise] never``."""
    found = re.search(r"\[(\w+)\]", text)
    return found[1] if found else None
