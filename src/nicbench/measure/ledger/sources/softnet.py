"""Frames that found the backlog in front of a CPU full (``/proc/net/softnet_stat``; net.core.netdev_max_backlog).

The kernel counts them here, for the whole machine and all its namespaces, and in the receiving device's ``rx_dropped``.
"""

from __future__ import annotations

from nicbench.measure.ledger.base import Count, Side, Source, Stage, View

_DROPPED, _CPU = 1, 12


class Softnet(Source):
    """One counter for each online CPU."""

    kind = "softnet"
    once_per_machine = True

    def script(self, view: View) -> str:
        return "cat /proc/net/softnet_stat"

    def read(self, text: str, view: View) -> tuple[Count, ...]:
        return tuple(
            Count(
                key=f"{view.side}: softnet cpu{cpu}",
                name=f"softnet_backlog cpu{cpu}",
                frames=frames,
                stage=view.stage(Stage.TESTER_BACKLOG, Stage.DUT_BACKLOG),
                place=f"{view.side}, backlog of CPU {cpu}",
                machine_wide=True,
                by_tester=view.side is not Side.DUT,
            )
            for cpu, frames in softnet_drops(text).items()
        )


def softnet_drops(text: str) -> dict[int, int]:
    """Frames dropped at the full backlog of each CPU (hexadecimal; one line an online CPU)."""
    dropped: dict[int, int] = {}
    for number, line in enumerate(text.splitlines()):
        fields = line.split()
        if len(fields) <= _DROPPED:
            continue
        # Since Linux 5.14 the line names its CPU; before, only the order did.
        cpu = int(fields[_CPU], 16) if len(fields) > _CPU else number
        dropped[cpu] = int(fields[_DROPPED], 16)
    return dropped
