"""Requests and answers: transactions a second and latency by message size, idle and under load (docs/studies.md).

A client sends a message and waits for one of the same size; the latency is by the tool's own clock on one machine, and
it is stated whether it is of the round trip, half of it, or one way. Steps, for each port, transport and message size:
a probe from the port's first client with nothing else; and, where a load is asked for, the same while streams run
beside it through the same port, from its other clients, or from the probe's own where it has but one. Percentiles come
from every request where the tool keeps them, else from the tool's own list. Verified: a load that failed, or that was
over before the probe, makes the round invalid.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final, Literal

from pydantic import Field

from nicbench.core.base import Distinct, Frozen, WorkloadChoice
from nicbench.core.endpoint import EndpointFacts
from nicbench.core.quantity import Seconds, SomeBytes
from nicbench.core.result import Result
from nicbench.core.round import JobSpec, RoundRequest
from nicbench.core.table import ResultTable
from nicbench.core.units import format_bytes, format_duration_s
from nicbench.methods._requests import LOAD_LONGER_S, TABLES, Beside, Load, latency_values, probe_figures, tail_of
from nicbench.methods._round_figures import (
    ROUND_OVERHEAD_S,
    PlayedRounds,
    clients_by_port,
    cpu_values,
    jobs_of,
    loads_of,
    mean,
)
from nicbench.methods.base import RoundContext, RoundMethod, Values
from nicbench.stats.rounds import rate_together

MESSAGES: Final = (1, 64, 256, 1024, 4096, 16_384, 65_536)
TAIL_BOUNDS_S: Final = (50e-6, 100e-6, 150e-6, 200e-6, 250e-6)
"""The published bounds of the long tail, in seconds (docs/studies.md)."""
_SMALLEST: Final = {"sockperf": 14}
"""The smallest message by tool: the tool's own header."""
_LARGEST: Final = {"udp": 65_507}
"""The largest message by transport: a datagram's payload over IPv4."""
IDLE: Final = "no load"

_Transport = Literal["tcp", "udp"]


