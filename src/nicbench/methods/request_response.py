"""Requests and answers: transactions a second and latency by message size, idle and under load (docs/studies.md).

A client sends a message and waits for one of the same size; the latency is by the tool's own clock on one machine, and
it is stated whether it is of the round trip, half of it, or one way. Steps, for each port, transport and message size:
a probe from the port's first client with nothing else; and, where a load is asked for, the same while streams run
through the same port, from its other clients, or from the probe's own where it has but one. Percentiles come from every
request where the tool keeps them, else from the tool's own list. Verified: a load that failed, or that was over before
the probe, makes the round invalid.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field

from nicbench.core.base import Distinct, Frozen, WorkloadChoice
from nicbench.core.lists import without_none
from nicbench.core.quantity import BitsPerSecond, Repetitions, RoundSeconds, Seconds, SomeBytes
from nicbench.core.result import Result
from nicbench.core.round import Direction, EndpointFacts, Figures, JobSpec, Round, RoundRequest, Transport, Verb
from nicbench.core.table import Column, ImportTable, Plot, ResultTable
from nicbench.core.units import format_bits_per_s, format_bytes
from nicbench.methods._imports import REQUEST_IMPORTS, requests_of_import
from nicbench.methods._round_figures import (
    ROUND_OVERHEAD_S,
    SERVER_OWN_CPU,
    PlayedRounds,
    clients_by_port,
    cpu_values,
    jobs_of,
    loads_of,
    mean,
    play_repeatedly,
    probes_of,
)
from nicbench.methods._tail import SlowestOf, merge_requests, message_tail_values, slowest_table, slowest_values
from nicbench.methods.base import PORT, RoundContext, RoundMethod, Values
from nicbench.stats.rounds import rate_together

# Requests and responses: the load beside them, the figures of a round, and their tables.


LOAD_LONGER_S: Final = 4.0
"""Seconds by which the load outlasts the probe, which needs time to start and warm up."""


class Load(Frozen):
    """The load during the probe. ``rate`` is of each connection; ``also_without`` measures the idle port as well."""

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
        """Returns the load's job during a probe of ``probe_s`` seconds; tools accept whole seconds only."""
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
"""An optional load; ``none`` in the bench file for no load."""


PERCENTILES = ("50", "90", "99", "99.9", "99.99")


def probe_figures(rounds: Sequence[Round]) -> list[Figures | None]:
    """Returns the probe's figures of each round; None where the load failed: the probe then measured an idle port."""
    return [
        None if any(outcome.failure for _, outcome in loads_of(one)) else next(iter(probes_of(one)))[1].figures
        for one in rounds
    ]


def latency_values(figures: Sequence[Figures | None]) -> Values:
    """Returns the latency over all repetitions; everything is ``None`` where a repetition has no latency.

    Where the tool does not keep all requests, percentiles are the mean of the tool's own.
    """
    parts = [one.latency if one else None for one in figures]
    whole = merge_requests(parts)
    found = {} if whole is None else whole.model_dump()
    percentiles = found.get("percentiles_ns", {})
    if whole is not None and whole.histogram is None:
        each = without_none(parts)
        percentiles = {name: mean(part.percentiles_ns.get(name) for part in each) for name in PERCENTILES}
    return {
        "latency_minimum_ns": found.get("minimum_ns"),
        "latency_mean_ns": found.get("mean_ns"),
        **{f"latency_p{name.replace('.', '_')}_ns": percentiles.get(name) for name in PERCENTILES},
        "latency_maximum_ns": found.get("maximum_ns"),
        "latency_deviation_ns": found.get("stdev_ns"),
        "requests": found.get("count"),
        "basis": found.get("basis"),
    }


_TRANSPORT: Final = Column("transport", "Transport", form="text")
_LOAD: Final = Column("load", "Load", form="text")
_MESSAGE: Final = Column("message", "Message", form="text")


