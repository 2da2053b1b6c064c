"""Streams through the DUT as a router: from each port to each of the others (docs/studies.md).

The measurement of the published report on a four-port card (2000), whose server forwarded what one port's client sent
to another port's. Steps, for each direction and write size: a round for each ordered pair of ports, in which every
client of the one sends to a client of the other, all else idle. The figure of a port is the mean over its destinations.
The DUT is a `router`, which sees to it, and verifies, that what clients send to each other passes it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import permutations
from typing import Any, Final, Literal

from pydantic import Field

from nicbench.core.base import Distinct, Frozen, WorkloadChoice
from nicbench.core.quantity import Repetitions, RoundSeconds, SomeBytes
from nicbench.core.result import Result
from nicbench.core.round import Direction, EndpointFacts, Job, JobSpec, RoundRequest
from nicbench.core.table import Column, Grid, ImportColumn, ImportTable, ResultTable
from nicbench.methods._round_figures import (
    FIRST_PORT,
    PAYLOAD_RATE,
    PORTS_A_JOB,
    ROUND_OVERHEAD_S,
    PlayedRounds,
    add_up,
    clients_by_port,
    cpu_values,
    find_limit,
    mean,
    mean_retransmissions,
    play_repeatedly,
)
from nicbench.methods.base import PORT, Objection, RoundContext, RoundMethod, Values

MEAN = "mean"
"""The word in place of a destination for the mean over all destinations."""
_WORDS = {"forward": "to the destination", "reverse": "from the destination", "both": "both ways"}
_MODE = Column("mode", "Streams", form="text")
_DESTINATION = Column("destination", "Destination", form="text")

_IMPORTS: Final = ImportTable(
    columns=(
        ImportColumn("throughput_bits_per_s", "throughput", "payload_rate"),
        ImportColumn("router_cpu_mean_percent", "cpu", "percent", also=("router cpu",)),
        ImportColumn("workload", "tool", "text", also=("workload",), tells_apart=True),
        ImportColumn("port", "port", "text", tells_apart=True),
        ImportColumn("destination", "destination", "text", tells_apart=True, may_be_empty=True),
        ImportColumn("duplex", "duplex", "text", tells_apart=True),
    ),
    any_of=("throughput_bits_per_s",),
    caption="Payload from each port (rows) to each other port; and the mean over a port's destinations.",
)


class Forwarding(RoundMethod):
    """Throughput of streams that the DUT forwards from each port to each other, and the mean over the destinations."""

    kind = "forwarding"
    question = "How much does {subject} forward from each of its ports to each other?"
    through_dut = True
    fewest_ports = 2

    class Options(Frozen):
        """Options of the bench file. ``streams`` is the number of connections of each client."""

        workload: WorkloadChoice = WorkloadChoice(kind="iperf3")
        """The tool, alone or with options of its own."""
        transport: Literal["tcp", "udp"] = "tcp"
        """The transport protocol."""
        direction: Distinct[Direction] = ("forward",)
        """`forward` is towards the destination."""
        write_bytes: Distinct[SomeBytes] = (8192,)
        """Size of one write or datagram."""
        streams: int = Field(default=1, ge=1, le=128)
        """Connections of each client."""
        duration: RoundSeconds = 10.0
        """Duration of a round."""
        repetitions: Repetitions = 1
        """Repetitions of each round. The result is their mean."""

    options: Options

    def points(self) -> int:
        return len(self.options.direction) * len(self.options.write_bytes)

    def estimate_s(self) -> float:
        """Returns an estimate for a router with four ports; the actual number is known once the testbed is set up."""
        return self.points() * 12 * self.options.repetitions * (self.options.duration + ROUND_OVERHEAD_S)

    def job_specs(self) -> tuple[tuple[WorkloadChoice, JobSpec], ...]:
        return tuple((self.options.workload, ask) for _, ask in self._list_job_specs())

    def objection(self, context: RoundContext) -> Objection | None:
        ports = [port for port, clients in clients_by_port(context).items() if clients]
        if len(ports) >= 2:
            return None
        return Objection(
            message=f"forwarding needs two ports with clients, and there is {', '.join(ports) or 'none'}",
            next_step="add a port and its client, or write `lab: {kind: clients, ports: 2}`",
        )

    async def results(self, context: RoundContext) -> AsyncIterator[Result]:
        groups = {port: clients for port, clients in clients_by_port(context).items() if clients}
        for mode, ask in self._list_job_specs():
            of_port: dict[str, list[tuple[Result, PlayedRounds]]] = {port: [] for port in groups}
            for port, destination in permutations(groups, 2):
                point = _point(mode, ask, port, destination)
                of_port[port].append(await self._play(context, ask, point, groups[port], groups[destination]))
                yield of_port[port][-1][0]
            for port, every in of_port.items():
                yield self._mean(context, _point(mode, ask, port, MEAN), every)

    def _list_job_specs(self) -> Iterator[tuple[str, JobSpec]]:
        """Yields each job specification with its description in words."""
        options = self.options
        for direction in options.direction:
            for write_bytes in options.write_bytes:
                words = f"{options.transport.upper()} {_WORDS[direction]}, writes of {write_bytes} bytes"
                many = f", {options.streams} connections a client" if options.streams > 1 else ""
                ask = JobSpec(
                    transport=options.transport,
                    direction=direction,
                    duration_s=options.duration,
                    write_bytes=write_bytes,
                    streams=options.streams,
                )
                yield words + many, ask

    async def _play(
        self,
        context: RoundContext,
        ask: JobSpec,
        point: dict[str, Any],
        sources: Sequence[EndpointFacts],
        targets: Sequence[EndpointFacts],
    ) -> tuple[Result, PlayedRounds]:
        """Plays one ordered pair of ports, as often as requested."""
        request = RoundRequest(
            jobs=_pairs(sources, targets, self.options.workload, ask),
            duration_s=self.options.duration + ROUND_OVERHEAD_S,
        )
        played = await play_repeatedly(context, point, request, self.options.repetitions)
        together = add_up(context, played)
        limit = find_limit(context, played.rounds)
        rate = mean(together.bits_per_s)
        values = {**self._values(context, played, rate), "limited_by": limit.limit.value, "limit": limit.text}
        return self._result(point, values, played, together.contradictions), played

    def _mean(
        self, context: RoundContext, point: dict[str, Any], every: Sequence[tuple[Result, PlayedRounds]]
    ) -> Result:
        """Returns the mean over the destinations; unknown where one of them is."""
        together = PlayedRounds()
        for _, played in every:
            together.rounds += played.rounds
            together.marked += played.marked
        rates = [result.values["throughput_bits_per_s"] for result, _ in every]
        limits = dict.fromkeys(str(result.values["limited_by"]) for result, _ in every)
        rate = mean(rate if isinstance(rate, float) else None for rate in rates)
        values = {**self._values(context, together, rate), "limited_by": ", ".join(limits)}
        return self._result({**point, "destinations": len(every)}, values, together)

    def _values(self, context: RoundContext, played: PlayedRounds, rate: float | None) -> Values:
        return {
            "throughput_bits_per_s": rate,
            "retransmissions": mean_retransmissions(played.rounds),
            **cpu_values(played.rounds, context.servers[0].machine, "router"),
        }

    def _result(
        self, point: dict[str, Any], values: Values, played: PlayedRounds, contradictions: tuple[str, ...] = ()
    ) -> Result:
        place = f"{point['direction']}/{point['write_bytes']}/{point['port']}/{point['destination']}"
        return played.result(
            self,
            f"{self.name}/{place}",
            "sum of the directions" if point["direction"] == "both" else "one direction",
            point,
            values,
            failed=values["throughput_bits_per_s"] is None,
            contradictions=contradictions,
        )

    @classmethod
    def imports(cls) -> ImportTable:
        return _IMPORTS

    @classmethod
    def from_import(cls, parameters: dict[str, Any], values: Values) -> tuple[dict[str, Any], Values]:
        """Treats a row without a destination as the mean over all of them, as in the published table."""
        duplex = parameters.get("duplex")
        link = ", ".join(text for text in (parameters.get("link"), f"{duplex} duplex" if duplex else None) if text)
        told = {
            "mode": link or parameters.get("workload") or "link not named",
            "port": f"port {parameters['port']}" if "port" in parameters else "port not named",
            "destination": parameters.get("destination", MEAN),
        }
        return {**parameters, **told}, values

    @classmethod
    def table(cls) -> ResultTable:
        cpu = {"mean": "Router's CPU, mean", "minimum": "least", "maximum": "most"}
        return ResultTable(
            title="Forwarding between ports",
            caption=(
                "Payload from the clients of each port (rows) through the DUT to those of each other port, one "
                "pair of ports at a time, by what the receivers counted; and the mean over a port's destinations."
            ),
            columns=(
                *(_MODE, PORT, _DESTINATION, PAYLOAD_RATE),
                *(Column(f"router_cpu_{name}_percent", head, unit="%", form="number") for name, head in cpu.items()),
                Column("retransmissions", "Retransmissions", form="trimmed"),
                Column("limited_by", "Limit", form="text"),
            ),
            sentences=("forwards {throughput_bits_per_s} from {port}, the mean over its destinations ({mode})",),
            sums=("destination", MEAN),
            notes=(("limit", "Limit"),),
            grid=Grid(rows=PORT, across=(_DESTINATION,), cell=PAYLOAD_RATE, each=_MODE),
        )


def _point(mode: str, ask: JobSpec, port: str, destination: str) -> dict[str, Any]:
    return {
        "mode": mode,
        "direction": ask.direction,
        "write_bytes": ask.write_bytes,
        "port": port,
        "destination": destination,
    }


def _pairs(
    sources: Sequence[EndpointFacts], targets: Sequence[EndpointFacts], workload: WorkloadChoice, ask: JobSpec
) -> tuple[Job, ...]:
    """Returns pairs of every client of one port with one of the other, in turn where the other has fewer."""
    return tuple(
        Job(
            workload=workload.kind,
            client=source.name,
            server=targets[number % len(targets)].name,
            ask=ask,
            port=FIRST_PORT + PORTS_A_JOB * number,
            options=workload.options,
        )
        for number, source in enumerate(sources)
    )
