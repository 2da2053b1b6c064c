"""Latency of HTTP transactions (RFC 9411 sections 7.4 and 7.8): time to the first and to the last byte.

Steps, for TCP and each version of TLS, and each object: connections are due by the clock at one rate, given or a share
of what an earlier test `connections-per-second` found; each makes one exchange of HTTP/1.1. The times count from the
moment when a connection was due, whether or not the client was late: so what a slow answer delays is in them (open
loop). Connecting and the TLS handshake are timed by themselves. Percentiles are of all transactions of the sustain
phase, in all repetitions. Verified: each is counted once, as completed or as failed; length and bytes are compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, ClassVar, Final, Self

from pydantic import Field, model_validator

from nicbench.core.base import Distinct
from nicbench.core.connections import ConnectionsSpec
from nicbench.core.quantity import Percent
from nicbench.core.result import Bounded, Result
from nicbench.core.table import Column, ResultTable
from nicbench.core.units import format_bytes
from nicbench.methods._round_figures import ROUND_OVERHEAD_S, PlayedRounds, cpu_values
from nicbench.methods.base import RoundContext
from nicbench.methods.connections._figures import Outcome, columns_of_times, figures_of
from nicbench.methods.connections._method import ConnectionMethod
from nicbench.methods.connections._options import (
    ConnectionOptions,
    ObjectBytes,
    Way,
    request_of,
    spec_of,
    words_of_point,
    words_of_tls,
)
from nicbench.methods.connections._rates import shorter_phases

_FIRST: Final = Column(
    value="first_byte_p50_ns",
    head="median",
    name="First byte, median",
    form="microseconds",
    group="First byte",
    is_main=True,
    better="lower",
)


class HttpLatency(ConnectionMethod):
    """Time to the first and to the last byte at one rate."""

    kind: ClassVar[str] = "http-latency"
    question: ClassVar[str] = "How long do HTTP transactions take through {subject}?"

    class Options(ConnectionOptions):
        """Options of the bench file."""

        rate: int | None = Field(default=None, ge=1, le=100_000_000)
        """Connections a second; or a share of what another test found (`of`)."""
        of: str | None = None
        """An earlier test `connections-per-second` of this bench file with the same `tls` and `object_bytes`."""
        load: Percent = 50.0
        """The share of its rate. RFC 9411: 50 %."""
        object_bytes: Distinct[ObjectBytes] = Field(default=(1024, 16_384, 65_536), min_length=1)
        """Sizes of the object that each connection asks for. RFC 9411: 1, 16 and 64 KiB."""
        repetitions: int = Field(default=1, ge=1, le=1000)
        """Repetitions. All their transactions are one distribution."""

        @model_validator(mode="after")
        def _one_rate(self) -> Self:
            if (self.rate is None) == (self.of is None):
                raise ValueError("give either `rate`, in connections a second, or `of`, the name of an earlier test")
            return self

    options: Options

    def needs(self) -> str | None:
        return self.options.of

    def estimate_s(self) -> float:
        each_s = self.options.ramp + self.options.duration + ROUND_OVERHEAD_S
        return self.points() * self.options.repetitions * each_s

    def deviations(self) -> tuple[str, ...]:
        return tuple(shorter_phases(self.options.ramp, self.options.duration))

    def _greatest_spec(self, tls: str, size: int) -> ConnectionsSpec:
        return self._spec(tls, size, self.options.rate or 1)

    def _list_points(self) -> Iterator[tuple[str, int]]:
        yield from product(self.options.tls, self.options.object_bytes)

    def _spec(self, tls: str, size: int, rate: int) -> ConnectionsSpec:
        return spec_of(
            self.options, tls, task="connect", rate_per_s=float(rate), ramp_s=self.options.ramp, objects=((size, 1),)
        )

    def _rate(self, context: RoundContext, tls: str, size: int) -> int | None:
        """Returns the rate for this point; None where the earlier test found none."""
        if self.options.of is None:
            return self.options.rate
        wanted = (words_of_tls(tls), size)
        for result in context.results_of(self.options.of):
            value = result.values.get("connections_per_s")
            there = (result.parameters.get("transport"), result.parameters.get("object_bytes"))
            if there == wanted and isinstance(value, Bounded) and value.value:
                return max(1, int(value.value * self.options.load / 100.0))
        return None

    async def _measure(self, context: RoundContext, way: Way, tls: str, size: int) -> Result:
        rate = self._rate(context, tls, size)
        point: dict[str, Any] = {
            "transport": words_of_tls(tls),
            "object_bytes": size,
            "object": format_bytes(size),
            "rate_per_s": rate,
        }
        played = PlayedRounds()
        for repetition in range(self.options.repetitions if rate is not None else 0):
            request = request_of(way, self._spec(tls, size, rate or 1), self.options.duration)
            played.add(await context.play({**point, "repetition": repetition + 1}, request))
        known = [figures_of(one) for one in played.rounds]
        every = [each for figures in known if figures is not None for each in figures]
        outcome = Outcome(every, self.options.duration) if every and None not in known else None
        client = next(end for end in context.clients if end.name == way.clients[0].name)
        values = {
            **(outcome.times() if outcome else {_FIRST.value: None}),
            "row": words_of_point(point),
            "transactions": outcome.completed if outcome else None,
            "failures": outcome.failures if outcome else None,
            **cpu_values(played.rounds, context.servers[0].machine, "server"),
            **cpu_values(played.rounds, client.machine, "client"),
            "failed": (outcome.words or None) if outcome else None,
        }
        return Result(
            id=f"{self.name}/{tls}/{size}",
            method=self.kind,
            scope="all clients together",
            parameters=point,
            values=values,
            verdict=played.verdict(values[_FIRST.value] is None),
            disturbances=played.disturbances,
            trials=played.round_ids,
        )

    @classmethod
    def table(cls) -> ResultTable:
        times = columns_of_times(("last_byte", "connect", "handshake"))
        (tail,) = (column for column in columns_of_times(("first_byte",)) if column.head == "99 %")
        return ResultTable(
            title="Latency of HTTP transactions",
            has_basis=False,
            row_name="{row}",
            caption=(
                "RFC 9411 sections 7.4 and 7.8: from the moment when a connection was due to the first and to the last "
                "byte of the answer; connecting and the TLS handshake by themselves."
            ),
            columns=(
                Column(value="transport", head="Transport", form="text"),
                Column(value="object", head="Object", form="text"),
                Column(value="rate_per_s", head="Rate", unit="connections/s", form="whole"),
                _FIRST,
                tail,
                *times,
                Column(value="transactions", head="Transactions", form="whole"),
                Column(value="failures", head="Failed", form="whole"),
            ),
            sentences=(
                "gives the first byte within {first_byte_p50_ns} by {transport} in half of those that pass ({failed})",
                "gives the first byte within {first_byte_p50_ns} in half of the transactions by {transport}",
            ),
            notes=(("failed", "Failed"),),
        )