def _latency(value: str, head: str, *, is_main: bool = False) -> Column:
    return Column(f"latency_{value}_ns", head, is_main=is_main, better="lower")


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
            *(PORT, _TRANSPORT, _LOAD, _MESSAGE),
            Column(
                "transactions_per_s",
                "Rate",
                unit="transactions/s",
                is_main=True,
                better="higher",
                adjective="fast",
            ),
            _latency("minimum", "Latency, least"),
            _latency("mean", "mean"),
            _MEDIAN,
            _latency("p90", "p90"),
            *_HIGH,
            _latency("maximum", "greatest"),
            Column("basis", "Latency of", form="text"),
            Column("requests", "Requests timed", form="whole"),
            Column("load_bits_per_s", "Load beside", unit="Mb/s", form="megabits"),
            SERVER_OWN_CPU,
            Column("server_cpu_mean_percent", "Server's CPU, mean", unit="%", form="number"),
        ),
        sentences=(
            "makes {transactions_per_s} of {message} over {transport}, half within {latency_p50_ns} ({basis}; {load})",
        ),
        plots=(
            Plot(
                x=_MESSAGE,
                y=(
                    Column(_MEDIAN.value, "Latency, median"),
                    *(column.replace(head=f"Latency, {column.head}") for column in _HIGH[:2]),
                ),
                lines=(_TRANSPORT, _LOAD),
                each=PORT,
                caption="Latency of requests over the message size.",
                logarithmic=True,
            ),
        ),
    ),
)


MESSAGES: Final = (1, 64, 256, 1024, 4096, 16_384, 65_536)
TAIL_BOUNDS_S: Final = (50e-6, 100e-6, 150e-6, 200e-6, 250e-6)
"""The published bounds of the long tail, in seconds (docs/studies.md)."""
_SMALLEST: Final = {"sockperf": 14}
"""The smallest message by tool: the tool's own header."""
_LARGEST: Final = {"udp": 65_507}
"""The largest message by transport: a datagram's payload over IPv4."""
IDLE: Final = "no load"


def _tool_of(options: Mapping[str, Any]) -> WorkloadChoice:
    return WorkloadChoice(kind="perftest" if options.get("transport") == ("rdma",) else "sockperf")


