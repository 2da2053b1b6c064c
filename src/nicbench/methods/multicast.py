"""Frames that several ports receive: throughput and latency of multicast (RFC 3918) and broadcast (RFC 2889)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.frame_size import FrameSizes, Size, size_parameters
from nicbench.core.headers import (
    BURDEN,
    JOIN,
    LEAVE,
    MOST_GROUPS,
    RECORDS_OF_A_REPORT,
    UNICAST,
    WATCHED,
    Burden,
    Groups,
)
from nicbench.core.pattern import MOST_STREAMS_AT_ONCE, Pattern, way_of_stream
from nicbench.core.quantity import Percent, Ratio
from nicbench.core.reading import Counts
from nicbench.core.result import Bounded, Result, ResultVerdict
from nicbench.core.table import Column, ImportTable, ResultTable
from nicbench.core.traffic import Ability
from nicbench.core.trial import Latency, Purpose, StreamReading, Trial, TrialRequest
from nicbench.core.units import format_rate
from nicbench.methods._loads import NDR, Pause, TrialTimes, earlier_rate
from nicbench.methods._results import result_at, verdict_of
from nicbench.methods.base import FRAME, PORT, Context, FrameMethod, Objection, Values
from nicbench.methods.throughput import Throughput

# What tests of frames that several ports receive share: who receives them, and how ports join.


ABILITIES: Final = frozenset({Ability.COPIES, Ability.FRAME_COUNT})


class Joining(Frozen):
    """How ports join groups."""

    older: bool = False
    """IGMPv2 and MLDv1 in place of IGMPv3 and MLDv2."""
    pause: Pause = 0.5
    """How long after the joins the first frame is sent."""


class GroupOptions(Frozen):
    """The groups of a test, all of which every receiving port joins."""

    groups: int = Field(default=1, ge=1, le=MOST_GROUPS)
    """How many groups; frames go to each in turn."""
    joining: Joining = Joining()
    """How ports join."""
    unicast: Ratio = Field(default=0.0, ge=0.0, lt=1.0)
    """The share of the load that goes to single stations, one at each port in turn (RFC 3918 section 4.1: `50 %`)."""

    def request_groups(self, ports: int, burden: Burden | None = None) -> Groups:
        """Returns what a trial is asked for, in which all ports but the sending and burdening ones join first."""
        return Groups(
            groups=self.groups,
            members=max(1, ports - 1 - (burden.ports if burden is not None else 0)),
            unicast=self.unicast,
            burden=burden,
            older=self.joining.older,
            send_s=self.joining.pause,
        )


STATIONS: Final = Groups(groups=0, members=1)
"""Frames to all stations: nobody joins."""


def ports_objection(context: Any, groups: Groups) -> Objection | None:
    """Returns why ports, pattern or groups do not suit."""
    if context.pattern is not Pattern.ONE_TO_MANY:
        return Objection(
            message=f"one port sends and all others receive, and the pattern is {context.pattern.value}",
            next_step="write `pattern: one-to-many` under `traffic`",
        )
    if context.bidirectional:
        return Objection(
            message="receiving ports send nothing but reports, and the traffic goes both ways",
            next_step="leave `bidirectional` out under `traffic`",
        )
    burdening = 0 if groups.burden is None else groups.burden.ports
    if groups.members + burdening > context.ports - 1:
        return Objection(
            message=f"{burdening} of {context.ports} ports are the `burden`, and none is left that receives",
            next_step=f"add ports ({2 + burdening} at least), or lower `ports` under `burden`",
        )
    beside = (groups.members if groups.unicast else 0) + burdening * (burdening - 1)
    copies, reports = context.ports - 1 + beside, 2 * groups.members * groups.reports(context.ip)
    if copies + reports > MOST_STREAMS_AT_ONCE:
        each = "one report for each" if groups.older else f"reports of {RECORDS_OF_A_REPORT[context.ip]}"
        return Objection(
            message=f"{groups.groups} groups at {groups.members} ports take {reports} frames to join and to leave "
            f"({each}), and beside {copies} streams of other frames the tester has room for "
            f"{MOST_STREAMS_AT_ONCE - copies}",
            next_step="try fewer groups or ports" + (", or leave `older` out" if groups.older else ""),
        )
    return None


def unsent_reports(trial: Trial) -> int:
    """Returns how many reports never left the tester: their groups were not asked for."""
    return sum(stream.counts.unsent for stream in trial.reading.beside if stream.name.endswith((JOIN, LEAVE)))


def watched(trial: Trial) -> Sequence[StreamReading]:
    """Returns the copies at ports that should get no frame."""
    return [stream for stream in trial.reading.beside if stream.name.endswith(WATCHED)]


def to_groups(trial: Trial) -> Sequence[StreamReading]:
    """Returns the load without its frames to single stations."""
    return [stream for stream in trial.reading.streams if not stream.name.endswith(UNICAST)]


def to_stations(trial: Trial) -> Sequence[StreamReading]:
    """Returns the frames to single stations that are part of the load."""
    return [stream for stream in trial.reading.streams if stream.name.endswith(UNICAST)]


BURDEN_COLUMNS: Final = (
    Column("burden_frames_per_s", "Burden", is_optional=True),
    Column("burden_loss_percent", "Burden lost", unit="%", form="of_frames", is_optional=True),
)


def burden_values(trials: Sequence[Trial]) -> Values:
    """Returns what each burdening port sent, and what of it was lost; nothing without a burden."""
    burden = next((trial.request.groups.burden for trial in trials if trial.request.groups is not None), None)
    if burden is None:
        return {}
    beside = (stream for trial in trials for stream in trial.reading.beside if stream.name.endswith(BURDEN))
    counts = Counts.sum_of(stream.counts for stream in beside)
    return {
        "burden_frames_per_s": burden.rate * counts.sent / counts.intended if counts.intended else None,
        "burden_loss_percent": 100.0 * counts.loss_ratio if counts.sent else None,
    }


# The latency of frames that several ports receive: a result for each port, of one trial at a load.


class LatencyOptions(Frozen):
    """Options of a test of latency at several ports."""

    at: str
    """The name of an earlier test of the throughput of such frames."""
    of: str = NDR
    """Which of its rates is 100 %."""
    load: Percent = 100.0
    """The load, as a share of that rate."""
    frame_bytes: FrameSizes = (64,)
    """Frame sizes, measured by the earlier test."""
    trial: TrialTimes = TrialTimes(duration=120.0)
    """Times of a trial."""


class PortsLatency(FrameMethod):
    """The latency at each port, and how far ports are apart."""

    gives_points = False
    chooses_ways = True

    options: Any
    """``LatencyOptions``, or options that extend them."""

    def abilities(self) -> frozenset[Ability]:
        return ABILITIES | {Ability.LATENCY}

    def needs(self) -> str | None:
        return str(self.options.at)

    def estimate_s(self) -> float:
        return float(self.options.trial.estimate_s(self.points()))

    @abstractmethod
    def groups_of(self, context: Context) -> Groups:
        """Returns who receives."""

    async def results(self, context: Context) -> AsyncIterator[Result]:
        for size in context.sizes(self.options.frame_bytes):
            for result in await self._measure_size(context, size):
                yield result

    async def _measure_size(self, context: Context, size: Size) -> tuple[Result, ...]:
        options = self.options
        full = earlier_rate(context, options.at, options.of, size)
        if full.value is None:
            return (self._without_rate(size, full),)
        load = full.value * options.load / 100.0
        request = options.trial.request(size, load, Purpose.LATENCY)
        request = request.replace(groups=self.groups_of(context))
        trial, disturbed = await context.measure(size_parameters(size), request)
        return tuple(self._results(size, trial, disturbed))

    def _results(self, size: Size, trial: Trial, disturbed: bool) -> Iterator[Result]:
        """Yields a result for each port."""
        flooded = sum(stream.counts.received for stream in watched(trial))
        means = [stream.latency.mean_ns for stream in to_groups(trial) if stream.latency is not None]
        apart = max(means) - min(means) if means else None
        for stream in to_groups(trial):
            way = way_of_stream(stream.name)
            port = trial.reading.ports[way[1]].name if way else stream.name
            counts = stream.counts
            values: Values = {
                "load_frames_per_s": trial.request.sent_frames_per_s,
                "received_frames": counts.received,
                "loss_percent": 100.0 * counts.loss_ratio if counts.sent else None,
                **_latency_values(stream.latency),
                "ports_apart_ns": apart,
                **({"flooded_frames": flooded} if watched(trial) else {}),
                **burden_values((trial,)),
            }
            yield result_at(
                self,
                size,
                values,
                verdict_of(trial, disturbed),
                trials=(trial.id,),
                disturbances=trial.verdict.texts if disturbed else (),
                parameters={"port": port},
                point=port,
                scope="at one port",
            )

    def _without_rate(self, size: Size, full: Bounded) -> Result:
        values: Values = {"latency_mean_ns": Bounded(value=None, reason_null=full.reason_null)}
        reason = full.reason_null or "no rate is known"
        return result_at(self, size, values, ResultVerdict.INCOMPLETE, disturbances=(reason,))


def latency_table(title: str, section: str) -> ResultTable:
    """Returns the table of latencies at ports."""
    return ResultTable(
        title=title,
        caption=f"{section}: latency at each port of frames that all ports receive, and the range of the means.",
        columns=(
            FRAME,
            PORT,
            Column("load_frames_per_s", "Load"),
            Column("latency_minimum_ns", "min"),
            Column("latency_mean_ns", "mean", name="mean latency", is_main=True, better="lower"),
            Column("latency_p99_ns", "p99", is_optional=True),
            Column("latency_maximum_ns", "max"),
            Column("loss_percent", "Lost", unit="%", form="of_frames"),
            Column("ports_apart_ns", "Ports apart"),
            Column("flooded_frames", "At other ports", unit="frames", form="whole", is_optional=True),
            *BURDEN_COLUMNS,
        ),
        sentences=("delays frames to {port} by {latency_mean_ns} on average",),
        has_basis=False,
    )


def _latency_values(latency: Latency | None) -> Values:
    if latency is None:
        return {"latency_mean_ns": Bounded(value=None, reason_null="no frame arrived")}
    return {
        "latency_minimum_ns": latency.minimum_ns,
        "latency_mean_ns": latency.mean_ns,
        "latency_p99_ns": latency.percentiles_ns.get("99"),
        "latency_maximum_ns": latency.maximum_ns,
    }


class BroadcastLatency(PortsLatency):
    """The latency of frames to all stations, at each port."""

    kind = "broadcast-latency"
    times_one_way = True
    question = "How long does {subject} delay broadcast frames to each port?"
    steps = """
    Broadcast latency (RFC 2889 section 5.10): how long frames to all stations take to each port.
    Steps, for each frame size: frames to ff:ff:ff:ff:ff:ff go from the first port, at a share of the rate that an
    earlier `broadcast-throughput` found, for a trial. Every frame is timed at every port; how far the ports are
    apart is the range of their means. Verified: every frame at every port by its signature and its payload.
    """

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


class MulticastLatency(PortsLatency):
    """The latency of frames to groups, at each port."""

    kind = "multicast-latency"
    times_one_way = True
    question = "How long does {subject} delay multicast frames to each port?"
    steps = """
    Multicast latency (RFC 3918 sections 5.1 and 5.2): how long frames to groups take to each of the ports that
    joined.
    Steps, for each frame size: all ports but the first join the groups, and frames go to each group in turn, at a
    share of the rate that an earlier `multicast-throughput` found, for a trial. Every frame is timed at every port;
    how far ports are apart is the range of their means. With a burden (section 8.1) the last ports join nothing and
    send to each other from before the first frame to a group until the last. Verified: every frame at every port by
    its signature and its payload; burdening ports must get no frame to a group.
    """

    class Options(LatencyOptions, GroupOptions):
        """Options of the bench file."""

        burden: Burden | None = None
        """Ports that join no group and load the DUT meanwhile (RFC 3918 section 8.1); without it no port does."""

    options: Options

    def objection(self, context: Any) -> Objection | None:
        return ports_objection(context, self.groups_of(context))

    def groups_of(self, context: Context) -> Groups:
        return self.options.request_groups(context.ports, self.options.burden)

    @classmethod
    def table(cls) -> ResultTable:
        return latency_table("Multicast latency", "RFC 3918 sections 5.1, 5.2 and 8.1")


_LOST_FIRST = "lost_first"


class MulticastThroughput(Throughput):
    """The throughput of frames to multicast groups."""

    kind = "multicast-throughput"
    chooses_ways = True
    takes_broadcasts = False
    question = "How many multicast frames a second does {subject} pass to every port, by frame size?"
    steps = """
    Multicast throughput (RFC 3918 sections 4.1, 4.3): the highest rate of frames to groups that every port gets.
    Steps, for each frame size: all ports but the first join the groups; after a pause frames go from the first port
    to each group in turn, for a trial; the ports leave. A share of all frames may go to single stations, one at
    each port in turn, in between: the rate is then that of both classes together (section 4.1). The search is that
    of `throughput`: a frame that is missing at one of the ports is lost there, and the share that is lost is of the
    frames that all ports should have got. Verified: every frame at every port by its signature and its payload.
    """

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


class BroadcastThroughput(Throughput):
    """The throughput of frames to all stations."""

    kind = "broadcast-throughput"
    chooses_ways = True
    takes_broadcasts = False
    question = "How many broadcast frames a second does {subject} pass to every port, by frame size?"
    steps = """
    Broadcast throughput (RFC 2889 section 5.10): the highest rate of frames to all stations that every port gets.
    Steps, for each frame size: frames to ff:ff:ff:ff:ff:ff go from the first port, for a trial. The search is that
    of `throughput`: a frame that is missing at one of the ports is lost there, and the share that is lost is of the
    frames that all ports should have got. Verified: every frame at every port by its signature and its payload.
    """

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
