"""HTTP transactions and their throughput (RFC 9411 sections 7.1, 7.3 and 7.7), on connections that stay.

Steps, for TCP and each version of TLS, and each object or the mix of them: requests of HTTP/1.1 are due by the clock,
on one of so many connections in turn, whether earlier ones were answered or not. A trial passes where no more than
0.001 % of the requests fail and 99 % of those due in the sustain phase are complete when it ends. The greatest rate is
found by halves; its goodput is that of the bodies. Verified: each request is counted once, as completed or as failed in
one way; length and bytes of each object are compared.
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
from nicbench.methods.base import RoundContext, Values
from nicbench.methods.connections._figures import columns_of_times, interval_of
from nicbench.methods.connections._method import ConnectionMethod
from nicbench.methods.connections._options import (
    Mix,
    ObjectBytes,
    Way,
    spec_of,
    words_of_mix,
    words_of_tls,
)
from nicbench.methods.connections._rates import SearchedOptions, find_most, result_of

_Objects = tuple[tuple[int, int], ...]
_RATE: Final = Column(
    value="transactions_per_s",
    head="Rate",
    unit="transactions/s",
    form="whole",
    is_main=True,
    better="higher",
    comparative="faster",
)


class HttpTransactions(ConnectionMethod):
    """The greatest rate of requests that is kept up, and its goodput."""

    kind: ClassVar[str] = "http-transactions"
    question: ClassVar[str] = "How many HTTP transactions a second does {subject} bear, and how much do they carry?"

    class Options(SearchedOptions):
        """Options of the bench file."""

        maximum: int = Field(ge=1, le=1_000_000_000)
        """The greatest rate that is tried, in requests a second."""
        connections: int = Field(default=32, ge=1, le=1_000_000)
        """Connections that carry them."""
        object_bytes: Distinct[ObjectBytes] = Field(default=(1024, 16_384, 65_536, 262_144), min_length=1)
        """Sizes of objects, each measured by itself. RFC 9411: 1, 16, 64 and 256 KiB, and a mix."""
        mix: tuple[Mix, ...] = ()
        """Objects that are asked for together, each as often as its weight says; measured besides."""

    options: Options

    def estimate_s(self) -> float:
        trial_s = self.options.ramp + self.options.duration
        return self.points() * self.options.searched_s(self.options.maximum, trial_s)

    def deviations(self) -> tuple[str, ...]:
        return self.options.deviations()

    def _greatest_spec(self, tls: str, objects: _Objects) -> ConnectionsSpec:
        return self._spec(tls, objects, self.options.maximum)

    def _list_objects(self) -> tuple[_Objects, ...]:
        alone: tuple[_Objects, ...] = tuple(((size, 1),) for size in self.options.object_bytes)
        mix = tuple((each.bytes, each.weight) for each in self.options.mix)
        return (*alone, mix) if mix else alone

    def _list_points(self) -> Iterator[tuple[str, _Objects]]:
        yield from product(self.options.tls, self._list_objects())

    def _spec(self, tls: str, objects: _Objects, rate: int) -> ConnectionsSpec:
        options = self.options
        return spec_of(
            options,
            tls,
            task="requests",
            rate_per_s=float(rate),
            ramp_s=options.ramp,
            connections=options.connections,
            objects=objects,
        )

    async def _measure(self, context: RoundContext, way: Way, tls: str, objects: _Objects) -> Result:
        point: dict[str, Any] = {
            "transport": words_of_tls(tls),
            "object": words_of_mix(objects),
            "connections": self.options.connections,
        }
        seconds = self.options.duration
        found = await find_most(
            context,
            self.options,
            way,
            point,
            self.options.maximum,
            lambda rate: self._spec(tls, objects, rate),
            lambda outcome, _: outcome.keeps_up,
            lambda outcome: int(outcome.in_time / seconds),
        )
        name = f"{self.name}/{tls}/{'+'.join(f'{size}x{weight}' for size, weight in objects)}"
        values: Values = {"goodput_bits_per_s": found.best.bits_per_s if found.best else None}
        return result_of(context, way, name, self.kind, point, _RATE.value, found, values)

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="HTTP transactions and throughput",
            has_basis=False,
            row_name="{row}",
            caption=(
                "RFC 9411 sections 7.1, 7.3 and 7.7: the greatest rate of requests, due by the clock on connections "
                "that stay, of which none failed beyond 0.001 %. Goodput is of the bodies; times are of that trial, "
                "from the moment when the request was due."
            ),
            columns=(
                Column(value="transport", head="Transport", form="text"),
                Column(value="object", head="Object", form="text"),
                Column(value="connections", head="Connections", form="whole"),
                _RATE,
                interval_of(_RATE),
                Column(value="goodput_bits_per_s", head="Goodput", form="gigabits"),
                *columns_of_times(("first_byte", "last_byte")),
                Column(value="trials", head="Trials", form="whole"),
                Column(value="limited_by", head="Limited by", form="text"),
            ),
            sentences=(
                "bears {transactions_per_s} by {transport}, each of {object}, with bodies of {goodput_bits_per_s}",
                "gives no result by {transport}: {limit}",
            ),
            notes=(("limit", "Limit"),),
        )
