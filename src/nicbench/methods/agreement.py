"""Agreement: the same work by two or more tools, and whether they agree within a bound (docs/studies.md).

The published report measures the same throughput with netperf and with ttcp, and the two must agree, or the report says
that they do not. Steps, for each port, with all of its clients: a number of repetitions, and in each of them every tool
once, in an order that is drawn with the seed, so that what changes slowly (a clock, a temperature, a neighbour) is in
all of them alike. Concluded, for each pair of tools: the ratio over the repetitions in the geometric mean, with its
interval (Student's t of the logarithms, paired by repetition), and whether all, none or some of it is within the bound.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import AsyncIterator, Mapping
from itertools import combinations
from typing import Any, Final, Literal, Self

from pydantic import Field, model_validator

from nicbench.core.base import Frozen, WorkloadChoice
from nicbench.core.lists import without_none
from nicbench.core.quantity import Confidence, Ratio, RoundSeconds, SomeBytes
from nicbench.core.result import Result, ResultVerdict
from nicbench.core.round import JobSpec, RoundRequest
from nicbench.core.table import Column, Grid, ResultTable
from nicbench.core.units import format_digits, format_ratio
from nicbench.methods._round_figures import (
    ROUND_OVERHEAD_S,
    PlayedRounds,
    add_up,
    clients_by_port,
    jobs_of,
    mean,
)
from nicbench.methods.base import PORT, RoundContext, RoundMethod, Values
from nicbench.stats.intervals import Agreement as Answer
from nicbench.stats.intervals import RatioInterval, agreement, ratio_interval

_TOOL: Final = Column("workload", "Tool", form="text")
_RATE: Final = Column(
    "throughput_bits_per_s",
    "Throughput, mean",
    unit="Mb/s",
    form="megabits",
    is_main=True,
    better="higher",
    adjective="fast",
)

TABLES: Final = (
    ResultTable(
        part="agreement",
        title="Agreement of tools",
        caption=(
            "The ratio of what two tools say of the same work: the second over the first, the geometric mean over "
            "repetitions in which each had its turn, in an order drawn with the seed; its interval by Student's t of "
            "the logarithms. They agree where the whole interval lies within the bound, and do not where none of it "
            "does."
        ),
        columns=(
            PORT,
            Column("tools", "Tools", form="text"),
            Column("ratio", "Ratio", form="trimmed", is_main=True),
            Column("ratio_lower", "from", form="trimmed"),
            Column("ratio_upper", "to", form="trimmed"),
            Column("confidence_percent", "Confidence", unit="%", form="trimmed"),
            Column("within_percent", "Bound", unit="%", form="trimmed"),
            Column("pairs", "Repetitions", form="whole"),
            Column("answer", "The two", form="text"),
        ),
        sentences=("is measured by {tools}, and the two {answer} ({port})",),
    ),
    ResultTable(
        part="tools",
        title="Throughput by each tool",
        caption="Payload over each port with all of its clients, by what the receivers counted, mean and deviation.",
        columns=(
            *(PORT, _TOOL, _RATE),
            Column("throughput_deviation_bits_per_s", "Std. deviation", unit="Mb/s", form="megabits"),
            Column("throughput_minimum_bits_per_s", "least", unit="Mb/s", form="megabits"),
            Column("throughput_maximum_bits_per_s", "most", unit="Mb/s", form="megabits"),
            Column("repetitions", "Repetitions", form="whole"),
        ),
        grid=Grid(rows=PORT, across=(_TOOL,), cell=_RATE),
    ),
)


_SLOWEST_BITS_PER_S: Final = 50e6
"""The slowest rate for which a transfer is given enough time, where bytes are requested instead of a duration."""


class Agreement(RoundMethod):
    """Whether two or more tools agree on the throughput of each port, within a bound."""

    kind = "agreement"
    question = "Do several tools agree on the throughput of each port of {subject}?"

    class Options(Frozen):
        """Options of the bench file. ``transfer_bytes`` requests a number of bytes in place of a duration."""

        workloads: tuple[WorkloadChoice, ...] = Field(
            default=(WorkloadChoice(kind="iperf3"), WorkloadChoice(kind="nuttcp")), min_length=2, max_length=8
        )
        """Two tools or more."""
        within: Ratio = Field(default=0.05, gt=0.0)
        """The bound of the ratio, either way."""
        confidence: Confidence = 0.95
        """Confidence of the interval."""
        transport: Literal["tcp", "udp"] = "tcp"
        """The transport protocol."""
        direction: Literal["forward", "reverse"] = "forward"
        """`forward`: clients send. `reverse`: the server sends."""
        write_bytes: SomeBytes = 8192
        """Size of one write or datagram."""
        streams: int = Field(default=1, ge=1, le=15)
        """Connections of each client."""
        window: SomeBytes | None = None
        """Socket buffers; without it the kernel's."""
        duration: RoundSeconds = 10.0
        """Duration of a turn."""
        transfer_bytes: SomeBytes | None = None
        """The number of bytes instead of a duration (`16 MiB`, as published)."""
        repetitions: int = Field(default=10, ge=2, le=1000)
        """Turns of each tool."""

        @model_validator(mode="after")
        def _tools_differ(self) -> Self:
            kinds = [choice.kind for choice in self.workloads]
            twice = next((kind for kind in kinds if kinds.count(kind) > 1), None)
            if twice is not None:
                raise ValueError(
                    f"`{twice}` is named twice in `workloads`: a tool agrees with itself; name another one"
                )
            return self

    options: Options

    def points(self) -> int:
        return len(self.options.workloads)

    def estimate_s(self) -> float:
        return self.planned_ports * self.options.repetitions * len(self.options.workloads) * self._round_s()

    def job_specs(self) -> tuple[tuple[WorkloadChoice, JobSpec], ...]:
        return tuple((workload, self._job_spec()) for workload in self.options.workloads)

    async def results(self, context: RoundContext) -> AsyncIterator[Result]:
        for server in context.servers:
            played = await self._play(context, server.name)
            for result in (
                *self._tool_results(context, played, server.name),
                *self._pair_results(context, played, server.name),
            ):
                yield result

    def _job_spec(self) -> JobSpec:
        options = self.options
        return JobSpec(
            transport=options.transport,
            direction=options.direction,
            duration_s=options.duration if options.transfer_bytes is None else None,
            total_bytes=options.transfer_bytes,
            write_bytes=options.write_bytes,
            streams=options.streams,
            window_bytes=options.window,
        )

    def _round_s(self) -> float:
        transfer_bytes = self.options.transfer_bytes
        sent_s = self.options.duration if transfer_bytes is None else 8 * transfer_bytes / _SLOWEST_BITS_PER_S
        return sent_s + ROUND_OVERHEAD_S

    async def _play(self, context: RoundContext, port: str) -> dict[str, PlayedRounds]:
        """Plays every tool as often as requested, in an order that is drawn again for each repetition."""
        clients = clients_by_port(context)[port]
        draw = random.Random(f"{context.seed}/{self.name}/{port}")  # noqa: S311 - an order, no secret
        played = {workload.kind: PlayedRounds() for workload in self.options.workloads}
        for repetition in range(self.options.repetitions):
            order = draw.sample(self.options.workloads, len(self.options.workloads))
            for workload in order:
                request = RoundRequest(jobs=jobs_of(clients, workload, self._job_spec()), duration_s=self._round_s())
                point = {"port": port, "workload": workload.kind, "repetition": repetition + 1}
                played[workload.kind].add(await context.play(point, request))
        return played

    def _tool_results(self, context: RoundContext, played: Mapping[str, PlayedRounds], port: str) -> list[Result]:
        """Returns the result of each tool for the port."""
        results = []
        for tool, repeated in played.items():
            together = add_up(context, repeated)
            rates = together.bits_per_s
            known = without_none(rates)
            values: Values = {
                "throughput_bits_per_s": mean(rates),
                "throughput_deviation_bits_per_s": statistics.stdev(known) if len(known) > 1 else None,
                "throughput_minimum_bits_per_s": min(known, default=None),
                "throughput_maximum_bits_per_s": max(known, default=None),
                "repetitions": len(known),
            }
            parameters = {"part": "tools", "port": port, "workload": tool, **self._describe_work()}
            verdict = repeated.verdict(values["throughput_bits_per_s"] is None)
            place = f"{port}/{tool}"
            results.append(self._result(place, parameters, values, verdict, repeated, together.contradictions))
        return results

    def _pair_results(self, context: RoundContext, played: Mapping[str, PlayedRounds], port: str) -> list[Result]:
        """Returns, for each pair of tools, whether they agree."""
        results = []
        for first, second in combinations(played, 2):
            both = PlayedRounds()
            for one in (played[first], played[second]):
                both.rounds.extend(one.rounds)
                both.marked.extend(one.marked)
            sums = [add_up(context, played[tool]) for tool in (first, second)]
            rates = zip(*(each.bits_per_s for each in sums), strict=True)
            pairs = [(one, other) for one, other in rates if one and other]
            found = ratio_interval(pairs, self.options.confidence)
            answer = None if found is None else agreement(found, self.options.within)
            values: Values = {
                "ratio": found.ratio if found else None,
                "ratio_lower": found.lower if found else None,
                "ratio_upper": found.upper if found else None,
                "pairs": len(pairs),
                "agreement": (answer or Answer.UNKNOWN).value,
                "answer": _answer_words(first, second, found, answer, self.options.within),
            }
            parameters = {"part": "agreement", "port": port, "tools": f"{first} and {second}", **self._describe_work()}
            contradictions = dict.fromkeys(text for each in sums for text in each.contradictions)
            place, verdict = f"{port}/{first}-{second}", both.verdict(found is None)
            results.append(self._result(place, parameters, values, verdict, both, tuple(contradictions)))
        return results

    def _describe_work(self) -> dict[str, Any]:
        """Returns the work and the bound as parameters."""
        options = self.options
        return {
            "direction": options.direction,
            "transport": options.transport,
            "write_bytes": options.write_bytes,
            "within_percent": 100.0 * options.within,
            "confidence_percent": 100.0 * options.confidence,
        }

    def _result(
        self,
        name: str,
        parameters: dict[str, Any],
        values: Values,
        verdict: ResultVerdict,
        played: PlayedRounds,
        contradictions: tuple[str, ...],
    ) -> Result:
        return Result(
            id=f"{self.name}/{name}",
            method=self.kind,
            scope="one direction",
            parameters=parameters,
            values=values,
            verdict=verdict,
            disturbances=(*played.disturbances, *contradictions),
            trials=played.round_ids,
        )

    @classmethod
    def tables(cls) -> tuple[ResultTable, ...]:
        return TABLES


def _answer_words(
    first: str, second: str, found: RatioInterval | None, answer: Answer | None, within_ratio: float
) -> str:
    """Returns the answer as part of a sentence; the ratio is of the second tool to the first."""
    bound = format_ratio(within_ratio)
    if found is None or answer is None:
        return f"{Answer.UNKNOWN} to agree: fewer than two repetitions have figures of both {first} and {second}"
    ends = f"[{format_digits(found.lower)}, {format_digits(found.upper)}]"
    ratio = f"{second} is {format_digits(found.ratio)} times {first} {ends}"
    if answer is Answer.UNKNOWN:
        return f"{answer} to agree within {bound}: {ratio}, which extends beyond the bound"
    return f"{answer} within {bound}: {ratio}"
