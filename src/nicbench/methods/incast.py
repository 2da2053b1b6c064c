"""Incast: several senders to one receiver, and the latency of messages during that load (docs/studies.md).

The measurement of the published report on two 25 Gb/s adapters (2018): two servers send to a third by RoCE v2, with PFC
and ECN on. Steps, for each message size and number of queue pairs (or TCP connections, or UDP flows) of a sender: one
round in which every sender runs a bandwidth test to the receiver's port while a probe, from the first of them, times
single messages. Throughput is the sum of the bandwidth tests; latencies are the probe's alone, which keeps every
sample. Verified: figures of zero or above the link are refused with the tool that gave them, and the round is played
again; a probe that ran on after the load had ended is named.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Final, Self

from pydantic import Field, model_validator

from nicbench.core.base import Distinct, Frozen, WorkloadChoice
from nicbench.core.lists import without_none
from nicbench.core.quantity import Repetitions, RoundSeconds, SomeBytes
from nicbench.core.result import Result, number_of
from nicbench.core.round import EndpointFacts, Job, JobOutcome, JobSpec, RequestLatency, Round, RoundRequest, Transport
from nicbench.core.table import Column, Grid, Plot, ResultTable
from nicbench.core.traffic import Name
from nicbench.core.trial import Trial
from nicbench.core.units import SCALES, format_bits_per_s, format_digits, suitable_form
from nicbench.methods._round_figures import (
    FIRST_PORT,
    PAYLOAD_RATE,
    PORTS_A_JOB,
    ROUND_OVERHEAD_S,
    SERVER_OWN_CPU,
    PlayedRounds,
    add_up,
    clients_by_port,
    cpu_values,
    find_limit,
    jobs_of,
    loads_of,
    mean,
    mean_retransmissions,
    play_repeatedly,
)
from nicbench.methods._tail import MESSAGE_BINS_S, Bins, latency_values, merge_requests, message_tail_values
from nicbench.methods.base import Misfit, Objection, RoundContext, RoundMethod, Values
from nicbench.stats.rounds import REPEATED, bits_per_s

KIBIBYTE: Final = 1024
MESSAGE_BYTES: Final = tuple(size * KIBIBYTE for size in (1, 2, 4, 8, 16, 64, 128, 256, 512))
LARGEST_DATAGRAM: Final = 65_507
"""The largest UDP payload over IPv4: 65,535 bytes less both headers (RFC 768)."""
STREAMS: Final = (5, 10, 20, 50, 100)
_LOAD: Final = {"tcp": "iperf3", "udp": "iperf3", "rdma": "perftest"}
_PROBE: Final = {"tcp": "sockperf", "udp": "sockperf", "rdma": "perftest"}


def _choose(tools: Mapping[str, str], transport: str | None) -> WorkloadChoice:
    """Chooses the tool of a transport; any where the transport is wrong itself."""
    return WorkloadChoice(kind=tools.get(transport or "", tools["tcp"]))


_LONGER_S: Final = 4.0
"""Seconds by which the load outlasts the probe, so that it is there until the last message.

