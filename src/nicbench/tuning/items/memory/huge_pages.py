"""Huge pages of a size, on the whole machine or on a NUMA node: at least so many; nobody's are taken away.

Source: Documentation/admin-guide/mm/hugetlbpage.rst.
"""

from __future__ import annotations

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.plan import Values
from nicbench.core.quantity import Bytes
from nicbench.tuning.items.base import Item, Phase, Place
from nicbench.tuning.setting import CannotSetError

_KIB = 1024


class HugePagesOptions(Frozen):
    """``huge_pages: 1024``; ``node`` is a NUMA node, and without it the kernel spreads them over all."""

    pages: int = Field(ge=1, le=10_000_000)
    size: Bytes = 2048 * _KIB
    node: int | None = Field(default=None, ge=0, le=1023)


class HugePagesItem(Item):
    """What a tester or a DUT of DPDK needs is raised for it anyway; this is for those that nicbench does not start."""

    kind = "huge_pages"
    Options = HugePagesOptions
    options: HugePagesOptions
    scope = "machine"
    phase = Phase.MACHINE
    alone = "pages"

    async def read(self, place: Place) -> Values:
        text = await place.host.read_file(self._path())
        if text is None:
            size = f"{self.options.size // _KIB} KiB"
            of_node = "" if self.options.node is None else f" on a NUMA node {self.options.node}"
            raise CannotSetError(f"this machine has no huge pages of {size}{of_node}")
        return {"pages": int(text)}

    def target_values(self, now: Values) -> Values:
        return {"pages": max(self.options.pages, int(str(now["pages"])))}

    async def write(self, place: Place, values: Values) -> None:
        await place.host.write_file(self._path(), str(values["pages"]))

    def _path(self) -> str:
        node = self.options.node
        folder = "/sys/kernel/mm" if node is None else f"/sys/devices/system/node/node{node}"
        return f"{folder}/hugepages/hugepages-{self.options.size // _KIB}kB/nr_hugepages"