class RequestResponse(RoundMethod):
    """Transactions a second and latency percentiles of requests, by message size, without and with a load."""

    kind = "request-response"
    question = "How many requests a second does {subject} answer, and how long does an answer take, by message size?"

    class Options(Frozen):
        """Options of the bench file. ``message_bytes``: None is 1 byte to 64 KiB, as far as tool and transport go."""

        transport: Distinct[Transport] = ("tcp", "udp")
        """The transport protocols. `rdma` is RoCE or InfiniBand."""
        workload: WorkloadChoice = Field(default_factory=_tool_of)
        """The tool: `sockperf` (which keeps every request), `qperf` or `netperf`; for RDMA `perftest` or `qperf`.
        Without it `sockperf`, for RDMA alone `perftest`.
        """
        verb: Distinct[Verb] = ("send",)
        """What moves the data of RDMA: `write`, `send`, `read`."""
        message_bytes: Distinct[SomeBytes] | None = None
        """Size of request and answer; without it 1, 64 and 256 bytes, 1, 4, 16 and 64 KiB. The least of sockperf is
        14, the most of UDP 65507.
        """
        load: Beside = None
        """Streams through the same port meanwhile, from its other clients, or from the probe's own where it is the
        only one.
        """
        duration: RoundSeconds = 10.0
        """Duration of a probe; the load lasts longer."""
        repetitions: Repetitions = 1
        """Repetitions. All their requests are one distribution."""
        slowest_of: SlowestOf = ()
        tail_bounds: tuple[Seconds, ...] = TAIL_BOUNDS_S
        """Bounds of the bins of the long tail, where the tool keeps every request."""

    options: Options

    @classmethod
    def table_for(cls, table: ResultTable, results: Sequence[Result], options: Mapping[str, Any]) -> ResultTable:
        """Adds a table of the slowest of several requests, where one was asked for."""
        values = frozenset(name for result in results for name in result.values)
        rows = tuple(column for column in table.columns if column in (PORT, _TRANSPORT, _LOAD, _MESSAGE))
        return table.replace(further=slowest_table(rows, values, "requests"))

    @classmethod
    def imports(cls) -> ImportTable:
        return REQUEST_IMPORTS

    @classmethod
    def from_import(cls, parameters: dict[str, Any], values: Values) -> tuple[dict[str, Any], Values]:
        return requests_of_import(parameters, values)

    def points(self) -> int:
        return sum(1 for _ in self._asks()) * len(self._loads())

    def estimate_s(self) -> float:
        each_s = sum(self._round_s(load) for load in self._loads())
        return self.planned_ports * self.options.repetitions * each_s * sum(1 for _ in self._asks())

    def clients_at_once(self, clients: int) -> int:
        # The only client of a port also sends the load.
        return min(clients, 1) if self.options.load is None else max(clients, 2)

    def job_specs(self) -> tuple[tuple[WorkloadChoice, JobSpec], ...]:
        probes = tuple((self.options.workload, ask) for ask in self._asks())
        load = self.options.load
        return probes if load is None else (*probes, (load.workload, load.job_spec(self.options.duration)))

    async def results(self, context: RoundContext) -> AsyncIterator[Result]:
        for server in context.servers:
            for load in self._loads():
                for ask in self._asks():
                    result = await self._play(context, server.name, ask, load)
                    if result is not None:
                        yield result

    def _loads(self) -> tuple[Load | None, ...]:
        """Returns the loads to measure with: the requested one, and None where the idle port is to be measured."""
        load = self.options.load
        return (None,) if load is None else (None, load) if load.also_without else (load,)

    def _asks(self) -> Iterator[JobSpec]:
        options = self.options
        for transport in options.transport:
            for verb in options.verb if transport == "rdma" else (None,):
                for message_bytes in options.message_bytes or _messages(options.workload.kind, transport):
                    yield JobSpec(
                        operation="request-response",
                        transport=transport,
                        duration_s=options.duration,
                        write_bytes=message_bytes,
                        no_delay=False,
                        verb=verb,
                    )

    def _round_s(self, load: Load | None) -> float:
        return self.options.duration + ROUND_OVERHEAD_S + (LOAD_LONGER_S if load else 0.0)

    async def _play(self, context: RoundContext, port: str, ask: JobSpec, load: Load | None) -> Result | None:
        """Plays one port, transport, message size and load, as often as requested."""
        clients = clients_by_port(context)[port]
        if not clients:
            return None
        probe, *others = clients
        request = self._request(probe, others or [probe], ask, load)
        parameters = {
            "port": port,
            "client": probe.name,
            "transport": ask.transport.upper() if ask.verb is None else f"RDMA {ask.verb}",
            "message_bytes": ask.write_bytes,
            "message": format_bytes(ask.write_bytes or 0),
            "load": IDLE if load is None else load.words,
        }
        played = await play_repeatedly(context, parameters, request, self.options.repetitions)
        transport = ask.transport if ask.verb is None else f"{ask.transport}-{ask.verb}"
        place = f"{self.name}/{port}/{transport}/{ask.write_bytes}/{'idle' if load is None else 'load'}"
        return self._main(context, played, place, parameters, probe)

    def _request(
        self, probe: EndpointFacts, senders: list[EndpointFacts], ask: JobSpec, load: Load | None
    ) -> RoundRequest:
        measured = jobs_of([probe], self.options.workload, ask)
        jobs = tuple(job.replace(role="probe") for job in measured)
        if load is not None:
            jobs += jobs_of(senders, load.workload, load.job_spec(self.options.duration), first=len(jobs))
        return RoundRequest(jobs=jobs, duration_s=self._round_s(load))

    def _main(
        self, context: RoundContext, played: PlayedRounds, place: str, parameters: dict[str, Any], probe: EndpointFacts
    ) -> Result:
        beside = [rate_together([outcome for _, outcome in loads_of(one)]) for one in played.rounds]
        figures = probe_figures(played.rounds)
        values: Values = {
            "transactions_per_s": mean(one.transactions_per_s if one else None for one in figures),
            **latency_values(figures),
            "load_bits_per_s": mean(beside) if parameters["load"] != IDLE else None,
            **cpu_values(played.rounds, context.servers[0].machine, "server"),
            **cpu_values(played.rounds, probe.machine, "client"),
            "repetitions": self.options.repetitions,
        }
        whole = merge_requests([one.latency if one else None for one in figures])
        values |= slowest_values(whole, self.options.slowest_of)
        values |= message_tail_values(whole, sorted(self.options.tail_bounds))
        nothing = values["transactions_per_s"] is None and values["latency_mean_ns"] is None
        return self._result(played, place, {**parameters, "part": "requests"}, values, nothing=nothing)

    def _result(
        self, played: PlayedRounds, name: str, parameters: dict[str, Any], values: Values, *, nothing: bool
    ) -> Result:
        return played.result(self, name, "one connection", parameters, values, failed=nothing)

    @classmethod
    def tables(cls) -> tuple[ResultTable, ...]:
        return TABLES


def _messages(tool: str, transport: str) -> tuple[int, ...]:
    """Returns the message sizes of the published range, as far as the tool and the transport allow."""
    least, most = _SMALLEST.get(tool, 1), _LARGEST.get(transport, MESSAGES[-1])
    return tuple(dict.fromkeys(min(max(size, least), most) for size in MESSAGES))
