"""Collectives: how long hosts take for an all-reduce in a ring, or an all-to-all, by streams through the DUT.

Terms follow the drafts of the IETF's benchmarking group on AI fabrics: job completion time is that of the slowest
stream. Steps, for each collective and size: a round in which the first client of each port sends at once. In a
ring of n each sends 2 (n - 1) / n of the size to the next; in an all-to-all each sends 1 / n of it to every other. Each
is repeated as often as asked. The streams of all steps of a ring are one: no host waits for what the one before it
sends. Verified: every byte arrived; a figure beyond its link is refused.
"""

from __future__ import annotations

import statistics
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any, Final, Literal

from pydantic import Field

from nicbench.core.base import Distinct, Frozen, WorkloadChoice
from nicbench.core.lists import without_none
from nicbench.core.quantity import Repetitions, SomeBytes
from nicbench.core.result import Result
from nicbench.core.round import EndpointFacts, Job, JobOutcome, JobSpec, Round, RoundRequest
from nicbench.core.table import Column, Plot, ResultTable
from nicbench.core.units import format_bytes
from nicbench.methods._results import average_ms, reason_of
from nicbench.methods._round_figures import (
    FIRST_PORT,
    PORTS_A_JOB,
    ROUND_OVERHEAD_S,
    PlayedRounds,
    clients_by_port,
    loads_of,
    mean,
    mean_retransmissions,
    play_repeatedly,
)
from nicbench.methods.base import Objection, RoundContext, RoundMethod, Values
from nicbench.stats.frames import fairness
from nicbench.stats.rounds import bits_per_s

Kind = Literal["all-reduce", "all-to-all"]

_ASSUMED_HOSTS: Final = 4
_SLOWEST_BITS_PER_S: Final = 5e6
"""The slowest rate of a host for which a round has enough time."""
_FEWEST: Final = 2
_TIME: Final = "job_completion_ms"
_KIND: Final = Column("collective", "Collective", form="text")
_SIZE: Final = Column("size", "Size", form="text")


def _tool_of(options: Mapping[str, Any]) -> WorkloadChoice:
    return WorkloadChoice(kind="perftest" if options.get("transport") == "rdma" else "nuttcp")