A probe that waits for each answer sends most of its messages when nothing is in the way.
"""
_CONGESTION: Final = re.compile(r"pause|pfc|ecn|cnp", re.IGNORECASE)

_SIZE = Column("message_bytes", "Message", unit="bytes", form="text")
_SENTENCE: Final = "takes {throughput_bits_per_s} from {senders} senders at once, of {message_bytes} messages"
_STREAMS = Column("streams", "Streams a sender", form="text")
_MOST = Column("latency_maximum_ns", "Latency, greatest")


class Incast(RoundMethod):
    """Combined throughput of several senders to one port, and latency under that load with its long tail."""

    kind = "incast"
    question = "How much do several senders bring through one port of {subject}, and with what latency?"

    class Options(Frozen):
        """Options of the bench file. ``streams`` are queue pairs (RDMA) or connections of each sender.

        ``receiver`` is a port of the server (by default the one with the most clients), ``senders`` the number of its
        clients that send (by default all). ``workload`` is the load, and ``probe`` times messages of ``probe_bytes``;
        the defaults of both depend on the transport.
        """

        transport: Transport = "tcp"
        """`rdma` is RoCE or InfiniBand."""
        workload: WorkloadChoice = Field(default_factory=lambda options: _choose(_LOAD, options.get("transport")))
        """What loads: one bandwidth test for each sender. Without it `iperf3`, for RDMA `perftest`."""
        probe_transport: Transport | None = None
        """By what those messages are sent; without it by the `transport` of the load. `udp` with TCP is stateless
        traffic next to stateful traffic (RFC 8239 section 6).
        """
        probe: WorkloadChoice = Field(
            default_factory=lambda options: _choose(_PROBE, options.get("probe_transport") or options.get("transport"))
        )
        """What times messages, from the first sender. Without it `sockperf`, for RDMA `perftest`."""
        receiver: Name | None = None
        """A port of the server; without it the one with the most clients."""
        senders: int | None = Field(default=None, ge=1, le=256)
        """How many clients of that port send, without it all. At least two must be there."""
        message_bytes: Distinct[SomeBytes] | None = None
        """Size of a write or message; without it 1, 2, 4, 8, 16, 64, 128, 256 and 512 KiB, for UDP those that fit a
        datagram.
        """
        streams: Distinct[int] = STREAMS
        """Connections, or queue pairs, of each sender."""
        probe_bytes: SomeBytes = 64
        """Size of the probe's messages."""
        bins: Bins = MESSAGE_BINS_S
        """Upper bounds of the latency bins."""
        duration: RoundSeconds = 10.0
        """Duration of the probe; the load lasts 4 s longer."""
        repetitions: Repetitions = 1
        """Repetitions of each round: the mean of the throughputs, all messages together."""

        @model_validator(mode="after")
        def _at_least_one(self) -> Self:
            if min(self.streams) < 1:
                raise ValueError(f"`streams` are at least 1 of each sender, not {min(self.streams)}")
            return self

        @property
        def sizes(self) -> tuple[int, ...]:
            """The message sizes, by default the published ones; for UDP, only those that fit into a datagram."""
            largest = LARGEST_DATAGRAM if self.transport == "udp" else max(MESSAGE_BYTES)
            return self.message_bytes or tuple(size for size in MESSAGE_BYTES if size <= largest)

    options: Options

    def points(self) -> int:
        return len(self.options.sizes) * len(self.options.streams)

    def estimate_s(self) -> float:
        return self.points() * self.options.repetitions * self._round_s()

    def _round_s(self) -> float:
        return self.options.duration + _LONGER_S + ROUND_OVERHEAD_S

    def job_specs(self) -> tuple[tuple[WorkloadChoice, JobSpec], ...]:
        loads = tuple((self.options.workload, self._load_spec(size, streams)) for size, streams in self._sweep())
        return (*loads, (self.options.probe, self._probe_spec()))

    def find_misfits(self, clients: Mapping[str, Sequence[str]], hosts: Sequence[str]) -> Iterator[Misfit]:
        """Yields misfits for a receiver that is not a port of the measured host, and for too few clients to send."""
        receiver = self.options.receiver or max(clients, key=lambda port: len(clients[port]), default=None)
        if receiver is None:
            return
        if receiver not in clients:
            step = f"write one of {', '.join(f'`{port}`' for port in clients)}"
            message = f"the measured host has no port `{receiver}`"
            yield Misfit(option=("receiver",), message=message, next_step=step)
            return
        wanted, there = self.options.senders or 2, len(clients[receiver])
        if there < wanted:
            option = "method" if self.options.senders is None else "senders"
            message = f"{wanted} clients are to send to `{receiver}`, and it has {there}"
            step = "link more clients to it, through a switch (`lab: {kind: clients, clients_per_port: 2}`)"
            yield Misfit(option=(option,), message=message, next_step=step)

    def objection(self, context: RoundContext) -> Objection | None:
        receiver = self._receiver(context)
        there = len(clients_by_port(context).get(receiver, ()))
        if receiver not in clients_by_port(context):
            ports = ", ".join(clients_by_port(context))
            return Objection(
                message=f"the server has no port {receiver!r}", next_step=f"write `receiver:` with one of {ports}"
            )
        wanted = self.options.senders or 2
        if there >= wanted:
            return None
        return Objection(
            message=f"{wanted} senders are asked for, and {there} lead to the port {receiver}",
            next_step="link more clients to it, through a switch (`lab: {kind: clients, clients_per_port: 2}`)",
        )

    async def results(self, context: RoundContext) -> AsyncIterator[Result]:
        receiver = self._receiver(context)
        senders = clients_by_port(context)[receiver][: self.options.senders]
        for size, streams in self._sweep():
            result = await self._play(context, senders, size, streams)
            yield result

    def _sweep(self) -> Iterator[tuple[int, int]]:
        for size in self.options.sizes:
            for streams in sorted(self.options.streams):
                yield size, streams

    def _receiver(self, context: RoundContext) -> str:
        by_port = clients_by_port(context)
        return self.options.receiver or max(by_port, key=lambda port: len(by_port[port]))

    @property
    def _probe_transport(self) -> Transport:
        return self.options.probe_transport or self.options.transport

    def _load_spec(self, size: int, streams: int) -> JobSpec:
        options = self.options
        return JobSpec(
            transport=options.transport,
            duration_s=options.duration + _LONGER_S,
            write_bytes=size,
            streams=streams,
            verb="write" if options.transport == "rdma" else None,
        )

    def _probe_spec(self) -> JobSpec:
        """Returns the job of the probe; with RDMA, the tool is ``ib_send_lat``."""
        options = self.options
        return JobSpec(
            operation="request-response",
            transport=self._probe_transport,
            duration_s=options.duration,
            write_bytes=options.probe_bytes,
            verb="send" if self._probe_transport == "rdma" else None,
        )

    async def _play(self, context: RoundContext, senders: Sequence[EndpointFacts], size: int, streams: int) -> Result:
        loads = jobs_of(senders, self.options.workload, self._load_spec(size, streams))
        probe = Job(
            workload=self.options.probe.kind,
            client=senders[0].name,
            server=senders[0].port,
            ask=self._probe_spec(),
            port=FIRST_PORT + PORTS_A_JOB * len(loads),
            role="probe",
            options=self.options.probe.options,
        )
        request = RoundRequest(jobs=(*loads, probe), duration_s=self._round_s())
        tool = self.options.probe.kind
        if self._probe_transport != self.options.transport:
            tool = f"{tool} over {self._probe_transport}"
        point = {
            "transport": self.options.transport,
            "receiver": senders[0].port,
            "senders": len(senders),
            "message_bytes": size,
            "streams": streams,
            "probe": f"{tool}, {self.options.probe_bytes} bytes, {senders[0].name} to {senders[0].port}",
        }
        played = await play_repeatedly(context, point, request, self.options.repetitions)
        return self._result(context, played, point)

    def _result(self, context: RoundContext, played: PlayedRounds, point: dict[str, Any]) -> Result:
        latency = merge_requests([_latency(one) for one in played.rounds])
        limit = find_limit(context, played.rounds)
        together = add_up(context, played)
        values: Values = {
            **_throughputs(played.rounds, together.bits_per_s),
            "retransmissions": mean_retransmissions(played.rounds),
            **latency_values(latency),
            **message_tail_values(latency, self.options.bins),
            "congestion": _words_of(played.rounds, _CONGESTION, "of pauses or marks"),
            "rdma_repeats": self._repeats(played.rounds, point),
            **cpu_values(played.rounds, context.servers[0].machine, "server"),
            "limited_by": limit.limit.value,
            "limit": limit.text,
        }
        rate, most = values["throughput_bits_per_s"], values["latency_maximum_ns"]
        return played.result(
            self,
            f"{self.name}/{point['message_bytes']}/{point['streams']}",
            "sum of the senders",
            point,
            values,
            failed=rate is None or most is None,
            contradictions=together.contradictions,
        )

    def _repeats(self, rounds: Sequence[Round], point: Mapping[str, Any]) -> str | None:
        """Describes retransmissions with their row, as they are listed below the table; None without RDMA."""
        if self.options.transport != "rdma":
            return None
        row = f"{point['message_bytes']} bytes, {point['streams']} queue pairs a sender"
        return f"{row}: {_words_of(rounds, REPEATED, 'of what was repeated')}"

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="Incast",
            caption=(
                "Throughput / greatest latency: payload of all senders to one port together, by their bandwidth tests, "
                "and the latency of single messages of a probe beside them, which keeps every sample. The basis says "
                "whether a latency is one way or half a round trip."
            ),
            columns=(
                *(_SIZE, _STREAMS, Column("senders", "Senders", form="whole"), PAYLOAD_RATE),
                Column("sender_minimum_bits_per_s", "Slowest sender"),
                Column("sender_maximum_bits_per_s", "Fastest sender"),
                Column("latency_p50_ns", "Latency, median"),
                Column("latency_p99_ns", "p99"),
                _MOST,
                Column("timed_messages", "Messages timed", form="whole"),
                Column("latency_basis", "Basis", form="text"),
                Column("retransmissions", "Retransmissions", form="trimmed"),
                Column("congestion", "PFC and ECN", form="text"),
                SERVER_OWN_CPU,
                Column("server_cpu_mean_percent", "Server's CPU", unit="%", form="number"),
                Column("limited_by", "Limit", form="text"),
            ),
            sentences=(
                f"{_SENTENCE}; a message beside them took {{latency_p50_ns}} (median), {{latency_maximum_ns}} at most",
                _SENTENCE,
            ),
            notes=(("limit", "Limit"), ("rdma_repeats", "RDMA repeats"), ("probe", "Probe")),
            grid=Grid(
                rows=_STREAMS,
                across=(_SIZE,),
                cell=Column("throughput_and_greatest_latency", "Throughput / greatest latency", form="text"),
                is_rising=True,
            ),
            plots=(_plot(PAYLOAD_RATE, "Throughput"), _plot(_MOST, "Greatest latency of a message")),
        )

    @classmethod
    def table_values(cls, result: Result, trials: Mapping[str, Trial]) -> Values:
        """Writes the cell of the grid from its figures, also of several runs."""
        return _cell_of(result.values)

    @classmethod
    def table_for(cls, table: ResultTable, results: Sequence[Result], options: Mapping[str, Any]) -> ResultTable:
        """Returns the table with queue pairs where streams are these, and of several adapters a figure for each size.

        Each figure then has a line for each adapter, as published; of one adapter, a line for each size.
        """
        if len({result.parameters.get("configuration") for result in results}) > 1:
            plots = tuple(plot.replace(lines=(), each=_SIZE) for plot in table.plots)
            table = table.replace(plots=plots)
        if {result.parameters["transport"] for result in results} != {"rdma"}:
            return table
        return ResultTable.model_validate(_with_head(table.model_dump(), _STREAMS.value, "Queue pairs a sender"))


