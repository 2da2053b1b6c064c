"""The latency of frames that several ports receive: a result for each port, of one trial at a load."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.frame_size import FrameSize, Size, size_parameters
from nicbench.core.headers.multicast import Groups
from nicbench.core.pattern import way_of_stream
from nicbench.core.quantity import Percent
from nicbench.core.result import Bounded, Result, ResultVerdict
from nicbench.core.table import Column, ResultTable
from nicbench.core.traffic import Ability
from nicbench.core.trial import Latency, Purpose, Trial
from nicbench.methods._loads import NDR, earlier_rate
from nicbench.methods._results import Values, result_at, verdict_of
from nicbench.methods._trial_times import TrialTimes
from nicbench.methods.base import Context, FrameMethod
from nicbench.methods.multicast._groups import ABILITIES, BURDEN_COLUMNS, burden_values, to_groups, watched

_SIZE = Column(value="size", head="Frame", unit="bytes", form="text")


class LatencyOptions(Frozen):
    """Options of a test of latency at several ports."""

    at: str
    """The name of an earlier test of the throughput of such frames."""
    of: str = NDR
    """Which of its rates is 100 %."""
    load: Percent = 100.0
    """The load, as a share of that rate."""
    frame_bytes: tuple[FrameSize, ...] = Field(default=(64,), min_length=1)
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

    async def run(self, context: Context) -> tuple[Result, ...]:
        results: list[Result] = []
        for size in context.sizes(self.options.frame_bytes):
            for result in await self._measure_size(context, size):
                context.publish(result)
                results.append(result)
        return tuple(results)

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
                disturbances=[finding.text for finding in trial.verdict.findings] if disturbed else [],
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
            _SIZE,
            Column(value="port", head="Port", form="text"),
            Column(value="load_frames_per_s", head="Load"),
            Column(value="latency_minimum_ns", head="min"),
            Column(value="latency_mean_ns", head="mean", name="mean latency", is_main=True, better="lower"),
            Column(value="latency_p99_ns", head="p99", is_optional=True),
            Column(value="latency_maximum_ns", head="max"),
            Column(value="loss_percent", head="Lost", unit="%", form="of_frames"),
            Column(value="ports_apart_ns", head="Ports apart"),
            Column(value="flooded_frames", head="At other ports", unit="frames", form="whole", is_optional=True),
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
