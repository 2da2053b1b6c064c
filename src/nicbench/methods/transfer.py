"""Transfers of a number of bytes: transfer size by write size, for each port and client (docs/studies.md).

The measurement of the published report on a four-port card (ttcp, 2000), by ttcp's heir. Steps, for each direction,
transfer size and write size: each client sends (or is sent) these bytes, alone, the other ports idle; repeated, and
the arithmetic mean taken. Source and sink are memory, or files that are made for it where the bench file says. A MB is
10^6 bytes and a MiB 2^20, as the bench file writes it. Verified: what a tool reports is refused where it exceeds the
link or contradicts itself; and a client that moves less than another does through the same port is named as the limit.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from difflib import get_close_matches
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from nicbench.core.base import Distinct, Frozen, WorkloadChoice
from nicbench.core.bond import LinkFailure
from nicbench.core.lists import without_none
from nicbench.core.quantity import BitsPerSecond, Repetitions, Seconds, SomeBytes
from nicbench.core.result import Result
from nicbench.core.round import Direction, EndpointFacts, JobOutcome, JobSpec, RoundRequest, Transport, Verb
from nicbench.core.table import Column, Grid, ImportColumn, ImportTable, ResultTable
from nicbench.core.units import format_bits_per_s, format_bytes
from nicbench.methods import _round_figures as _failures
from nicbench.methods._round_figures import (
    CLIENT_OWN_CPU,
    ROUND_OVERHEAD_S,
    SERVER_OWN_CPU,
    PlayedRounds,
    clients_by_port,
    cpu_values,
    find_limits_alone,
    jobs_of,
    loads_of,
    mean,
    mean_retransmissions,
)
from nicbench.methods.base import Misfit, RoundContext, RoundMethod, Values
from nicbench.stats.limits import FoundLimit
from nicbench.stats.rounds import bits_per_s

# What streams and transfers share or choose: the options of streams, the medium of a transfer, and its table.


MEMORY: Final = "memory"
_TELLING_EXCESS: Final = 1.005
_FOLDER: Final = re.compile(r"/[A-Za-z0-9._/+-]{1,200}")
_ACCEPTED: Final = "`memory`, a folder (`/mnt/data`), or a folder for each host (`{server: /mnt/data}`)"


def _read(value: Any) -> Any:
    if isinstance(value, dict) and value:
        return {str(host): _folder(folder) for host, folder in value.items()}
    return value if value == MEMORY else _folder(value)


def _folder(value: Any) -> str:
    if not isinstance(value, str) or not _FOLDER.fullmatch(value) or ".." in value.split("/"):
        given = f"`{value}`" if isinstance(value, str | int | float) else "this"
        raise _refusal(f"{given} is no folder: a path from the root, without `..` and blanks")
    return value


def _refusal(why: str) -> PydanticCustomError:
    return PydanticCustomError("quantity", "{why}", {"why": why, "accepted": _ACCEPTED})


def bucket_note(client: EndpointFacts, transfer_bytes: int) -> str | None:
    """Returns what the token bucket of the link does to a short transfer; None where that is less than half a percent.

    The bucket is full at first and lets its bytes pass at once; only the others wait for tokens.
    """
    rate, bucket = client.link_bits_per_s, client.bucket_bytes
    if rate is None or bucket is None or transfer_bytes <= 0:
        return None
    size = f"of a transfer of {format_bytes(transfer_bytes)} the first {bucket} bytes pass at once"
    if transfer_bytes <= bucket:
        return f"{size}: its rate says nothing of the link"
    highest = rate * transfer_bytes / (transfer_bytes - bucket)
    if highest < _TELLING_EXCESS * rate:
        return None
    return f"{size}, so that it may show up to {format_bits_per_s(highest)} on a link of {format_bits_per_s(rate)}"


Medium = Annotated[str | dict[str, str], BeforeValidator(_read)]
"""The medium: ``memory``, a folder for every host, or ``{host: folder}``; hosts that are not named use memory."""


def folder_of(medium: str | dict[str, str], end: EndpointFacts) -> str | None:
    """Returns the folder on the host of an endpoint; None where the medium is memory there."""
    if isinstance(medium, dict):
        return medium.get(end.host)
    return None if medium == MEMORY else medium


def words_of(medium: str | dict[str, str], end: EndpointFacts) -> str:
    """Describes the medium for tables: "memory", "file in /mnt/data"."""
    folder = folder_of(medium, end)
    return MEMORY if folder is None else f"file in {folder}"


def example_of(medium: str | dict[str, str]) -> str | None:
    """Returns any path of the medium, to check whether a tool supports files at all; None for memory."""
    return None if medium == MEMORY else "/folder/file"


_TRANSFER: Final = Column("transfer", "Transfer", form="text")
_WRITE: Final = Column("write_bytes", "Write", unit="bytes", form="text")
_PLACE: Final = Column("place", "Port", form="text")
_RATE: Final = Column(
    "throughput_bits_per_s",
    "Throughput, mean",
    unit="Mb/s",
    form="megabits",
    is_main=True,
    better="higher",
    adjective="fast",
)

TABLE: Final = ResultTable(
    title="Transfers",
    caption=(
        "Payload of transfers of a fixed number of bytes, by what the receiver counted: the arithmetic mean of the "
        "repetitions and their standard deviation, each client by itself. MB are 10⁶ bytes, MiB 2²⁰."
    ),
    columns=(
        *(_PLACE, _TRANSFER, _WRITE, _RATE),
        Column("throughput_deviation_bits_per_s", "Std. deviation", unit="Mb/s", form="megabits"),
        Column("throughput_minimum_bits_per_s", "least", unit="Mb/s", form="megabits"),
        Column("throughput_maximum_bits_per_s", "most", unit="Mb/s", form="megabits"),
        Column("repetitions", "Repetitions", form="whole"),
        Column("source", "Source", form="text"),
        Column("sink", "Sink", form="text"),
        SERVER_OWN_CPU,
        Column("server_cpu_mean_percent", "Server's CPU, mean", unit="%", form="number"),
        CLIENT_OWN_CPU,
        Column("client_cpu_mean_percent", "Client's CPU, mean", unit="%", form="number"),
        Column("retransmissions", "Retransmissions", form="trimmed"),
        Column("limited_by", "Limit", form="text"),
    ),
    sentences=("moves {throughput_bits_per_s} in transfers of {transfer} by {write_bytes} writes ({place})",),
    notes=(("limit", "Limit"), ("token_bucket", "Token bucket")),
    grid=Grid(rows=_TRANSFER, across=(_WRITE,), cell=_RATE, each=_PLACE),
)

IMPORTS: Final = ImportTable(
    columns=(
        ImportColumn("throughput_bits_per_s", "throughput", "payload_rate", also=("mean", "mean throughput")),
        ImportColumn(
            "throughput_deviation_bits_per_s",
            "standard deviation",
            "payload_rate",
            also=("std deviation", "deviation"),
        ),
        ImportColumn("server_cpu_mean_percent", "cpu", "percent", also=("server cpu",)),
        ImportColumn("workload", "tool", "text", also=("workload",), tells_apart=True),
        ImportColumn("port", "port", "text", tells_apart=True),
        ImportColumn("client", "client", "text", tells_apart=True, may_be_empty=True),
        ImportColumn("duplex", "duplex", "text", tells_apart=True),
        ImportColumn("transfer_bytes", "transfer size", "count", also=("size",), tells_apart=True),
        ImportColumn("write_bytes", "write size", "count", also=("write",), tells_apart=True),
        ImportColumn("source", "source", "text", tells_apart=True, may_be_empty=True),
        ImportColumn("sink", "sink", "text", tells_apart=True, may_be_empty=True),
        ImportColumn("repetitions", "repetitions", "count"),
    ),
    any_of=("throughput_bits_per_s",),
    caption="Throughput of payload in transfers of a fixed number of bytes.",
)


Together = Literal["port", "card", "growing", "all"]
"""What sends at the same time: the clients of one port, of all ports of one card, of two ports, three, ..., or all."""

WRITE_BYTES = 8192
DURATION_S = 10.0


_Number = Annotated[int, Field(ge=1, le=128)]


def _tool_of(options: Mapping[str, Any]) -> WorkloadChoice:
    return WorkloadChoice(kind="perftest" if options.get("transport") == "rdma" else "iperf3")


class StreamOptions(Frozen):
    """Options of the bench file. ``at_once`` is what sends together, ``streams`` how many connections a client has.

    ``rate`` paces each connection; UDP without a rate is sent as fast as the tool can.
    """

    transport: Transport = "tcp"
    """The transport protocol. `rdma` is RoCE or InfiniBand."""
    workload: WorkloadChoice = Field(default_factory=_tool_of)
    """The tool, alone or with options of its own: `{kind: iperf3, ...}`. Without it `iperf3`, for RDMA `perftest`."""
    verb: Distinct[Verb] = ("write",)
    """What moves the data of RDMA: `write`, `send`, `read`."""
    direction: Distinct[Direction] = ("forward",)
    """`forward`: clients send. `reverse`: the server sends. `both`: at once."""
    at_once: Distinct[Together] = ("port", "all")
    """What sends together: each `port` with its clients, each `card` with its ports, `growing` (two ports, then three,
    up to one less than all), `all`."""
    write_bytes: Distinct[SomeBytes] = (WRITE_BYTES,)
    """Size of one write, datagram or message."""
    streams: _Number | Distinct[_Number] = 1
    """Connections, or queue pairs of RDMA, of each client: a number, or several."""
    window: SomeBytes | None = None
    """Socket buffers; without it the kernel's."""
    congestion_control: str | None = Field(default=None, pattern=r"^[a-z0-9_]{1,15}$")
    """Congestion control of TCP, for example `bbr`; without it the kernel's."""
    zero_copy: bool = False
    """Send without copying, where the tool can."""
    no_delay: bool = False
    """Without Nagle's algorithm."""
    rate: BitsPerSecond | None = Field(default=None, ge=1.0)
    """Rate of each connection; without it as fast as it goes."""
    duration: Seconds = Field(default=DURATION_S, ge=1.0, le=86_400.0)
    """Duration of a round."""
    repetitions: Repetitions = 1
    """Repetitions of each round. The result is their mean."""
    failure: LinkFailure | None = None
    """A link of a bond goes down during each round."""

    @property
    def stream_counts(self) -> tuple[int, ...]:
        """Every number of connections that is measured."""
        return self.streams if isinstance(self.streams, tuple) else (self.streams,)

    @model_validator(mode="after")
    def _link_comes_back(self) -> Self:
        # A tool that does not count its first seconds plays as many more.
        omitted_s = self.workload.options.get("omit_s")
        more_s = omitted_s if isinstance(omitted_s, int | float) else 0.0
        _failures.require_link_back(self.failure, self.duration + more_s)
        return self

    @model_validator(mode="after")
    def _udp_has_no_congestion_control(self) -> Self:
        if self.transport == "udp" and self.congestion_control is not None:
            raise ValueError("UDP has no congestion control: remove `congestion_control`")
        return self


