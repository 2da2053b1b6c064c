"""What streams and transfers share or choose: the options of streams, the medium of a transfer, and its table."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from nicbench.core.base import Distinct, Frozen, WorkloadChoice
from nicbench.core.bond import LinkFailure
from nicbench.core.quantity import BitsPerSecond, Seconds, SomeBytes
from nicbench.core.round import Direction, EndpointFacts
from nicbench.core.table import Column, Grid, ImportColumn, ImportTable, ResultTable
from nicbench.core.units import format_bits_per_s, format_bytes
from nicbench.methods import _failures
from nicbench.methods._round_figures import CLIENT_OWN_CPU, SERVER_OWN_CPU

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


_TRANSFER: Final = Column(value="transfer", head="Transfer", form="text")
_WRITE: Final = Column(value="write_bytes", head="Write", unit="bytes", form="text")
_PLACE: Final = Column(value="place", head="Port", form="text")
_RATE: Final = Column(
    value="throughput_bits_per_s",
    head="Throughput, mean",
    unit="Mb/s",
    form="megabits",
    is_main=True,
    better="higher",
    comparative="faster",
)

TABLE: Final = ResultTable(
    title="Transfers",
    caption=(
        "Payload of transfers of a fixed number of bytes, by what the receiver counted: the arithmetic mean of the "
        "repetitions and their standard deviation, each client by itself. MB are 10⁶ bytes, MiB 2²⁰."
    ),
    columns=(
        *(_PLACE, _TRANSFER, _WRITE, _RATE),
        Column(value="throughput_deviation_bits_per_s", head="Std. deviation", unit="Mb/s", form="megabits"),
        Column(value="throughput_minimum_bits_per_s", head="least", unit="Mb/s", form="megabits"),
        Column(value="throughput_maximum_bits_per_s", head="most", unit="Mb/s", form="megabits"),
        Column(value="repetitions", head="Repetitions", form="whole"),
        Column(value="source", head="Source", form="text"),
        Column(value="sink", head="Sink", form="text"),
        SERVER_OWN_CPU,
        Column(value="server_cpu_mean_percent", head="Server's CPU, mean", unit="%", form="number"),
        CLIENT_OWN_CPU,
        Column(value="client_cpu_mean_percent", head="Client's CPU, mean", unit="%", form="number"),
        Column(value="retransmissions", head="Retransmissions", form="trimmed"),
        Column(value="limited_by", head="Limit", form="text"),
    ),
    sentences=("moves {throughput_bits_per_s} in transfers of {transfer} by {write_bytes} writes ({place})",),
    notes=(("limit", "Limit"), ("token_bucket", "Token bucket")),
    grid=Grid(rows=_TRANSFER, across=(_WRITE,), cell=_RATE, each=_PLACE),
)

IMPORTS: Final = ImportTable(
    columns=(
        ImportColumn(
            value="throughput_bits_per_s", name="throughput", quantity="payload_rate", also=("mean", "mean throughput")
        ),
        ImportColumn(
            value="throughput_deviation_bits_per_s",
            name="standard deviation",
            quantity="payload_rate",
            also=("std deviation", "deviation"),
        ),
        ImportColumn(value="server_cpu_mean_percent", name="cpu", quantity="percent", also=("server cpu",)),
        ImportColumn(value="workload", name="tool", quantity="text", also=("workload",), tells_apart=True),
        ImportColumn(value="port", name="port", quantity="text", tells_apart=True),
        ImportColumn(value="client", name="client", quantity="text", tells_apart=True),
        ImportColumn(value="duplex", name="duplex", quantity="text", tells_apart=True),
        ImportColumn(value="transfer_bytes", name="transfer size", quantity="count", also=("size",), tells_apart=True),
        ImportColumn(value="write_bytes", name="write size", quantity="count", also=("write",), tells_apart=True),
        ImportColumn(value="source", name="source", quantity="text", tells_apart=True),
        ImportColumn(value="sink", name="sink", quantity="text", tells_apart=True),
        ImportColumn(value="repetitions", name="repetitions", quantity="count"),
    ),
    any_of=("throughput_bits_per_s",),
    caption="Throughput of payload in transfers of a fixed number of bytes.",
)


Together = Literal["port", "card", "growing", "all"]
"""What sends at the same time: the clients of one port, of all ports of one card, of two ports, three, ..., or all."""

WRITE_BYTES = 8192
DURATION_S = 10.0


class StreamOptions(Frozen):
    """Options of the bench file. ``at_once`` is what sends together, ``streams`` how many connections a client has.

    ``rate`` paces each connection; UDP without a rate is sent as fast as the tool can.
    """

    workload: WorkloadChoice = WorkloadChoice(kind="iperf3")
    """The tool, alone or with options of its own: `{kind: iperf3, ...}`."""
    transport: Literal["tcp", "udp"] = "tcp"
    """The transport protocol."""
    direction: Distinct[Direction] = Field(default=("forward",), min_length=1)
    """`forward`: clients send. `reverse`: the server sends. `both`: at once."""
    at_once: Distinct[Together] = Field(default=("port", "all"), min_length=1)
    """What sends together: each `port` with its clients, each `card` with its ports, `growing` (two ports, then three,
    up to one less than all), `all`."""
    write_bytes: Distinct[SomeBytes] = Field(default=(WRITE_BYTES,), min_length=1)
    """Size of one write or datagram."""
    streams: int = Field(default=1, ge=1, le=128)
    """Connections of each client."""
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
    repetitions: int = Field(default=1, ge=1, le=1000)
    """Repetitions of each round. The result is their mean."""
    failure: LinkFailure | None = None
    """A link of a bond goes down during each round."""

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
