"""Frames that the DUT's connection tracking dropped, mostly for want of room in its table (``nf_conntrack_max``)."""

from __future__ import annotations

from nicbench.measure.ledger.base import Count, Side, Source, Stage, View


class Conntrack(Source):
    """The sum over all CPUs of the column ``drop``."""

    kind = "conntrack"
    sides = frozenset({Side.DUT})

    def script(self, view: View) -> str:
        return "cat /proc/net/stat/nf_conntrack" if view.devices else ""

    def read(self, text: str, view: View) -> tuple[Count, ...]:
        lines = [line.split() for line in text.splitlines() if line.strip()]
        if len(lines) < 2 or "drop" not in lines[0]:
            return ()
        column = lines[0].index("drop")
        dropped = sum(int(fields[column], 16) for fields in lines[1:])
        return (
            Count(
                key=f"{view.side}: conntrack drop",
                name="nf_conntrack drop",
                frames=dropped,
                stage=Stage.DUT_FIREWALL,
                place=f"{view.side}, connection tracking",
            ),
        )
