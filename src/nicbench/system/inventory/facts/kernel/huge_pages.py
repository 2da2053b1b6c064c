"""Huge pages: how many there are, of which size, and whether the kernel makes transparent ones."""

from __future__ import annotations

import re
from typing import Annotated, Any, TypedDict

from nicbench.core.described import Label
from nicbench.core.errors import UnknownFactError
from nicbench.hosts.asking import text_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.meminfo import parse_meminfo

_TRANSPARENT = "/sys/kernel/mm/transparent_hugepage/enabled"


class _HugePages(TypedDict):
    """Of the default size; transparent ones as the kernel gives them."""

    pages: int | None
    free_pages: int | None
    page_bytes: Annotated[int | None, Label("Page size")]
    transparent: str | None


class HugePages(Fact):
    """From ``/proc/meminfo`` and ``/sys/kernel/mm/transparent_hugepage``."""

    kind = "huge_pages"
    shape = _HugePages
    of_machine = True

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        found = parse_meminfo(await text_of(host, "/proc/meminfo"))
        try:
            transparent = selected_word(await text_of(host, _TRANSPARENT))
        except UnknownFactError:
            transparent = None
        return {
            "pages": found.get("HugePages_Total"),
            "free_pages": found.get("HugePages_Free"),
            "page_bytes": found.get("Hugepagesize"),
            "transparent": transparent,
        }


def selected_word(text: str) -> str | None:
    """The word in brackets of ``always [madvise] never``."""
    found = re.search(r"\[(\w+)\]", text)
    return found[1] if found else None