class Collective(RoundMethod):
    """Job completion time of collectives, the spread of their streams, and their fairness."""

    kind = "collective"
    question = "How long do collectives of several hosts take through {subject}?"
    through_dut = True
    fewest_ports = _FEWEST

    class Options(Frozen):
        """Options of the bench file. ``size_bytes`` is what each host has before the collective."""

        transport: Literal["tcp", "rdma"] = "tcp"
        """`rdma` is RoCE or InfiniBand, by the verb write. Each client needs an RDMA device."""
        workload: WorkloadChoice = Field(default_factory=_tool_of)
        """The tool, alone or with options of its own: `nuttcp`, which ends when the last byte has arrived. `iperf3`
        ends when the sender's kernel has it: the time is then unknown unless all bytes have arrived. Without it
        `nuttcp`, for RDMA `perftest`.
        """
        collectives: Distinct[Kind] = ("all-reduce", "all-to-all")
        """Which collectives: `all-reduce` is a ring of the hosts, `all-to-all` each pair of them."""
        size_bytes: Distinct[SomeBytes] = (100_000_000,)
        """What each host has: the gradients of an all-reduce."""
        repetitions: Repetitions = 5
        """Repetitions of each round. The result is their mean."""

    options: Options

    def points(self) -> int:
        return len(self.options.collectives) * len(self.options.size_bytes)

    def estimate_s(self) -> float:
        """Returns an estimate for four hosts; their actual number is known once the testbed is set up."""
        each_s = sum(_most_s(kind, size, _ASSUMED_HOSTS) for kind, size in self._points())
        return self.options.repetitions * each_s

    def job_specs(self) -> tuple[tuple[WorkloadChoice, JobSpec], ...]:
        return tuple((self.options.workload, self._ask(kind, size, _ASSUMED_HOSTS)) for kind, size in self._points())

    def objection(self, context: RoundContext) -> Objection | None:
        hosts = len(_hosts(context))
        if hosts >= _FEWEST:
            return None
        return Objection(
            message=f"a collective needs two hosts on ports of their own, and there are {hosts}",
            next_step="add a port and its client, or write `lab: {kind: clients, ports: 2}`",
        )

    async def results(self, context: RoundContext) -> AsyncIterator[Result]:
        hosts = _hosts(context)
        for kind, size in self._points():
            request = RoundRequest(
                jobs=_jobs(kind, hosts, self.options.workload, self._ask(kind, size, len(hosts))),
                duration_s=_most_s(kind, size, len(hosts)),
            )
            point: dict[str, Any] = {"collective": kind, "hosts": len(hosts), "size_bytes": size}
            if self.options.transport == "rdma":
                point["transport"] = "RDMA"
            played = await play_repeatedly(context, point, request, self.options.repetitions)
            yield self._result(played, {**point, "size": format_bytes(size)})

    def _points(self) -> Iterator[tuple[Kind, int]]:
        for kind in self.options.collectives:
            for size in self.options.size_bytes:
                yield kind, size

    def _ask(self, kind: Kind, size: int, hosts: int) -> JobSpec:
        streams = 1 if kind == "all-reduce" else hosts - 1
        transport = self.options.transport
        return JobSpec(
            total_bytes=max(1, _sent_bytes(kind, size, hosts) // streams),
            transport=transport,
            verb="write" if transport == "rdma" else None,
        )

    def _result(self, played: PlayedRounds, point: dict[str, Any]) -> Result:
        times_s = [completion_s(one) for one in played.rounds]
        sent_bits = 8 * _sent_bytes(point["collective"], point["size_bytes"], point["hosts"])
        values: Values = {
            **average_ms(_TIME, times_s, lambda: _why_unknown(played.rounds)),
            **(_streams(played.rounds) if None not in times_s else {}),
            "host_bits_per_s": mean(None if each_s is None else sent_bits / each_s for each_s in times_s),
            "retransmissions": mean_retransmissions(played.rounds),
        }
        values["limit"] = reason_of(values, _TIME)
        place = f"{self.name}/{point['collective']}/{point['size_bytes']}"
        failed = None in times_s
        return played.result(self, place, "of all hosts", point, values, failed=failed)

    @classmethod
    def table(cls) -> ResultTable:
        time = Column(_TIME, "Job completion", unit="ms", form="number", is_main=True, better="lower")
        return ResultTable(
            title="Collectives",
            caption=(
                "Job completion: from the start of the first tool to the end of the last, which ends when its last "
                "byte has arrived; the mean of the repetitions. It includes what the tools take to start and to end. "
                "Times of streams are the tools' own; the spread is how much less the fastest takes than the slowest. "
                "A host's rate is what it sends, by the job completion."
            ),
            columns=(
                *(
                    _KIND,
                    Column("transport", "Transport", form="text", is_optional=True),
                    Column("hosts", "Hosts", form="whole"),
                    _SIZE,
                    time,
                ),
                Column("minimum_ms", "Minimum", unit="ms", form="number"),
                Column("maximum_ms", "Maximum", unit="ms", form="number"),
                Column("slowest_ms", "Slowest stream", unit="ms", form="number"),
                Column("fastest_ms", "Fastest", unit="ms", form="number"),
                Column("spread_percent", "Spread", unit="%", form="number"),
                Column("jain_index", "Jain's index of the streams"),
                Column("host_bits_per_s", "Rate of a host", unit="Mb/s", form="megabits"),
                Column("retransmissions", "Retransmissions", form="trimmed"),
                Column("repetitions", "Repetitions", form="whole"),
            ),
            notes=(("limit", "Limit"),),
            sentences=("completes an {collective} of {size} among {hosts} hosts in {job_completion_ms}",),
            plots=(
                Plot(
                    x=_SIZE,
                    y=(time,),
                    lines=(_KIND,),
                    lower="minimum_ms",
                    upper="maximum_ms",
                    caption="Mean job completion time; the bar behind it reaches from the shortest to the longest.",
                ),
            ),
        )


def completion_s(one: Round) -> float | None:
    """Returns the time from the begin of the first tool to the end of the last; None where a byte did not arrive."""
    if _missing_bytes(one) != 0:
        return None
    spans = [(outcome.began_s, outcome.took_s) for _, outcome in loads_of(one)]
    known = [(began, began + took) for began, took in spans if began is not None and took is not None]
    return max(end for _, end in known) - min(began for began, _ in known) if len(known) == len(spans) else None


def _missing_bytes(one: Round) -> int | None:
    """Returns how many bytes had not arrived when their tools ended; None where a stream failed or does not say."""
    missing = 0
    for job, outcome in loads_of(one):
        received = [flow.received_bytes for flow in outcome.figures.flows] if outcome.figures else []
        known = without_none(received)
        if not known or len(known) < len(received):
            return None
        missing += max(0, (job.ask.total_bytes or 0) - sum(known))
    return missing


def _why_unknown(rounds: Sequence[Round]) -> str:
    missing = max((_missing_bytes(one) or 0 for one in rounds), default=0)
    if missing:
        return f"{format_bytes(missing)} had not arrived when the tool ended its streams: use `nuttcp`"
    return "a stream failed, or its tool does not say how long it took"


def _streams(rounds: Sequence[Round]) -> Values:
    """Returns how the streams of a round differ, as the mean of the rounds."""
    times = [_times_s([outcome for _, outcome in loads_of(one)]) for one in rounds]
    known = [each for each in times if each]
    rates = [without_none(bits_per_s(outcome.figures) for _, outcome in loads_of(one)) for one in rounds]
    if not known or len(known) < len(rounds):
        return {}
    return {
        "slowest_ms": 1e3 * statistics.fmean(max(each) for each in known),
        "fastest_ms": 1e3 * statistics.fmean(min(each) for each in known),
        "spread_percent": 100.0 * statistics.fmean(1.0 - min(each) / max(each) for each in known),
        "jain_index": mean(fairness(each) for each in rates),
    }


def _times_s(outcomes: Sequence[JobOutcome]) -> list[float]:
    """Returns how long each stream took; empty where one is unknown."""
    times = [flow.duration_s for outcome in outcomes if outcome.figures for flow in outcome.figures.flows]
    known = [time for time in times if time]
    return known if len(known) == len(outcomes) else []


def _hosts(context: RoundContext) -> tuple[EndpointFacts, ...]:
    """Returns the first client of each port, by which streams between any two of them pass the DUT."""
    return tuple(clients[0] for clients in clients_by_port(context).values() if clients)


def _sent_bytes(kind: Kind, size: int, hosts: int) -> int:
    """Returns what each host sends in all."""
    share = (hosts - 1) / hosts
    return round(size * share * (2 if kind == "all-reduce" else 1))


def _most_s(kind: Kind, size: int, hosts: int) -> float:
    return 8 * _sent_bytes(kind, size, hosts) / _SLOWEST_BITS_PER_S + ROUND_OVERHEAD_S


def _jobs(kind: Kind, hosts: Sequence[EndpointFacts], workload: WorkloadChoice, ask: JobSpec) -> tuple[Job, ...]:
    """Returns a stream from each host to the next, the first behind the last; or to every other."""
    ring = zip(hosts, (*hosts[1:], hosts[0]), strict=True)
    return tuple(
        Job(
            workload=workload.kind,
            client=source.name,
            server=target.name,
            ask=ask,
            port=FIRST_PORT + PORTS_A_JOB * number,
            options=workload.options,
        )
        for number, (source, target) in enumerate(ring if kind == "all-reduce" else permutations(hosts, 2))
    )
