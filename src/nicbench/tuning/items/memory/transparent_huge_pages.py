"""Whether programs get huge pages without asking, and whether memory is compacted for it, which holds them up.

Source: Documentation/admin-guide/mm/transhuge.rst.
"""

from __future__ import annotations

from typing import Literal

from nicbench.core.base import Frozen
from nicbench.core.plan import Values
from nicbench.tuning.items._files import FilesItem
from nicbench.tuning.items.base import Phase


class TransparentHugePagesOptions(Frozen):
    """``transparent_huge_pages: never``; ``defrag`` stays as it is where it is not given."""

    enabled: Literal["always", "madvise", "never"]
    defrag: Literal["always", "defer", "defer+madvise", "madvise", "never"] | None = None


class TransparentHugePages(FilesItem):
    """For all sizes that follow the common setting."""

    kind = "transparent_huge_pages"
    Options = TransparentHugePagesOptions
    options: TransparentHugePagesOptions
    scope = "machine"
    phase = Phase.MACHINE
    alone = "enabled"
    folder = "/sys/kernel/mm/transparent_hugepage/"
    patterns = ("enabled", "defrag")
    missing = "this kernel has no transparent huge pages"

    def target_values(self, now: Values) -> Values:
        return dict(self.options.model_dump(exclude_none=True))
