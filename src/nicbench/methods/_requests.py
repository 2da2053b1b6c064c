"""Requests and responses: the load beside them, the figures of a round, and their tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import chain, pairwise
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field

from nicbench.core.base import Frozen, WorkloadChoice
from nicbench.core.quantity import BitsPerSecond, SomeBytes
from nicbench.core.round import Direction, Figures, JobSpec, RequestLatency, Round
from nicbench.core.table import Column, Grid, Plot, ResultTable
from nicbench.core.units import format_bits_per_s
from nicbench.methods._round_figures import SERVER_OWN_CPU, loads_of, mean, probes_of
from nicbench.methods.base import Values
from nicbench.stats.latency import histogram_of, percentiles_ns, value_counts

LOAD_LONGER_S: Final = 4.0
"""Seconds by which the load outlasts the probe, which needs time to start and warm up."""


class Load(Frozen):
    """The load beside the probe. ``rate`` is of each connection; ``also_without`` measures the idle port as well."""

    workload: WorkloadChoice = WorkloadChoice(kind="iperf3")
    """The tool of the load, alone or with options of its own."""
    transport: Literal["tcp", "udp"] = "tcp"
    """The transport protocol."""
    direction: Direction = "forward"
    """`forward`: clients send. `reverse`: the server sends. `both`: at once."""
    streams: int = Field(default=1, ge=1, le=15)
    """Connections of each client."""
    write_bytes: SomeBytes | None = None
    """Size of one write or datagram; without it the tool's."""
    rate: BitsPerSecond | None = Field(default=None, ge=1.0)
    """Rate of each connection; without it as fast as it goes."""
    also_without: bool = True
    """Measure the idle server as well."""

    def job_spec(self, probe_s: float) -> JobSpec:
        """Returns the load's job beside a probe of ``probe_s`` seconds; tools accept whole seconds only."""
        return JobSpec(
            transport=self.transport,
            direction=self.direction,
            duration_s=math.ceil(probe_s) + LOAD_LONGER_S,
            write_bytes=self.write_bytes,
            streams=self.streams,
            rate_bits_per_s=self.rate,
        )

    @property
    def words(self) -> str:
        """The load as shown in a table: "iperf3, TCP, 4 streams of 10 Mb/s"."""
        way = {"forward": "to the server", "reverse": "from the server", "both": "both ways"}[self.direction]
        many = "1 stream" if self.streams == 1 else f"{self.streams} streams"
        paced = "" if self.rate is None else f" of {format_bits_per_s(self.rate)}"
        return f"{self.workload.kind}, {self.transport.upper()}, {many}{paced} {way}"


def _accept_none(value: Any) -> Any:
    return None if value == "none" else value


Beside = Annotated[Load | None, BeforeValidator(_accept_none)]
"""An optional load; ``none`` in the bench file is no load."""


PERCENTILES = ("50", "90", "99", "99.9", "99.99")


def probe_figures(rounds: Sequence[Round]) -> list[Figures | None]:
    """Returns the probe's figures of each round; None where the load failed, as there was no load to measure under."""
    return [
        None if any(outcome.failure for _, outcome in loads_of(one)) else next(iter(probes_of(one)))[1].figures
        for one in rounds
    ]


def latency_values(figures: Sequence[Figures | None]) -> Values:
    """Returns the latency over all repetitions: percentiles of all requests, or the mean of the tool's own percentiles.

    The latter is used where the tool does not keep all requests. Everything is None where a repetition has no latency.
    """
    parts = [one.latency if one else None for one in figures]
    known = [part for part in parts if part is not None]
    complete = bool(known) and len(known) == len(parts)
    used = known if complete else []
    percentiles = _percentiles(used)
    counts = [part.count for part in used]
    return {
        "latency_minimum_ns": _extreme(min, [part.minimum_ns for part in used]),
        "latency_mean_ns": _weighted_mean(used),
        **{f"latency_p{name.replace('.', '_')}_ns": percentiles.get(name) for name in PERCENTILES},
        "latency_maximum_ns": _extreme(max, [part.maximum_ns for part in used]),
        "latency_deviation_ns": mean(part.stdev_ns for part in used),
        "requests": sum(count or 0 for count in counts) if used and None not in counts else None,
        "basis": ", ".join(dict.fromkeys(part.basis for part in used)) or None,
    }


def tail_of(figures: Sequence[Figures | None], bounds_ns: Sequence[int]) -> list[tuple[int, int | None, int, float]]:
    """Returns the bins of the tail: lower bound, upper bound (None: unlimited), number of requests, and their share.

    Empty where a tool keeps no samples.
    """
    whole = _merge([one.latency for one in figures if one and one.latency])
    if whole is None or len([one for one in figures if one and one.latency]) < len(figures):
        return []
    counted = value_counts(whole)
    total = sum(count for _, count in counted)
    edges = [0, *bounds_ns, math.inf]
    bins = []
    for lower, upper in pairwise(edges):
        count = sum(count for value, count in counted if lower < value <= upper)
        bins.append((int(lower), None if math.isinf(upper) else int(upper), count, count / total if total else 0.0))
    return bins


