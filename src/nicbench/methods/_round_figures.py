"""Figures of rounds: what clients, ports and all together moved, the CPU time used, and what limited them."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from nicbench.core.base import WorkloadChoice
from nicbench.core.bond import FlowSilence, LinkFailure
from nicbench.core.frozen import frozen
from nicbench.core.lists import grouped, without_none
from nicbench.core.result import Result, ResultVerdict
from nicbench.core.round import EndpointFacts, Figures, Flow, Job, JobOutcome, JobSpec, MachineCpu, Round, RoundRequest
from nicbench.core.table import Column
from nicbench.core.units import format_bits_per_s
from nicbench.methods.base import Misfit, Objection, RoundContext, RoundMethod, Values
from nicbench.stats.bonds import bond_end, bond_note, bond_port
from nicbench.stats.limits import FULL_LINK, CpuLoad, FoundLimit, MovedData, full_share, limit_alone, limit_of
from nicbench.stats.links import failure_summary, find_beyond_links
from nicbench.stats.rounds import bits_per_s, rate_together

PAYLOAD_RATE: Final = Column(
    "throughput_bits_per_s",
    "Throughput",
    unit="Gb/s",
    form="gigabits",
    is_main=True,
    better="higher",
    adjective="fast",
)
"""The column of the payload rate of a workload's streams."""


SERVER_OWN_CPU: Final = Column(
    "server_cpu_own_percent", "Server's CPU, of the test", unit="%", form="number", is_optional=True
)
"""The column of the CPU time of the server that the test's programs and the kernel took, without that of strangers."""
CLIENT_OWN_CPU: Final = Column(
    "client_cpu_own_percent", "Client's CPU, of the test", unit="%", form="number", is_optional=True
)
FIRST_PORT: Final = 5201
"""The first port of the jobs of a round, iperf3's default."""
PORTS_A_JOB: Final = 160
"""The number of ports for each job, more than any tool needs: nuttcp uses one per stream (at most 128), and one."""
_LARGEST_DATAGRAM_BYTES: Final = 1472
"""Of an Ethernet frame of 1518 bytes: larger ones go in several packets of this size."""
_UDP_HEADERS_BYTES: Final = 20 + 8
_TCP_HEADERS_BYTES: Final = 20 + 20 + 12
"""With the option of time stamps, by which a segment's payload is shorter."""
ROUND_OVERHEAD_S: Final = 2.0
"""Seconds that a round takes beyond its duration, for estimates: servers start, clients connect and end."""


def jobs_of(
    clients: Iterable[EndpointFacts], workload: WorkloadChoice, ask: JobSpec, *, first: int = 0
) -> tuple[Job, ...]:
    """Returns a job for each client, to the server port that it is connected to.

    ``first`` is the number of jobs that the round already has.
    """
    return tuple(
        Job(
            workload=workload.kind,
            client=client.name,
            server=client.port,
            ask=ask,
            port=FIRST_PORT + PORTS_A_JOB * (first + number),
            options=workload.options,
        )
        for number, client in enumerate(clients)
    )


@dataclass
class PlayedRounds:
    """The repetitions of one point: rounds, each with whether it had to be used although something was wrong."""

    rounds: list[Round] = field(default_factory=list)
    marked: list[bool] = field(default_factory=list)

    def add(self, made: tuple[Round, bool]) -> None:
        """Adds a round and whether it had to be used although something was wrong."""
        self.rounds.append(made[0])
        self.marked.append(made[1])

    @property
    def round_ids(self) -> tuple[str, ...]:
        return tuple(each.id for each in self.rounds)

    def verdict(self, failed: bool) -> ResultVerdict:
        """Returns the verdict on the result; ``failed``: a figure that the result needs is missing."""
        if failed or not self.rounds:
            return ResultVerdict.INCOMPLETE
        return ResultVerdict.DISTURBED if any(self.marked) else ResultVerdict.VALID

    @property
    def disturbances(self) -> tuple[str, ...]:
        """The problems of the rounds that had to be used nonetheless, each listed once."""
        pairs = zip(self.rounds, self.marked, strict=True)
        return tuple(dict.fromkeys(found.text for each, marked in pairs if marked for found in each.verdict.findings))

    def result(
        self,
        method: RoundMethod,
        name: str,
        scope: str,
        parameters: dict[str, Any],
        values: Values,
        *,
        failed: bool,
        contradictions: Iterable[str] = (),
    ) -> Result:
        """Returns the result of a method over these rounds; ``failed``: a figure that it needs is missing."""
        return Result(
            id=name,
            method=method.kind,
            scope=scope,
            parameters=parameters,
            values=values,
            verdict=self.verdict(failed),
            disturbances=(*self.disturbances, *contradictions),
            trials=self.round_ids,
        )


