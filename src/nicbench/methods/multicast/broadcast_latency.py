"""Broadcast latency (RFC 2889 section 5.10): how long frames to all stations take to each port.

Steps, for each frame size: frames to ff:ff:ff:ff:ff:ff go from the first port, at a share of the rate that an earlier
`broadcast-throughput` found, for a trial. Every frame is timed at every port; how far the ports are apart is the range
of their means. Verified: every frame at every port by its signature and its payload.
"""

from __future__ import annotations

from typing import Any, ClassVar

from nicbench.core.headers import Groups
from nicbench.core.table import ResultTable
from nicbench.methods.base import Context, Objection
from nicbench.methods.multicast._groups import STATIONS, ports_objection
from nicbench.methods.multicast._latency import LatencyOptions, PortsLatency, latency_table


class BroadcastLatency(PortsLatency):
    """The latency of frames to all stations, at each port."""

    kind: ClassVar[str] = "broadcast-latency"
    times_one_way: ClassVar[bool] = True
    question: ClassVar[str] = "How long does {subject} delay broadcast frames to each port?"

    class Options(LatencyOptions):
        """Options of the bench file."""

    options: Options

    def objection(self, context: Any) -> Objection | None:
        return ports_objection(context, STATIONS)

    def groups_of(self, context: Context) -> Groups:
        return STATIONS

    @classmethod
    def table(cls) -> ResultTable:
        return latency_table("Broadcast latency", "RFC 2889 section 5.10")
