"""Concurrent connections (RFC 9411 sections 7.5 and 7.9): how many connections DUT or server hold at once.

Steps, for TCP and each version of TLS: connections are opened by the clock, each makes an exchange of HTTP/1.1 and
stays. When all are open, each is asked once more, spread over the time for which they are held: what does not answer
then is not held. The greatest number of which none fails is found by halves. Verified: every connection answers twice,
with the right bytes; the number is exact where `precision` is 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from pydantic import Field

from nicbench.core.connections import ConnectionsSpec
from nicbench.core.result import Result
from nicbench.core.table import Column, ResultTable
from nicbench.methods.base import RoundContext, Values
from nicbench.methods.connections._figures import columns_of_times, interval_of
from nicbench.methods.connections._method import ConnectionMethod
from nicbench.methods.connections._options import (
    ObjectBytes,
    Way,
    spec_of,
    words_of_tls,
)
from nicbench.methods.connections._rates import SearchedOptions, find_most, result_of

_HELD: Final = Column(
    value="concurrent_connections",
    head="Connections at once",
    unit="connections",
    form="whole",
    is_main=True,
    better="higher",
)


class ConcurrentConnections(ConnectionMethod):
    """The most connections that are held at once."""

    kind: ClassVar[str] = "concurrent-connections"
    question: ClassVar[str] = "How many connections does {subject} hold at once?"

    class Options(SearchedOptions):
        """Options of the bench file."""

        maximum: int = Field(ge=1, le=10_000_000)
        """The most connections that are tried."""
        rate: int = Field(default=1000, ge=1, le=10_000_000)
        """Connections that are opened in a second."""
        object_bytes: ObjectBytes = 1
        """Size of the object that each connection asks for."""

    options: Options

    def estimate_s(self) -> float:
        options = self.options
        trial_s = options.maximum / options.rate + options.duration
        return self.points() * options.searched_s(options.maximum, trial_s)

    def deviations(self) -> tuple[str, ...]:
        return tuple(text for text in self.options.deviations() if "ramp" not in text)

    def _list_points(self) -> Iterator[tuple[str]]:
        for tls in self.options.tls:
            yield (tls,)

    def _greatest_spec(self, tls: str) -> ConnectionsSpec:
        return self._spec(tls, self.options.maximum)

    def _spec(self, tls: str, connections: int) -> ConnectionsSpec:
        return spec_of(
            self.options,
            tls,
            task="hold",
            rate_per_s=float(self.options.rate),
            connections=connections,
            objects=((self.options.object_bytes, 1),),
        )

    async def _measure(self, context: RoundContext, way: Way, tls: str) -> Result:
        point: dict[str, Any] = {"transport": words_of_tls(tls)}
        found = await find_most(
            context,
            self.options,
            way,
            point,
            self.options.maximum,
            lambda connections: self._spec(tls, connections),
            lambda outcome, asked: outcome.held == asked,
            lambda outcome: outcome.held,
        )
        values: Values = {"opened_per_s": self.options.rate, "held_ns": 1e9 * self.options.duration}
        return result_of(context, way, f"{self.name}/{tls}", self.kind, point, _HELD.value, found, values)

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="Concurrent connections",
            has_basis=False,
            caption=(
                "RFC 9411 sections 7.5 and 7.9: the most connections that were open at once, each of which answered "
                "when it was opened, and once more while all were held."
            ),
            columns=(
                Column(value="transport", head="Transport", form="text"),
                _HELD,
                interval_of(_HELD),
                Column(value="opened_per_s", head="Opened a second", unit="connections/s", form="whole"),
                Column(value="held_ns", head="Held for", form="seconds"),
                *columns_of_times(),
                Column(value="trials", head="Trials", form="whole"),
                Column(value="limited_by", head="Limited by", form="text"),
            ),
            sentences=(
                "holds {concurrent_connections} at once by {transport}",
                "gives no result by {transport}: {limit}",
            ),
            notes=(("limit", "Limit"),),
        )