async def play_repeatedly(
    context: RoundContext, point: dict[str, Any], request: RoundRequest, repetitions: int
) -> PlayedRounds:
    """Plays the rounds of one point one after the other."""
    played = PlayedRounds()
    for repetition in range(repetitions):
        played.add(await context.play({**point, "repetition": repetition + 1}, request))
    return played


def loads_of(one: Round) -> Iterable[tuple[Job, JobOutcome]]:
    """Returns the jobs that are measured as the load, with their outcomes; no probes and no background loads."""
    pairs = zip(one.request.jobs, one.outcomes, strict=True)
    return [(job, outcome) for job, outcome in pairs if job.role == "load"]


def probes_of(one: Round) -> Iterable[tuple[Job, JobOutcome]]:
    """Returns the jobs that measure during a load (probes), with their outcomes."""
    pairs = zip(one.request.jobs, one.outcomes, strict=True)
    return [(job, outcome) for job, outcome in pairs if job.role == "probe"]


def mean(values: Iterable[float | None]) -> float | None:
    """Returns the arithmetic mean; None without values, or where one is missing."""
    known = list(values)
    return None if not known or any(value is None for value in known) else statistics.fmean(map(float, known))  # type: ignore[arg-type]


@frozen
class Together:
    """The rate of some jobs together in each repetition; None where one is unknown, or its link cannot carry it."""

    bits_per_s: tuple[float | None, ...]
    contradictions: tuple[str, ...]
    """What the tools say together and a link cannot carry, each once."""


def add_up(context: RoundContext, played: PlayedRounds, names: Collection[str] | None = None) -> Together:
    """Returns the rate of the loads of these clients together, or of all."""
    rates = []
    contradictions = []
    facts = {end.name: end for end in (*context.clients, *context.servers)}
    for one in played.rounds:
        pairs = [(job, outcome) for job, outcome in loads_of(one) if names is None or job.client in names]
        wrong = list(find_beyond_links(facts, pairs))
        contradictions += wrong
        rates.append(None if wrong else rate_together([outcome for _, outcome in pairs]))
    return Together(tuple(rates), tuple(dict.fromkeys(contradictions)))


def spread_of(rates: Sequence[float | None]) -> Values:
    """Returns the mean of the repetitions, and the smallest and the largest where there are several."""
    known = without_none(rates)
    values: Values = {"throughput_bits_per_s": mean(rates)}
    if len(rates) > 1:
        values |= {
            "throughput_minimum_bits_per_s": min(known, default=None),
            "throughput_maximum_bits_per_s": max(known, default=None),
            "repetitions": len(rates),
        }
    return values


def flows_of(figures: Figures | None) -> tuple[Flow, ...]:
    """Returns the flows of a job; empty for a job that failed."""
    return () if figures is None else figures.flows


def retransmissions_of(outcomes: Iterable[JobOutcome]) -> int | None:
    """Returns the retransmissions of all flows that report them; None where none does."""
    known = [
        flow.retransmissions
        for outcome in outcomes
        for flow in flows_of(outcome.figures)
        if flow.retransmissions is not None
    ]
    return sum(known) if known else None


def mean_retransmissions(rounds: Iterable[Round], names: Collection[str] | None = None) -> float | None:
    """Returns the retransmissions of a round, the mean over ``rounds``: of the loads of these clients, or of all.

    None where one of the rounds has none to tell.
    """
    return mean(
        retransmissions_of(outcome for job, outcome in loads_of(one) if names is None or job.client in names)
        for one in rounds
    )


def machine_cpu(one: Round, machine: str) -> MachineCpu | None:
    """Returns the CPU use of a machine in a round; None where no monitor watched the machine."""
    return next((cpu for cpu in one.cpu if cpu.machine == machine), None)


def cpu_values(rounds: Sequence[Round], machine: str, prefix: str) -> Values:
    """Returns percentages of all CPUs of a machine over rounds: ``server_cpu_mean_percent`` etc. (docs/studies.md)."""
    known = [cpu for one in rounds if (cpu := machine_cpu(one, machine)) is not None]
    return {
        f"{prefix}_cpu_own_percent": _percent(mean(cpu.of_test for cpu in known)),
        f"{prefix}_cpu_strangers_percent": _percent(mean(cpu.strangers for cpu in known)),
        f"{prefix}_cpu_mean_percent": _percent(mean(cpu.mean for cpu in known)),
        f"{prefix}_cpu_minimum_percent": _percent(_extreme(min, (cpu.minimum for cpu in known))),
        f"{prefix}_cpu_maximum_percent": _percent(_extreme(max, (cpu.maximum for cpu in known))),
        f"{prefix}_cpu_busiest_core_percent": _percent(mean(cpu.busiest_core for cpu in known)),
        f"{prefix}_monitor_percent": _percent(mean(cpu.monitor for cpu in known)),
    }


