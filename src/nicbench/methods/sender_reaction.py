"""Sender reaction: what the sender of a TCP stream makes of marks over time (RFC 3168, RFC 8257).

Steps, for each port: its first client sends alone; after ``joins_after`` its second client joins it, where there is
one. Ten times a second the hosts of the clients look at the connections: payload acknowledged, segments delivered and
those of them that were marked, segments sent again, and the round trip. Of each stream, alone and together with the
other, follow the rate and when it settles, and of the time from then on the share marked, round trips and what was sent
again. Verified: rounds are judged as all are; a stream whose connection was not seen often enough has no figures.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Final, Self

from pydantic import Field, model_validator

from nicbench.core.base import Frozen, WorkloadChoice
from nicbench.core.quantity import Seconds, SomeBytes
from nicbench.core.result import Bounded, Result
from nicbench.core.round import EndpointFacts, JobSpec, Round, RoundRequest, SenderTrace
from nicbench.core.table import Column, Plot, ResultTable
from nicbench.core.units import format_bits_per_s, format_digits, format_duration_s
from nicbench.methods._round_figures import PAYLOAD_RATE, ROUND_OVERHEAD_S, PlayedRounds, clients_by_port, jobs_of
from nicbench.methods.base import RoundContext, RoundMethod, Values
from nicbench.stats.links import Reaction, Settling, settling_of, steps_of

_MOST_STEPS: Final = 30
_LEAST_S: Final = 2.0
"""A shorter period has too few means of half a second to judge by."""
_ALONE, _BESIDE = "alone", "beside another"
_CLIENT = Column("client", "Sender", form="text")
_PERIOD = Column("period", "Sends", form="text")
_MARKED = Column("marked_percent", "Marked", unit="%", form="of_frames")
_TRIP = Column("round_trip_median_ns", "Round trip, median", unit="ms", form="milliseconds")
_AT = Column("at_s", "Time", unit="s", form="text")
_NOT_SEEN: Final = "its connection was not seen often enough"


class SenderReaction(RoundMethod):
    """The rate, marks, round trips and repetitions of TCP senders over time, alone and together with another."""

    kind = "sender-reaction"
    question = "How do senders of TCP towards {subject} react to congestion and its marks?"

    class Options(Frozen):
        """Options of the bench file."""

        workload: WorkloadChoice = WorkloadChoice(kind="iperf3")
        """The tool of the streams, alone or with options of its own: `{kind: iperf3, ...}`."""
        congestion_control: str | None = Field(default=None, pattern=r"^[a-z0-9_]{1,15}$")
        """Congestion control of the senders, for example `dctcp`; without it the kernel's."""
        window: SomeBytes | None = None
        """Socket buffers; without it the kernel's."""
        duration: Seconds = Field(default=30.0, ge=_LEAST_S, le=3600.0)
        """How long the first client sends."""
        joins_after: Seconds = Field(default=15.0, ge=_LEAST_S, le=3600.0)
        """When the second client of the port joins it; both end together."""

        @model_validator(mode="after")
        def _joins_before_the_end(self) -> Self:
            if self.duration - self.joins_after < _LEAST_S:
                raise ValueError(f"`joins_after` must be {_LEAST_S:g} s or more before the end of `duration`")
            return self

    options: Options

    def points(self) -> int:
        return 1

    def estimate_s(self) -> float:
        return self.planned_ports * (self.options.duration + ROUND_OVERHEAD_S)

    def job_specs(self) -> tuple[tuple[WorkloadChoice, JobSpec], ...]:
        return tuple((self.options.workload, ask) for ask, _ in self._asks())

    def _asks(self) -> Iterator[tuple[JobSpec, float]]:
        """Yields what the first client is asked for and the second, each with the time at which it begins."""
        options = self.options
        for after_s in (0.0, options.joins_after):
            ask = JobSpec(
                duration_s=options.duration - after_s,
                window_bytes=options.window,
                congestion_control=options.congestion_control,
            )
            yield ask, after_s

    async def results(self, context: RoundContext) -> AsyncIterator[Result]:
        for port, clients in clients_by_port(context).items():
            for result in await self._measure(context, port, clients[:2]):
                yield result

    async def _measure(self, context: RoundContext, port: str, clients: Sequence[EndpointFacts]) -> Iterator[Result]:
        jobs = tuple(
            job.replace(begins_after_s=after_s)
            for number, (client, (ask, after_s)) in enumerate(zip(clients, self._asks(), strict=False))
            for job in jobs_of([client], self.options.workload, ask, first=number)
        )
        played = PlayedRounds()
        request = RoundRequest(jobs=jobs, duration_s=self.options.duration + ROUND_OVERHEAD_S, looks_at_senders=True)
        played.add(await context.play({"port": port}, request))
        return self._results(played, port, clients)

    def _results(self, played: PlayedRounds, port: str, clients: Sequence[EndpointFacts]) -> Iterator[Result]:
        (one,) = played.rounds
        for number, client in enumerate(clients, 1):
            trace = _trace_of(one, number)
            for period, from_s, until_s in self._periods(number, len(clients)):
                settling = None if trace is None else settling_of(trace, from_s, until_s)
                point = {"part": "streams", "port": port, "client": client.name, "period": period}
                yield self._result(played, f"{port}/{client.name}/{period.split()[0]}", point, _values(trace, settling))
            for step in [] if trace is None else steps_of(trace.looks, max(1.0, self.options.duration / _MOST_STEPS)):
                at_s = format_digits(step.at_s)
                point = {"part": "steps", "port": port, "client": client.name, "at_s": at_s}
                yield self._result(
                    played,
                    f"{port}/{client.name}/steps/{at_s}",
                    point,
                    {
                        PAYLOAD_RATE.value: step.rate_bits_per_s,
                        "marked_percent": _percent(step.marked_share),
                        "round_trip_median_ns": step.round_trip_ns,
                    },
                )

    def _periods(self, number: int, clients: int) -> Iterator[tuple[str, float, float]]:
        """Yields the periods of the client with this number, each with its beginning and end in seconds."""
        joins_s, ends_s = self.options.joins_after, self.options.duration
        if clients == 1:
            yield _ALONE, 0.0, ends_s
            return
        if number == 1:
            yield _ALONE, 0.0, joins_s
        yield _BESIDE, joins_s, ends_s

    def _result(self, played: PlayedRounds, name: str, parameters: dict[str, Any], values: Values) -> Result:
        return played.result(
            self,
            f"{self.name}/{name}",
            "one direction",
            parameters,
            values,
            failed=isinstance(values[PAYLOAD_RATE.value], Bounded),
        )

    @classmethod
    def main_values(cls, result: Result) -> tuple[str, ...]:
        """Returns the main values of streams; values of steps of time are their course."""
        return (PAYLOAD_RATE.value,) if result.parameters.get("part") == "streams" else ()

    @classmethod
    def tables(cls) -> tuple[ResultTable, ...]:
        rate = PAYLOAD_RATE.replace(unit="Mb/s", form="megabits")
        course = rate.replace(is_main=False)
        return (
            ResultTable(
                part="streams",
                title="Reaction of senders",
                caption=(
                    "Payload acknowledged, by the kernels of the senders. A rate settles at the first time after which "
                    "each mean over half a second stays within 10 % of the mean of the period's last half; all figures "
                    "are of the time from then on, or of the last half where it does not settle. Marked: of the "
                    "segments delivered those acknowledged with a mark, which a receiver of RFC 3168 repeats until the "
                    "sender answers: only with DCTCP it is the share that the path marked. "
                    "Round trips are smoothed by the kernel and include what waits in queues."
                ),
                columns=(
                    *(_CLIENT, _PERIOD, rate),
                    Column("settles_after_s", "Settles after", unit="s", form="number"),
                    _MARKED,
                    _TRIP.replace(is_main=True, better="lower", name="round trip"),
                    Column("round_trip_p95_ns", "95th percentile", unit="ms", form="milliseconds"),
                    Column("resent_segments", "Segments sent again", form="whole"),
                    Column("congestion_control", "Congestion control", form="text"),
                    Column("ecn", "ECN", form="text"),
                ),
                sentences=("has a sender, {client} {period}, that {reaction}",),
                notes=(("reaction", "Sender"),),
                sums=(_PERIOD.value, _BESIDE),
                has_basis=False,
            ),
            ResultTable(
                part="steps",
                title="Senders over time",
                caption="The means of each step of time, which ends at the time given, since the first sender began.",
                columns=(_CLIENT, _AT, course, _MARKED, _TRIP),
                has_basis=False,
                plots=tuple(
                    Plot(x=_AT, y=(y,), lines=(_CLIENT,), caption=f"{what} of each sender over time, in s.")
                    for y, what in ((course, "Payload"), (_MARKED, "Share of segments marked"), (_TRIP, "Round trip"))
                ),
            ),
        )

    @classmethod
    def select_for_terminal(cls, results: tuple[Result, ...]) -> tuple[Result, ...]:
        """Leaves out the steps of time, for which a terminal has no room."""
        return tuple(result for result in results if result.parameters.get("part") != "steps")