MEGABYTE: Final = 1_000_000
TRANSFERS: Final = (1 * MEGABYTE, 5 * MEGABYTE, 10 * MEGABYTE)
WRITES: Final = (1024, 4096, 8192)
REPETITIONS: Final = 10
_ASSUMED_CLIENTS: Final = 4
_SLOWEST_BITS_PER_S: Final = 50e6
"""The slowest rate for which a transfer is given enough time; a slower one has only the timeout in addition."""

_ONE_WAY = Literal["forward", "reverse"]


class Transfer(RoundMethod):
    """Throughput of transfers of a fixed size, by write size: mean of ten, per port and client."""

    kind = "transfer"
    question = "How fast are transfers of a fixed size at {subject}, by write size?"

    class Options(Frozen):
        """Options of the bench file; defaults are those of the published measurement."""

        workload: WorkloadChoice = WorkloadChoice(kind="nuttcp")
        """The tool, alone or with options of its own: `nuttcp` (ttcp's heir) or `iperf3`."""
        direction: Distinct[_ONE_WAY] = ("forward",)
        """`forward`: clients send. `reverse`: the server sends."""
        transfer_bytes: Distinct[SomeBytes] = TRANSFERS
        """Bytes of a transfer. MB are 10^6 bytes, MiB 2^20."""
        write_bytes: Distinct[SomeBytes] = WRITES
        """Size of one write."""
        source: Medium = MEMORY
        """What the sender reads: `memory`, a folder (`/mnt/data`), or a folder for each host (`{server: /mnt/data}`,
        the others: memory).
        """
        sink: Medium = MEMORY
        """What the receiver writes to, likewise. nuttcp has files at its client only."""
        window: SomeBytes | None = None
        """Socket buffers; without it the kernel's."""
        no_delay: bool = False
        """Without Nagle's algorithm."""
        repetitions: int = Field(default=REPETITIONS, ge=1, le=1000)
        """Repetitions of each transfer."""

    options: Options

    def points(self) -> int:
        return len(self.options.direction) * len(self.options.transfer_bytes) * len(self.options.write_bytes)

    def estimate_s(self) -> float:
        """Returns an estimate for four clients; the actual number is known once the testbed is set up."""
        sent_s = sum(self._request_s(size) for size in self.options.transfer_bytes)
        sets = len(self.options.direction) * len(self.options.write_bytes) * self.options.repetitions
        return _ASSUMED_CLIENTS * sets * sent_s

    def deviations(self) -> tuple[str, ...]:
        if self.options.repetitions >= REPETITIONS:
            return ()
        return (f"each figure is the mean of {self.options.repetitions}, the published measurement takes ten",)

    def clients_at_once(self, clients: int) -> int:
        return min(clients, 1)

    def job_specs(self) -> tuple[tuple[WorkloadChoice, JobSpec], ...]:
        files = (example_of(self.options.source), example_of(self.options.sink))
        return tuple((self.options.workload, _with_files(ask, *files)) for ask in self._asks())

    def find_misfits(self, clients: Mapping[str, Sequence[str]], hosts: Sequence[str]) -> Iterator[Misfit]:
        """Yields a misfit for a folder on an unknown host, where memory would be measured in its place."""
        for option, medium in (("source", self.options.source), ("sink", self.options.sink)):
            for host in medium if isinstance(medium, dict) else ():
                if host not in hosts:
                    close = get_close_matches(host, hosts, n=1)
                    known = ", ".join(f"`{name}`" for name in hosts)
                    step = f"did you mean `{close[0]}`?" if close else f"known hosts: {known}"
                    yield Misfit(option=(option, host), message=f"there is no host `{host}`", next_step=step)

    async def results(self, context: RoundContext) -> AsyncIterator[Result]:
        for ask in self._asks():
            played = {client.name: await self._repeat(context, ask, client) for client in context.clients}
            limits = find_limits_alone(context, played)
            for client in context.clients:
                result = self._result(context, ask, client, played[client.name], limits[client.name])
                yield result

    def _asks(self) -> Iterator[JobSpec]:
        options = self.options
        for direction in options.direction:
            for transfer_bytes in options.transfer_bytes:
                for write_bytes in options.write_bytes:
                    yield JobSpec(
                        direction=direction,
                        total_bytes=transfer_bytes,
                        write_bytes=write_bytes,
                        window_bytes=options.window,
                        no_delay=options.no_delay,
                    )

    def _request_s(self, transfer_bytes: int) -> float:
        return ROUND_OVERHEAD_S + 8 * transfer_bytes / _SLOWEST_BITS_PER_S

    async def _repeat(self, context: RoundContext, ask: JobSpec, client: EndpointFacts) -> PlayedRounds:
        """Plays one client alone, as often as requested."""
        played = PlayedRounds()
        async with self._files(context, ask, client) as with_files:
            request = RoundRequest(
                jobs=jobs_of([client], self.options.workload, with_files),
                duration_s=self._request_s(ask.total_bytes or 0),
            )
            point = {**_sizes(ask), "port": client.port, "client": client.name}
            for repetition in range(self.options.repetitions):
                played.add(await context.play({**point, "repetition": repetition + 1}, request))
        return played

    @asynccontextmanager
    async def _files(self, context: RoundContext, ask: JobSpec, client: EndpointFacts) -> AsyncIterator[JobSpec]:
        """Provides the requested files while entered: the source with its content, and room for the sink."""
        size_bytes = ask.total_bytes or 0
        made: list[tuple[str, str]] = []
        paths: list[str | None] = []
        sides = zip(
            ("source", "sink"), (self.options.source, self.options.sink), _ends(context, ask, client), strict=True
        )
        try:
            for purpose, medium, end in sides:
                folder = folder_of(medium, end)
                if folder is None:
                    paths.append(None)
                    continue
                name = f"{self.name}-{purpose}-{size_bytes}"
                paths.append(await context.make_file(end.name, folder, name, size_bytes, filled=purpose == "source"))
                made.append((end.name, str(paths[-1])))
            yield _with_files(ask, *paths)
        finally:
            for endpoint, path in made:
                await context.remove_file(endpoint, path)

    def _result(
        self, context: RoundContext, ask: JobSpec, client: EndpointFacts, played: PlayedRounds, limit: FoundLimit
    ) -> Result:
        outcomes = [outcome for one in played.rounds for _, outcome in loads_of(one)]
        source, sink = _ends(context, ask, client)
        parameters = {
            **_sizes(ask),
            "transfer": format_bytes(ask.total_bytes or 0),
            "port": client.port,
            "client": client.name,
            "place": _place(context, ask, client),
            "source": words_of(self.options.source, source),
            "sink": words_of(self.options.sink, sink),
        }
        values: Values = {
            **_statistics(outcomes),
            "retransmissions": mean_retransmissions(played.rounds),
            **cpu_values(played.rounds, context.servers[0].machine, "server"),
            **cpu_values(played.rounds, client.machine, "client"),
            "token_bucket": bucket_note(client, ask.total_bytes or 0),
            "limited_by": limit.limit.value,
            "limit": f"{client.name}, {format_bytes(ask.total_bytes or 0)} by {ask.write_bytes} bytes: {limit.text}",
        }
        return played.result(
            self,
            f"{self.name}/{ask.direction}/{ask.total_bytes}/{ask.write_bytes}/{client.name}",
            "one direction",
            parameters,
            values,
            failed=values["throughput_bits_per_s"] is None,
        )

    @classmethod
    def table(cls) -> ResultTable:
        return TABLE

    @classmethod
    def imports(cls) -> ImportTable:
        return IMPORTS

    @classmethod
    def from_import(cls, parameters: dict[str, Any], values: Values) -> tuple[dict[str, Any], Values]:
        """Uses the source's name of the test where no size is given."""
        duplex = parameters.get("duplex")
        mode = ", ".join(text for text in (parameters.get("link"), f"{duplex} duplex" if duplex else None) if text)
        size = parameters.get("transfer_bytes")
        said = format_bytes(size) if isinstance(size, int) else parameters.get("workload") or "size not named"
        port = f"port {parameters['port']}" if "port" in parameters else "port not named"
        place = f"{mode}, {port}" if mode else port
        return {**parameters, "transfer": said, "place": place}, values