def find_limit(context: RoundContext, rounds: Sequence[Round], names: Collection[str] | None = None) -> FoundLimit:
    """Returns what limited the loads of rounds of the same jobs, whether they ran to the measured host or through it.

    Rates and CPU loads are means over the rounds. ``names``: the clients whose limit is asked for, of all that ran.
    """
    clients = {end.name: end for end in context.clients}
    servers = {end.name: end for end in context.servers}
    moved = []
    for each in zip(*(loads_of(one) for one in rounds), strict=True):
        job, outcomes = each[0][0], [outcome.figures for _, outcome in each]
        rate = mean(map(_one_way_bits_per_s, outcomes))
        directions = zip(*map(_rates_by_direction, outcomes), strict=True)
        ways = tuple(statistics.fmean(rates) for rates in directions)
        share = _full_share(job, outcomes[-1])
        if job.client in clients and job.server in clients:
            data = _data_forwarded(clients[job.client], clients[job.server], servers, rate)
            # What the source sends comes in at its port, and leaves by the target's.
            moved += [
                replace(one, by_direction=way, full_share=share)
                for one, way in zip(data, (ways, ways[::-1]), strict=True)
            ]
        elif job.client in clients:
            direct = _data_moved(clients[job.client], servers.get(job.server or ""), rate)
            moved.append(replace(direct, by_direction=ways, full_share=share))
    asked = [one for one in moved if names is None or one.client in names]
    beside = [one for one in moved if one not in asked]
    return limit_of(asked, context.servers[0].machine, monitored_cpu(rounds), beside)


def _full_share(job: Job, figures: Figures | None) -> float:
    """Returns the share of a link's speed at which the payload of this job fills it."""
    if job.ask.transport == "udp" and job.ask.write_bytes is not None:
        return full_share(min(job.ask.write_bytes, _LARGEST_DATAGRAM_BYTES), _UDP_HEADERS_BYTES)
    if job.ask.transport == "tcp" and figures is not None and figures.mss_bytes is not None:
        return full_share(figures.mss_bytes, _TCP_HEADERS_BYTES)
    return FULL_LINK


def find_limits_alone(context: RoundContext, played: Mapping[str, PlayedRounds]) -> dict[str, FoundLimit]:
    """Returns, by client, what limited it while it had the server for itself, where clients ran one after another."""
    clients = {end.name: end for end in context.clients}
    servers = {end.name: end for end in context.servers}
    machine = context.servers[0].machine
    moved = {}
    for name, repeated in played.items():
        rates = [bits_per_s(outcome.figures) for one in repeated.rounds for _, outcome in loads_of(one)]
        moved[name] = _data_moved(clients[name], servers.get(clients[name].port or ""), mean(rates))
    everyone = tuple(moved.values())
    return {name: limit_alone(one, everyone, machine, _cpu_loads(context, played[name])) for name, one in moved.items()}


def monitored_cpu(rounds: Iterable[Round]) -> dict[str, CpuLoad]:
    """Returns the mean CPU load of each machine over rounds, as the monitor saw it."""
    shares = grouped(
        (cpu.machine, cpu) for one in rounds for cpu in one.cpu if cpu.mean is not None or cpu.busiest_core is not None
    )
    return {
        machine: CpuLoad(
            mean(cpu.mean for cpu in known),
            mean(cpu.busiest_core for cpu in known),
            mean(cpu.strangers for cpu in known),
            known[0].cpus,
        )
        for machine, known in shares.items()
    }


def _cpu_loads(context: RoundContext, played: PlayedRounds) -> dict[str, CpuLoad]:
    """Returns the CPU load of each machine over all repetitions.

    Where the monitor has no values of a machine, as rounds may be short, the CPU use reported by the tools is taken.
    """
    machines = {end.name: end.machine for end in (*context.clients, *context.servers)}
    said: dict[str, list[float]] = {}
    for one in played.rounds:
        for job, outcome in loads_of(one):
            if outcome.figures is None or job.ask.streams > 1:
                continue
            for end, share in (
                (job.client, outcome.figures.client_cpu_share),
                (job.server, outcome.figures.server_cpu_share),
            ):
                if share is not None and end in machines:
                    said.setdefault(machines[end], []).append(share)
    return {machine: CpuLoad(None, mean(each)) for machine, each in said.items()} | monitored_cpu(played.rounds)


