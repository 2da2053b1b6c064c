"""Whether the kernel looks for equal pages of memory and merges them (KSM), which takes CPU time.

Source: Documentation/admin-guide/mm/ksm.rst. Off leaves merged what was merged.
"""

from __future__ import annotations

from nicbench.tuning.items._files import SwitchItem, SwitchOptions
from nicbench.tuning.items.base import Phase


class PageMerging(SwitchItem):
    """/sys/kernel/mm/ksm/run."""

    kind = "page_merging"
    Options = SwitchOptions
    scope = "machine"
    phase = Phase.MACHINE
    alone = "on"
    folder = "/sys/kernel/mm/ksm/"
    patterns = ("run",)
    missing = "this kernel does not merge pages (CONFIG_KSM)"
