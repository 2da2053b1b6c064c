"""Connections per second (RFC 9411 sections 7.2 and 7.6): how many new connections a second DUT or server bear.

Steps, for TCP and each version of TLS, and each object: connections are due by the clock, whether earlier ones are done
or not; each makes its exchanges of HTTP/1.1, and the server closes it (or the client, by a RST). A trial passes where
no more than 0.001 % of the connections fail and 99 % of those due in the sustain phase are complete when it ends. The
greatest rate is found by halves; a trial with failures is repeated. A SYN that was dropped is a failure by default,
for the kernel would repeat it only after `connect_within`. Verified: each connection is counted once, as completed or
as failed in one way; length and bytes of each object are compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, ClassVar, Final

from pydantic import Field

from nicbench.core.base import Distinct
from nicbench.core.connections import ConnectionsSpec
from nicbench.core.result import Result
from nicbench.core.table import Column, ResultTable
from nicbench.core.units import format_bytes
from nicbench.methods.base import RoundContext
from nicbench.methods.connections._figures import Outcome, columns_of_times, interval_of
from nicbench.methods.connections._method import ConnectionMethod
from nicbench.methods.connections._options import (
    ObjectBytes,
    Way,
    spec_of,
    words_of_tls,
)
from nicbench.methods.connections._rates import SearchedOptions, find_most, result_of

_RATE: Final = Column(
    value="connections_per_s",
    head="Rate",
    unit="connections/s",
    form="whole",
    is_main=True,
    better="higher",
    comparative="faster",
)


class ConnectionsPerSecond(ConnectionMethod):
    """The greatest rate of new connections that is kept up."""

    kind: ClassVar[str] = "connections-per-second"
    question: ClassVar[str] = "How many new connections a second does {subject} bear?"

    class Options(SearchedOptions):
        """Options of the bench file."""

        maximum: int = Field(ge=1, le=100_000_000)
        """The greatest rate that is tried, in connections a second."""
        object_bytes: Distinct[ObjectBytes] = Field(default=(1024,), min_length=1)
        """Sizes of the object that each connection asks for. RFC 9411: 1, 2, 4, 16 and 64 KiB."""
        exchanges: int = Field(default=1, ge=1, le=1000)
        """Exchanges of each connection."""
        close: str = Field(default="fin", pattern="^(fin|reset)$")
        """`fin`: the server closes when asked to. `reset`: the client closes by a RST."""

    options: Options

    def estimate_s(self) -> float:
        trial_s = self.options.ramp + self.options.duration
        return self.points() * self.options.searched_s(self.options.maximum, trial_s)

    def deviations(self) -> tuple[str, ...]:
        return self.options.deviations()

    def _greatest_spec(self, tls: str, size: int) -> ConnectionsSpec:
        return self._spec(tls, size, self.options.maximum)

    def _list_points(self) -> Iterator[tuple[str, int]]:
        yield from product(self.options.tls, self.options.object_bytes)

    def _spec(self, tls: str, size: int, rate: int) -> ConnectionsSpec:
        options = self.options
        return spec_of(
            options,
            tls,
            task="connect",
            rate_per_s=float(rate),
            ramp_s=options.ramp,
            exchanges=options.exchanges,
            objects=((size, 1),),
            reset=options.close == "reset",
        )

    async def _measure(self, context: RoundContext, way: Way, tls: str, size: int) -> Result:
        point: dict[str, Any] = {"transport": words_of_tls(tls), "object_bytes": size, "object": format_bytes(size)}
        seconds = self.options.duration
        found = await find_most(
            context,
            self.options,
            way,
            point,
            self.options.maximum,
            lambda rate: self._spec(tls, size, rate),
            lambda outcome, _: outcome.keeps_up,
            lambda outcome: int(outcome.in_time / seconds),
        )
        name = f"{self.name}/{tls}/{size}"
        return result_of(context, way, name, self.kind, point, _RATE.value, found, _values(found.best))

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="Connections per second",
            has_basis=False,
            row_name="{row}",
            caption=(
                "RFC 9411 sections 7.2 and 7.6: the greatest rate of new connections, due by the clock, of which none "
                "failed beyond 0.001 %. Times are of that trial, the first byte from the moment when the connection "
                "was due."
            ),
            columns=(
                Column(value="transport", head="Transport", form="text"),
                Column(value="object", head="Object", form="text"),
                _RATE,
                interval_of(_RATE),
                *columns_of_times(),
                Column(value="trials", head="Trials", form="whole"),
                Column(value="limited_by", head="Limited by", form="text"),
            ),
            sentences=(
                "takes {connections_per_s} by {transport}, each for {object}",
                "gives no result by {transport}: {limit}",
            ),
            notes=(("limit", "Limit"),),
        )


def _values(best: Outcome | None) -> dict[str, Any]:
    return {} if best is None else {"goodput_bits_per_s": best.bits_per_s}
