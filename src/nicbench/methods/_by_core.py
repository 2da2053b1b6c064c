"""Latency in two groups: frames that had the DUT's core to themselves, and those that a neighbour may have delayed."""

from __future__ import annotations

from typing import Final

from nicbench.core.table import Column, FurtherTable
from nicbench.core.trial import Latency
from nicbench.stats.latency import split_by_core

_PERCENTILES: Final = ("50", "99", "99.9")
_SHARED_PERCENT: Final = "latency_shared_core_percent"


def by_core_values(latency: Latency | None) -> dict[str, float | int | None]:
    """Returns the percentiles of both groups; empty where no sample found the core shared, or there are no samples."""
    apart = split_by_core(latency) if latency is not None else None
    if apart is None or apart.shared_count == 0:
        return {}
    return {
        _SHARED_PERCENT: 100 * apart.shared_count / (apart.shared_count + apart.own_count),
        **{_name("own", percentile): apart.own_ns.get(percentile) for percentile in _PERCENTILES},
        **{_name("shared", percentile): apart.shared_ns.get(percentile) for percentile in _PERCENTILES},
    }


def by_core_table(size: Column, values: frozenset[str]) -> tuple[FurtherTable, ...]:
    """Returns the table of the results that have such ``values``; empty where no neighbour was seen."""
    if _SHARED_PERCENT not in values:
        return ()
    columns = [
        Column(value=_name(core, percentile), head=f"p{percentile}", group=heading, is_optional=True)
        for core, heading in (("own", "Dedicated core"), ("shared", "Core shared"))
        for percentile in _PERCENTILES
    ]
    return (
        FurtherTable(
            title="Latency with and without a neighbour on the core",
            caption=(
                "Of the frames above, those that were under way while a look at the DUT's core found its physical core "
                "shared with another hyperthread or guest, and the others. A look stands for the time until the next."
            ),
            columns=(size, Column(value=_SHARED_PERCENT, head="Frames, core shared", form="of_frames"), *columns),
        ),
    )


def _name(core: str, percentile: str) -> str:
    return f"latency_{core}_core_p{percentile.replace('.', '_')}_ns"