def clients_by_port(context: RoundContext) -> Mapping[str, tuple[EndpointFacts, ...]]:
    """Returns the clients that are connected to each port of the server, in their order."""
    return {
        server.name: tuple(client for client in context.clients if client.port == server.name)
        for server in context.servers
    }


def _data_moved(client: EndpointFacts, server: EndpointFacts | None, rate: float | None) -> MovedData:
    return MovedData(
        client=client.name,
        port=client.port or "",
        machine=client.machine,
        bits_per_s=rate,
        link_bits_per_s=client.link_bits_per_s,
        port_link_bits_per_s=server.link_bits_per_s if server else None,
    )


def _data_forwarded(
    source: EndpointFacts, target: EndpointFacts, servers: Mapping[str, EndpointFacts], rate: float | None
) -> tuple[MovedData, MovedData]:
    """Returns the data moved by two clients that talk through the measured host, as either may be slow.

    The slower of the two links counts.
    """
    ports = [servers.get(each.port or "") for each in (source, target)]
    link = _slowest(each.link_bits_per_s for each in (source, target))
    port_link = _slowest(port.link_bits_per_s for port in ports if port is not None)
    first, second = (
        MovedData(each.name, each.port or "", each.machine, rate, link, port_link) for each in (source, target)
    )
    return first, second


def _slowest(speeds: Iterable[float | None]) -> float | None:
    return min(without_none(speeds), default=None)


def _one_way_bits_per_s(figures: Figures | None) -> float | None:
    """Returns the rate of the direction that moved more, since a link carries each direction by itself."""
    rates = [flow.bits_per_s for flow in flows_of(figures)]
    return None if not rates or any(rate is None for rate in rates) else max(rate or 0.0 for rate in rates)


def _rates_by_direction(figures: Figures | None) -> tuple[float, ...]:
    """Returns the rates to the server and from it."""
    flows = flows_of(figures)
    return tuple(
        sum(flow.bits_per_s or 0.0 for flow in flows if flow.direction == direction)
        for direction in ("forward", "reverse")
    )


def _percent(share: float | None) -> float | None:
    return None if share is None else 100.0 * share


def _extreme(pick: object, values: Iterable[float | None]) -> float | None:
    known = without_none(values)
    return pick(known) if known and callable(pick) else None


def loss_ratio_of(outcome: JobOutcome) -> float | None:
    """Returns the share of UDP datagrams that did not arrive, of those sent; both directions together."""
    flows = [flow for flow in flows_of(outcome.figures) if flow.datagrams]
    if not flows or any(flow.lost_datagrams is None for flow in flows):
        return None
    return sum(flow.lost_datagrams or 0 for flow in flows) / sum(flow.datagrams or 0 for flow in flows)


# Bonds and failing links: what a method reports about the ports of a bond, and how it takes one of its links down.


_LOAD: Final = "load"


def port_of(rounds: Sequence[Round], client: str) -> Values:
    """Returns ``bond_port``, the port of the bond that carried the load of this client."""
    words = [bond_port(rounds, job) for job, name in _loads_by_job(rounds).items() if name == client]
    return {"bond_port": words[0]} if words and words[0] is not None else {}


def note_of(rounds: Sequence[Round], clients: Collection[str]) -> Values:
    """Returns ``bond``: sentences on which clients shared a port, with the rate of each in those rounds."""
    names = {job: name for job, name in _loads_by_job(rounds).items() if name in clients}

    def rates_of(alike: Sequence[Round]) -> dict[int, str]:
        rates = {job: mean(bits_per_s(one.outcomes[job - 1].figures) for one in alike) for job in names}
        return {job: format_bits_per_s(rate) for job, rate in rates.items() if rate is not None}

    note = bond_note(rounds, names, rates_of)
    return {} if note is None else {"bond": note}


def port_of_job(one: Round, job: int) -> Values:
    """Returns ``bond_port`` of a job (number from 1), and ``bond_end``, the endpoint that the bond belongs to."""
    words = bond_port([one], job)
    return {} if words is None else {"bond_port": words, "bond_end": bond_end(one, job)}


def note_of_jobs(one: Round, names: Mapping[int, str], frames_per_s: Mapping[int, float | None]) -> Values:
    """Returns ``bond`` for one round of instances: who shared a port, by job number, with the frame rate of each."""
    rates = {job: f"{rate:.1f}" for job, rate in frames_per_s.items() if rate is not None}
    note = bond_note([one], names, lambda _: rates, "frames/s")
    return {} if note is None else {"bond": note}


