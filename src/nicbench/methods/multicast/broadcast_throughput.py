"""Broadcast throughput (RFC 2889 section 5.10): the highest rate of frames to all stations that every port gets.

Steps, for each frame size: frames to ff:ff:ff:ff:ff:ff go from the first port, for a trial. The search is that of
`throughput`: a frame that is missing at one of the ports is lost there, and the share that is lost is of the frames
that all ports should have got. Verified: every frame at every port by its signature and its payload.
"""

from __future__ import annotations

from typing import Any, ClassVar

from nicbench.core.frame_size import Size
from nicbench.core.table import ImportTable, ResultTable
from nicbench.core.traffic import Ability
from nicbench.core.trial import TrialRequest
from nicbench.methods.base import Objection
from nicbench.methods.multicast._groups import ABILITIES, STATIONS, ports_objection
from nicbench.methods.throughput import Throughput


class BroadcastThroughput(Throughput):
    """The throughput of frames to all stations."""

    kind: ClassVar[str] = "broadcast-throughput"
    chooses_ways: ClassVar[bool] = True
    takes_broadcasts: ClassVar[bool] = False
    question: ClassVar[str] = "How many broadcast frames a second does {subject} pass to every port, by frame size?"

    class Options(Throughput.Options):
        """Options of the bench file."""

    options: Options

    def abilities(self) -> frozenset[Ability]:
        return ABILITIES

    def objection(self, context: Any) -> Objection | None:
        return ports_objection(context, STATIONS)

    def _request(self, size: Size) -> TrialRequest:
        return super()._request(size).replace(groups=STATIONS)

    @classmethod
    def imports(cls) -> ImportTable | None:
        return None

    @classmethod
    def table(cls) -> ResultTable:
        return super().table().replace(title="Broadcast throughput")
