"""Multicast latency (RFC 3918 sections 5.1 and 5.2): how long frames to groups take to each of the ports that joined.

Steps, for each frame size: all ports but the first join the groups, and frames go to each group in turn, at a share of
the rate that an earlier `multicast-throughput` found, for a trial. Every frame is timed at every port; how far ports
are apart is the range of their means. With a burden (section 8.1) the last ports join nothing and send to each other
from before the first frame to a group until the last. Verified: every frame at every port by its signature and its
payload; burdening ports must get no frame to a group.
"""

from __future__ import annotations

from typing import Any, ClassVar

from nicbench.core.headers import Burden, Groups
from nicbench.core.table import ResultTable
from nicbench.methods.base import Context, Objection
from nicbench.methods.multicast._groups import GroupOptions, ports_objection
from nicbench.methods.multicast._latency import LatencyOptions, PortsLatency, latency_table


class MulticastLatency(PortsLatency):
    """The latency of frames to groups, at each port."""

    kind: ClassVar[str] = "multicast-latency"
    times_one_way: ClassVar[bool] = True
    question: ClassVar[str] = "How long does {subject} delay multicast frames to each port?"

    class Options(LatencyOptions, GroupOptions):
        """Options of the bench file."""

        burden: Burden | None = None
        """Ports that join no group and load the DUT meanwhile (RFC 3918 section 8.1); without it there are none."""

    options: Options

    def objection(self, context: Any) -> Objection | None:
        return ports_objection(context, self.groups_of(context))

    def groups_of(self, context: Context) -> Groups:
        return self.options.request_groups(context.ports, self.options.burden)

    @classmethod
    def table(cls) -> ResultTable:
        return latency_table("Multicast latency", "RFC 3918 sections 5.1, 5.2 and 8.1")
