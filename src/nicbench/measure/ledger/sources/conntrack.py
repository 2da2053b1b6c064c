"""Frames that the DUT's connection tracking dropped: a full table, or two connections that were translated into one."""

from __future__ import annotations

from typing import Final

from nicbench.measure.ledger.base import Count, Side, Source, Stage, View

_PLACES: Final = {
    "drop": "connection tracking, its table full (nf_conntrack_max)",
    "insert_failed": "connection tracking, a connection like it was there already",
}
"""The columns of lost frames. Those of ``early_drop`` are connections that made room for others: no frame is lost."""


class Conntrack(Source):
    """The sum over all CPUs of each column."""

    kind = "conntrack"
    sides = frozenset({Side.DUT})

    def script(self, view: View) -> str:
        return "cat /proc/net/stat/nf_conntrack" if view.devices else ""

    def read(self, text: str, view: View) -> tuple[Count, ...]:
        head, *cpus = [line.split() for line in text.splitlines() if line.strip()] or [[]]
        return tuple(
            Count(
                key=f"{view.side}: conntrack {column}",
                name=f"nf_conntrack {column}",
                frames=sum(int(fields[head.index(column)], 16) for fields in cpus),
                stage=Stage.DUT_FIREWALL,
                place=f"{view.side}, {place}",
                # Which kernels count such a frame in `drop` as well depends on why it could not be inserted.
                within=(f"{view.side}: conntrack drop",) if column == "insert_failed" else (),
            )
            for column, place in _PLACES.items()
            if cpus and column in head
        )
