"""TCP connections and HTTP (RFC 9411): new and concurrent connections, transactions, and their latency."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, Final, Self

from pydantic import Field, model_validator

from nicbench.core.base import Distinct
from nicbench.core.connections import ConnectionsSpec
from nicbench.core.quantity import Percent, Repetitions
from nicbench.core.result import Bounded, Result
from nicbench.core.table import Column, ResultTable
from nicbench.core.units import format_bytes
from nicbench.methods._connection_jobs import (
    ConnectionOptions,
    Mix,
    ObjectBytes,
    Way,
    request_of,
    spec_of,
    words_of_mix,
    words_of_point,
    words_of_tls,
)
from nicbench.methods._connections import (
    BY_PORT,
    KPI_OF_TIMES,
    RESENT,
    ConnectionMethod,
    Outcome,
    SearchedMethod,
    SearchedOptions,
    columns_of_times,
    figures_of,
    interval_of,
    shorter_phases,
)
from nicbench.methods._round_figures import ROUND_OVERHEAD_S, PlayedRounds, cpu_values
from nicbench.methods.base import TRIALS, RoundContext, Values

_CONNECTIONS_RATE: Final = Column(
    "connections_per_s",
    "TCP Connections Per Second",
    unit="connections/s",
    form="whole",
    is_main=True,
    better="higher",
    adjective="fast",
)


class ConnectionsPerSecond(SearchedMethod):
    """The greatest rate of new connections that is kept up."""

    kind = "connections-per-second"
    main = _CONNECTIONS_RATE
    question = "How many new connections a second does {subject} bear?"
    steps = """
    Connections per second (RFC 9411 sections 7.2 and 7.6): how many new connections a second DUT or server bear.
    Steps, for TCP and each version of TLS, and each object: connections are due by the clock, whether earlier ones are
    done or not; each makes its exchanges of HTTP/1.1, and the server closes it (or the client, by a RST). A trial
    passes where no more than 0.001 % of the connections fail and 99 % of those due in the sustain phase are complete
    when it ends. The greatest rate is found from what the first trial bore, then by halves; a trial with failures is
    repeated. A SYN that was dropped is a failure by default, for the kernel would repeat it only after
    `connect_within`. Verified: each connection is counted once, as completed or as failed in one way; length and bytes
    of each object are compared.
    """

    class Options(SearchedOptions):
        """Options of the bench file."""

        maximum: int = Field(ge=1, le=100_000_000)
        """The greatest rate that is tried, in connections a second."""
        object_bytes: Distinct[ObjectBytes] = (1024,)
        """Sizes of the object that each connection asks for. RFC 9411: 1, 2, 4, 16 and 64 KiB."""
        exchanges: int = Field(default=1, ge=1, le=1000)
        """Exchanges of each connection."""
        close: str = Field(default="fin", pattern="^(fin|reset)$")
        """`fin`: the server closes when asked to. `reset`: the client closes by a RST."""

    options: Options

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

    def _parameters(self, tls: str, size: int) -> dict[str, Any]:
        return {"transport": words_of_tls(tls), "object_bytes": size, "object": format_bytes(size)}

    def _values(self, best: Outcome | None) -> Values:
        return {} if best is None else {"goodput_bits_per_s": best.bits_per_s}

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="Connections per second",
            has_basis=False,
            row_name="{row}",
            caption=(
                "RFC 9411 sections 7.2 and 7.6: the greatest rate of new connections, due by the clock, of which none "
                "failed beyond 0.001 %; with TLS it is the TLS Handshake Rate, too. Times are of that trial, the first "
                "byte from the moment when the connection was due."
            ),
            columns=(
                Column("transport", "Transport", form="text"),
                Column("object", "Object", form="text"),
                _CONNECTIONS_RATE,
                interval_of(_CONNECTIONS_RATE),
                *columns_of_times(),
                *RESENT,
                TRIALS,
                Column("limited_by", "Limited by", form="text"),
            ),
            sentences=(
                "takes {connections_per_s} by {transport}, each for {object}",
                "gives no result by {transport}: {limit}",
            ),
            notes=(("limit", "Limit"), BY_PORT),
        )


_HELD: Final = Column(
    "concurrent_connections",
    "Concurrent TCP Connections",
    unit="connections",
    form="whole",
    is_main=True,
    better="higher",
)


class ConcurrentConnections(SearchedMethod):
    """The most connections that are held at once."""

    kind = "concurrent-connections"
    main = _HELD
    question = "How many connections does {subject} hold at once?"
    steps = """
    Concurrent connections (RFC 9411 sections 7.5 and 7.9): how many connections DUT or server hold at once.
    Steps, for TCP and each version of TLS: connections are opened by the clock, each makes an exchange of HTTP/1.1 and
    stays. When all are open, each is asked once more, spread over the time for which they are held: what does not
    answer then is not held. The greatest number of which none fails is found from what the first trial held, then by
    halves. Verified: every connection answers twice, with the right bytes; the number is exact where `precision` is 0.
    """

    class Options(SearchedOptions):
        """Options of the bench file."""

        maximum: int = Field(ge=1, le=10_000_000)
        """The most connections that are tried."""
        rate: int = Field(default=1000, ge=1, le=10_000_000)
        """Connections that are opened in a second."""
        object_bytes: ObjectBytes = 1
        """Size of the object that each connection asks for."""

    options: Options

    def _trial_s(self) -> float:
        return self.options.maximum / self.options.rate + self.options.duration

    def deviations(self) -> tuple[str, ...]:
        return tuple(text for text in super().deviations() if "ramp" not in text)

    def _list_points(self) -> Iterator[tuple[str]]:
        for tls in self.options.tls:
            yield (tls,)

    def _spec(self, tls: str, connections: int) -> ConnectionsSpec:
        return spec_of(
            self.options,
            tls,
            task="hold",
            rate_per_s=float(self.options.rate),
            connections=connections,
            objects=((self.options.object_bytes, 1),),
        )

    def _passes(self, outcome: Outcome, asked: int) -> bool:
        return outcome.held == asked

    def _made_of(self, outcome: Outcome) -> int:
        return outcome.held

    def _parameters(self, tls: str) -> dict[str, Any]:
        return {"transport": words_of_tls(tls)}

    def _values(self, best: Outcome | None) -> Values:
        return {"opened_per_s": self.options.rate, "held_ns": 1e9 * self.options.duration}

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
                Column("transport", "Transport", form="text"),
                _HELD,
                interval_of(_HELD),
                Column("opened_per_s", "Opened a second", unit="connections/s", form="whole"),
                Column("held_ns", "Held for", form="seconds"),
                *columns_of_times(),
                *RESENT,
                TRIALS,
                Column("limited_by", "Limited by", form="text"),
            ),
            sentences=(
                "holds {concurrent_connections} at once by {transport}",
                "gives no result by {transport}: {limit}",
            ),
            notes=(("limit", "Limit"), BY_PORT),
        )


_Objects = tuple[tuple[int, int], ...]
_TRANSACTIONS_RATE: Final = Column(
    "transactions_per_s",
    "Application Transactions Per Second",
    unit="transactions/s",
    form="whole",
    is_main=True,
    better="higher",
    adjective="fast",
)


class HttpTransactions(SearchedMethod):
    """The greatest rate of requests that is kept up, and its goodput."""

    kind = "http-transactions"
    main = _TRANSACTIONS_RATE
    question = "How many HTTP transactions a second does {subject} bear, and how much do they carry?"
    steps = """
    HTTP transactions and their throughput (RFC 9411 sections 7.1, 7.3 and 7.7), on connections that stay.
    Steps, for TCP and each version of TLS, and each object or the mix of them: requests of HTTP/1.1 are due by the
    clock, on the connections in turn, whether earlier ones were answered or not. A trial passes where no more than
    0.001 % of the requests fail and 99 % of those due in the sustain phase are complete when it ends. The greatest rate
    is found from what the first trial bore, then by halves; its goodput is that of the bodies. Verified: each request
    is counted once, as completed or as failed in one way; length and bytes of each object are compared.
    """

    class Options(SearchedOptions):
        """Options of the bench file."""

        maximum: int = Field(ge=1, le=1_000_000_000)
        """The greatest rate that is tried, in requests a second."""
        connections: int = Field(default=32, ge=1, le=1_000_000)
        """Connections that carry them."""
        object_bytes: Distinct[ObjectBytes] = (1024, 16_384, 65_536, 262_144)
        """Sizes of objects, each measured by itself. RFC 9411: 1, 16, 64 and 256 KiB, and a mix."""
        mix: tuple[Mix, ...] = ()
        """Objects that are asked for together, each as often as its weight says; also measured."""

    options: Options

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

    def _label(self, tls: str, objects: _Objects) -> str:
        return f"{tls}/{'+'.join(f'{size}x{weight}' for size, weight in objects)}"

    def _parameters(self, tls: str, objects: _Objects) -> dict[str, Any]:
        return {
            "transport": words_of_tls(tls),
            "object": words_of_mix(objects),
            "connections": self.options.connections,
        }

    def _values(self, best: Outcome | None) -> Values:
        return {"goodput_bits_per_s": best.bits_per_s if best else None}

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
                Column("transport", "Transport", form="text"),
                Column("object", "Object", form="text"),
                Column("connections", "Connections", form="whole"),
                _TRANSACTIONS_RATE,
                interval_of(_TRANSACTIONS_RATE),
                Column("goodput_bits_per_s", "Goodput", form="gigabits"),
                *columns_of_times(("first_byte", "last_byte")),
                *RESENT,
                TRIALS,
                Column("limited_by", "Limited by", form="text"),
            ),
            sentences=(
                "bears {transactions_per_s} by {transport}, each of {object}, with bodies of {goodput_bits_per_s}",
                "gives no result by {transport}: {limit}",
            ),
            notes=(("limit", "Limit"), BY_PORT),
        )


_FIRST: Final = Column(
    "first_byte_p50_ns",
    "median",
    name=f"{KPI_OF_TIMES['first_byte']}, median",
    form="microseconds",
    group=KPI_OF_TIMES["first_byte"],
    is_main=True,
    better="lower",
)


class HttpLatency(ConnectionMethod):
    """Time to the first and to the last byte at one rate."""

    kind = "http-latency"
    question = "How long do HTTP transactions take through {subject}?"
    steps = """
    Latency of HTTP transactions (RFC 9411 sections 7.4 and 7.8): time to the first and to the last byte.
    Steps, for TCP and each version of TLS, and each object: connections are due by the clock at one rate, given or a
    share of what an earlier test `connections-per-second` found; each makes one exchange of HTTP/1.1. The times count
    from the moment when a connection was due, whether or not the client was late: so what a slow answer delays is in
    them (open loop). Connecting and the TLS handshake are timed by themselves. Percentiles are of all transactions of
    the sustain phase, in all repetitions. Verified: each is counted once, as completed or as failed; length and bytes
    are compared.
    """

    class Options(ConnectionOptions):
        """Options of the bench file."""

        rate: int | None = Field(default=None, ge=1, le=100_000_000)
        """Connections a second; or a share of what another test found (`of`)."""
        of: str | None = None
        """An earlier test `connections-per-second` of this bench file with the same `tls` and `object_bytes`."""
        load: Percent = 50.0
        """The share of its rate. RFC 9411: 50 %."""
        object_bytes: Distinct[ObjectBytes] = (1024, 16_384, 65_536)
        """Sizes of the object that each connection asks for. RFC 9411: 1, 16 and 64 KiB."""
        repetitions: Repetitions = 1
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
        known = [figures_of(one, way) for one in played.rounds]
        every = [each for figures in known if figures is not None for each in figures]
        outcome = Outcome(every, self.options.duration) if every and None not in known else None
        client = next(end for end in context.clients if end.name == way[0].client.name)
        values = {
            **(outcome.times() if outcome else {_FIRST.value: None}),
            "row": words_of_point(point),
            "transactions": outcome.completed if outcome else None,
            "failures": outcome.failures if outcome else None,
            **(outcome.resent() if outcome else {}),
            **cpu_values(played.rounds, context.servers[0].machine, "server"),
            **cpu_values(played.rounds, client.machine, "client"),
            "failed": (outcome.words or None) if outcome else None,
            "by_port": outcome.by_port if outcome else None,
        }
        return played.result(
            self,
            f"{self.name}/{tls}/{size}",
            "all clients together",
            point,
            values,
            failed=values[_FIRST.value] is None,
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
                Column("transport", "Transport", form="text"),
                Column("object", "Object", form="text"),
                Column("rate_per_s", "Rate", unit="connections/s", form="whole"),
                _FIRST,
                tail,
                *times,
                Column("transactions", "Transactions", form="whole"),
                Column("failures", "Failed", form="whole"),
                *RESENT,
            ),
            sentences=(
                "gives the first byte within {first_byte_p50_ns} by {transport} in half of those that pass ({failed})",
                "gives the first byte within {first_byte_p50_ns} in half of the transactions by {transport}",
            ),
            notes=(("failed", "Failed"), BY_PORT),
        )
