"""Streams: TCP, UDP or RDMA throughput of a server's ports, one at a time and all at once (docs/studies.md).

The measurement of the published report on a four-port card (netperf and ttcp, 2000), by today's tools. Steps, for each
verb of RDMA, direction, write size and number of connections: a round for each port alone, with all of its clients,
the other ports idle; where the server has several cards, a round for each card; and a round of everything at once.
Each is repeated as often as asked.
Verified: figures beyond the link or against each other are refused; all machines' CPU figures say what limited a rate.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from nicbench.core.base import WorkloadChoice
from nicbench.core.lists import grouped, without_none
from nicbench.core.result import Result
from nicbench.core.round import EndpointFacts, JobOutcome, JobSpec, Round, RoundRequest
from nicbench.core.table import Bars, Column, Grid, ImportTable, ResultTable
from nicbench.core.trial import Trial
from nicbench.methods import _round_figures as _failures
from nicbench.methods._imports import IMPORTS, cells_of_rate_and_cpu, stream_of_import
from nicbench.methods._round_figures import (
    CLIENT_OWN_CPU,
    PAYLOAD_RATE,
    ROUND_OVERHEAD_S,
    SERVER_OWN_CPU,
    PlayedRounds,
    add_up,
    clients_by_port,
    cpu_values,
    find_limit,
    jobs_of,
    loads_of,
    loss_ratio_of,
    mean,
    mean_retransmissions,
    play_repeatedly,
    spread_of,
)
from nicbench.methods.base import PORT, Misfit, Objection, RoundContext, RoundMethod, Values
from nicbench.methods.transfer import StreamOptions, Together
from nicbench.stats.frames import fairness
from nicbench.stats.rounds import rate_together

_WORDS = {"forward": "to the server", "reverse": "from the server", "both": "both ways"}
_MODE = Column("mode", "Streams", form="text")
_AT_ONCE = Column("at_once", "At once", form="text")
_FAIRNESS = Column("jain_index", "Jain's index of the ports", is_optional=True)
_BESIDE = Column("beside", "At once", form="text")
_CLIENT = Column("client", "Client", form="text")
_CPU = (
    SERVER_OWN_CPU,
    Column("server_cpu_mean_percent", "Server's CPU, mean", unit="%", form="number"),
    Column("server_cpu_minimum_percent", "least", unit="%", form="number"),
    Column("server_cpu_maximum_percent", "most", unit="%", form="number"),
    Column("server_monitor_percent", "of it the monitor", unit="%", form="number"),
)
_NOTES = (("limit", "Limit"), ("bond", "Bond"), ("failure", "Link failure"))
_RETRANSMISSIONS = Column("retransmissions", "Retransmissions", form="trimmed")


class Stream(RoundMethod):
    """Throughput of TCP or UDP streams, per client, per port and combined, with the CPU time that they take."""

    kind = "stream"
    question = (
        "What throughput do streams reach at {subject}, by port and on all ports, and what CPU time do they take?"
    )

    class Options(StreamOptions):
        """Options of the bench file."""

    options: Options

    @classmethod
    def question_of(cls, options: Mapping[str, Any]) -> str:
        """Asks for what a failed link does to connections where a test takes one down."""
        return _failures.QUESTION if options.get("failure") else cls.question

    def points(self) -> int:
        """Returns the number of groups of ports that send at once, each with its direction and write size.

        Cards are known once the testbed is set up: they are taken to have two ports and more.
        """
        ports = self.planned_ports
        groups = {"port": ports, "card": min(2, ports), "growing": max(0, ports - 2), "all": int(ports > 1)}
        sets = sum(1 for _ in self._asks())
        return sets * sum(groups[together] for together in self.options.at_once)

    def estimate_s(self) -> float:
        return self.points() * self.options.repetitions * (self.options.duration + ROUND_OVERHEAD_S)

    def job_specs(self) -> tuple[tuple[WorkloadChoice, JobSpec], ...]:
        return tuple((self.options.workload, part) for _, ask in self._asks() for part in _parts(ask))

    def find_misfits(self, clients: Mapping[str, Sequence[str]], hosts: Sequence[str]) -> Iterator[Misfit]:
        """Yields a misfit for a port whose link cannot fail, and where all ports at once would be a single one."""
        if self.options.at_once == ("all",) and len(clients) < 2:
            yield Misfit(option=("at_once",), message="`all` needs two ports", next_step="write `[port]`, or add one")
        yield from _failures.failure_misfits(self.options.failure, clients)

    def find_bond_misfits(self, links: Mapping[str, int | None]) -> Iterator[Misfit]:
        yield from _failures.bond_failure_misfits(self.options.failure, links)

    def objection(self, context: RoundContext) -> Objection | None:
        return _failures.failure_objection(self.options.failure, context)

    async def results(self, context: RoundContext) -> AsyncIterator[Result]:
        for mode, ask in self._asks():
            for together in self.options.at_once:
                for name, ports in _groups(context, together):
                    for result in await self._play(context, mode, ask, name, ports):
                        yield result

    def clients_at_once(self, clients: int) -> int:
        # perftest has a process for each direction.
        options = self.options
        return 2 * clients if options.transport == "rdma" and "both" in options.direction else clients

    def _asks(self) -> Iterator[tuple[str, JobSpec]]:
        """Yields each job specification with its description in words."""
        options = self.options
        for verb in options.verb if options.transport == "rdma" else (None,):
            for direction, write_bytes, streams in product(
                options.direction, options.write_bytes, options.stream_counts
            ):
                ask = JobSpec(
                    transport=options.transport,
                    direction=direction,
                    duration_s=options.duration,
                    write_bytes=write_bytes,
                    streams=streams,
                    window_bytes=options.window,
                    congestion_control=options.congestion_control,
                    zero_copy=options.zero_copy,
                    no_delay=options.no_delay,
                    rate_bits_per_s=options.rate,
                    verb=verb,
                )
                yield _words(ask), ask

    async def _play(
        self, context: RoundContext, mode: str, ask: JobSpec, group: str, ports: Sequence[str]
    ) -> list[Result]:
        """Plays some ports at once, as often as requested; returns results for each client, each port and the total."""
        clients = [client for port in ports for client in clients_by_port(context)[port]]
        request = RoundRequest(
            jobs=tuple(
                job
                for number, part in enumerate(_parts(ask))
                for job in jobs_of(clients, self.options.workload, part, first=number * len(clients))
            ),
            duration_s=self.options.duration + ROUND_OVERHEAD_S,
            failure=self.options.failure if self.options.failure and self.options.failure.port in ports else None,
        )
        point = {"mode": mode, "at_once": group, "direction": ask.direction, "write_bytes": ask.write_bytes}
        if ask.verb is not None:
            point |= {"verb": ask.verb}
        if len(self.options.stream_counts) > 1:
            point |= {"streams": ask.streams}
        played = await play_repeatedly(context, point, request, self.options.repetitions)
        several = str(ask.streams) if len(self.options.stream_counts) > 1 else None
        parts = (self.name, ask.verb, ask.direction, str(ask.write_bytes), several, group.replace(" ", "-"))
        place = "/".join(part for part in parts if part is not None)
        found = [self._client(context, played, point, place, client) for client in clients]
        found += [self._port(context, played, point, place, port) for port in ports]
        if len(ports) > 1:
            found.append(self._combine(context, played, point, place))
        return found

    def _client(
        self, context: RoundContext, played: PlayedRounds, point: dict[str, Any], place: str, client: EndpointFacts
    ) -> Result:
        outcomes = [_outcomes_of(one, client.name) for one in played.rounds]
        rates = [rate_together(each) for each in outcomes]
        lost = [loss_ratio_of(each[0]) for each in outcomes]
        values: Values = {
            **spread_of(rates),
            "retransmissions": mean_retransmissions(played.rounds, (client.name,)),
            "lost_datagrams_percent": None if mean(lost) is None else 100.0 * (mean(lost) or 0.0),
            **cpu_values(played.rounds, client.machine, "client"),
            **_failures.port_of(played.rounds, client.name),
            **_failures.silence_of_client(played.rounds, client.name),
        }
        parameters = {
            **point,
            "part": "clients",
            "port": client.port,
            "client": client.name,
            "beside": _beside(point),
        }
        return self._result(played, f"{place}/{client.name}", parameters, values)

    def _port(
        self, context: RoundContext, played: PlayedRounds, point: dict[str, Any], place: str, port: str
    ) -> Result:
        names = [client.name for client in clients_by_port(context)[port]]
        return self._result(
            played,
            f"{place}/{port}",
            {**point, "part": "ports", "port": port, "clients": len(names), "beside": _beside(point)},
            *self._sum_up(context, played, names),
        )

    def _combine(self, context: RoundContext, played: PlayedRounds, point: dict[str, Any], place: str) -> Result:
        names = [job.client for job, _ in loads_of(played.rounds[0])]
        parameters = {**point, "part": "combined", "clients": len(names)}
        values, contradictions = self._sum_up(context, played, names)
        values |= _fairness_of(context, played)
        return self._result(played, f"{place}/combined", parameters, values, contradictions)

    def _sum_up(
        self, context: RoundContext, played: PlayedRounds, names: Sequence[str]
    ) -> tuple[Values, tuple[str, ...]]:
        """Returns the values of some clients together, and what of it their links cannot carry.

        The CPU use is the server's while the whole round ran.
        """
        together = add_up(context, played, names)
        values: Values = {
            **spread_of(together.bits_per_s),
            "retransmissions": mean_retransmissions(played.rounds, names),
            **cpu_values(played.rounds, context.servers[0].machine, "server"),
        }
        values |= cells_of_rate_and_cpu(values)
        limit = find_limit(context, played.rounds, names)
        return {
            **values,
            "limited_by": limit.limit.value,
            "limit": limit.text,
            **_failures.note_of(played.rounds, names),
            **_failures.failure_values(played.rounds),
        }, together.contradictions

    def _result(
        self,
        played: PlayedRounds,
        name: str,
        parameters: dict[str, Any],
        values: Values,
        contradictions: tuple[str, ...] = (),
    ) -> Result:
        return played.result(
            self,
            name,
            f"of payload, {'both directions added up' if parameters['direction'] == 'both' else 'one direction'}",
            parameters,
            values,
            failed=values["throughput_bits_per_s"] is None,
            contradictions=contradictions,
        )

    @classmethod
    def imports(cls) -> ImportTable:
        return IMPORTS

    @classmethod
    def from_import(cls, parameters: dict[str, Any], values: Values) -> tuple[dict[str, Any], Values]:
        return stream_of_import(parameters, values)

    @classmethod
    def main_values(cls, result: Result) -> tuple[str, ...]:
        """Returns the main values of ports and of the total; clients may divide a port between them in any way."""
        return () if result.parameters.get("part") == "clients" else (PAYLOAD_RATE.value,)

    @classmethod
    def restate_values(cls, values: Values) -> Values:
        """Rebuilds the cell with two figures from the medians of the runs."""
        if "throughput_and_cpu" not in values:
            return values
        return {**values, **cells_of_rate_and_cpu(values)}

    @classmethod
    def table_values(cls, result: Result, trials: Mapping[str, Trial]) -> Values:
        """Fills the grid also for results that were measured before the test's own CPU time was known."""
        return cells_of_rate_and_cpu(result.values) if "throughput_and_cpu" in result.values else {}

    @classmethod
    def tables(cls) -> tuple[ResultTable, ...]:
        limit = Column("limited_by", "Limit", form="text")
        return (
            ResultTable(
                part="combined",
                title="All ports at once",
                caption=(
                    "Payload of all clients together, by what the receivers counted, and the share of all CPUs of the "
                    "server that the test took meanwhile: its programs, interrupts and the kernel's threads. Beside it "
                    "the share that was busy, whoever used it: the mean, the least and the greatest of the monitor's "
                    "intervals."
                ),
                columns=(_MODE, _AT_ONCE, PAYLOAD_RATE, _FAIRNESS, *_CPU, _RETRANSMISSIONS, limit),
                sentences=(
                    f"{_failures.SENTENCE} over {{at_once}} together",
                    "moves {throughput_bits_per_s} over {at_once} together ({mode}): {limit}",
                    "moves {throughput_bits_per_s} over {at_once} together ({mode})",
                ),
                notes=_NOTES,
            ),
            ResultTable(
                part="ports",
                title="Throughput of each port",
                caption=(
                    "Payload in Mb/s / share of the server's CPU time in percent that the test took, its programs and "
                    "the kernel's work (of all programs, where they were not told apart), of each port, with all of "
                    "its clients. A port alone has the other ports idle."
                ),
                columns=(_MODE, _AT_ONCE, PORT, PAYLOAD_RATE, *_CPU, _RETRANSMISSIONS, limit),
                sentences=(
                    f"{_failures.SENTENCE} over {{port}}",
                    "moves {throughput_bits_per_s} over {port} ({mode}): {limit}",
                    "moves {throughput_bits_per_s} over {port} ({mode})",
                ),
                notes=_NOTES,
                bars=Bars(
                    x=PORT,
                    y=PAYLOAD_RATE,
                    lines=(_MODE, _BESIDE),
                    caption="Throughput of each port, all of its clients together.",
                ),
                grid=Grid(
                    rows=_MODE,
                    across=(PORT,),
                    each=_BESIDE,
                    compares_rows=True,  # modes of the links, as published
                    cell=Column(
                        "throughput_and_own_cpu",
                        "Throughput / CPU",
                        unit="Mb/s / %",
                        form="text",
                        is_main=True,
                    ),
                ),
            ),
            ResultTable(
                part="clients",
                title="Throughput of each client",
                caption="Payload of each client; the details have the busy share of all CPUs of its machine.",
                columns=(
                    *(_MODE, _AT_ONCE, PORT, _CLIENT, PAYLOAD_RATE),
                    Column("bond_port", "Port of the bond", form="text", is_optional=True),
                    _failures.SILENT,
                    CLIENT_OWN_CPU,
                    Column("client_cpu_mean_percent", "Client's CPU, mean", unit="%", form="number"),
                    Column("client_cpu_minimum_percent", "least", unit="%", form="number"),
                    Column("client_cpu_maximum_percent", "most", unit="%", form="number"),
                    _RETRANSMISSIONS,
                    Column("lost_datagrams_percent", "Datagrams lost", unit="%", form="number"),
                ),
                bars=Bars(
                    x=_CLIENT,
                    y=PAYLOAD_RATE,
                    lines=(_MODE, _BESIDE),
                    caption="Throughput of each client.",
                ),
                grid=Grid(rows=_CLIENT, across=(_MODE, _BESIDE), cell=PAYLOAD_RATE),
            ),
        )

    @classmethod
    def select_for_terminal(cls, results: tuple[Result, ...]) -> tuple[Result, ...]:
        """Leaves out the results of single clients, for which a terminal has no room."""
        return tuple(result for result in results if result.parameters.get("part") != "clients")