def _plot(y: Column, what: str) -> Plot:
    caption = f"{what} by the number of streams or queue pairs of each sender."
    return Plot(x=_STREAMS, y=(y,), caption=caption, lines=(_SIZE,))


def _with_head(part: Any, value: str, head: str) -> Any:
    """Returns the parts of a table with another heading for the columns of a value."""
    if isinstance(part, tuple | list):
        return tuple(_with_head(one, value, head) for one in part)
    if not isinstance(part, dict):
        return part
    inner = {name: _with_head(one, value, head) for name, one in part.items()}
    return {**inner, "head": head} if inner.get("value") == value and "head" in inner else inner


def _probe_of(one: Round) -> JobOutcome:
    pairs = zip(one.request.jobs, one.outcomes, strict=True)
    return next(outcome for job, outcome in pairs if job.role == "probe")


def _latency(one: Round) -> RequestLatency | None:
    figures = _probe_of(one).figures
    return None if figures is None else figures.latency


def _throughputs(rounds: Sequence[Round], together: Sequence[float | None]) -> Values:
    """Returns the senders together, and the slowest and the fastest of them, each as the mean of the repetitions."""
    each = [[bits_per_s(outcome.figures) for _, outcome in loads_of(one)] for one in rounds]
    known = [without_none(rates) for rates in each]
    return {
        "throughput_bits_per_s": mean(together),
        "sender_minimum_bits_per_s": mean(min(rates, default=None) for rates in known),
        "sender_maximum_bits_per_s": mean(max(rates, default=None) for rates in known),
    }


def _words_of(rounds: Sequence[Round], which: re.Pattern[str], what: str) -> str:
    """Describes the counters that rose over all rounds, by the drivers' names, or says that none is readable."""
    risen: dict[str, int] = {}
    for one in rounds:
        for end, counters in one.counters.items():
            for name, value in counters.items():
                if which.search(name):
                    risen[f"{end} {name}"] = risen.get(f"{end} {name}", 0) + value
    if not risen:
        return f"no counter {what} can be read"
    return ", ".join(f"{name} {value}" for name, value in risen.items() if value) or f"no counter {what} rose"


def _cell_of(values: Values) -> Values:
    """Returns the cell of the grid, "2.43 Mb/s / 123 ms": each figure in its own unit, for both span magnitudes."""
    rate, most = number_of(values.get("throughput_bits_per_s")), number_of(values.get("latency_maximum_ns"))
    if rate is None or most is None:
        return {}
    scale = SCALES[suitable_form("microseconds", most)]
    shown = most * scale.factor
    latency = f"{shown:.0f}" if shown >= 100 else format_digits(shown)
    return {"throughput_and_greatest_latency": f"{format_bits_per_s(float(f'{rate:.3g}'))} / {latency} {scale.unit}"}
