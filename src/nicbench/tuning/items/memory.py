"""Settings of memory: huge pages, merging of pages, and moving them between NUMA nodes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.plan import Values
from nicbench.core.quantity import Bytes
from nicbench.tuning.items.base import FilesItem, Item, Phase, SwitchItem
from nicbench.tuning.setting import CannotSetError, Place

_KIB = 1024


class HugePagesOptions(Frozen):
    """``huge_pages: 1024``; ``node`` is a NUMA node, and without it the kernel spreads them over all."""

    pages: int = Field(ge=1, le=10_000_000)
    size: Bytes = 2048 * _KIB
    node: int | None = Field(default=None, ge=0, le=1023)


class HugePagesItem(Item):
    """Provides at least a number of huge pages of one size, on the whole machine or on a NUMA node; never reduces them.

    Source: Documentation/admin-guide/mm/hugetlbpage.rst.

    What a tester or a DUT of DPDK needs is raised for it anyway; this is for those that nicbench does not start.
    """

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


class TransparentHugePagesOptions(Frozen):
    """``transparent_huge_pages: never``; ``defrag`` keeps its value unless it is given."""

    enabled: Literal["always", "madvise", "never"]
    defrag: Literal["always", "defer", "defer+madvise", "madvise", "never"] | None = None


class TransparentHugePages(FilesItem):
    """Whether programs get huge pages without asking, and whether memory is compacted for it, which holds them up.

    Source: Documentation/admin-guide/mm/transhuge.rst.

    For all sizes that follow the common setting.
    """

    kind = "transparent_huge_pages"
    Options = TransparentHugePagesOptions
    options: TransparentHugePagesOptions
    alone = "enabled"
    folder = "/sys/kernel/mm/transparent_hugepage/"
    patterns = ("enabled", "defrag")
    missing = "this kernel has no transparent huge pages"

    def target_values(self, now: Values) -> Values:
        return dict(self.options.model_dump(exclude_none=True))


class PageMerging(SwitchItem):
    """Whether the kernel looks for equal pages of memory and merges them (KSM), which takes CPU time.

    Source: Documentation/admin-guide/mm/ksm.rst. Off leaves merged what was merged.

    /sys/kernel/mm/ksm/run.
    """

    kind = "page_merging"
    folder = "/sys/kernel/mm/ksm/"
    patterns = ("run",)
    missing = "this kernel does not merge pages (CONFIG_KSM)"


class NumaBalancing(SwitchItem):
    """Whether the kernel moves memory and processes between NUMA nodes while they work.

    Source: Documentation/admin-guide/sysctl/kernel.rst, numa_balancing. Its page faults are seen as latency.

    kernel.numa_balancing; 1 is the ordinary kind.
    """

    kind = "numa_balancing"
    folder = "/proc/sys/kernel/"
    patterns = ("numa_balancing",)
    missing = "this kernel has no NUMA balancing"
