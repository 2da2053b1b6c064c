"""Multicast throughput (RFC 3918 sections 4.1, 4.3): the highest rate of frames to groups that every port gets.

Steps, for each frame size: all ports but the first join the groups; after a pause frames go from the first port to each
group in turn, for a trial; the ports leave. A share of all frames may go to single stations, one at each port in turn,
in between: the rate is then that of both classes together (section 4.1). The search is that of `throughput`: a
frame that is missing at one of the ports is lost there, and the share that is lost is of the frames that all ports
should have got. Verified: every frame at every port by its signature and its payload.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from nicbench.core.frame_size import Size
from nicbench.core.reading import Counts
from nicbench.core.result import Result
from nicbench.core.table import ImportTable, ResultTable
from nicbench.core.traffic import Ability
from nicbench.core.trial import StreamReading, Trial, TrialRequest
from nicbench.core.units import format_rate
from nicbench.methods.base import Context, Objection, Values
from nicbench.methods.multicast._groups import ABILITIES, GroupOptions, ports_objection, to_groups, to_stations
from nicbench.methods.throughput import Throughput

_LOST_FIRST = "lost_first"


class MulticastThroughput(Throughput):
    """The throughput of frames to multicast groups."""

    kind: ClassVar[str] = "multicast-throughput"
    chooses_ways: ClassVar[bool] = True
    takes_broadcasts: ClassVar[bool] = False
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
        return super()._request(size).replace(groups=self.options.request_groups(self._ports))

    @classmethod
    def imports(cls) -> ImportTable | None:
        return None

    @classmethod
    def table(cls) -> ResultTable:
        table = super().table()
        notes = (*table.notes, (_LOST_FIRST, "Lost first"))
        return table.replace(title="Multicast throughput", notes=notes)

    @classmethod
    def table_values(cls, result: Result, trials: Mapping[str, Trial]) -> Values:
        """Returns also what each class of frames lost at the lowest load that lost any."""
        lossy = [trials[name] for name in result.trials if name in trials and trials[name].reading.counts.lost]
        lowest = min(lossy, key=lambda trial: trial.request.sent_frames_per_s or 0.0, default=None)
        said = None if lowest is None or not to_stations(lowest) else _lost_first(lowest)
        return {**super().table_values(result, trials), **({} if said is None else {_LOST_FIRST: said})}


def _lost_first(trial: Trial) -> str:
    groups, stations = (_lost_of(streams) for streams in (to_groups(trial), to_stations(trial)))
    load = format_rate(trial.request.sent_frames_per_s or 0.0)
    return f"at {load} {groups} frames to groups and {stations} to single stations, counted at the receiving ports"


def _lost_of(streams: Sequence[StreamReading]) -> str:
    counts = Counts.sum_of(stream.counts for stream in streams)
    return f"{counts.lost} of {counts.sent}"