class RequestResponse(RoundMethod):
    """Transactions a second and latency percentiles of requests, by message size, without and with a load beside."""

    kind: ClassVar[str] = "request-response"
    question: ClassVar[str] = (
        "How many requests a second does {subject} answer, and how long does an answer take, by message size?"
    )

    class Options(Frozen):
        """Options of the bench file. ``message_bytes``: None is 1 byte to 64 KiB, as far as tool and transport go."""

        workload: WorkloadChoice = WorkloadChoice(kind="sockperf")
        """The tool: `sockperf` (which keeps every request), `qperf` or `netperf`."""
        transport: Distinct[_Transport] = Field(default=("tcp", "udp"), min_length=1)
        """The transport protocols."""
        message_bytes: Distinct[SomeBytes] | None = Field(default=None, min_length=1)
        """Size of request and answer; without it 1, 64 and 256 bytes, 1, 4, 16 and 64 KiB. The least of sockperf is
        14, the most of UDP 65507.
        """
        load: Beside = None
        """Streams through the same port meanwhile, from its other clients, or from the probe's own where it is the
        only one.
        """
        duration: Seconds = Field(default=10.0, ge=1.0, le=86_400.0)
        """Duration of a probe; the load lasts longer."""
        repetitions: int = Field(default=1, ge=1, le=1000)
        """Repetitions. All their requests are one distribution."""
        tail_bounds: tuple[Seconds, ...] = TAIL_BOUNDS_S
        """Bounds of the bins of the long tail."""

    options: Options

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

    async def run(self, context: RoundContext) -> tuple[Result, ...]:
        results: list[Result] = []
        for server in context.servers:
            for load in self._loads():
                for ask in self._asks():
                    for result in await self._play(context, server.name, ask, load):
                        context.publish(result)
                        results.append(result)
        return tuple(results)

    def _loads(self) -> tuple[Load | None, ...]:
        """Returns the loads to measure with: the requested one, and None where the idle port is to be measured."""
        load = self.options.load
        return (None,) if load is None else (None, load) if load.also_without else (load,)

    def _asks(self) -> Iterator[JobSpec]:
        options = self.options
        for transport in options.transport:
            for message_bytes in options.message_bytes or _messages(options.workload.kind, transport):
                yield JobSpec(
                    operation="request-response",
                    transport=transport,
                    duration_s=options.duration,
                    write_bytes=message_bytes,
                    no_delay=False,
                )

    def _round_s(self, load: Load | None) -> float:
        return self.options.duration + ROUND_OVERHEAD_S + (LOAD_LONGER_S if load else 0.0)

    async def _play(self, context: RoundContext, port: str, ask: JobSpec, load: Load | None) -> list[Result]:
        """Plays one port, transport, message size and load, as often as requested."""
        clients = clients_by_port(context)[port]
        if not clients:
            return []
        probe, *others = clients
        request = self._request(probe, others or [probe], ask, load)
        parameters = {
            "port": port,
            "client": probe.name,
            "transport": ask.transport.upper(),
            "message_bytes": ask.write_bytes,
            "message": format_bytes(ask.write_bytes or 0),
            "load": IDLE if load is None else load.words,
        }
        played = PlayedRounds()
        for repetition in range(self.options.repetitions):
            played.add(await context.play({**parameters, "repetition": repetition + 1}, request))
        place = f"{self.name}/{port}/{ask.transport}/{ask.write_bytes}/{'idle' if load is None else 'load'}"
        main = self._main(context, played, place, parameters, probe)
        return [main, *self._tail(played, place, parameters)]

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
        nothing = values["transactions_per_s"] is None and values["latency_mean_ns"] is None
        return self._result(played, place, {**parameters, "part": "requests"}, values, nothing=nothing)

    def _tail(self, played: PlayedRounds, place: str, parameters: dict[str, Any]) -> list[Result]:
        """Returns the bins of the long tail, where the tool keeps every request."""
        bounds_ns = [round(bound * 1e9) for bound in sorted(self.options.tail_bounds)]
        bins = tail_of(probe_figures(played.rounds), bounds_ns)
        results = []
        for lower_ns, upper_ns, count, share in bins:
            upper = "and more" if upper_ns is None else f"to {_bound(upper_ns)}"
            told = {**parameters, "part": "tail", "bin": f"{_bound(lower_ns)} {upper}"}
            values: Values = {"requests": count, "share_percent": 100.0 * share}
            results.append(self._result(played, f"{place}/tail/{lower_ns}", told, values, nothing=False))
        return results

    def _result(
        self, played: PlayedRounds, name: str, parameters: dict[str, Any], values: Values, *, nothing: bool
    ) -> Result:
        return Result(
            id=name,
            method=self.kind,
            scope="one connection",
            parameters=parameters,
            values=values,
            verdict=played.verdict(nothing),
            disturbances=played.disturbances,
            trials=played.round_ids,
        )

    @classmethod
    def main_values(cls, result: Result) -> tuple[str, ...]:
        """Returns the main values without the bins of the tail, the last of which never become stable."""
        return () if result.parameters.get("part") == "tail" else super().main_values(result)

    @classmethod
    def tables(cls) -> tuple[ResultTable, ...]:
        return TABLES


def _messages(tool: str, transport: str) -> tuple[int, ...]:
    """Returns the message sizes of the published range, as far as the tool and the transport allow."""
    least, most = _SMALLEST.get(tool, 1), _LARGEST.get(transport, MESSAGES[-1])
    return tuple(dict.fromkeys(min(max(size, least), most) for size in MESSAGES))


def _bound(bound_ns: int) -> str:
    """Returns a bound as it is kept with results: with "us", by which those of all versions are matched."""
    return format_duration_s(bound_ns / 1e9).replace("µs", "us")
