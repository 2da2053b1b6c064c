"""Multicast throughput (RFC 3918 section 5.3): the highest rate of frames to groups that every port gets.

Steps, for each frame size: all ports but the first join the groups; after a pause frames go from the first port to each
group in turn, for a trial; the ports leave. The search is that of `throughput`: a frame that is missing at one of the
ports is lost there, and the share that is lost is of the frames that all ports should have got. Verified: every frame
at every port by its signature and its payload.
"""

from __future__ import annotations

from typing import Any, ClassVar

from nicbench.core.frame_size import Size
from nicbench.core.result import Result
from nicbench.core.table import ImportTable, ResultTable
from nicbench.core.traffic import Ability
from nicbench.core.trial import TrialRequest
from nicbench.methods.base import Context, Objection
from nicbench.methods.multicast._groups import ABILITIES, GroupOptions, ports_objection
from nicbench.methods.throughput import Throughput


class MulticastThroughput(Throughput):
    """The throughput of frames to multicast groups."""

    kind: ClassVar[str] = "multicast-throughput"
    chooses_ways: ClassVar[bool] = True
    question: ClassVar[str] = "How many multicast frames a second does {subject} pass to every port, by frame size?"

    class Options(Throughput.Options, GroupOptions):
        """Options of the bench file."""

    options: Options
    _ports = 0

    def abilities(self) -> frozenset[Ability]:
        return ABILITIES

    def objection(self, context: Any) -> Objection | None:
        return ports_objection(context, self.options.request_groups(context.ports))

    async def run(self, context: Context) -> tuple[Result, ...]:
        self._ports = context.ports
        return await super().run(context)

    def _request(self, size: Size) -> TrialRequest:
        return super()._request(size).model_copy(update={"groups": self.options.request_groups(self._ports)})

    @classmethod
    def imports(cls) -> ImportTable | None:
        return None

    @classmethod
    def table(cls) -> ResultTable:
        return super().table().model_copy(update={"title": "Multicast throughput"})