def _trace_of(one: Round, number: int) -> SenderTrace | None:
    return next((trace for trace in one.senders if trace.job == number), None)


def _percent(share: float | None) -> float | None:
    return None if share is None else 100.0 * share


def _values(trace: SenderTrace | None, settling: Settling | None) -> Values:
    if trace is None or settling is None:
        return {PAYLOAD_RATE.value: Bounded(value=None, reason_null=_NOT_SEEN)}
    settles = settling.settles_after_s
    return {
        PAYLOAD_RATE.value: settling.rate_bits_per_s,
        "settles_after_s": Bounded(value=None, reason_null="it did not settle") if settles is None else settles,
        "marked_percent": _percent(settling.marked_share),
        "round_trip_median_ns": settling.round_trip_median_ns,
        "round_trip_p95_ns": settling.round_trip_p95_ns,
        "resent_segments": settling.resent,
        "congestion_control": trace.congestion_control,
        "ecn": {True: "negotiated", False: "not negotiated", None: None}[trace.ecn],
        "reaction": reaction_words(settling),
    }


def reaction_words(settling: Settling) -> str:
    """Describes what a sender made of marks: "reacts to marks: settles at 17.9 Mb/s, 3.1 % marked, ..."."""
    at = "settles at" if settling.settles_after_s is not None else "a mean of"
    parts = [f"{at} {format_bits_per_s(settling.rate_bits_per_s)}"]
    if settling.reaction not in (Reaction.NOT_TOLD, Reaction.NOT_MARKED, Reaction.UNKNOWN):
        parts.append(f"{format_digits(100 * (settling.marked_share or 0.0), 2)} % marked")
    parts.append(f"{settling.resent} segments sent again" if settling.resent else "nothing sent again")
    if settling.round_trip_median_ns is not None:
        parts.append(f"round trips of {format_duration_s(settling.round_trip_median_ns / 1e9)}")
    return f"{settling.reaction.value}: {', '.join(parts)}"