def _loads_by_job(rounds: Sequence[Round]) -> dict[int, str]:
    """Returns the client of each load by the number of its job."""
    jobs = rounds[0].request.jobs if rounds else ()
    return {number: job.client for number, job in enumerate(jobs, 1) if job.role == _LOAD}


SILENT: Final = Column("failure_silent_s", "Silent when the link failed", unit="s", form="number", is_optional=True)

QUESTION: Final = (
    "A link of {subject} fails while streams go over it: do their connections go on, for how long are they silent, and "
    "what throughput do they reach?"
)
SENTENCE: Final = (
    "was tested with a failing link ({mode}): {failure}; over the whole round it moved {throughput_bits_per_s}"
)


def require_link_back(failure: LinkFailure | None, duration_s: float) -> None:
    """Raises ValueError where the link would not come back before the round ends."""
    if failure is not None and failure.ends_s >= duration_s:
        raise ValueError(
            f"the link is to be back {failure.ends_s:g} s after the clients begin, and a round lasts {duration_s:g} s: "
            "write a longer `duration`, or a shorter failure (`after`, `lasts`)"
        )


def failure_misfits(failure: LinkFailure | None, clients: Mapping[str, Sequence[str]]) -> Iterator[Misfit]:
    """Yields a misfit where the link to fail is on a port that is not the server's."""
    if failure is not None and failure.port not in clients:
        yield Misfit(
            option=("failure",),
            message=f"there is no port of the server called `{failure.port}`",
            next_step=f"write one of {', '.join(f'`{name}`' for name in clients)}",
        )


def failure_objection(failure: LinkFailure | None, context: RoundContext) -> Objection | None:
    """Returns an objection where the port has no bond of nicbench's, or one with fewer links."""
    if failure is None:
        return None
    return _missing_link(failure, {server.name: server.bond_links for server in context.servers})


def bond_failure_misfits(failure: LinkFailure | None, links: Mapping[str, int | None]) -> Iterator[Misfit]:
    """Yields a misfit where the bench file gives the port no bond, or one with fewer links.

    ``failure_misfits`` handles a port that is not the server's.
    """
    if failure is not None and failure.port in links and (why := _missing_link(failure, links)) is not None:
        yield Misfit(option=("failure",), message=why.message, next_step=why.next_step)


def _missing_link(failure: LinkFailure, links_of_ports: Mapping[str, int | None]) -> Objection | None:
    links = links_of_ports.get(failure.port)
    if links is None:
        return Objection(
            message=f"a link of {failure.port} is to fail, which is no bond that nicbench makes",
            next_step="write `bond: {links: 4}` under `lab`, or `bond: {of: [...]}` at the port; or remove `failure`",
        )
    if failure.link > links:
        return Objection(
            message=f"link {failure.link} of {failure.port} is to fail, which has {links}",
            next_step=f"write `link:` 1 to {links} under `failure`",
        )
    return None


def failure_values(rounds: Sequence[Round]) -> Values:
    """Returns ``failure``: a sentence for each round on the link failure; empty where no link was to fail."""
    said = [failure_summary(one.failure) for one in rounds if one.failure is not None]
    return {"failure": ". ".join(said)} if said else {}


def silence_of_client(rounds: Sequence[Round], client: str) -> Values:
    """Returns the longest silence of a client's connections after the failure; None where one never went on."""
    flows = [flow for one in rounds for flow in _flows_of_client(one, client)]
    if not flows:
        return {}
    return {"failure_silent_s": _longest(flows)}


def silence_of_job(one: Round, job: int) -> Values:
    """Returns the longest silence of a job's connections after the failure, by its number from 1.

    The value is ``None`` where a connection never went on.
    """
    flows = [flow for flow in (one.failure.flows if one.failure else ()) if job in flow.jobs]
    return {"failure_silent_s": _longest(flows)} if flows else {}


def _flows_of_client(one: Round, client: str) -> list[FlowSilence]:
    jobs = {number for number, job in enumerate(one.request.jobs, 1) if job.client == client}
    return [flow for flow in (one.failure.flows if one.failure else ()) if jobs & set(flow.jobs)]


def _longest(flows: Sequence[FlowSilence]) -> float | None:
    silences = [max(flow.silent_down_s or 0.0, flow.silent_back_s or 0.0) for flow in flows if flow.went_on]
    return max(silences) if len(silences) == len(flows) else None