def _sizes(ask: JobSpec) -> dict[str, Any]:
    return {"direction": ask.direction, "transfer_bytes": ask.total_bytes, "write_bytes": ask.write_bytes}


def _with_files(ask: JobSpec, source: str | None, sink: str | None) -> JobSpec:
    return ask.replace(source_file=source, sink_file=sink)


def _ends(context: RoundContext, ask: JobSpec, client: EndpointFacts) -> tuple[EndpointFacts, EndpointFacts]:
    """Returns the sender and the receiver."""
    server = next(end for end in context.servers if end.name == client.port)
    return (client, server) if ask.direction == "forward" else (server, client)


def _place(context: RoundContext, ask: JobSpec, client: EndpointFacts) -> str:
    """Returns the port; with its client where it has several, and the direction where it is not the default one."""
    alone = len(clients_by_port(context).get(client.port or "", ())) < 2
    if ask.direction == "forward":
        return str(client.port) if alone else f"{client.port} from {client.name}"
    return f"{client.port} to {client.name}"


def _statistics(outcomes: Sequence[JobOutcome]) -> Values:
    """Returns the arithmetic mean, as published, and the spread of the repetitions (s with n - 1 in the divisor)."""
    rates = [bits_per_s(outcome.figures) for outcome in outcomes]
    known = without_none(rates)
    return {
        "throughput_bits_per_s": mean(rates),
        "throughput_deviation_bits_per_s": statistics.stdev(known) if len(known) > 1 else None,
        "throughput_minimum_bits_per_s": min(known, default=None),
        "throughput_maximum_bits_per_s": max(known, default=None),
        "repetitions": len(known),
    }
