"""Huge pages: how many there are, of which size, and whether the kernel makes transparent ones."""

from __future__ import annotations

import re
from typing import Annotated, Any, TypedDict

from nicbench.core.described import Facts, Label, Subject, Write
from nicbench.core.errors import UnknownFactError
from nicbench.hosts.asking import text_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.meminfo import parse_meminfo
from nicbench.system.inventory.subjects import join_texts, part_of

_TRANSPARENT = "/sys/kernel/mm/transparent_hugepage/enabled"


class _HugePages(TypedDict):
    """Of the default size; transparent ones as the kernel gives them."""

    pages: int | None
    free_pages: int | None
    page_bytes: Annotated[int | None, Label("Page size")]
    transparent: str | None


def _tell_huge_pages(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "huge_pages")
    if found.get("pages") is None:
        return None
    size = write("_bytes", found.get("page_bytes"))
    return join_texts(f"{found['pages']} of {size}", f"transparent: {found.get('transparent')}")


class HugePages(Fact):
    """From ``/proc/meminfo`` and ``/sys/kernel/mm/transparent_hugepage``."""

    kind = "huge_pages"
    shape = _HugePages
    of_machine = True
    subjects = (Subject("Huge pages", 200, _tell_huge_pages),)

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