def _percentiles(parts: Sequence[RequestLatency]) -> dict[str, float]:
    whole = _merge(parts)
    if whole is not None:
        most = _extreme(max, [part.maximum_ns for part in parts])
        found = percentiles_ns(whole, maximum_ns=None if most is None else round(most))
        return {name: float(value) for name, value in found.items()}
    means = {name: mean(part.percentiles_ns.get(name) for part in parts) for name in PERCENTILES}
    return {name: value for name, value in means.items() if value is not None}


def _merge(parts: Sequence[RequestLatency]) -> str | None:
    """Returns one histogram of all parts; None where a part has none."""
    texts = [part.histogram for part in parts]
    if not texts or any(text is None for text in texts):
        return None
    return histogram_of(chain.from_iterable(value_counts(text) for text in texts if text is not None))


def _weighted_mean(parts: Sequence[RequestLatency]) -> float | None:
    """Returns the mean over all requests where their number is known, else the mean over the repetitions."""
    counts, means = [part.count for part in parts], [part.mean_ns for part in parts]
    if not parts or any(value is None for value in (*counts, *means)):
        return mean(means)
    return sum((count or 0) * (value or 0.0) for count, value in zip(counts, means, strict=True)) / sum(
        count or 0 for count in counts
    )


def _extreme(pick: Callable[[Sequence[float]], float], values: Sequence[float | None]) -> float | None:
    """Returns the extreme of the values; None where a value is missing or there is none."""
    known = [value for value in values if value is not None]
    return pick(known) if known and len(known) == len(values) else None


_PORT: Final = Column(value="port", head="Port", form="text")
_TRANSPORT: Final = Column(value="transport", head="Transport", form="text")
_LOAD: Final = Column(value="load", head="Load", form="text")
_MESSAGE: Final = Column(value="message", head="Message", form="text")


def _latency(value: str, head: str, *, is_main: bool = False) -> Column:
    return Column(value=f"latency_{value}_ns", head=head, is_main=is_main, better="lower")


_MEDIAN: Final = _latency("p50", "Latency, median", is_main=True)
_HIGH: Final = (_latency("p99", "p99"), _latency("p99_9", "p99.9"), _latency("p99_99", "p99.99"))

TABLES: Final = (
    ResultTable(
        part="requests",
        title="Requests and answers",
        caption=(
            "Transactions a second of one connection, a request at a time, and the latency of a request. What the "
            "latency is of (the round trip, half of it, or one way) is the tool's, and stands in its column."
        ),
        columns=(
            *(_PORT, _TRANSPORT, _LOAD, _MESSAGE),
            Column(
                value="transactions_per_s",
                head="Rate",
                unit="transactions/s",
                is_main=True,
                better="higher",
                comparative="faster",
            ),
            _latency("minimum", "Latency, least"),
            _latency("mean", "mean"),
            _MEDIAN,
            _latency("p90", "p90"),
            *_HIGH,
            _latency("maximum", "greatest"),
            Column(value="basis", head="Latency of", form="text"),
            Column(value="requests", head="Requests timed", form="whole"),
            Column(value="load_bits_per_s", head="Load beside", unit="Mb/s", form="megabits"),
            SERVER_OWN_CPU,
            Column(value="server_cpu_mean_percent", head="Server's CPU, mean", unit="%", form="number"),
        ),
        sentences=(
            "makes {transactions_per_s} of {message} over {transport}, half within {latency_p50_ns} ({basis}; {load})",
        ),
        plots=(
            Plot(
                x=_MESSAGE,
                y=(
                    Column(value=_MEDIAN.value, head="Latency, median"),
                    *(column.replace(head=f"Latency, {column.head}") for column in _HIGH[:2]),
                ),
                lines=(_TRANSPORT, _LOAD),
                each=_PORT,
                caption="Latency of requests over the message size.",
                logarithmic=True,
            ),
        ),
    ),
    ResultTable(
        part="tail",
        title="Long tail of requests",
        caption="How many of all requests took how long. A request that took exactly a bound is in the bin below it.",
        columns=(
            *(_PORT, _TRANSPORT, _LOAD, _MESSAGE),
            Column(value="bin", head="Latency", form="text"),
            Column(value="requests", head="Requests", form="whole", is_main=True),
            Column(value="share_percent", head="Share", unit="%", form="of_frames"),
        ),
        grid=Grid(
            rows=Column(value="bin", head="Latency", form="text"),
            across=(_TRANSPORT, _LOAD, _MESSAGE),
            cell=Column(value="requests", head="Requests", form="whole", is_main=True),
            each=_PORT,
        ),
    ),
)