def _groups(context: RoundContext, together: Together) -> list[tuple[str, tuple[str, ...]]]:
    """Returns the groups that send at once, by name: single ports, those of a card, or all."""
    names = tuple(server.name for server in context.servers)
    if together == "port":
        return [(f"{name} alone", (name,)) for name in names]
    if together == "all":
        return [("all ports", names)] if len(names) > 1 else []
    if together == "growing":
        return [(f"{number} ports", names[:number]) for number in range(2, len(names))]
    cards = grouped((server.card or "no card", server.name) for server in context.servers)
    return [(f"card {card}", tuple(ports)) for card, ports in cards.items()]


def _words(ask: JobSpec) -> str:
    """Describes streams: "TCP to the server, writes of 8192 bytes"."""
    rdma = ask.verb is not None
    moved, many = ("messages", "queue pairs") if rdma else ("writes", "connections")
    name = f"RDMA {ask.verb}" if rdma else ask.transport.upper()
    several = f", {ask.streams} {many} a client" if ask.streams > 1 else ""
    return f"{name} {_WORDS[ask.direction]}, {moved} of {ask.write_bytes} bytes{several}"


def _parts(ask: JobSpec) -> tuple[JobSpec, ...]:
    """Returns the jobs of a client: for RDMA both ways one for each, as perftest tells only the sum of both."""
    if ask.verb is None or ask.direction != "both":
        return (ask,)
    return (ask.replace(direction="forward"), ask.replace(direction="reverse"))


def _outcomes_of(one: Round, client: str) -> list[JobOutcome]:
    return [outcome for job, outcome in loads_of(one) if job.client == client]


def _fairness_of(context: RoundContext, played: PlayedRounds) -> Values:
    """Returns Jain's index of the ports' throughputs, as the mean of the repetitions."""
    port_of = {client.name: client.port for client in context.clients}
    indexes = []
    for one in played.rounds:
        by_port = grouped((port_of.get(job.client), outcome) for job, outcome in loads_of(one))
        sums = [rate_together(outcomes) for outcomes in by_port.values()]
        known = without_none(sums)
        indexes.append(fairness(known) if len(known) == len(sums) else None)
    return {"jain_index": mean(indexes)}


def _beside(point: dict[str, Any]) -> str:
    """Returns the heading that says which other ports send."""
    return "each port alone" if point["at_once"].endswith(" alone") else f"{point['at_once']} at once"
